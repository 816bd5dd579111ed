"""Where each waiting row stands, for queues whose rows are given other places while they wait.

A row that gets another priority is queued a second time, and its older place stays where it lies: taking
it out would mean a search. Here is what tells the two apart: whether a row waits at all, and where. One
octet a row; a queue whose rows keep their places needs none of it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.frontier.places import number_at

if TYPE_CHECKING:
    from collections.abc import Callable


class _Stand(IntEnum):
    NOWHERE = 0
    IN_LANE = 1
    """At its place in the lane of its host."""
    IN_RUN = 2
    """In the backlog, or what a lane took over of it: it has no place before it is drawn."""
    POSTPONED = 3


class Moves:
    """Where the rows of one queue stand."""

    __slots__ = ("_place_of", "_stands")

    def __init__(self, rows: int, due: np.ndarray, place_of: Callable[[int], int]) -> None:
        """There are *rows* rows at first, of which those with the numbers *due* are in the backlog.

        *place_of* tells the place that a row has now, by its number.
        """
        stands = np.zeros(rows, np.uint8)
        stands[due] = _Stand.IN_RUN
        self._stands = bytearray(stands.tobytes())
        self._place_of = place_of

    def queued(self, number: int) -> None:
        """Note that row *number* was put into the lane of its host."""
        self._put(number, _Stand.IN_LANE)

    def postponed(self, number: int) -> None:
        """Note that row *number* waits for its next attempt."""
        self._put(number, _Stand.POSTPONED)

    def returned(self, number: int) -> int:
        """Note that row *number*, postponed, goes back to its lane; return the place it has by now."""
        self._put(number, _Stand.IN_LANE)
        return self._place_of(number)

    def taken(self, number: int) -> None:
        """Note that row *number* waits no more."""
        self._put(number, _Stand.NOWHERE)

    def drawn(self, number: int) -> int | None:
        """Return the place of row *number*, which comes up in a run; None if it was moved out of it."""
        if self._stands[number] != _Stand.IN_RUN:
            return None
        return self.returned(number)

    def is_in_lane(self, number: int) -> bool:
        """Tell whether row *number* has a place in the lane of its host."""
        return number < len(self._stands) and self._stands[number] == _Stand.IN_LANE

    def is_movable(self, number: int) -> bool:
        """Tell whether another place in its lane is what row *number* needs; if not, it gets it anyway.

        A row that is postponed or not queued is asked for its place when it is queued.
        """
        return number < len(self._stands) and self._stands[number] in {_Stand.IN_LANE, _Stand.IN_RUN}

    def is_current(self, place: int) -> bool:
        """Tell whether the row at *place*, found in a lane, waits there, and no longer elsewhere."""
        number = number_at(place)
        return self._stands[number] == _Stand.IN_LANE and self._place_of(number) == place

    def _put(self, number: int, stand: _Stand) -> None:
        missing = number + 1 - len(self._stands)
        if missing > 0:
            self._stands.extend(bytes(missing))
        self._stands[number] = stand
