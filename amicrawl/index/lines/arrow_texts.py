"""Arrow arrays by what they are made of: octets, and the places where one text ends.

They are made from, and read as, numpy arrays without copying. Arrow's own ways from and to Python load
pandas where it is installed, which takes as long as some 100,000 lines.

`Spans` are many stretches of octets by where they begin and end, without taking them out. Their octets
are read eight at a time, from anywhere, as numbers whose lowest octet is the first. Pure.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from numpy.typing import NDArray


Texts: TypeAlias = Any
"""An Arrow array of texts, or of what is computed of them; the stubs are narrower than Arrow is."""


def texts_of(octets: Any, cuts: NDArray[np.int32], *, kind: Any = None) -> Texts:
    """Return *octets* as texts that follow each other, cut at *cuts*, where they begin and end included.

    Nothing is copied or looked at: only what is UTF-8 may be used as text. *kind* is Arrow's type.
    """
    buffers: Any = [None, pa.py_buffer(cuts.data), pa.py_buffer(octets)]
    return pa.Array.from_buffers(kind or pa.string(), max(0, len(cuts) - 1), buffers)


def texts_from(values: Sequence[str | None]) -> Texts:
    """Return *values* as an array of texts, null where one is None."""
    return octets_from([None if value is None else value.encode() for value in values], kind=pa.string())


def octets_from(values: Sequence[bytes | None], *, kind: Any = None) -> Texts:
    """Return *values* as an array of octets, or of *kind*; null where one is None."""
    written = [value or b"" for value in values]
    cuts = np.fromiter(accumulate(map(len, written), initial=0), np.int32, len(written) + 1)
    missing = np.array([value is None for value in values], np.bool_)
    buffers: Any = [_valid(missing), pa.py_buffer(cuts.data), pa.py_buffer(b"".join(written))]
    return pa.Array.from_buffers(kind or pa.binary(), len(written), buffers)


def numbers_from(
    values: NDArray[Any], *, missing: NDArray[np.bool_] | None = None, kind: Any = None
) -> pa.Array[Any]:
    """Return *values* as an Arrow array of the same type, or of *kind*; null where one is *missing*."""
    values = np.ascontiguousarray(values)
    buffers: Any = [_valid(missing), pa.py_buffer(values.data)]
    return pa.Array.from_buffers(kind or pa.from_numpy_dtype(values.dtype), len(values), buffers)


def octets_of(texts: Texts) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the octets that *texts* lie in, and where each begins, and where the last ends."""
    _, places, octets = texts.buffers()
    cuts = np.frombuffer(places, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(octets or b"", np.uint8), cuts.astype(np.int64)


def numbers_of(array: Any) -> NDArray[Any]:
    """Return the numbers of *array*, an Arrow array of numbers; those that are null are any number."""
    values = np.frombuffer(array.buffers()[1] or b"", array.type.to_pandas_dtype())
    return values[array.offset : array.offset + len(array)]


def taken(
    texts: Texts, numbers: NDArray[np.integer[Any]], *, missing: NDArray[np.bool_] | None = None
) -> Texts:
    """Return the texts with these *numbers*; null where one is *missing*."""
    return texts.take(numbers_from(numbers, missing=missing))


def mask_from(values: NDArray[np.bool_]) -> Any:
    """Return *values* as an Arrow array of truths."""
    buffers: Any = [None, _packed(values)]
    return pa.Array.from_buffers(pa.bool_(), len(values), buffers)


def missing_in(array: Any) -> NDArray[np.bool_] | None:
    """Return which of *array* are null; None where none is."""
    return ~_bits(array.buffers()[0], array) if array.null_count else None


def truths(found: Any) -> NDArray[np.bool_]:
    """Return what Arrow says of each as numpy has it; null is false."""
    if not len(found):
        return np.zeros(0, np.bool_)
    are = _bits(found.buffers()[1], found)
    if found.null_count:
        are &= _bits(found.buffers()[0], found)
    return are


def lengths_of(texts: Texts) -> NDArray[np.int64]:
    """Return how many octets each of *texts* has; none where it is null."""
    lengths: NDArray[np.int64] = np.diff(octets_of(texts)[1])
    return lengths


def _valid(missing: NDArray[np.bool_] | None) -> Any:
    """Return Arrow's mask of what is not *missing*; None where nothing is."""
    if missing is None or not missing.any():
        return None
    return _packed(~missing)


def _packed(truths_: NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(truths_, bitorder="little").data)


def _bits(buffer: Any, array: Any) -> NDArray[np.bool_]:
    end = array.offset + len(array)
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), count=end, bitorder="little")
    return bits[array.offset :].view(np.bool_)


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
