"""Stretches of octets by where they begin and end: many at a time, without taking them out. Pure.

Octets are read eight at a time, from anywhere, as numbers whose lowest octet is the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from amicrawl.index.lines.arrow_texts import Texts, octets_of, taken, texts_of

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

WORD = 8
"""Octets that are read at a time."""

_MASKS = np.array([(1 << 8 * octets) - 1 for octets in range(WORD)] + [2**64 - 1], np.uint64)


class Octets:
    """Octets that words are read from."""

    def __init__(self, octets: Any) -> None:
        """Have *octets*, whatever has a buffer."""
        self.view: NDArray[np.uint8] = np.frombuffer(octets, np.uint8)
        """One by one."""
        data = self.view if len(self.view) >= WORD else np.append(self.view, np.zeros(WORD, np.uint8))
        self._words: NDArray[np.uint64] = np.ndarray(
            (len(data) - WORD + 1,), "<u8", buffer=data.data, strides=(1,)
        )

    def words(self, places: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the eight octets from each of *places* on; behind the last come zeros."""
        last = len(self._words) - 1
        if places.max(initial=0) <= last:
            return self._words[places]
        beyond = np.maximum(places - last, 0)
        return self._words[places - beyond] >> (8 * beyond).astype(np.uint64)

    def blocks(self, places: NDArray[np.int64], size: int) -> NDArray[Any]:
        """Return the *size* octets from each of *places* on; there have to be so many."""
        count = max(0, len(self.view) - size + 1)
        all_ = np.ndarray((count,), f"V{size}", buffer=self.view.data, strides=(1,))
        return all_[places]


class Spans:
    """Stretches of octets."""

    def __init__(self, octets: Octets, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self.octets = octets
        self.starts = starts
        self.ends = ends
        self._lengths: NDArray[np.int64] | None = None
        self._least: int | None = None

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def of(cls, texts: Texts) -> Self:
        """Return where *texts* stand; those that are null are empty."""
        octets, places = octets_of(texts)
        return cls(Octets(octets), places[:-1], places[1:])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many octets each has."""
        if self._lengths is None:
            self._lengths = self.ends - self.starts
        return self._lengths

    @property
    def least(self) -> int:
        """How many octets all have at least; 0 where there are no spans."""
        if self._least is None:
            self._least = int(self.lengths.min()) if len(self) else 0
        return self._least

    @property
    def most(self) -> int:
        """How many octets the longest has; 0 where there are no spans."""
        return int(self.lengths.max()) if len(self) else 0

    def some(self, numbers: NDArray[Any]) -> Spans:
        """Return those of these *numbers*, or those of which that is true."""
        return Spans(self.octets, self.starts[numbers], self.ends[numbers])

    def last(self, octets: int) -> Spans:
        """Return the last *octets* of each."""
        return Spans(self.octets, np.maximum(self.starts, self.ends - octets), self.ends)

    def texts(self, *, missing: NDArray[np.bool_] | None = None, kind: Any = None) -> Texts:
        """Return them as texts; they ascend and do not overlap. Null where one is *missing*."""
        cuts = np.empty(2 * len(self), np.int32)
        cuts[0::2] = self.starts
        cuts[1::2] = self.ends
        which = np.arange(0, len(cuts), 2)
        return taken(texts_of(self.octets.view, cuts, kind=kind or pa.string()), which, missing=missing)

    def words(self, at: int) -> NDArray[np.uint64]:
        """Return the eight octets from *at* on of each; behind the end come zeros."""
        if at + WORD <= self.least:
            return self.octets.words(self.starts + at)
        words = self.octets.words(np.minimum(self.starts + at, self.ends))
        return words & _MASKS[np.minimum(np.maximum(self.lengths - at, 0), WORD)]
