"""Which of many simhashes are near a given one.

Of two values that differ in three bits, at least one of four 16-bit quarters is the same. So four sorted
tables, each with another quarter in front, hold every neighbour in one of four short runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from amicrawl.frontier.content import NEAR

if TYPE_CHECKING:
    from collections.abc import Sequence

_ALL = 0xFFFF_FFFF_FFFF_FFFF
_REST = 0xFFFF_FFFF_FFFF
_QUARTER = 16


class NearIndex:
    """Simhashes in an order of their own, to be asked for a neighbour; 64 bytes for each."""

    def __init__(self, simhashes: Sequence[int]) -> None:
        values = np.array(simhashes, np.uint64)
        self._tables: list[tuple[np.ndarray, np.ndarray]] = []
        for quarter in range(4):
            turned = _turned_all(values, quarter * _QUARTER)
            order = np.argsort(turned, kind="stable")
            self._tables.append((turned[order], order))

    def find(self, simhash: int) -> int | None:
        """Return the place of a value near *simhash* in the sequence given, or None if there is none.

        It need not be the nearest: it is the first in the first table that has one.
        """
        for quarter, (values, order) in enumerate(self._tables):
            probe = _turned(simhash, quarter * _QUARTER)
            first = np.searchsorted(values, np.uint64(probe & ~_REST & _ALL))
            end = np.searchsorted(values, np.uint64(probe | _REST), side="right")
            near = np.bitwise_count(values[first:end] ^ np.uint64(probe)) <= NEAR
            if near.any():
                return int(order[first + int(near.argmax())])
        return None


def _turned(value: int, bits: int) -> int:
    """Return *value*, 64 bits, with its lowest *bits* moved to the front."""
    return (value >> bits | value << (64 - bits)) & _ALL


def _turned_all(values: np.ndarray, bits: int) -> np.ndarray:
    if not bits:
        return values
    return values >> np.uint64(bits) | values << np.uint64(64 - bits)
