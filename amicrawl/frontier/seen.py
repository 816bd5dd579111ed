"""The seen-set in memory: every key ever offered, exactly, in about 20 bytes each.

Keys lie packed, 16 bytes each, one behind the other in buckets of some twenty, and a bucket is searched
as the byte string it is. The number of buckets grows by one at a time (linear hashing: Litwin, 1980),
so that no offer waits while a large table is rebuilt. A `set` of the same keys takes five times as much.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amicrawl.urls import UrlKey

_WIDTH = 16
_PER_BUCKET = 20
"""Keys a bucket holds on average: more are searched slower, fewer cost more overhead each."""
_pack = Struct("<QQ").pack


class SeenKeys:
    """A set of URL keys that only grows."""

    __slots__ = ("_buckets", "_count", "_mask", "_room", "_split")

    def __init__(self) -> None:
        self._buckets: list[bytes] = [b""]
        self._count = 0
        self._room = _PER_BUCKET
        # Buckets before `_split` are divided already and need one more bit of the hash than `_mask`.
        self._mask = 0
        self._split = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: UrlKey) -> bool:
        packed = _pack(*key)
        return _holds(self._buckets[self._index(packed)], packed)

    def add(self, key: UrlKey) -> bool:
        """Add *key*; return False if it was there."""
        packed = _pack(*key)
        index = self._index(packed)
        bucket = self._buckets[index]
        if _holds(bucket, packed):
            return False
        self._buckets[index] = bucket + packed
        self._count += 1
        if self._count > self._room:
            self._divide()
        return True

    def _index(self, packed: bytes) -> int:
        # The hash of bytes is keyed with a secret of the process (SipHash): unlike the key itself, it
        # cannot be steered from outside so that everything lands in one bucket.
        hashed = hash(packed)
        index = hashed & self._mask
        return index if index >= self._split else hashed & (2 * self._mask + 1)

    def _divide(self) -> None:
        """Divide the next bucket in two by one more bit of the hash."""
        bit = self._mask + 1
        bucket = self._buckets[self._split]
        parts: tuple[list[bytes], list[bytes]] = ([], [])
        for start in range(0, len(bucket), _WIDTH):
            packed = bucket[start : start + _WIDTH]
            parts[bool(hash(packed) & bit)].append(packed)
        self._buckets[self._split] = b"".join(parts[0])
        self._buckets.append(b"".join(parts[1]))
        self._room += _PER_BUCKET
        self._split += 1
        if self._split == bit:
            self._mask = 2 * self._mask + 1
            self._split = 0


def _holds(bucket: bytes, packed: bytes) -> bool:
    at = bucket.find(packed)
    while at > 0 and at % _WIDTH:
        at = bucket.find(packed, at + 1)
    return at >= 0
