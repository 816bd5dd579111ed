"""The row numbers of keys, exactly: `KeyIndex` in memory, `SortedKeys` in the table of a snapshot.

A key in memory takes about 24 bytes. Entries lie packed, 16 bytes of key and 4 of row, one behind the
other in buckets of some twenty, and a bucket is searched as the byte string it is. The number of buckets
grows by one at a time (linear hashing: Litwin, 1980), so that no key waits while a large table is
rebuilt. A `dict` of the same takes eight times as much.

For the rows of a snapshot, which are sorted, a small directory stays in memory, every 512th key: 0.03
bytes a row. A look-up goes through it to one stretch of 512 rows and reads nine of them in the table.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_WIDTH = 20
_KEY = 16
_PER_BUCKET = 20
"""Entries a bucket holds on average: more are searched slower, fewer cost more overhead each."""
_pack_key = Struct("<QQ").pack
_pack_row = Struct("<I").pack
_row_at = Struct("<I").unpack_from


class KeyIndex:
    """The row number of each URL key; it only grows."""

    __slots__ = ("_buckets", "_count", "_mask", "_room", "_split", "_wide")

    def __init__(self) -> None:
        self._buckets: list[bytes] = [b""]
        self._count = 0
        self._room = _PER_BUCKET
        # Buckets before `_split` are divided already: their numbers have one more bit of the hash.
        self._mask = 0
        self._wide = 1
        self._split = 0

    def __len__(self) -> int:
        return self._count

    def add(self, host: int, path: int, row: int) -> int | None:
        """Note that *row* has the key and return None; if a row has it already, return that one instead.

        Rows are numbers below 2^32, halves of keys below 2^64: struct.error for others.
        """
        packed = _pack_key(host, path)
        # The hash of bytes is keyed with a secret of the process (SipHash): unlike the key itself, it
        # cannot be steered from outside so that everything lands in one bucket.
        hashed = hash(packed)
        index = hashed & self._mask
        if index < self._split:
            index = hashed & self._wide
        bucket = self._buckets[index]
        at = bucket.find(packed)
        while at >= 0:
            if not at % _WIDTH:
                known: int = _row_at(bucket, at + _KEY)[0]
                return known
            at = bucket.find(packed, at + 1)
        self._buckets[index] = bucket + packed + _pack_row(row)
        self._count += 1
        if self._count > self._room:
            self._divide()
        return None

    def get(self, host: int, path: int) -> int | None:
        """Return the row that has the key, or None."""
        packed = _pack_key(host, path)
        hashed = hash(packed)
        index = hashed & self._mask
        if index < self._split:
            index = hashed & self._wide
        bucket = self._buckets[index]
        at = bucket.find(packed)
        while at >= 0:
            if not at % _WIDTH:
                row: int = _row_at(bucket, at + _KEY)[0]
                return row
            at = bucket.find(packed, at + 1)
        return None

    def _divide(self) -> None:
        """Divide the next bucket in two by one more bit of the hash."""
        bit = self._mask + 1
        bucket = self._buckets[self._split]
        lower: list[bytes] = []
        upper: list[bytes] = []
        for start in range(0, len(bucket), _WIDTH):
            part = upper if hash(bucket[start : start + _KEY]) & bit else lower
            part.append(bucket[start : start + _WIDTH])
        self._buckets[self._split] = b"".join(lower)
        self._buckets.append(b"".join(upper))
        self._room += _PER_BUCKET
        self._split += 1
        if self._split == bit:
            self._mask = self._wide
            self._wide = 2 * self._wide + 1
            self._split = 0


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
