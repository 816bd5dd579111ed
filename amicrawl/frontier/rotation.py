"""Whose turn it is: hosts with waiting rows, by when they may be asked.

A lane is the queue of one host. It is filed as ready (may be asked now) or as waiting (from a moment
on), or it is nowhere: then only the end of a request can bring it back. A lane is filed anew by putting
a second entry in and leaving the first where it lies. An entry that its lane no longer stands behind is
passed over when it comes up, and all such are swept out when they outnumber the others.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from amicrawl.frontier.packing import order_of

_STALE_FROM = 64


class Lane:
    """The waiting rows of one host."""

    __slots__ = ("host", "order", "rows", "turn")

    def __init__(self, host: int) -> None:
        self.host = host
        self.rows: list[bytes] = []
        """Packed rows: a heap."""
        self.turn = 0
        """The number under which it is filed; 0 for nowhere."""
        self.order: int | None = None
        """Minus the priority under which it is filed as ready; None where it is not."""

    @property
    def first_order(self) -> int:
        """Minus the priority of its first row."""
        return order_of(self.rows[0])


class Rotation:
    """The lanes that have rows, in the order in which they come up.

    Turns are numbered when a lane is filed, so that those of one priority follow each other by when they
    were last taken, whether they have been waiting for a gate or not.
    """

    def __init__(self) -> None:
        self._ready: list[tuple[int, int, Lane]] = []
        self._waiting: list[tuple[float, int, Lane]] = []
        self._turns = 0
        self._stale = 0

    def ready(self, lane: Lane) -> None:
        """File *lane*, which has rows, as one that may be asked now."""
        self._number(lane)
        lane.order = lane.first_order
        heappush(self._ready, (lane.order, lane.turn, lane))

    def wait(self, lane: Lane, moment: float) -> None:
        """File *lane*, which has rows, as one that may be asked from *moment* on."""
        self._number(lane)
        lane.order = None
        heappush(self._waiting, (moment, lane.turn, lane))

    def hurry(self, lane: Lane) -> None:
        """Move *lane* up, among those that are ready, if a row of greater priority came in."""
        if lane.order is not None and lane.first_order < lane.order:
            lane.order = lane.first_order
            heappush(self._ready, (lane.order, lane.turn, lane))
            self._count_stale()

    def take(self, now: float) -> Lane | None:
        """Take out the lane whose turn it is at *now*, or return None where none is ready."""
        waiting, ready = self._waiting, self._ready
        while waiting and waiting[0][0] <= now:
            _, turn, lane = heappop(waiting)
            if lane.turn == turn:
                lane.order = lane.first_order
                heappush(ready, (lane.order, turn, lane))
            else:
                self._stale -= 1
        while ready:
            _, turn, lane = heappop(ready)
            if lane.turn == turn:
                lane.turn = 0
                lane.order = None
                return lane
            self._stale -= 1
        return None

    def first_moment(self) -> float | None:
        """Return a moment before which `take` has no answer; minus infinity where a lane is ready."""
        if self._ready:
            return float("-inf")
        return self._waiting[0][0] if self._waiting else None

    def _number(self, lane: Lane) -> None:
        filed = lane.turn
        self._turns += 1
        lane.turn = self._turns
        if filed:
            self._count_stale()

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
