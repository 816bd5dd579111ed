"""CRC-32C, the one checksum of the format: of blocks, of streams, and of two streams joined.

Polynomial 0x1EDC6F41 (Castagnoli), reflected, as in RFC 3720, appendix B.4.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import google_crc32c

_STEP: Final = 1 << 20
"""Bytes that are summed at once, so that other threads get their turn."""

_POLYNOMIAL: Final = 0x82F6_3B78


def crc32c(block: bytes | memoryview, so_far: int = 0) -> int:
    """Return the checksum of *block*, or of what has the checksum *so_far* with *block* behind it."""
    octets = memoryview(block).cast("B")
    for first in range(0, len(octets), _STEP):
        so_far = int(google_crc32c.extend(so_far, bytes(octets[first : first + _STEP])))
    return so_far


def joined_crc32c(first: int, second: int, second_length: int) -> int:
    """Return the checksum of two blocks joined, from theirs and the *second_length* of the second.

    The first is moved on as by so many zero bytes, which is a linear operation on its 32 bits.
    """
    bit = 0
    while second_length >> bit:
        if second_length >> bit & 1:
            first = _applied(_zero_bytes(bit), first)
        bit += 1
    return first ^ second


@cache
def _zero_bytes(power: int) -> tuple[int, ...]:
    """Return what 2^*power* zero bytes do to a checksum, as the images of its 32 bits."""
    if power >= 0:
        return _squared(_zero_bytes(power - 1))
    operation: tuple[int, ...] = (_POLYNOMIAL, *(1 << bit for bit in range(31)))
    for _ in range(2):  # from one bit to four, which the next squaring makes a byte
        operation = _squared(operation)
    return operation


def _applied(operation: tuple[int, ...], vector: int) -> int:
    """Return *vector* after a linear *operation*, which is given by the images of the 32 bits."""
    image = 0
    for column in operation:
        if vector & 1:
            image ^= column
        vector >>= 1
    return image


def _squared(operation: tuple[int, ...]) -> tuple[int, ...]:
    """Return the operation that is *operation* twice."""
    return tuple(_applied(operation, column) for column in operation)
