"""The filter of a crawl that runs: it grows with the partition, and no growth stops the crawl.

A Bloom filter cannot be made larger, so a full one is kept and a larger one begun behind it, with room
for twice the keys so far (scalable Bloom filters: Almeida et al., 2007). Each costs 2 bytes a key when
it is full, and 6 in all when the next is begun; each adds 0.2 % of false positives, so that ten of them,
which hold a thousand million keys, stay below 2 %. `merged_blob` gives the one filter of all keys that a
frontier file holds, in 11 bits a key, and a crawl that is resumed goes on with just that one.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.seen.bloom import FULL_BLOCK, BlockedBloom, hash_of, sound_sizing
from amicrawl.frontier.seen.filter import read_filter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from amicrawl.frontier.seen.bloom import Probe
    from amicrawl.frontier.seen.ribbon import Ribbon

FIRST_CAPACITY = 2**16
FLUSH_EVERY = 4096
"""Keys that are added at a time."""
MERGED_RATE = 0.01
_BITS_PER_KEY = 16
_K = 7
"""Of 4 to 12 bits set, 7 gave the fewest false positives for every filter of 11 to 20 bits a key."""


class GrowingFilter:
    """A filter for any number of keys, asked one by one and filled in bulk.

    Keys are pending from `add` until their lot of 4,096 is full, or `flush`; **pending keys are not
    answered**: ask the exact set of recent keys first, which holds them.
    """

    def __init__(self, capacity: int = FIRST_CAPACITY) -> None:
        """Begin with room for *capacity* keys."""
        self._filters: list[BlockedBloom] = []
        self._opened: Ribbon | None = None
        """A filter of a file that cannot be added to."""
        self._keys = 0
        self._room = 0
        self._first_capacity = max(capacity, 1)
        self._pending = array("Q")
        self._probes: list[Probe] = []

    @classmethod
    def from_blob(cls, blob: bytes | memoryview, *, keys: int) -> Self:
        """Go on with the filter of a file that has *keys* rows; Malformed where it is none.

        It is kept even if it is overfull or its block count is unlucky: its "absent" is right all the
        same. One that counts fewer keys than the file has rows is refused, since "absent" would be wrong
        of the rest: then `merged_blob` of the rows gives one that is right.
        """
        opened = read_filter(blob)
        if opened.added < keys:
            raise Malformed(f"the filter holds {opened.added} keys, the file {keys} rows")
        growing = cls()
        growing._keys = keys
        if isinstance(opened, BlockedBloom):
            growing._append(opened)
            # It is filled as far as it says, but 11 bits a key it must have.
            growing._room = max(0, min(opened.capacity, opened.nbytes * 8 // 11) - opened.added)
        else:
            growing._opened = opened
        return growing

    def __len__(self) -> int:
        """Return the keys added, pending ones and repeats counted too."""
        return self._keys + len(self._pending) // 2

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes."""
        opened = 0 if self._opened is None else self._opened.nbytes
        return opened + sum(member.nbytes for member in self._filters)

    def maybe(self, host: int, path: int) -> bool:
        """Return False only if the key was never added, or is pending."""
        hashed = hash_of(host, path)
        turn, step = 512 - (hashed & 511), path >> 1 & 255
        for buffer, blocks, patterns in self._probes:
            at = hashed % blocks * 64
            if not patterns[step] >> turn & (
                FULL_BLOCK ^ int.from_bytes(buffer[at : at + 64], "little")
            ):
                return True
        return self._opened is not None and self._opened.maybe(host, path)

    def maybe_many(self, hosts: np.ndarray, paths: np.ndarray) -> np.ndarray:
        """Return `maybe` of each key, as an array of bool."""
        answers = np.zeros(len(hosts), np.bool_)
        for member in (*self._filters, *(() if self._opened is None else (self._opened,))):
            answers |= member.maybe_many(hosts, paths)
        return answers

    def add(self, host: int, path: int) -> None:
        """Add a key, which is pending until the lot is full."""
        pending = self._pending
        pending.append(host)
        pending.append(path)
        if len(pending) >= 2 * FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        """Add what is pending: 4,096 keys take less than a millisecond."""
        if not self._pending:
            return
        pending, self._pending = self._pending, array("Q")
        keys = np.frombuffer(pending, np.uint64).reshape(-1, 2)
        self.add_many(keys[:, 0], keys[:, 1])

    def add_many(self, hosts: np.ndarray, paths: np.ndarray) -> None:
        """Add keys at once; they are answered from now on."""
        start = 0
        while start < len(hosts):
            if self._room <= 0:
                self._grow()
            end = min(start + self._room, len(hosts))
            self._filters[-1].add_many(hosts[start:end], paths[start:end])
            self._keys += end - start
            self._room -= end - start
            start = end

    def _grow(self) -> None:
        capacity = max(2 * self._keys, self._first_capacity)
        # An odd number of blocks, for the reason that `sound_sizing` gives.
        blocks = capacity * _BITS_PER_KEY // 512 + 1 | 1
        self._append(BlockedBloom(blocks, _K, capacity=capacity))
        self._room = capacity

    def _append(self, member: BlockedBloom) -> None:
        self._filters.append(member)
        # The newest holds most of the keys: it is asked first.
        self._probes.insert(0, member.probe)


def merged_blob(pages: Iterable[tuple[np.ndarray, np.ndarray]], count: int) -> bytes:
    """Return the filter of all keys of a snapshot, for its file.

    *pages* give the halves of the keys, *count* says how many there are. Takes 11 bits a key and, as
    long as they are copied to the result, 11 more; every step of the work is short.
    """
    merged = BlockedBloom(*sound_sizing(count, MERGED_RATE), capacity=count)
    for hosts, paths in pages:
        merged.add_many(hosts, paths)
    return merged.to_blob()
