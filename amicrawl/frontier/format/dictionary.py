"""Dictionaries: the distinct values of a page by first appearance, then a packed code for each value.

LEB128 count of entries | entries | u8 width of a code | codes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from amicrawl.frontier.format.bits import pack_bits, read_width, unpack_narrow
from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.format.varints import read_uvarint, write_uvarint

if TYPE_CHECKING:
    import pyarrow as pa

_FEW: Final = 1 << 14
"""Words that are sorted: 2 ms."""
_BLOCK: Final = 1 << 14
"""Codes that are looked up at once: numpy widens each to eight bytes for that."""


def _code_width(entries: int) -> int:
    """Return the bits of a code: 0 for a dictionary of one entry."""
    return (entries - 1).bit_length() if entries else 0


def encode_dictionary(words: np.ndarray) -> bytes:
    """Return unsigned *words*, contiguous, as a dictionary and codes."""
    entries, numbers = _sorted_out(words) if len(words) <= _FEW else _hashed(words)
    width = _code_width(len(entries))
    codes = pack_bits(numbers, width)
    return b"".join((write_uvarint(len(entries)), entries.tobytes(), bytes((width,)), codes))


def _sorted_out(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct of *words* by first appearance, and for each word the number of its entry."""
    entries, firsts, numbers = np.unique(words, return_index=True, return_inverse=True)
    by_appearance = np.argsort(firsts)
    places = np.empty(len(entries), np.uint32)
    places[by_appearance] = np.arange(len(entries), dtype=np.uint32)
    return entries[by_appearance], places[numbers]


def _hashed(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same by Arrow's hash table, in a fifth of the time."""
    # What Arrow needs for this takes 40 ms to load, at the end of a crawl.
    import pyarrow as pa  # noqa: PLC0415

    column = pa.Array.from_buffers(
        pa.from_numpy_dtype(words.dtype), len(words), [None, pa.py_buffer(words.data)]
    )
    coded = column.dictionary_encode()
    return _numbers_in(coded.dictionary, words.dtype), _numbers_in(coded.indices, np.dtype(np.uint32))


def _numbers_in(column: pa.Array[Any], dtype: np.dtype) -> np.ndarray:
    # `to_numpy` would load pandas where there is one, and a crawl wait for that.
    octets = memoryview(column.buffers()[1])  # type: ignore[arg-type]
    return np.frombuffer(octets, dtype, len(column), column.offset * dtype.itemsize)


def decode_dictionary(payload: bytes | memoryview, count: int, dtype: np.dtype) -> np.ndarray:
    """Return the *count* values of *dtype* whose entries and codes fill *payload*.

    Raises `Malformed` where they do not, a code names no entry, or codes are wider or narrower than the
    number of entries calls for.
    """
    size, begin = read_uvarint(payload, 0)
    if size > (len(payload) - begin) // dtype.itemsize:
        message = f"{size} dictionary entries in {len(payload)} bytes"
        raise Malformed(message)
    at = begin + size * dtype.itemsize
    width = read_width(payload, at)
    if width != _code_width(size):
        message = f"codes of {width} bits for {size} dictionary entries"
        raise Malformed(message, at=at)
    if count and not size:
        raise Malformed("dictionary without entries")
    codes = unpack_narrow(payload, width, count, at=at + 1)
    if count and size < 1 << width and int(codes.max()) >= size:
        message = f"code {codes.max()} among {size} dictionary entries"
        raise Malformed(message, at=at + 1)
    entries = np.frombuffer(payload, dtype, size, begin)
    values = np.empty(count, dtype)
    for first in range(0, count, _BLOCK):
        values[first : first + _BLOCK] = entries.take(codes[first : first + _BLOCK])
    return values
