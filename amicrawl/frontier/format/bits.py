"""Packed bits: numbers of one width, each beginning at the bit where the one before it ended.

Bit k of the stream is bit (k mod 8) of byte (k div 8); the last byte is filled up with zeros. Eight
numbers of w bits are w whole bytes, so the j-th numbers of all groups of eight lie w bytes apart, at one
shift: they are read and written as machine words through strided views, several neighbours to a word
where they fit one. The work goes block by block and needs little room beside its result.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from amicrawl.frontier.format.faults import Malformed

_BLOCK: Final = 1 << 15
"""Numbers that are worked on at once; a multiple of eight."""


def packed_size(width: int, count: int) -> int:
    """Return the bytes that *count* numbers of *width* bits take."""
    return (width * count + 7) // 8


def container_of(width: int) -> np.dtype:
    """Return the narrowest unsigned type that holds *width* bits, 0 to 64."""
    return np.dtype("u1" if width <= 8 else "<u2" if width <= 16 else "<u4" if width <= 32 else "<u8")


def pack_bits(values: np.ndarray, width: int) -> bytes:
    """Return unsigned *values* packed to *width* bits each, 0 to 64.

    Raises ValueError where a value needs more.
    """
    if len(values) and int(values.max()) >> width:
        message = f"a value does not fit {width} bits"
        raise ValueError(message)
    if width in {0, 8, 16, 32, 64}:
        return values.astype(container_of(width)).tobytes() if width else b""
    blocks = (values[first : first + _BLOCK] for first in range(0, len(values), _BLOCK))
    packed = b"".join(_packed_block(block, width) for block in blocks)
    return packed[: packed_size(width, len(values))]


def unpack_narrow(block: bytes | memoryview, width: int, count: int, *, at: int = 0) -> np.ndarray:
    """Return the *count* numbers of *width* bits that fill *block* from *at* on: `container_of(width)`.

    They may be a view of *block*, and then not aligned. Raises `Malformed` where the block is longer or
    shorter than they are, the width is above 64, or the bits behind the last number are not zero.
    """
    octets = np.frombuffer(block, np.uint8)[at:]
    if width > 64 or len(octets) != packed_size(width, count):
        message = f"{len(octets)} bytes for {count} numbers of {width} bits"
        raise Malformed(message, at=at)
    unused = 8 * len(octets) - width * count
    if unused and int(octets[-1]) >> (8 - unused):
        raise Malformed("bits behind the last number are set", at=at + len(octets) - 1)
    if width in {0, 8, 16, 32, 64}:
        return octets.view(container_of(width)) if width else np.zeros(count, np.uint8)
    values = np.empty((count + 7) // 8 * 8, container_of(width))
    for first in range(0, count, _BLOCK):
        begin = first // 8 * width
        _unpack_block(octets[begin : begin + _BLOCK // 8 * width], width, values[first : first + _BLOCK])
    return values[:count]


def read_width(block: bytes | memoryview, at: int) -> int:
    """Return the width in bits that stands at *at* in *block*; raises `Malformed` if it is above 64."""
    if at >= len(block):
        raise Malformed("bit width is missing", at=at)
    width = block[at]
    if width > 64:
        message = f"bit width {width}"
        raise Malformed(message, at=at)
    return width


def expect_fit(greatest: int, dtype: np.dtype, *, at: int = 0) -> None:
    """Raise `Malformed` where *greatest* is more than the unsigned *dtype* holds."""
    if greatest >> 8 * dtype.itemsize:
        message = f"value {greatest} in {dtype.itemsize} bytes"
        raise Malformed(message, at=at)


class _Window(NamedTuple):
    """The word, in each group of eight numbers, that holds some neighbours among them."""

    numbers: range
    """Their places in the group."""
    offset: int
    """Bytes from the start of the group to the word."""
    shift: int
    """Bits of the word below the first of them."""


def _windows(width: int) -> list[_Window]:
    """Return words that cover a group together; one number of a word may reach beyond its 64 bits."""
    for together in (8, 4, 2, 1):
        windows = [
            _Window(range(first, first + together), first * width // 8, first * width % 8)
            for first in range(0, 8, together)
        ]
        if all(together * width + window.shift <= 64 for window in windows):
            break
    return windows


def _unpack_block(octets: np.ndarray, width: int, values: np.ndarray) -> None:
    """Fill *values*, a multiple of eight, from *octets*, which may lack the bytes of unused numbers."""
    groups = len(values) // 8
    padded = np.zeros(groups * width + 9, np.uint8)
    padded[: len(octets)] = octets
    mask = np.uint64((1 << width) - 1)
    places = values.reshape(groups, 8)
    part = np.empty(groups, np.uint64)
    for numbers, offset, shift in _windows(width):
        words = np.ndarray((groups,), "<u8", padded, offset, (width,)).copy()
        for number in numbers:
            below = shift + (number - numbers.start) * width
            np.right_shift(words, np.uint64(below), out=part)
            if below + width > 64:
                beyond = np.ndarray((groups,), np.uint8, padded, offset + 8, (width,)).astype(np.uint64)
                part |= beyond << np.uint64(64 - below)
            part &= mask
            places[:, number] = part


def _packed_block(values: np.ndarray, width: int) -> bytes:
    """Return *values* packed, with zeros up to a multiple of eight numbers."""
    groups = (len(values) + 7) // 8
    places = np.zeros((groups, 8), np.uint64)
    places.reshape(-1)[: len(values)] = values
    packed = np.zeros(groups * width + 9, np.uint8)
    for numbers, offset, shift in _windows(width):
        words = places[:, numbers.start] << np.uint64(shift)
        for number in numbers[1:]:
            words |= places[:, number] << np.uint64(shift + (number - numbers.start) * width)
        if len(numbers) == 8:
            return words.view(np.uint8).reshape(groups, 8)[:, :width].tobytes()
        # Words of one view never overlap, as groups of more than 8 bits a number are longer than a word.
        np.ndarray((groups,), "<u8", packed, offset, (width,))[:] |= words
        if shift + width > 64:
            beyond = places[:, numbers.start] >> np.uint64(64 - shift)
            np.ndarray((groups,), np.uint8, packed, offset + 8, (width,))[:] |= beyond.astype(np.uint8)
    return packed[: groups * width].tobytes()
