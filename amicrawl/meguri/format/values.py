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
requested and a few times the payload, no more. What is longer than it need be but clear is read:
numbers with idle bytes, widths with idle bits, neighbouring runs of one value, entries that no code
names. A base that an encoding has no use for is ignored.

A dictionary is written as: LEB128 count of entries | entries | u8 width of a code | codes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.schema import Encoding
from amicrawl.meguri.format.varints import (
    decode_uvarints,
    encode_uvarints,
    expect_fit,
    pack_bits,
    read_uvarint,
    read_width,
    unpack_narrow,
    unzigzag,
    write_uvarint,
    written_words,
    zigzag,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_FEW: Final = 1 << 14
"""Words up to which the distinct ones are found by sorting, 2 ms, so that Arrow need not be loaded."""


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


_BLOCK: Final = 1 << 14
"""Values, codes or runs that are worked on at once, to stay within a processor's cache."""

_CALM: Final = 48
"""Lengths of one byte in a row after which walking gives way to strides: where they cost the same."""


def encode_runs(words: np.ndarray) -> bytes:
    """Return unsigned *words* as their runs, each as long as it can be."""
    if not len(words):
        return b"\0"
    ends = np.append(np.flatnonzero(words[1:] != words[:-1]) + 1, len(words))
    values = words[ends - 1]
    lengths = np.diff(ends, prepend=0).view(np.uint64)
    blocks = (
        _encoded_block(values[first : first + _BLOCK], lengths[first : first + _BLOCK])
        for first in range(0, len(ends), _BLOCK)
    )
    return write_uvarint(len(ends)) + b"".join(blocks)


def _encoded_block(values: np.ndarray, lengths: np.ndarray) -> bytes:
    width = values.itemsize
    if int(lengths.max()) < 0x80:
        runs = np.empty((len(values), width + 1), np.uint8)
        runs[:, width] = lengths
        runs[:, :width] = values.view(np.uint8).reshape(-1, width)
        return runs.tobytes()
    written, used = written_words(lengths)
    runs = np.empty((len(values), width + 8), np.uint8)
    runs[:, :width] = values.view(np.uint8).reshape(-1, width)
    runs[:, width:] = written.view(np.uint8).reshape(-1, 8)
    kept = np.ones(runs.shape, np.bool)
    kept[:, width:] = used.view(np.uint8).reshape(-1, 8)
    return runs.reshape(-1).take(np.flatnonzero(kept)).tobytes()


def decode_runs(payload: bytes | memoryview, count: int, dtype: np.dtype) -> np.ndarray:
    """Return the *count* values of *dtype*, unsigned, whose runs fill *payload*.

    Raises `Malformed` where they are more or fewer, a run is empty or cut short, or bytes are left over.
    All of that is known before room is made for the values.
    """
    runs, at = read_uvarint(payload, 0)
    if runs > count or runs * (dtype.itemsize + 1) > len(payload) - at:
        message = f"{runs} runs for {count} values in {len(payload)} bytes"
        raise Malformed(message)
    octets = np.frombuffer(payload, np.uint8)
    if runs * (dtype.itemsize + 1) == len(payload) - at:
        values, lengths = _short_runs(octets[at:].reshape(runs, dtype.itemsize + 1), dtype)
    else:
        values, lengths = _mixed_runs(octets, at, runs, count=count, dtype=dtype)
    if not lengths.all():
        raise Malformed("run without values", at=at)
    total = int(lengths.sum())
    if total != count:
        message = f"runs of {total} values in all, not {count}"
        raise Malformed(message, at=at)
    return values if total == runs else np.repeat(values, lengths)


def _short_runs(table: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and lengths of runs that leave no room for a length of two bytes."""
    lengths = table[:, -1].astype(np.int64)
    if len(lengths) and int(lengths.max()) >= 0x80:
        raise Malformed("run is cut short", at=table.size)
    return np.ascontiguousarray(table[:, :-1]).view(dtype).reshape(-1), lengths


def _mixed_runs(
    octets: np.ndarray, at: int, runs: int, *, count: int, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and lengths of the *runs* that begin at *at* and fill *octets*."""
    width, payload = dtype.itemsize, octets.data
    places, lengths = np.empty(runs, np.int64), np.empty(runs, np.int64)
    place_of, length_of = places.data, lengths.data
    done = calm = 0
    while done < runs:
        if calm >= _CALM:
            found = _one_byte_lengths(octets[at + width :: width + 1][: min(calm, runs - done)])
            stop = at + len(found) * (width + 1)
            places[done : done + len(found)] = np.arange(at, stop, width + 1)
            lengths[done : done + len(found)] = found
            done, at, calm = done + len(found), stop, 2 * calm if len(found) == calm else 0
            continue
        behind = at + width + 1
        if behind > len(octets):
            raise Malformed("run is cut short", at=at)
        length = payload[behind - 1]
        if length >= 0x80:
            length, behind = read_uvarint(payload, behind - 1)
        if length > count:
            message = f"run of {length} values among {count}"
            raise Malformed(message, at=at)
        place_of[done], length_of[done] = at, length
        calm = calm + 1 if behind == at + width + 1 else 0
        done, at = done + 1, behind
    if at != len(octets):
        message = f"{len(octets) - at} bytes behind the last run"
        raise Malformed(message, at=at)
    if not runs:
        return np.empty(0, dtype), lengths
    return np.ndarray((len(octets) - width + 1,), dtype, octets, 0, (1,))[places], lengths


def _one_byte_lengths(bytes_ahead: np.ndarray) -> np.ndarray:
    """Return the first of the bytes where lengths would stand, up to one that is not all of a length."""
    longer = bytes_ahead >= 0x80
    return bytes_ahead[: int(longer.argmax())] if longer.any() else bytes_ahead


def _images(words: np.ndarray) -> np.ndarray:
    """Return the zigzag images of the differences between neighbours, one fewer than *words*."""
    wide = words.astype(np.uint64, copy=False)
    return zigzag(wide[1:] - wide[:-1])


def _blocks_of_images(words: np.ndarray) -> Iterator[np.ndarray]:
    return (_images(words[first : first + _BLOCK + 1]) for first in range(0, len(words) - 1, _BLOCK))


def encode_delta(words: np.ndarray) -> bytes:
    """Return the images of unsigned *words*, one or more, as LEB128."""
    return b"".join(map(encode_uvarints, _blocks_of_images(words)))


def decode_delta(payload: bytes | memoryview, count: int, dtype: np.dtype, base: int) -> np.ndarray:
    """Return the *count* values, one or more, of unsigned *dtype* that start at *base*.

    Raises `Malformed` where the others do not fill *payload*, or a value does not fit *dtype*.
    """
    images, used = decode_uvarints(payload, count - 1)
    if used < len(payload):
        message = f"{len(payload) - used} bytes behind the last difference"
        raise Malformed(message, at=used)
    return _summed(images, dtype, base)


def encode_delta_frame(words: np.ndarray) -> bytes:
    """Return the images of unsigned *words*, one or more, packed as their distances from the least."""
    if len(words) == 1:
        return b"\0\0"
    images = _images(words)
    least = images.min()
    images -= least
    width = int(images.max()).bit_length()
    return bytes((width,)) + write_uvarint(int(least)) + pack_bits(images, width)


def decode_delta_frame(
    payload: bytes | memoryview, count: int, dtype: np.dtype, base: int
) -> np.ndarray:
    """Return the *count* values, one or more, of unsigned *dtype* that start at *base*.

    Raises `Malformed` where the others do not fill *payload*, or an image or a value has too many bits.
    """
    width = read_width(payload, 0)
    least, at = read_uvarint(payload, 1)
    if count == 1 and (width or least):
        raise Malformed("differences of a single value")
    distances = unpack_narrow(payload, width, count - 1, at=at)
    if least + (1 << width) > 1 << 64:
        expect_fit(least + int(distances.max()), np.dtype(np.uint64), at=at)
    return _summed(distances + np.uint64(least), dtype, base)


def _summed(images: np.ndarray, dtype: np.dtype, base: int) -> np.ndarray:
    """Return the values that begin with *base* and differ from each other as *images* say."""
    expect_fit(base, dtype)
    sums = np.empty(len(images) + 1, dtype)
    sums[0] = base
    reached = np.array([base], np.uint64)
    for first in range(0, len(images), _BLOCK):
        block = unzigzag(images[first : first + _BLOCK])
        block[:1] += reached
        np.cumsum(block, out=block)
        reached = block[-1:]
        if dtype.itemsize < 8:
            expect_fit(int(block.max()), dtype)
        sums[first + 1 : first + 1 + len(block)] = block
    return sums


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


def _decode_frame(payload: bytes | memoryview, count: int, word: np.dtype, base: int) -> np.ndarray:
    width = read_width(payload, 0)
    distances = unpack_narrow(payload, width, count, at=1)
    if base + (1 << width) > 1 << 8 * word.itemsize:
        expect_fit(base + int(distances.max()), word, at=1)
    values: np.ndarray = distances.astype(word, copy=False) + word.type(base)
    return values
