"""Pages: the smallest unit of a frontier file that is written, checked and skipped.

    +------+----------+-------+-------+--------+--------------+------------+-----------+------+-------+
    | kind | encoding | codec | flags | values | uncompressed | compressed | first row | base | CRC   |
    | u8   | u8       | u8    | u8, 0 | u32    | size, u32    | size, u32  | u32       | u64  | -32C  |
    +------+----------+-------+-------+--------+--------------+------------+-----------+------+-------+

and then the payload, compressed; the checksum is of the payload as it is stored. A column's values are
written raw, or in the encoding of the column where that makes the page shorter.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, Self

import numpy as np

from amicrawl.meguri.format import values
from amicrawl.meguri.format.checksum import crc32c
from amicrawl.meguri.format.codec import Compressor, decompress, fewest_bytes
from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.format.schema import Codec, Column, Encoding

_LAYOUT: Final = struct.Struct("<BBBBIIIIQI")
HEADER_SIZE: Final = _LAYOUT.size
MOST_BYTES: Final = 0xFFFF_FFFF
"""Of a payload, since its sizes are 32 bits."""

Zone = tuple[int, int]
"""The least and the greatest of some values."""

_SUM_ROWS: Final = 1 << 18
"""Values whose least and greatest are looked for at once."""


class PageKind(IntEnum):
    """What a page holds."""

    DATA = 0
    BLOB = 3
    FILTER = 4
    SCHEDULE = 5


class PageHeader(NamedTuple):
    """The 32 bytes before a payload; numbers are as they were found, whether known or not."""

    kind: int
    encoding: int
    codec: int
    flags: int
    values: int
    uncompressed_size: int
    compressed_size: int
    first_row: int
    base: int
    payload_crc32c: int

    def pack(self) -> bytes:
        """Return the header as it is stored in a file."""
        return _LAYOUT.pack(*self)

    @classmethod
    def unpack(cls, block: bytes | memoryview) -> Self:
        """Return the header that *block* begins with; Malformed where it is shorter than one."""
        if len(block) < HEADER_SIZE:
            raise Malformed("too short for the header of a page")
        return cls(*_LAYOUT.unpack(block[:HEADER_SIZE]))


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """A page ready to be written."""

    header: bytes
    payload: bytes | memoryview
    encoding: Encoding
    zone: Zone | None

    @property
    def length(self) -> int:
        """Bytes in all."""
        return HEADER_SIZE + len(self.payload)


def encode_page(
    column: Column, rows: np.ndarray, *, first_row: int, compressor: Compressor
) -> EncodedPage:
    """Return the page of *rows*, contiguous values of *column*."""
    encoding, base, payload, size = _shortest(column, rows, compressor)
    if max(size, len(payload), first_row) > MOST_BYTES:
        raise Malformed(
            f"column {column.name}: a page of {size} bytes is too large; choose smaller pages"
        )
    header = PageHeader(
        kind=PageKind.DATA,
        encoding=encoding,
        codec=compressor.codec,
        flags=0,
        values=len(rows),
        uncompressed_size=size,
        compressed_size=len(payload),
        first_row=first_row,
        base=base,
        payload_crc32c=crc32c(payload),
    )
    return EncodedPage(header.pack(), payload, encoding, zone_of(column, rows))


def _shortest(
    column: Column, rows: np.ndarray, compressor: Compressor
) -> tuple[Encoding, int, bytes | memoryview, int]:
    """Return encoding, base, compressed payload and full size of the shorter page; ties are raw."""
    nominal, codec = column.nominal, compressor.codec
    raw_size = len(rows) * column.width
    candidate: tuple[Encoding, int, bytes | memoryview, int] | None = None
    if nominal is not Encoding.RAW and raw_size:
        base, encoded = values.encode(nominal, rows)
        compressed = compressor.compress(encoded)
        candidate = (nominal, base, compressed, len(encoded))
        if len(compressed) < fewest_bytes(codec, raw_size):
            return candidate  # without finding out how short the raw page is
    raw = compressor.compress(rows.view(np.uint8).data if raw_size else b"")
    if candidate is not None and len(candidate[2]) < len(raw):
        return candidate
    return Encoding.RAW, 0, raw, raw_size


def zone_of(column: Column, rows: np.ndarray) -> Zone | None:
    """Return the least and the greatest of *rows*, or None where none are noted or there are no rows."""
    if not column.has_zones or not len(rows):
        return None
    least, greatest = int(rows[0]), int(rows[0])
    for first in range(0, len(rows), _SUM_ROWS):
        piece = rows[first : first + _SUM_ROWS]
        least, greatest = min(least, int(piece.min())), max(greatest, int(piece.max()))
    return least, greatest


def read_payload(header: PageHeader, payload: bytes, *, most: int) -> bytes:
    """Return the content of *payload*, compressed, once it is known to be what was written.

    The checks come in the order length, checksum, codec, content. *most* is how many bytes the content
    can have in view of what else the file says; a header that says more is refused before any room is
    made.
    """
    if header.compressed_size > len(payload):
        raise Malformed(f"a payload of {header.compressed_size} bytes in {len(payload)}", at=12)
    # Where the header says less, the bytes that it covers decide whether they or the header were
    # changed.
    if crc32c(memoryview(payload)[: header.compressed_size]) != header.payload_crc32c:
        raise Malformed("the payload has another checksum", fault=FileFault.CHECKSUM, at=28)
    if header.compressed_size < len(payload):
        raise Malformed(f"a payload of {header.compressed_size} bytes in {len(payload)}", at=12)
    if header.codec not in {Codec.NONE, Codec.ZSTD}:
        raise Malformed(f"unknown codec {header.codec}", at=2)
    if header.uncompressed_size > most:
        raise Malformed(f"content of {header.uncompressed_size} bytes where {most} would be many", at=4)
    try:
        return decompress(Codec(header.codec), payload, header.uncompressed_size)
    except Malformed as fault:
        raise Malformed(f"the payload {fault.reason}", fault=fault.fault, at=HEADER_SIZE) from fault


def check_header(header: PageHeader, **wanted: int) -> None:
    """Raise `Malformed` where a field of *header* differs from what is *wanted*."""
    for name, value in wanted.items():
        found = getattr(header, name)
        if found != value:
            message = f"{name.replace('_', ' ')} is {found} instead of {value}"
            raise Malformed(message, at=_OFFSETS[name])


_OFFSETS: Final = {
    "kind": 0,
    "encoding": 1,
    "codec": 2,
    "flags": 3,
    "values": 4,
    "uncompressed_size": 8,
    "compressed_size": 12,
    "first_row": 16,
    "base": 20,
}


@dataclass(frozen=True, slots=True)
class Expected:
    """What the column directory says of a page."""

    first_row: int
    rows: int
    encoding: int
    codec: int
    zone: Zone | None


def decode_page(column: Column, block: bytes, expected: Expected) -> np.ndarray:
    """Return the values of the page that is *block*; Malformed where it is not just as *expected*."""
    header = PageHeader.unpack(block)
    payload = read_payload(header, block[HEADER_SIZE:], most=_most_content(column, expected.rows))
    check_header(
        header,
        kind=PageKind.DATA,
        flags=0,
        codec=expected.codec,
        values=expected.rows,
        first_row=expected.first_row,
    )
    if header.encoding in {Encoding.RAW, Encoding.DICT, Encoding.RLE}:
        check_header(header, base=0)
    try:
        rows = values.decode(
            header.encoding, payload, count=expected.rows, dtype=column.dtype, base=header.base
        )
    except Malformed as fault:
        raise Malformed(fault.reason, fault=fault.fault, at=HEADER_SIZE + fault.at) from fault
    check_header(header, encoding=expected.encoding)
    if zone_of(column, rows) != expected.zone:
        raise Malformed("the least or greatest value is not what the footer says", at=_OFFSETS["base"])
    return rows


def _most_content(column: Column, rows: int) -> int:
    """Return how long the content of a page of *rows* can be in any encoding: runs take most."""
    return 16 + rows * (column.width + 10)
