"""The order in which hosts come up: those that may be contacted, by priority, then by turn."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amicrawl.frontier.host_queue import HostQueue

_STALE_FROM = 64


class Rotation:
    """The queues of hosts that have rows, in the order in which they come up.

    A queue is filed as ready (may be contacted now) or as waiting (from a moment on), or it is nowhere:
    then only the end of a request can bring it back. A queue is filed anew by a second entry, and the
    first is left where it is: it no longer matches its queue, is skipped when it comes up, and all such
    are removed when they outnumber the others.

    Turns are numbered when a queue is filed: those of one priority follow each other by when they
    were last taken, whether they have been waiting for a gate or not.
    """

    def __init__(self) -> None:
        self._ready: list[tuple[int, int, HostQueue]] = []
        self._waiting: list[tuple[float, int, HostQueue]] = []
        self._turns = 0
        self._stale = 0

    def file(self, lane: HostQueue, opens: float, now: float) -> None:
        """File *lane*, which has rows, by the moment *opens* from which its host may be contacted.

        It is ready where that has passed by *now*, and else waiting; for infinity it is filed nowhere.
        """
        if opens == inf:
            return
        filed = lane.turn
        self._turns += 1
        lane.turn = self._turns
        if opens <= now:
            order = lane.order = lane.first_order
            heappush(self._ready, (order, lane.turn, lane))
        else:
            lane.order = None
            heappush(self._waiting, (opens, lane.turn, lane))
        if filed > 0:
            self._count_stale()

    def hurry(self, lane: HostQueue) -> None:
        """Move *lane* up, among those that are ready, if a row of greater priority came in."""
        if lane.order is not None and lane.first_order < lane.order:
            lane.order = lane.first_order
            heappush(self._ready, (lane.order, lane.turn, lane))
            self._count_stale()

    def take(self, now: float) -> HostQueue | None:
        """Take out the queue whose turn it is at *now*, or return None where none is ready."""
        if self._waiting:
            self._open_gates(now)
        ready = self._ready
        while ready:
            order, turn, lane = heappop(ready)
            if lane.turn == turn and lane.order == order:
                lane.turn = 0
                lane.order = None
                return lane
            self._stale -= 1
        return None

    def first_order(self, now: float) -> int | None:
        """Return the order of the queue whose turn it is at *now*, or None where none is ready."""
        ready = self._ready
        self._open_gates(now)
        while ready:
            order, turn, lane = ready[0]
            if lane.turn == turn and lane.order == order:
                return order
            heappop(ready)
            self._stale -= 1
        return None

    def first_moment(self) -> float | None:
        """Return a moment before which `take` finds none; minus infinity where a queue is ready."""
        if self._ready:
            return -inf
        return self._waiting[0][0] if self._waiting else None

    def _open_gates(self, now: float) -> None:
        """Move the lanes that may be contacted at *now* to those that are ready."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= now:
            _, turn, lane = heappop(waiting)
            if lane.turn == turn:
                lane.order = lane.first_order
                heappush(self._ready, (lane.order, turn, lane))
            else:
                self._stale -= 1

    def _count_stale(self) -> None:
        """Note that an entry was left behind; sweep when most are."""
        self._stale += 1
        if self._stale > _STALE_FROM + (len(self._ready) + len(self._waiting)) // 2:
            self._ready = [
                entry
                for entry in self._ready
                if entry[2].turn == entry[1] and entry[2].order == entry[0]
            ]
            self._waiting = [entry for entry in self._waiting if entry[2].turn == entry[1]]
            heapify(self._ready)
            heapify(self._waiting)
            self._stale = 0
