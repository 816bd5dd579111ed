"""Whose turn it is: hosts with waiting rows, by when they may be asked.

A lane is the queue of one host. It is filed as ready (may be asked now) or as waiting (from a moment
on), or it is nowhere: then only the end of a request can bring it back. A lane is filed anew by putting
a second entry in and leaving the first where it lies. An entry that its lane no longer stands behind is
passed over when it comes up, and all such are swept out when they outnumber the others.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from amicrawl.frontier.places import order_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.frontier.backlog import Run

_STALE_FROM = 64


class Lane:
    """The waiting rows of one host, as places (see `places`): those of a run, and a heap of others."""

    __slots__ = ("_head", "_places", "_run", "host", "order", "turn")

    def __init__(self, host: int) -> None:
        self.host = host
        self._places: list[int] = []
        self._run: Run | None = None
        self._head: int | None = None
        """The place of the run's first row; None where it has none left."""
        self.turn = 0
        """The number under which it is filed; 0 for nowhere."""
        self.order: int | None = None
        """The order under which it is filed as ready; None where it is not."""

    def __bool__(self) -> bool:
        return bool(self._places) or self._head is not None

    def __len__(self) -> int:
        further = 0 if self._run is None else len(self._run)
        return len(self._places) + further + (self._head is not None)

    @property
    def first_order(self) -> int:
        """The order of its first row; there must be one."""
        head, places = self._head, self._places
        if head is None:
            return order_at(places[0])
        return order_at(places[0] if places and places[0] < head else head)

    def follow(self, run: Run, place_of: Callable[[int], int]) -> None:
        """Take over the rows of *run*; *place_of* tells the place of a row by its number."""
        self._run = run
        self._draw(place_of)

    def push(self, place: int) -> None:
        """Add a row."""
        heappush(self._places, place)

    def pop(self, place_of: Callable[[int], int]) -> int:
        """Take out the place of the first row; there must be one."""
        head = self._head
        if head is None or (self._places and self._places[0] < head):
            return heappop(self._places)
        self._draw(place_of)
        return head

    def pop_far(self, place_of: Callable[[int], int]) -> int:
        """Take out the place of a row from the far end, in constant time; there must be a row."""
        number = None if self._run is None else self._run.take_last()
        if number is not None:
            return place_of(number)
        # The last leaf of a heap: one of its later places, and the rest stays a heap.
        return self._places.pop() if self._places else self.pop(place_of)

    def _draw(self, place_of: Callable[[int], int]) -> None:
        assert self._run is not None
        number = self._run.take()
        self._head = None if number is None else place_of(number)


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
        """Return the order of the lane whose turn it is at *now*, or None where none is ready."""
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
        """Return a moment before which `take` has no answer; minus infinity where a lane is ready."""
        if self._ready:
            return float("-inf")
        return self._waiting[0][0] if self._waiting else None

    def _open_gates(self, now: float) -> None:
        """Move the lanes that may be asked at *now* to those that are ready."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= now:
            _, turn, lane = heappop(waiting)
            if lane.turn == turn:
                lane.order = lane.first_order
                heappush(self._ready, (lane.order, turn, lane))
            else:
                self._stale -= 1

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
