"""Texts found by hashes of 64 bits, many at a time. Pure.

A hash finds a candidate; whether it is the text itself is for the caller to compare, so that a text made
to collide with another costs time and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from amicrawl.index.lines.arrow_texts import Texts, octets_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
_MASKS = np.array([(1 << 8 * octets) - 1 for octets in range(8)] + [2**64 - 1], np.uint64)


def hashes_of(
    texts: Texts, *, last: int = 0, seed: NDArray[np.uint64] | None = None
) -> NDArray[np.uint64]:
    """Return a hash of each of *texts*, of its last octets where *last* says how many.

    *seed* holds a number for each, so that hashes of several columns can be made one.
    """
    octets, places = octets_of(texts)
    starts, ends = places[:-1], places[1:]
    return hashes_of_spans(octets, np.maximum(starts, ends - last) if last else starts, ends, seed=seed)


def hashes_of_spans(
    octets: bytes,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    *,
    seed: NDArray[np.uint64] | None = None,
) -> NDArray[np.uint64]:
    """Return a hash of what stands in *octets* between each of *starts* and its end."""
    lengths = ends - starts
    found = lengths.astype(np.uint64) * _FACTOR
    if seed is not None:
        found ^= seed * _SEED
    # The last text is read beyond its end, too.
    data = octets + bytes(8)
    words = np.ndarray((len(data) - 7,), "<u8", buffer=data, strides=(1,))
    rows = None
    for at in range(0, int(lengths.max(initial=0)), 8):
        left = lengths - at if rows is None else lengths[rows] - at
        if (left <= 0).any():
            more = np.flatnonzero(left > 0)
            rows, left = more if rows is None else rows[more], left[more]
        begins = starts if rows is None else starts[rows]
        mixed = words[begins + at] & _MASKS[np.minimum(left, 8)]
        mixed ^= found if rows is None else found[rows]
        mixed *= _FACTOR
        mixed ^= mixed >> _HALF
        mixed *= _SEED
        mixed ^= mixed >> _HALF
        if rows is None:
            found = mixed
        else:
            found[rows] = mixed
    return found


class HashIndex:
    """Numbers of rows by the hashes of what they are sought by; of several with one hash, the last."""

    def __init__(self, hashes: NDArray[np.uint64], rows: NDArray[np.int64]) -> None:
        """Index *rows*, each of which has the hash at its place in *hashes*."""
        order = np.argsort(hashes, kind="stable")
        hashes, rows = hashes[order], rows[order]
        is_last = np.ones(len(hashes), np.bool_)
        is_last[:-1] = hashes[1:] != hashes[:-1]
        ends = np.flatnonzero(is_last)
        self._hashes, self._rows = hashes[ends], rows[ends]
        self._alone = np.diff(ends, prepend=-1) == 1
        bits = max(1, len(ends).bit_length())
        self._shift = np.uint64(64 - bits)
        heads = (self._hashes >> self._shift).astype(np.int64)
        self._heads = np.searchsorted(heads, np.arange(2**bits + 1))

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the row for each of *hashes*, -1 where there is none, and whether it is alone."""
        if not len(self._hashes):
            return np.full(len(hashes), -1), np.zeros(len(hashes), np.bool_)
        # Hashes are spread evenly: a few steps from where the first bits point is what is sought.
        places = self._heads[(hashes >> self._shift).astype(np.int64)]
        last = len(self._hashes) - 1
        seeking = np.flatnonzero(self._hashes[np.minimum(places, last)] < hashes)
        while len(seeking):
            places[seeking] += 1
            beyond = places[seeking] <= last
            seeking = seeking[beyond]
            seeking = seeking[self._hashes[places[seeking]] < hashes[seeking]]
        places = np.minimum(places, last)
        there = self._hashes[places] == hashes
        return np.where(there, self._rows[places], -1), there & self._alone[places]
