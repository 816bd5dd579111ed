"""The rows of each host that wait, and the order in which hosts come up.

A host has one queue. Of the hosts that may be contacted, the one comes first whose first row does; of
equals, the one that has waited longest.
"""

from __future__ import annotations

from array import array
from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Final

from amicrawl.frontier.places import number_at, order_at, place

if TYPE_CHECKING:
    from collections.abc import Callable

_STALE_FROM = 64
_TAKEN_KEPT = 1024
_NO_PLACES: Final[list[int]] = []


class HostQueue:
    """The waiting rows of one host: a run, in order, and a heap of those that came out of order.

    In the run, rows are numbers in the order in which they come up: 4 octets each. A row that is new
    comes behind all others of its order, so the run takes nearly all there are; the heap has places
    (see `places`), which are objects.
    """

    __slots__ = ("_at", "_first_order", "_last_order", "_numbers", "_places", "host", "order", "turn")

    def __init__(self, host: int) -> None:
        self.host = host
        self._numbers: array[int] = array("I")
        self._at = 0
        """Where in the run its first row is; what is before was taken out."""
        self._first_order = self._last_order = 0
        """The orders of the first and the last row of the run, if there is one."""
        # Most hosts never have one, and a list of their own would be a tenth of what a host takes.
        self._places: list[int] = _NO_PLACES
        self.turn = 0
        """The number under which it is filed; 0 for nowhere, less while it is held back."""
        self.order: int | None = None
        """The order under which it is filed as ready; None where it is not."""

    def __bool__(self) -> bool:
        return self._at < len(self._numbers) or bool(self._places)

    def __len__(self) -> int:
        return len(self._numbers) - self._at + len(self._places)

    @property
    def first_order(self) -> int:
        """The order of its first row; there must be one."""
        if not self._places:
            return self._first_order
        order = order_at(self._places[0])
        return min(order, self._first_order) if self._at < len(self._numbers) else order

    def follow(self, numbers: array[int], place_of: Callable[[int], int]) -> None:
        """Begin with the rows *numbers*; *place_of* returns the place of a row by its number."""
        self._numbers = numbers
        self._first_order, self._last_order = (order_at(place_of(numbers[end])) for end in (0, -1))

    def append(self, order: int, reference: int, number: int) -> bool:
        """Add a row that was never here, with a reference greater than those of all others.

        Return whether it may come first; it does not where it comes last.
        """
        numbers = self._numbers
        if order == self._last_order and numbers:
            numbers.append(number)
            return False
        if numbers and order < self._last_order:
            self.push(place(order, reference, number))
            return True
        if not numbers:
            self._first_order = order
        self._last_order = order
        numbers.append(number)
        return True

    def push(self, place: int) -> None:
        """Add a row that comes back."""
        if self._places is _NO_PLACES:
            self._places = []
        heappush(self._places, place)

    def pop(self, place_of: Callable[[int], int]) -> int:
        """Take out the number of the first row; there must be one."""
        numbers, at, places = self._numbers, self._at, self._places
        if at == len(numbers) or (places and places[0] < place_of(numbers[at])):
            return number_at(heappop(places))
        number = numbers[at]
        self._at = at = at + 1
        if at == len(numbers):
            del numbers[:]
            self._at = 0
        elif self._first_order != self._last_order:
            self._first_order = order_at(place_of(numbers[at]))
        elif at > _TAKEN_KEPT and 2 * at > len(numbers):
            del numbers[:at]
            self._at = 0
        return number

    def pop_far(self, place_of: Callable[[int], int]) -> int:
        """Take out the number of a row from the far end, in constant time; there must be a row."""
        if len(self._numbers) - self._at > 1:
            return self._numbers.pop()
        # The last leaf of a heap: one of its later places, and the rest stays a heap.
        return number_at(self._places.pop()) if self._places else self.pop(place_of)


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
