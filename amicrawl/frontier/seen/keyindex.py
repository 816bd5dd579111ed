"""Keys and their row numbers in memory, exactly, in about 24 bytes a key.

Entries lie packed, 16 bytes of key and 4 of row, one behind the other in buckets of some twenty, and a
bucket is searched as the byte string it is. The number of buckets grows by one at a time (linear
hashing: Litwin, 1980), so that no key waits while a large table is rebuilt. A `dict` of the same takes
eight times as much.
"""

from __future__ import annotations

from struct import Struct

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
