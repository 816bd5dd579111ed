"""Value encodings: the values of a page as octets, in six ways.

    RAW        each value as it is, little-endian
    DICT       distinct values by first appearance, packed codes
    DELTA      base: first value; the zigzag image of each difference as LEB128
    FOR        base: least value; u8 bit width, packed distances from the base ("frame of reference")
    RLE        value and length of each run
    DELTA_FOR  base: first value; images as under DELTA, packed as distances from the least of them

Values are taken as unsigned numbers, floats by their bits, so that every NaN and -0.0 comes back. No
values at all are an empty payload, except `00 00` under DICT and `00` under RLE.

What is written depends on the values only. What is read is not trusted: a payload has exactly the bytes
that its values take, spare bits are zero, codes have the width that their dictionary calls for, no run
is empty, and every value fits its column; anything else is `Malformed`. Room is made for the values
asked for and a few times the payload, no more. What is longer than it need be but clear is read:
numbers with idle bytes, widths with idle bits, neighbouring runs of one value, entries that no code
names. A base that an encoding has no use for is ignored.
"""

from __future__ import annotations

import numpy as np

from amicrawl.frontier.format.bits import expect_fit, pack_bits, packed_size, read_width, unpack_narrow
from amicrawl.frontier.format.deltas import (
    decode_delta,
    decode_delta_frame,
    delta_frame_size,
    delta_size,
    encode_delta,
    encode_delta_frame,
)
from amicrawl.frontier.format.dictionary import decode_dictionary, dictionary_size, encode_dictionary
from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.format.runs import decode_runs, encode_runs, least_size
from amicrawl.frontier.format.schema import Encoding


def encode(encoding: Encoding, values: np.ndarray) -> tuple[int, bytes]:
    """Return the page base and the payload that hold *values*.

    They are of 1, 2, 4 or 8 bytes, or of any size under RAW. Raises ValueError for others.
    """
    if encoding is Encoding.RAW:
        return 0, values.tobytes()
    words = _unsigned(values)
    if encoding is Encoding.DICT:
        return 0, encode_dictionary(words)
    if encoding is Encoding.RLE:
        return 0, encode_runs(words)
    if not len(words):
        return 0, b""
    if encoding is Encoding.FOR:
        return _encode_frame(words)
    return int(words[0]), (encode_delta if encoding is Encoding.DELTA else encode_delta_frame)(words)


def decode(
    encoding: int, payload: bytes | memoryview, *, count: int, dtype: np.dtype, base: int
) -> np.ndarray:
    """Return the *count* values of *dtype* that *payload* holds; raises `Malformed` if it does not.

    The caller vouches for *count*: a payload of few bytes can stand for any number of equal values. The
    result is aligned. It may be a view of the payload, and is not to be written to.
    """
    if encoding == Encoding.RAW:
        return _decode_raw(payload, count, dtype)
    if encoding not in tuple(Encoding):
        message = f"unknown value encoding {encoding}"
        raise Malformed(message)
    if not _is_number(dtype):
        message = f"value encoding {encoding} for values of {dtype.itemsize} bytes"
        raise Malformed(message)
    return _decode_words(Encoding(encoding), payload, count, _word(dtype), base).view(dtype)


def cannot_win(encoding: Encoding, values: np.ndarray) -> bool:
    """Return whether it is certain, without encoding, that *encoding* needs no fewer bytes than RAW.

    True is a proof; False only means that it must be tried. Nothing is said about compressed sizes.
    """
    if encoding is Encoding.RAW or not len(values):
        return True
    words = _unsigned(values)
    least = _LEAST_SIZES[encoding](words)
    return least >= words.nbytes


def _is_number(dtype: np.dtype) -> bool:
    return dtype.itemsize in {1, 2, 4, 8}


def _word(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"<u{dtype.itemsize}")


def _unsigned(values: np.ndarray) -> np.ndarray:
    """Return *values* by their bits, contiguous."""
    if not _is_number(values.dtype):
        message = f"values of {values.dtype.itemsize} bytes can only be raw"
        raise ValueError(message)
    return np.ascontiguousarray(values).view(_word(values.dtype))


def _decode_raw(payload: bytes | memoryview, count: int, dtype: np.dtype) -> np.ndarray:
    if len(payload) != count * dtype.itemsize:
        message = f"{len(payload)} bytes for {count} values of {dtype.itemsize} bytes"
        raise Malformed(message, at=min(len(payload), count * dtype.itemsize))
    return np.require(np.frombuffer(payload, dtype), requirements="A")


def _decode_words(
    encoding: Encoding, payload: bytes | memoryview, count: int, word: np.dtype, base: int
) -> np.ndarray:
    if encoding is Encoding.DICT:
        return decode_dictionary(payload, count, word)
    if encoding is Encoding.RLE:
        return decode_runs(payload, count, word)
    if not count:
        if len(payload):
            message = f"{len(payload)} bytes for no values"
            raise Malformed(message)
        return np.empty(0, word)
    if encoding is Encoding.FOR:
        return _decode_frame(payload, count, word, base)
    return (decode_delta if encoding is Encoding.DELTA else decode_delta_frame)(
        payload, count, word, base
    )


def _encode_frame(words: np.ndarray) -> tuple[int, bytes]:
    least = words.min()
    distances = words - least
    width = int(distances.max()).bit_length()
    return int(least), bytes((width,)) + pack_bits(distances, width)


def _frame_size(words: np.ndarray) -> int:
    return 1 + packed_size((int(words.max()) - int(words.min())).bit_length(), len(words))


def _decode_frame(payload: bytes | memoryview, count: int, word: np.dtype, base: int) -> np.ndarray:
    width = read_width(payload, 0)
    distances = unpack_narrow(payload, width, count, at=1)
    if base + (1 << width) > 1 << 8 * word.itemsize:
        expect_fit(base + int(distances.max()), word, at=1)
    values: np.ndarray = distances.astype(word, copy=False) + word.type(base)
    return values


_LEAST_SIZES = {
    Encoding.DICT: dictionary_size,
    Encoding.DELTA: delta_size,
    Encoding.FOR: _frame_size,
    Encoding.RLE: least_size,
    Encoding.DELTA_FOR: delta_frame_size,
}
