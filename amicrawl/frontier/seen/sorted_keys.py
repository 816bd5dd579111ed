"""Keys of the rows of a snapshot, found exactly in their sorted table.

A small directory stays in memory, every 512th key: 0.03 bytes a row. A look-up goes through it to one
stretch of 512 rows and reads nine of them in the table.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_STRETCH = 512


class SortedKeys:
    """The keys of the first *count* rows of a table, which *key_at* returns by number.

    They are sorted by host half, then path half, none twice, and must not change. Of keys that are not
    sorted it finds some and misses others, no worse.
    """

    __slots__ = ("_count", "_first_hosts", "_first_paths", "_key_at")

    def __init__(self, count: int, key_at: Callable[[int], tuple[int, int]]) -> None:
        self._count = count
        self._key_at = key_at
        self._first_hosts = array("Q")
        self._first_paths = array("Q")
        for number in range(0, count, _STRETCH):
            host, path = key_at(number)
            self._first_hosts.append(host)
            self._first_paths.append(path)

    def find(self, host: int, path: int) -> int | None:
        """Return the number of the row that has the key, from 0, or None."""
        row = self._lower_bound(host, path)
        return row if row < self._count and self._key_at(row) == (host, path) else None

    def _lower_bound(self, host: int, path: int) -> int:
        """Return the first row whose key is not less."""
        firsts = self._first_hosts
        stretch = bisect_left(firsts, host)
        if stretch < len(firsts) and firsts[stretch] == host:
            end = bisect_right(firsts, host, stretch)
            stretch = bisect_left(self._first_paths, path, stretch, end)
        high = min(stretch * _STRETCH, self._count)
        low = max(stretch - 1, 0) * _STRETCH
        key, key_at = (host, path), self._key_at
        while low < high:
            middle = (low + high) // 2
            if key_at(middle) < key:
                low = middle + 1
            else:
                high = middle
        return low
