"""Integers as octets: of variable length (LEB128), and packed to one width.

The variable ones are unsigned LEB128 of up to 64 bits (DWARF 5, section 7.6), of signed numbers their
zigzag image: seven bits to a byte, the lowest first; every byte but the last has its high bit set.
Written numbers are the shortest there are. Longer forms of the same number (`82 00` for 2) are read.

Packed ones have one width in bits, and each begins at the bit where the one before it ended. Bit k of
the stream is bit (k mod 8) of byte (k div 8); the last byte is filled up with zeros. Eight numbers of w
bits are w whole bytes, so the j-th numbers of all groups of eight are w bytes apart, at one shift: they
are read and written as machine words through strided views, several neighbours to a word where they fit
one.

The array functions work block by block on whole machine words, so that what they need beside their
result stays within a processor's cache.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from amicrawl.meguri.format.faults import Malformed

_BITS_BLOCK: Final = 1 << 15
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
    blocks = (values[first : first + _BITS_BLOCK] for first in range(0, len(values), _BITS_BLOCK))
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
    for first in range(0, count, _BITS_BLOCK):
        begin = first // 8 * width
        _unpack_block(
            octets[begin : begin + _BITS_BLOCK // 8 * width], width, values[first : first + _BITS_BLOCK]
        )
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


LONGEST: Final = 10
"""Bytes that a number of 64 bits takes at most."""

_BLOCK: Final = 1 << 14
"""Numbers, or bytes, that are worked on at once."""

_HIGH_BITS: Final = np.uint64(0x8080_8080_8080_8080)
_LOW_BITS: Final = np.uint64(0x7F7F_7F7F_7F7F_7F7F)

_SPREAD: Final = tuple(
    (np.uint64(stays), np.uint64(moves), np.uint64(by))
    for stays, moves, by in (
        (0x0000_0000_0FFF_FFFF, 0x00FF_FFFF_F000_0000, 4),
        (0x0000_3FFF_0000_3FFF, 0x0FFF_C000_0FFF_C000, 2),
        (0x007F_007F_007F_007F, 0x3F80_3F80_3F80_3F80, 1),
    )
)
"""Steps that move apart the 8 times 7 bits of a number of 56, halving the pieces each time."""

_TOO_LONG: Final = "number of more than ten bytes"
_TOO_GREAT: Final = "number of more than 64 bits"
_CUT_SHORT: Final = "number is cut short"


def write_uvarint(value: int) -> bytes:
    """Return *value*, 0 to 2^64 - 1, as LEB128."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def read_uvarint(block: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the number that begins at *at* in *block*, and the position behind it.

    Raises `Malformed` where the block ends within it, or where it has more than ten bytes or 64 bits.
    """
    value = 0
    for place in range(LONGEST):
        if at + place >= len(block):
            raise Malformed(_CUT_SHORT, at=at)
        byte = block[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            if value >> 64:
                raise Malformed(_TOO_GREAT, at=at)
            return value, at + place + 1
    raise Malformed(_TOO_LONG, at=at)


def zigzag(differences: np.ndarray) -> np.ndarray:
    """Return the zigzag images of 64-bit *differences*: 0, -1, 1, -2 become 0, 1, 2, 3."""
    signs = differences.view(np.int64) >> 63
    return (differences << np.uint64(1)) ^ signs.view(np.uint64)


def unzigzag(images: np.ndarray) -> np.ndarray:
    """Return the differences whose zigzag *images* these are, as uint64 (two's complement)."""
    signs = np.negative((images & np.uint64(1)).view(np.int64))
    return (images >> np.uint64(1)) ^ signs.view(np.uint64)


def encode_uvarints(values: np.ndarray) -> bytes:
    """Return uint64 *values* as LEB128, one behind the other."""
    return b"".join(
        _encoded_block(values[first : first + _BLOCK]) for first in range(0, len(values), _BLOCK)
    )


def _encoded_block(values: np.ndarray) -> bytes:
    greatest = int(values.max())
    if greatest < 0x80:
        return values.astype(np.uint8).tobytes()
    written, used = written_words(values & np.uint64((1 << 56) - 1))
    if greatest >> 56:
        written, used = _with_high_words(written, used, values >> np.uint64(56))
    # Taking by position is twice as fast as by a mask, finding positions in booleans as in bytes.
    kept = np.flatnonzero(used.view(np.uint8) != 0)
    return written.view(np.uint8).reshape(-1).take(kept).tobytes()


def written_words(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each of *values*, below 2^56, as LEB128 in the low bytes of a word.

    Beside these words, as many others: their bytes are not 0 where a byte of the number stands.
    """
    words = values
    for stays, moves, by in _SPREAD:
        moved = words & moves
        moved <<= by
        words = words & stays
        words |= moved
    above = words >> np.uint64(8)
    for distance in (8, 16, 32):
        above |= above >> np.uint64(distance)
    # No piece is above 0x7F, so adding that sets the high bit just where there is something above.
    above += _LOW_BITS
    above &= _HIGH_BITS
    words |= above
    return words, words | (words == 0)


def _with_high_words(
    low: np.ndarray, used: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Add the ninth and tenth byte, for bits 56 to 63 (*high*), as a second word of each number."""
    both = np.zeros((len(low), 2), np.uint64)
    both_used = np.empty_like(both)
    both[:, 0] = low | np.where(high != 0, _HIGH_BITS, np.uint64(0))
    both[:, 1] = (high & np.uint64(0x7F)) | (high >> np.uint64(7)) * np.uint64(0x180)
    both_used[:, 0] = both[:, 0] | used
    both_used[:, 1] = both[:, 1]
    return both, both_used


def decode_uvarints(block: bytes | memoryview, count: int, *, at: int = 0) -> tuple[np.ndarray, int]:
    """Return the *count* numbers that begin at *at* in *block*, as uint64, and the bytes they take.

    Raises `Malformed` where the block ends before them, or one has more than ten bytes or 64 bits.
    A count beyond the bytes there are is refused before any room is made for it.
    """
    octets = np.frombuffer(block, np.uint8)[at:]
    if count > len(octets):
        raise Malformed(_CUT_SHORT, at=len(block))
    if not count or int(octets[:count].max()) < 0x80:
        return octets[:count].astype(np.uint64), count
    values = np.empty(count, np.uint64)
    done = position = 0
    while done < count:
        try:
            found, used = _decoded_block(octets[position:], count - done)
        except Malformed as fault:
            raise Malformed(fault.reason, at=at + position + fault.at) from None
        values[done : done + len(found)] = found
        done += len(found)
        position += used
    return values, position


def _decoded_block(octets: np.ndarray, most: int) -> tuple[np.ndarray, int]:
    """Return the numbers, *most* at most, that end in the first block of *octets*, and their bytes."""
    ends = np.flatnonzero(octets[: min(2 * _BLOCK, LONGEST * most)] < 0x80)[:most]
    if not len(ends):
        raise Malformed(_CUT_SHORT if len(octets) < LONGEST else _TOO_LONG)
    used = int(ends[-1]) + 1
    if used == len(ends):
        return octets[:used].astype(np.uint64), used
    starts = np.empty_like(ends)
    starts[0] = 0
    np.add(ends[:-1], 1, out=starts[1:])
    longest = int((ends - starts).max()) + 1
    # Every number is read as the eight bytes from its start on, whatever follows it.
    padded = np.zeros(used + 8, np.uint8)
    padded[: min(len(octets), used + 8)] = octets[: used + 8]
    words = np.ndarray((used,), "<u8", padded, 0, (1,)).take(starts)
    values = _joined(words)
    if longest > 8:
        _add_high_bytes(values, octets, starts, ends)
    return values, used


def _joined(words: np.ndarray) -> np.ndarray:
    """Return the numbers that begin in the low bytes of *words*: up to eight bytes, 56 bits, of each."""
    last = ~words & _HIGH_BITS
    # All bits up to the lowest one of `last`; where there is none, all 64.
    words = words & (last ^ (last - np.uint64(1))) & _LOW_BITS
    for stays, moves, by in reversed(_SPREAD):
        words = (words & stays) | ((words & (moves << by)) >> by)
    return words


def _add_high_bytes(
    values: np.ndarray, octets: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> None:
    """Add to *values* the ninth and tenth bytes of those that have them."""
    sizes = ends - starts + 1
    if (sizes > LONGEST).any():
        raise Malformed(_TOO_LONG, at=int(starts[(sizes > LONGEST).argmax()]))
    ninth = np.flatnonzero(sizes >= 9)
    values[ninth] |= (octets[starts[ninth] + 8].astype(np.uint64) & np.uint64(0x7F)) << np.uint64(56)
    tenth = np.flatnonzero(sizes == 10)
    top = octets[starts[tenth] + 9].astype(np.uint64)
    if (top > 1).any():
        raise Malformed(_TOO_GREAT, at=int(starts[tenth[(top > 1).argmax()]]))
    values[tenth] |= top << np.uint64(63)
