"""Texts found by hashes of 64 bits, many at a time. Pure.

A hash finds a candidate; whether it is the text itself is for the caller to compare, so that a text made
to collide with another costs time and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from amicrawl.index.lines.spans import WORD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from amicrawl.index.lines.spans import Spans

_SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
_PIECE = 8192
_STEPS = 32


def hashes_of(spans: Spans, *, seed: NDArray[np.uint64] | None = None) -> NDArray[np.uint64]:
    """Return a hash of what stands in each of *spans*.

    *seed* holds a number for each, so that hashes of several columns can be made one.
    """
    found = spans.lengths.astype(np.uint64) * _FACTOR
    if seed is not None:
        found ^= seed * _SEED
    for at in range(0, spans.most, WORD):
        if at < spans.least:
            found = _mixed(found, spans.words(at))
        else:
            rows = np.flatnonzero(spans.lengths > at)
            found[rows] = _mixed(found[rows], spans.some(rows).words(at))
    # The low bits of a product say nothing of the high ones of its factors.
    found ^= found >> _HALF
    found *= _FACTOR
    return found ^ (found >> _HALF)


def hashes_in_pieces(spans: Spans) -> NDArray[np.uint64]:
    """Return what `hashes_of` does; of many, some at a time, which stay in the processor's cache."""
    if len(spans) <= _PIECE:
        return hashes_of(spans)
    numbers = np.arange(len(spans))
    starts = range(0, len(spans), _PIECE)
    return np.concatenate([hashes_of(spans.some(numbers[at : at + _PIECE])) for at in starts])


def _mixed(found: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words ^= found
    words *= _FACTOR
    words ^= words >> _HALF
    return words


class HashIndex:
    """Rows by their hashes; of several with the same hash, the last."""

    def __init__(self, hashes: NDArray[np.uint64], rows: NDArray[np.int64]) -> None:
        """Have *rows*, ascending, with these *hashes*."""
        # Numbers alone are sorted many times as fast as with what belongs to them, so that the lowest
        # bits of a hash make room for its row.
        bits = len(hashes).bit_length()
        self._mask = ~np.uint64((1 << bits) - 1)
        sorted_ = np.sort(hashes & self._mask | np.arange(len(hashes), dtype=np.uint64))
        hashes = sorted_ & self._mask
        is_last = np.ones(len(hashes), np.bool_)
        is_last[:-1] = hashes[1:] != hashes[:-1]
        ends = np.flatnonzero(is_last)
        self._hashes = hashes[ends]
        self._rows = rows[(sorted_[ends] & ~self._mask).astype(np.int64)]
        self._alone = np.diff(ends, prepend=-1) == 1
        bits = max(1, len(ends).bit_length())
        self._shift = np.uint64(64 - bits)
        heads = np.bincount((self._hashes >> self._shift).astype(np.int64), minlength=2**bits)
        self._heads = np.cumsum(heads) - heads

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the row for each of *hashes*, -1 where there is none, and whether it is alone."""
        if not len(self._hashes):
            return np.full(len(hashes), -1), np.zeros(len(hashes), np.bool_)
        hashes = hashes & self._mask
        # Hashes are spread evenly: a few steps from where the first bits point is what is sought.
        places = self._heads[(hashes >> self._shift).astype(np.int64)]
        last = len(self._hashes) - 1
        seeking = np.flatnonzero(self._hashes[np.minimum(places, last)] < hashes)
        for _ in range(_STEPS):
            places[seeking] += 1
            beyond = places[seeking] <= last
            seeking = seeking[beyond]
            seeking = seeking[self._hashes[places[seeking]] < hashes[seeking]]
            if not len(seeking):
                break
        else:
            # Who makes texts whose hashes lie close together shall not have them looked through.
            places[seeking] = np.searchsorted(self._hashes, hashes[seeking])
        places = np.minimum(places, last)
        there = self._hashes[places] == hashes
        return np.where(there, self._rows[places], -1), there & self._alone[places]
