"""The seen-set: which URLs a partition knows, by key.

`BlockedBloom` is the filter that a frontier file holds. It is read first: "absent" is certain,
"perhaps" is decided by an exact set, so that a false positive costs a look-up and never a URL.
`KeyIndex` is exact, in memory, for keys that came after the snapshot; `SortedKeys` is exact, over the
sorted rows of the snapshot.

Keys are pairs of unsigned 64-bit numbers, host half and path half: Python ints one at a time, arrays
of `uint64` in bulk. Nothing here touches the disk; one thread changes a set.

The filter is kind 0 of those that a file may hold, to the bit as the format says:

    +---------+------+----+-----+-------------+------------+----------+----------------+
    | version | kind | k  | u8  | u32         | blocks     | added    | capacity       |
    | 1       | 0    | u8 | 0   | 0           | u64 LE     | u64 LE   | u64 LE         |
    +---------+------+----+-----+-------------+------------+----------+----------------+
    | 64 bytes a block: bit b of a block is bit b mod 8 of its byte b div 8             |
    +-----------------------------------------------------------------------------------+

A key sets k bits, all in one block, so that a look-up touches one cache line. A filter returns no keys,
and no key can be removed from it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from functools import lru_cache
from math import ceil, floor, log
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from amicrawl.meguri.format.faults import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

_HEADER = Struct("<BBBBIQQQ")
_BLOCK = 64
"""Bytes of a block."""
_MAX_K = 16
_PAGE = 4096
"""Keys that are worked on at a time: the arrays between stay in the cache, and no call is long."""
_GOLDEN = 0x9E37_79B9_7F4A_7C15
_MIX = 0xFF51_AFD7_ED55_8CCD
_U64 = 2**64 - 1
FULL_BLOCK = 2**512 - 1
"""A block, as a number, in which every bit is set."""


class Sizing(NamedTuple):
    """The geometry of a filter."""

    blocks: int
    k: int
    """Bits a key sets: 1 to 16."""


def sizing(capacity: int, rate: float = 0.01) -> Sizing:
    """Return the geometry that the reference gives a filter for *capacity* keys.

    *rate* is the share of false positives aimed at; outside (0, 1) it counts as 0.01. Where the number
    of blocks shares a factor of two with 512 the share is higher, up to 17 %: see `sound_sizing`.
    """
    if not 0 < rate < 1:
        rate = 0.01
    bits_per_key = -log(rate) / (log(2) * log(2)) * 1.15
    bits = ceil(max(capacity, 1) * bits_per_key)
    return Sizing(bits // 512 + 1, min(max(floor(bits_per_key * log(2) + 0.5), 1), _MAX_K))


def sound_sizing(capacity: int, rate: float = 0.01) -> Sizing:
    """Return a geometry without the flaw of `sizing`, which the reference reads as well.

    It keeps to rates down to 0.005, whatever the *capacity*; a rate of 0.001 becomes 0.002, which is
    what blocks of 512 bits come to.

    Block and bits of a key come from the same low bits of its hash. Of a filter with 512 blocks each
    block therefore knows one starting bit only, and its keys lie on top of each other. With an odd
    number of blocks the two are independent.
    """
    blocks, k = sizing(capacity, rate)
    return Sizing(blocks | 1, k)


class BlockedBloom:
    """A set of keys that may say "perhaps" of a key that it does not hold, and grows no larger."""

    __slots__ = ("_buffer", "_patterns", "_words", "added", "blocks", "capacity", "k")

    def __init__(self, blocks: int, k: int, *, capacity: int = 0) -> None:
        """Make an empty one of 64 bytes a block; ValueError for a geometry that there is not."""
        if blocks < 1 or not 1 <= k <= _MAX_K:
            raise ValueError(f"A filter cannot have {blocks} blocks and {k} bits a key")
        self.blocks = blocks
        self.k = k
        self.capacity = capacity
        """Keys it was sized for; a statement, not a limit."""
        self.added = 0
        """Keys added, repeats counted again."""
        # Zeros from numpy are pages that the system lends when they are touched: a large filter is
        # begun as quickly as a small one, which a bytearray is not.
        self._words = np.zeros(blocks * 8, "<u8")
        self._buffer = self._words.data.cast("B")
        self._patterns = patterns_of(k)

    def maybe(self, host: int, path: int) -> bool:
        """Return False only if the key was never added."""
        # One key, and Python's numbers: this runs for every link of every page.
        hashed = host * _GOLDEN + path & _U64
        hashed = (hashed ^ hashed >> 33) * _MIX & _U64
        hashed ^= hashed >> 33
        at = hashed % self.blocks * _BLOCK
        unset = FULL_BLOCK ^ int.from_bytes(self._buffer[at : at + _BLOCK], "little")
        return not self._patterns[path >> 1 & 255] >> 512 - (hashed & 511) & unset

    def add_many(self, hosts: np.ndarray, paths: np.ndarray) -> None:
        """Add the keys whose halves are given; the arrays may be strided views."""
        words = self._words
        for page_hosts, page_paths in _key_pages(hosts, paths):
            for word, mask in self._bits(page_hosts, page_paths):
                _set(words, word, mask)
        self.added += len(hosts)

    def to_blob(self) -> bytes:
        """Return it as it is stored in a frontier file."""
        header = _HEADER.pack(1, 0, self.k, 0, 0, self.blocks, self.added, self.capacity)
        return b"".join((header, self._buffer))

    @classmethod
    def from_blob(cls, blob: bytes | memoryview) -> Self:
        """Read one; Malformed where *blob* is not exactly one. Takes no more memory than *blob* has."""
        if len(blob) < _HEADER.size:
            raise Malformed(f"a Bloom filter of {len(blob)} bytes is cut in its header", at=len(blob))
        version, kind, k, _, _, blocks, added, capacity = _HEADER.unpack_from(blob)
        if (version, kind) != (1, 0):
            raise Malformed(f"version {version}, kind {kind} is not a Bloom filter of version 1")
        if not 1 <= k <= _MAX_K:
            raise Malformed(f"a Bloom filter of {k} bits a key", at=2)
        body = len(blob) - _HEADER.size
        if blocks == 0 or body != blocks * _BLOCK:
            raise Malformed(f"a Bloom filter of {blocks} blocks in {body} bytes", at=8)
        read = cls(blocks, k, capacity=capacity)
        read._buffer[:] = memoryview(blob)[_HEADER.size :]
        read.added = added
        return read

    def _bits(self, hosts: np.ndarray, paths: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, for each of the k bits, the word it is in and its mask, key by key."""
        hashed = hosts * np.uint64(_GOLDEN) + paths
        hashed ^= hashed >> np.uint64(33)
        hashed *= np.uint64(_MIX)
        hashed ^= hashed >> np.uint64(33)
        first_word = hashed % np.uint64(self.blocks) << np.uint64(3)
        step = paths | np.uint64(1)
        for _ in range(self.k):
            word = first_word + ((hashed & np.uint64(511)) >> np.uint64(6))
            yield word.view(np.int64), np.uint64(1) << (hashed & np.uint64(63))
            hashed += step


@lru_cache(maxsize=_MAX_K)
def patterns_of(k: int) -> tuple[int, ...]:
    """Return the bits that keys set, by bits 1 to 8 of their path half, for keys that begin at bit 0.

    Each is written twice, one copy 512 bits above the other: shifted right by 512 - s, its low 512 bits
    are those of a key that begins at bit s.
    """
    once = (sum(1 << i * step % 512 for i in range(k)) for step in range(1, 512, 2))
    return tuple(pattern | pattern << 512 for pattern in once)


def merged_blob(pages: Iterable[tuple[np.ndarray, np.ndarray]], count: int) -> bytes:
    """Return the filter of all keys of a snapshot, for its file.

    *pages* give the halves of the keys, *count* says how many there are. Takes 11 bits a key and, as
    long as they are copied to the result, 11 more; every step of the work is short.
    """
    merged = BlockedBloom(*sound_sizing(count), capacity=count)
    for hosts, paths in pages:
        merged.add_many(hosts, paths)
    return merged.to_blob()


def _key_pages(hosts: np.ndarray, paths: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if hosts.shape != paths.shape or hosts.ndim != 1:
        raise ValueError("Host and path halves are two arrays of one length")
    for start in range(0, len(hosts), _PAGE):
        chosen = slice(start, start + _PAGE)
        yield hosts[chosen].astype(np.uint64), paths[chosen].astype(np.uint64)


def _set(words: np.ndarray, word: np.ndarray, mask: np.ndarray) -> None:
    """Set bits; `bitwise_or.at` does the same and takes six times as long."""
    while len(word):
        words[word] |= mask
        # Of several bits for one word numpy keeps the last: those that were lost have another turn.
        lost = np.flatnonzero(words[word] & mask == 0)
        word, mask = word[lost], mask[lost]


_WIDTH = 20
_KEY = 16
_PER_BUCKET = 20
"""Entries a bucket holds on average: more are searched slower, fewer cost more overhead each."""
_pack_key = Struct("<QQ").pack
_pack_entry = Struct("<QQI").pack
_row_at = Struct("<I").unpack_from


class KeyIndex:
    """The row number of each URL key, in memory; it only grows.

    A key takes about 24 bytes. Entries are packed, 16 bytes of key and 4 of row, in buckets of some
    twenty, and a bucket is searched as the byte string it is. The number of buckets grows by one at a
    time (linear hashing: Litwin, 1980), so that no key waits while a large table is rebuilt. A `dict` of
    the same takes eight times as much.
    """

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
        entry = _pack_entry(host, path, row)
        packed = entry[:_KEY]
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
        self._buckets[index] = bucket + entry
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
    sorted it finds some and misses others, no worse. Every 512th key is in memory, 0.03 bytes a row: a
    look-up goes through those to one stretch of 512 rows and reads nine of them in the table.
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
