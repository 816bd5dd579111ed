"""Footer: where the regions and pages of a frontier file lie and what is in them.

A run of sections, each a uvarint tag, a uvarint length and a body: the regions, the columns of both
tables (with, for a column of several pages, a skip list of them), statistics, and pairs of free text.
Sections with other tags are skipped. This module turns bytes into these and back; whether they agree
with the header and with each other is for `layout` to say.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.page import HEADER_SIZE, Zone
from amicrawl.meguri.format.varints import read_uvarint, write_uvarint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class RegionId(IntEnum):
    """The regions of a file, in their order."""

    URL_TABLE = 0
    HOST_TABLE = 1
    SCHEDULE = 2
    SEEN_SET = 3
    STRINGS = 4


REGION_NAMES: Final[dict[int, str]] = {
    RegionId.URL_TABLE: "url_table",
    RegionId.HOST_TABLE: "host_table",
    RegionId.SCHEDULE: "schedule",
    RegionId.SEEN_SET: "seenset",
    RegionId.STRINGS: "string_blob",
}

PAGE_ENTRY: Final = np.dtype(
    [
        ("first_row", "<u8"),
        ("rows", "<u8"),
        ("length", "<u8"),
        ("encoding", "u1"),
        ("zone_valid", "u1"),
        ("zone_min", "<u8"),
        ("zone_max", "<u8"),
    ]
)
"""What the skip list says of a page; the length is that on disk, page header included."""


class Tag(IntEnum):
    """The sections that are written."""

    REGIONS = 1
    URL_COLUMNS = 2
    HOST_COLUMNS = 3
    STATISTICS = 7
    META = 8


_KNOWN_TAGS: Final[frozenset[int]] = frozenset(Tag)

_REGION: Final = struct.Struct("<BQQIB")
_COLUMN_TOTALS: Final = struct.Struct("<QQQ")
_COLUMN_REST: Final = struct.Struct("<BBBQIBQQ")
_STATISTICS: Final = struct.Struct("<QQQQQIIQQf")


class Region(NamedTuple):
    """A run of bytes of the file."""

    id: int
    offset: int
    length: int
    crc32c: int

    @property
    def name(self) -> str:
        """What `inspect` and errors call it."""
        return REGION_NAMES.get(self.id, f"region_{self.id}")

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True, eq=False)
class ColumnEntry:
    """What the column directory says of a column."""

    id: int
    first_page_offset: int
    total_compressed: int
    """Bytes of all payloads."""
    total_uncompressed: int
    """Rows times width."""
    rows: int
    width: int
    encoding: int
    """Of the first page."""
    codec: int
    crc32c: int
    """Of all its pages, page headers included."""
    zone: Zone | None
    pages: np.ndarray
    """One `PAGE_ENTRY` for each page, also where there is one page and the file has no skip list."""
    at: int = field(default=0)
    """Where in the footer it stands."""

    def zone_of_page(self, page: int) -> Zone | None:
        """Return the least and greatest value of page number *page*."""
        entry = self.pages[page]
        return (int(entry["zone_min"]), int(entry["zone_max"])) if entry["zone_valid"] else None


class Statistics(NamedTuple):
    """Sums over the whole file."""

    url_rows: int
    host_rows: int
    host_key_lo: int
    host_key_hi: int
    scheduled: int
    """Always 0."""
    due_min: int
    due_max: int
    """Least and greatest `next_due` that is not 0, in hours; both 0 where there is none."""
    total_compressed: int
    total_uncompressed: int
    bytes_per_url: float
    """What lies before the footer, by URL row; 0 without rows."""


@dataclass(frozen=True, slots=True)
class Footer:
    """Everything between the regions and the trailer."""

    regions: tuple[Region, ...]
    url_columns: tuple[ColumnEntry, ...]
    host_columns: tuple[ColumnEntry, ...]
    statistics: Statistics
    meta: tuple[tuple[bytes, bytes], ...] = ()


def bytes_per_url(footer_offset: int, url_rows: int) -> float:
    """Return the quotient in single precision, 0 without rows."""
    return float(np.float32(footer_offset) / np.float32(url_rows)) if url_rows else 0.0


def encode_footer(footer: Footer) -> bytes:
    """Return *footer* as it is stored in a file."""
    sections = [
        (Tag.REGIONS, _encode_regions(footer.regions)),
        (Tag.URL_COLUMNS, _encode_columns(footer.url_columns)),
        (Tag.HOST_COLUMNS, _encode_columns(footer.host_columns)),
        (Tag.STATISTICS, _STATISTICS.pack(*footer.statistics)),
    ]
    if footer.meta:
        sections.append((Tag.META, _encode_meta(footer.meta)))
    return b"".join(write_uvarint(tag) + write_uvarint(len(body)) + body for tag, body in sections)


def _encode_regions(regions: Sequence[Region]) -> bytes:
    return write_uvarint(len(regions)) + b"".join(_REGION.pack(*region, 0) for region in regions)


def _encode_columns(columns: Sequence[ColumnEntry]) -> bytes:
    return write_uvarint(len(columns)) + b"".join(map(_encode_column, columns))


def _encode_column(column: ColumnEntry) -> bytes:
    zone = column.zone or (0, 0)
    return b"".join(
        (
            write_uvarint(column.id),
            _COLUMN_TOTALS.pack(
                column.first_page_offset, column.total_compressed, column.total_uncompressed
            ),
            write_uvarint(column.rows),
            write_uvarint(len(column.pages)),
            _COLUMN_REST.pack(
                column.width,
                column.encoding,
                column.codec,
                column.total_uncompressed,
                column.crc32c,
                column.zone is not None,
                *zone,
            ),
            column.pages.tobytes() if len(column.pages) > 1 else bytes(8),
        )
    )


def _encode_meta(meta: Sequence[tuple[bytes, bytes]]) -> bytes:
    texts = (text for pair in meta for text in pair)
    return write_uvarint(len(meta)) + b"".join(write_uvarint(len(text)) + text for text in texts)


_T = TypeVar("_T")


class Cursor:
    """A position in *block* that moves on with what is read, and not beyond *end*."""

    def __init__(self, block: memoryview, at: int, end: int) -> None:
        self.block = block
        self.at = at
        self.end = end

    def uvarint(self) -> int:
        """Read a number."""
        value, at = read_uvarint(self.block[: self.end], self.at)
        self.at = at
        return value

    def take(self, length: int) -> memoryview:
        """Read so many bytes."""
        if length > self.end - self.at:
            raise Malformed(f"{length} bytes where {self.end - self.at} are left", at=self.at)
        taken = self.block[self.at : self.at + length]
        self.at += length
        return taken

    def fields(self, layout: struct.Struct) -> tuple[int, ...]:
        """Read the numbers of *layout*."""
        return layout.unpack(self.take(layout.size))

    def several(self, read: Callable[[Cursor], _T], *, least: int) -> tuple[_T, ...]:
        """Read a count, and so many items of *least* bytes or more."""
        at, count = self.at, self.uvarint()
        if count * least > self.end - self.at:
            raise Malformed(f"{count} items in {self.end - self.at} bytes", at=at)
        return tuple(read(self) for _ in range(count))


def parse_footer(block: bytes) -> Footer:
    """Return what *block*, all bytes of a footer, says; Malformed where it cannot be read to the end."""
    sections = _sections(memoryview(block))

    def section(tag: Tag, read: Callable[[Cursor], _T], *, least: int) -> tuple[_T, ...]:
        if tag not in sections:
            raise Malformed(f"section {tag} is missing", at=len(block))
        cursor = sections[tag]
        items = cursor.several(read, least=least)
        _check_end(cursor)
        return items

    if Tag.STATISTICS not in sections:
        raise Malformed(f"section {Tag.STATISTICS} is missing", at=len(block))
    statistics = Statistics(*sections[Tag.STATISTICS].fields(_STATISTICS))
    _check_end(sections[Tag.STATISTICS])
    return Footer(
        regions=section(Tag.REGIONS, _read_region, least=_REGION.size),
        url_columns=section(Tag.URL_COLUMNS, _read_column, least=62),
        host_columns=section(Tag.HOST_COLUMNS, _read_column, least=62),
        statistics=statistics,
        meta=section(Tag.META, _read_pair, least=2) if Tag.META in sections else (),
    )


def _sections(block: memoryview) -> dict[int, Cursor]:
    """Return where each section's body lies."""
    sections: dict[int, Cursor] = {}
    at = 0
    while at < len(block):
        begin = at
        tag, at = read_uvarint(block, at)
        length, at = read_uvarint(block, at)
        if length > len(block) - at:
            raise Malformed(f"section {tag} of {length} bytes, where {len(block) - at} follow", at=begin)
        if tag in _KNOWN_TAGS:
            if tag in sections:
                raise Malformed(f"section {tag} comes twice", at=begin)
            sections[tag] = Cursor(block, at, at + length)
        at += length
    return sections


def _check_end(cursor: Cursor) -> None:
    if cursor.at != cursor.end:
        raise Malformed(f"{cursor.end - cursor.at} bytes too many in the section", at=cursor.at)


def _read_region(cursor: Cursor) -> Region:
    at = cursor.at
    number, offset, length, checksum, flags = cursor.fields(_REGION)
    if flags:
        raise Malformed(f"unknown flags {flags} of region {number}", at=at)
    return Region(number, offset, length, checksum)


def _read_column(cursor: Cursor) -> ColumnEntry:
    at = cursor.at
    number = cursor.uvarint()
    first, compressed, uncompressed = cursor.fields(_COLUMN_TOTALS)
    rows, page_count = cursor.uvarint(), cursor.uvarint()
    width, encoding, codec, again, checksum, has_zone, *zone = cursor.fields(_COLUMN_REST)
    if again != uncompressed:
        raise Malformed(f"column {number}: {uncompressed} bytes, and then {again}", at=at)
    if has_zone > 1 or (not has_zone and any(zone)):
        raise Malformed(f"column {number}: neither a least and greatest value nor none", at=at)
    return ColumnEntry(
        id=number,
        first_page_offset=first,
        total_compressed=compressed,
        total_uncompressed=uncompressed,
        rows=rows,
        width=width,
        encoding=encoding,
        codec=codec,
        crc32c=checksum,
        zone=(zone[0], zone[1]) if has_zone else None,
        pages=_read_pages(cursor, page_count)
        if page_count > 1
        else _only_page(
            cursor, page_count, (0, rows, HEADER_SIZE + compressed, encoding, has_zone, *zone)
        ),
        at=at,
    )


def _read_pages(cursor: Cursor, count: int) -> np.ndarray:
    # A count beyond the section is refused before it is used: `take` compares first.
    return np.frombuffer(cursor.take(count * PAGE_ENTRY.itemsize), PAGE_ENTRY)


def _only_page(cursor: Cursor, count: int, entry: tuple[int, ...]) -> np.ndarray:
    at = cursor.at
    if any(cursor.take(8)):
        raise Malformed("a skip list for one page", at=at)
    if max(entry) >> 64:
        raise Malformed("a length of more than 64 bits", at=at)
    return np.array([entry] * count, PAGE_ENTRY)


def _read_pair(cursor: Cursor) -> tuple[bytes, bytes]:
    key = bytes(cursor.take(cursor.uvarint()))
    return key, bytes(cursor.take(cursor.uvarint()))
