"""The rows of one host that wait, in the order in which they come up."""

from __future__ import annotations

from array import array
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from amicrawl.frontier.places import number_at, order_at, place

if TYPE_CHECKING:
    from collections.abc import Callable

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
