"""Differences between neighbours: the DELTA encodings, for columns that rise or swing about a value.

A difference is that of 64-bit numbers, wraps around, and is written as its zigzag image; the first value
stands in the head of the page. Images are either LEB128, or packed as their distances from the least of
them, behind the width of these and that least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from amicrawl.frontier.format.bits import expect_fit, pack_bits, packed_size, read_width, unpack_narrow
from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.format.varints import (
    decode_uvarints,
    encode_uvarints,
    read_uvarint,
    unzigzag,
    uvarints_size,
    write_uvarint,
    zigzag,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK: Final = 1 << 14
"""Values that are worked on at once, to stay within a processor's cache."""


def _images(words: np.ndarray) -> np.ndarray:
    """Return the zigzag images of the differences between neighbours, one fewer than *words*."""
    wide = words.astype(np.uint64, copy=False)
    return zigzag(wide[1:] - wide[:-1])


def _blocks_of_images(words: np.ndarray) -> Iterator[np.ndarray]:
    return (_images(words[first : first + _BLOCK + 1]) for first in range(0, len(words) - 1, _BLOCK))


def encode_delta(words: np.ndarray) -> bytes:
    """Return the images of unsigned *words*, one or more, as LEB128."""
    return b"".join(map(encode_uvarints, _blocks_of_images(words)))


def delta_size(words: np.ndarray) -> int:
    """Return the length of what `encode_delta` makes of *words*."""
    return sum(map(uvarints_size, _blocks_of_images(words)))


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


def delta_frame_size(words: np.ndarray) -> int:
    """Return the length of what `encode_delta_frame` makes of *words*."""
    if len(words) == 1:
        return 2
    ranges = [(int(images.min()), int(images.max())) for images in _blocks_of_images(words)]
    least, greatest = min(low for low, _ in ranges), max(high for _, high in ranges)
    return 1 + len(write_uvarint(least)) + packed_size((greatest - least).bit_length(), len(words) - 1)


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
