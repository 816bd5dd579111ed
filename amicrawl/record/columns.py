"""Columns of the index as Arrow arrays, from Python values. Only computes.

They are put together from their octets: Arrow's own way from Python loads pandas where that is
installed, which takes longer than all else that the end of a small crawl has to do.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBERS: dict[Any, type[np.generic]] = {pa.int32(): np.int32, pa.int64(): np.int64}
_NOTHING: dict[Any, str | int] = {pa.string(): "", pa.bool_(): False, pa.int32(): 0, pa.int64(): 0}


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """Return *values*, each of *kind* or None, as an array of *kind*: text, truths, or whole numbers.

    Raises UnicodeEncodeError for a text that UTF-8 cannot say, OverflowError for a number out of range.
    """
    count, missing = len(values), None
    if None in values:
        missing = [value is None for value in values]
        values = [_NOTHING[kind] if value is None else value for value in values]
    if kind == pa.string():
        written = [value.encode() for value in values]
        # Refused rather than wrapped around, should one batch ever hold more than 2 GiB of text.
        ends = np.fromiter(accumulate(map(len, written), initial=0), np.int32, count + 1)
        parts = [pa.py_buffer(ends.data), pa.py_buffer(b"".join(written))]
    elif kind == pa.bool_():
        parts = [_packed(values)]
    else:
        parts = [pa.py_buffer(np.array(values, _NUMBERS[kind]).data)]
    valid = _packed([not each for each in missing]) if missing else None
    buffers: Any = [valid, *parts]
    return pa.Array.from_buffers(kind, count, buffers)


def _packed(truths: Sequence[bool]) -> Any:
    """Return *truths* as Arrow keeps them: eight to an octet, the first lowest."""
    return pa.py_buffer(np.packbits(np.array(truths, np.bool_), bitorder="little").data)
