"""Many strings at once: Arrow arrays, spans of a block of octets, and the numbers written in them. Pure.

Arrow arrays are made from, and read as, numpy arrays without copying. Arrow's own conversions from and
to Python load pandas where it is installed, which takes as long as some 100,000 lines.

`Spans` are many stretches of octets by where they begin and end, without copies of them. Their octets
are read eight at a time, from anywhere, as numbers of 64 bits whose lowest octet is the first. Numbers
are read in these steps, too; those that would take more than a few are left to the caller.
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


_PLACE = np.dtype(np.int32)
"""How Arrow has the place where a text begins."""


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
    """Return the octets of *texts*, where each of them begins, and where the last ends."""
    _, places, octets = texts.buffers()
    cuts = np.frombuffer(places, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(octets or b"", np.uint8), cuts.astype(np.int64)


def numbers_of(array: Any) -> NDArray[Any]:
    """Return the numbers of *array*, an Arrow array of numbers; those that are null are any number."""
    values = np.frombuffer(array.buffers()[1] or b"", array.type.to_pandas_dtype())
    return values[array.offset : array.offset + len(array)]


class GrowingTexts:
    """Texts that are added to: what they come from can be let go, and its memory is used again."""

    def __init__(self) -> None:
        self._octets = bytearray()
        self._cuts = bytearray(_PLACE.itemsize)

    def __len__(self) -> int:
        return len(self._cuts) // _PLACE.itemsize - 1

    @property
    def room(self) -> int:
        """Octets that can be added."""
        return int(np.iinfo(_PLACE).max) - len(self._octets)

    def add(self, texts: Texts) -> None:
        """Add *texts*, none of which is null."""
        octets, places = octets_of(texts)
        cuts = places[1:] + (len(self._octets) - int(places[0]))
        self._octets += octets[places[0] : places[-1]].data
        self._cuts += cuts.astype(_PLACE).data

    def texts(self) -> Texts:
        """Return them all, without a copy; no more can be added then."""
        return texts_of(self._octets, np.frombuffer(self._cuts, _PLACE))


class GrowingCodes:
    """Texts that are added to, many of which are alike: codes, and each text of a batch once."""

    def __init__(self) -> None:
        self._codes = bytearray()
        self._spelled = GrowingTexts()

    @property
    def room(self) -> int:
        """Octets that can be added."""
        return self._spelled.room

    def add(self, texts: Texts) -> None:
        """Add *texts*, or codes of texts (an array of Arrow with a dictionary); none is null."""
        if not isinstance(texts, pa.DictionaryArray):
            texts = texts.dictionary_encode()
        codes = numbers_of(texts.indices) + np.int32(len(self._spelled))
        self._codes += codes.astype(np.int32).data
        self._spelled.add(texts.dictionary)

    def texts(self) -> Texts:
        """Return them all as codes, without a copy; no more can be added then."""
        codes = numbers_from(np.frombuffer(self._codes, np.int32))
        return pa.DictionaryArray.from_arrays(codes, self._spelled.texts())


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
        """Return the spans of *texts*; those that are null are empty."""
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


_LONGEST_NUMBER = 16
"""Octets of a number that is read here."""
_LONGEST_FRACTION = 19
"""The same of a number that begins with `0.`."""
_EXACT = 17
"""Octets of a fraction with 15 digits, which a double represents exactly enough to be written again."""


def _word(octets: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(octets, "little"))


_TOPS, _REST = _word(b"\x80" * 8), _word(b"\x7f" * 8)
_ZEROS, _POINTS, _HALVES = _word(b"0" * 8), _word(b"." * 8), _word(b"\x0f" * 8)
_BEYOND_NINE = _word(bytes([0x80 - 10]) * 8)
_ZERO, _POINT = b"0."
_FRACTION, _SMALL = _word(b"0."), _word(b"0.0000")
# Masks of the first octets, and words that make digits of what is behind them, where zeros are.
_FIRST = np.array([_word(b"\xff" * octets) for octets in range(9)], np.uint64)
_BEHIND = _ZEROS & ~_FIRST
_OCTET = np.uint64(8)
_PAIRS, _FOURS = np.uint64(0x00FF_00FF_00FF_00FF), np.uint64(0x0000_FFFF_0000_FFFF)


def have_other_than_digits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return for each of *words*, eight octets, the highest bit of each octet that is not a digit."""
    digits = words ^ _ZEROS
    # Octets from 0x80 on have the bit already; lower ones reach 0x80 from 10 on, without a carry.
    return (((digits & _REST) + _BEYOND_NINE) | digits) & _TOPS


def pairs_of_digits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the numbers that each two digits of *words* are: 16 bits each, the first lowest."""
    return (((words & _HALVES) * np.uint64(10 * 256 + 1)) >> _OCTET) & _PAIRS


def are_plain(spans: Spans) -> NDArray[np.bool_]:
    """Return for each of *spans* whether it is a plain number: digits, and maybe a point between them.

    Where that is so it is a number in JSON. Long ones, negative ones and those with exponents are not
    looked at: they are not plain.
    """
    lengths, head = spans.lengths, spans.words(0)
    first = head & _FIRST[1]
    is_fraction = head & _FIRST[2] == _FRACTION
    most = np.where(is_fraction, _LONGEST_FRACTION, _LONGEST_NUMBER)
    plain: NDArray[np.bool_] = (lengths > 0) & (lengths <= most)
    # No zero leads but the one before a point.
    plain &= (first != _ZERO) | (lengths == 1) | is_fraction
    plain &= (first != _POINT) & (_last_octets(spans) != _POINT)
    points = np.zeros(len(spans), np.uint8)
    for at in range(0, int(lengths[plain].max(initial=0)), 8):
        word = spans.words(at) if at else head
        # Zeros follow the end.
        others = have_other_than_digits(word | _BEHIND[np.minimum(np.maximum(lengths - at, 0), 8)])
        pointed = word ^ _POINTS
        are_points = ~(((pointed & _REST) + _REST) | pointed) & _TOPS
        plain &= others == are_points
        points += np.bitwise_count(are_points)
    plain &= points <= 1
    return plain


def are_as_python_writes(spans: Spans) -> NDArray[np.bool_]:
    """Return for each of *spans*, numbers in JSON, whether it is what Python writes for it.

    False for all numbers beyond 0 and 1.
    """
    lengths, head = spans.lengths, spans.words(0)
    # Fractions of 15 digits, none of which is a needless zero, are written as they stand down to 0.0001.
    are: NDArray[np.bool_] = (head & _FIRST[2] == _FRACTION) & (head & _FIRST[6] != _SMALL)
    are &= (lengths <= _EXACT) & (_last_octets(spans) != _ZERO)
    for written in (b"0", b"1", b"0.0", b"1.0"):
        are |= (head == _word(written)) & (lengths == len(written))
    others = np.flatnonzero(~are)
    if len(others):
        texts = spans.some(others).texts().to_pylist()
        are[others] = [text.startswith("0.") and repr(float(text)) == text for text in texts]
    return are


def are_zero(spans: Spans) -> NDArray[np.bool_]:
    """Return for each of *spans* whether it is zero as Python writes it."""
    head, lengths = spans.words(0), spans.lengths
    are: NDArray[np.bool_] = (head == _word(b"0")) & (lengths == len("0"))
    are |= (head == _word(b"0.0")) & (lengths == len("0.0"))
    return are


def whole_numbers(spans: Spans) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return what *spans* come to, and of which that is so: those that are one to 16 digits."""
    lengths = spans.lengths
    are = (lengths > 0) & (lengths <= _LONGEST_NUMBER)
    found = np.zeros(len(spans), np.uint64)
    for behind in range(0, min(spans.most, _LONGEST_NUMBER), 8):
        # The last eight octets are read, and those before; what is before the number is made zeros.
        begins = spans.ends - behind - 8
        words = spans.octets.words(np.maximum(begins, 0))
        if begins.min() < 0:
            words = words << (_OCTET * np.minimum(np.maximum(-begins, 0), 8).astype(np.uint64))
        before = _FIRST[8 - np.minimum(np.maximum(lengths - behind, 0), 8)]
        words = (words & ~before) | (_ZEROS & before)
        are &= have_other_than_digits(words) == 0
        found += _eight_digits(words) * np.uint64(10**behind)
    return found.astype(np.int64), are


def _eight_digits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the numbers that *words* are as they are written, each of them eight digits."""
    fours = ((pairs_of_digits(words) * np.uint64(100 * 2**16 + 1)) >> np.uint64(16)) & _FOURS
    return (fours * np.uint64(10_000 * 2**32 + 1)) >> np.uint64(32)


def _last_octets(spans: Spans) -> NDArray[np.uint8]:
    """Return the last octet of each of *spans*; of one that is empty, any."""
    return spans.octets.words(np.maximum(spans.ends - 1, 0)).astype(np.uint8)
