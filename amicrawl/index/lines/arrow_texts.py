"""Arrow arrays by what they are made of: octets, and the places where one text ends.

They are made from, and read as, numpy arrays without copying. Arrow's own ways from and to Python load
pandas where it is installed, which takes as long as some 100,000 lines.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

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
