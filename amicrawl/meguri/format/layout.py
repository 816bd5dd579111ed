"""Whether header and footer of a frontier file agree with each other and with the format.

What passes can be used without a second thought: the regions lie end to end from the header to the
footer, the pages of every column end to end from the start of its region, in the order of the columns;
all columns of a table have the same rows in the same pages; no number exceeds what the size of the file
allows. The pages themselves are checked when they are read.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.format.footer import ColumnEntry, Footer, Region, RegionId, bytes_per_url
from amicrawl.meguri.format.header import HEADER_SIZE, Flag, Header
from amicrawl.meguri.format.page import HEADER_SIZE as PAGE_HEADER_SIZE
from amicrawl.meguri.format.schema import HOST_COLUMNS, URL_COLUMNS, Column, Encoding

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS_FREE: Final = 1 << 20
ROWS_PER_BYTE: Final = 1
"""A file of n bytes has at most `ROWS_FREE` + n rows in a table.

A page of equal values takes a few dozen bytes however many there are, so that counts alone prove
nothing. But path keys are hashes: of a million in order, each still takes more than five bytes, and no
codec makes that less. Files of a million rows are read whatever is in them: 108 MB at most.
"""

BLOB_FREE: Final = 1 << 26
BLOB_PER_BYTE: Final = 1 << 10
"""A blob of n compressed bytes has at most `BLOB_FREE` + 1024 n bytes: URLs do not compress that far."""

FLAG_OF_REGION: Final[dict[int, Flag]] = {
    RegionId.SCHEDULE: Flag.SCHEDULE,
    RegionId.SEEN_SET: Flag.SEEN_SET,
    RegionId.STRINGS: Flag.STRINGS,
}


def most_rows(file_size: int) -> int:
    """Return how many rows a table in a file of so many bytes may have."""
    return min(ROWS_FREE + ROWS_PER_BYTE * file_size, 0xFFFF_FFFF)


def most_blob(compressed: int) -> int:
    """Return how many bytes a blob of so many compressed ones may have."""
    return min(BLOB_FREE + BLOB_PER_BYTE * compressed, 0xFFFF_FFFF)


def check_header(header: Header, footer: Footer, *, size: int) -> None:
    """Raise `Malformed`, with an offset in the header, where it differs from the footer."""
    statistics = footer.statistics
    for name, at in (("url_rows", 32), ("host_rows", 40), ("host_key_lo", 16), ("host_key_hi", 24)):
        here, there = getattr(header, name), getattr(statistics, name)
        if here != there:
            raise Malformed(f"{name} {here}, and {there} in the footer", at=at)
    for name, at in (("url_rows", 32), ("host_rows", 40)):
        rows = getattr(header, name)
        if rows > most_rows(size):
            raise Malformed(f"{name} {rows} in a file of {size} bytes", at=at)
    flags = Flag.SORTED
    for region in footer.regions:
        flags |= FLAG_OF_REGION.get(region.id, Flag(0))
    tolerated = Flag.RIBBON if flags & Flag.SEEN_SET else Flag(0)
    if header.flags & ~tolerated != flags:
        raise Malformed(f"flags {header.flags:#04x} instead of {flags:#04x}", at=12)


def check_footer(footer: Footer, header: Header) -> None:
    """Raise `Malformed`, with an offset in the footer, where it contradicts itself or *header*."""
    _check_regions(footer.regions, header.footer_offset)
    urls, hosts = footer.regions[:2]
    _check_table(footer.url_columns, URL_COLUMNS, region=urls, rows=header.url_rows, codec=header.codec)
    _check_table(
        footer.host_columns, HOST_COLUMNS, region=hosts, rows=header.host_rows, codec=header.codec
    )
    _check_due(footer)
    keys = [key for key, _ in footer.meta]
    if any(left >= right for left, right in pairwise(keys)):
        raise Malformed("metadata is not sorted by key")


def _check_regions(regions: Sequence[Region], end: int) -> None:
    ids = [region.id for region in regions]
    known = list(RegionId)
    if ids[:2] != known[:2] or any(number not in known for number in ids) or ids != sorted(set(ids)):
        raise Malformed(f"the regions are {ids}")
    position = HEADER_SIZE
    for region in regions:
        if region.offset != position:
            raise Malformed(f"region {region.name} begins at byte {region.offset} instead of {position}")
        position = region.end
        if position > end:
            raise Malformed(
                f"region {region.name} ends at byte {position}, beyond the footer's start {end}"
            )
    if position != end:
        raise Malformed(f"the regions end at byte {position}, the footer begins at {end}")


def page_extents(entries: Sequence[ColumnEntry], region: Region) -> list[int]:
    """Return how many bytes the pages of each column have: up to where the next column begins."""
    starts = [entry.first_page_offset for entry in entries]
    return [end - start for start, end in zip(starts, [*starts[1:], region.end], strict=True)]


def _check_table(
    entries: Sequence[ColumnEntry], columns: Sequence[Column], *, region: Region, rows: int, codec: int
) -> None:
    if [entry.id for entry in entries] != [column.id for column in columns]:
        raise Malformed(f"the columns of {region.name} are {[entry.id for entry in entries]}")
    if entries[0].first_page_offset != region.offset:
        raise Malformed(f"the pages of {region.name} begin at byte {entries[0].first_page_offset}")
    extents = page_extents(entries, region)
    for entry, column, extent in zip(entries, columns, extents, strict=True):
        try:
            _check_totals(entry, column, rows=rows, codec=codec)
            _check_pages(entry, extent)
            if not np.array_equal(entry.pages["rows"], entries[0].pages["rows"]):
                raise Malformed("the pages have other rows than those of the first column")
            _check_zones(entry, column)
        except Malformed as fault:
            raise Malformed(
                f"{region.name}.{column.name}: {fault.reason}", fault=fault.fault, at=entry.at
            ) from fault


def _check_totals(entry: ColumnEntry, column: Column, *, rows: int, codec: int) -> None:
    if not len(entry.pages):
        # No pages have the checksum 0: whichever of the two was changed, they do not belong together.
        raise Malformed("no pages", fault=FileFault.CHECKSUM if entry.crc32c else FileFault.CORRUPT)
    wanted = {
        "width": column.width,
        "rows": rows,
        "codec": codec,
        "total_uncompressed": rows * column.width,
    }
    for name, value in wanted.items():
        found = getattr(entry, name)
        if found != value:
            raise Malformed(f"{name} is {found} instead of {value}")
    if entry.encoding != entry.pages["encoding"][0]:
        raise Malformed(f"encoding {entry.encoding}, but {entry.pages['encoding'][0]} on the first page")
    # Floats and addresses have no least and greatest values, which prove the base of a page right: none
    # of their encodings may have one.
    known = list(Encoding) if column.has_zones else [Encoding.RAW, column.nominal]
    for encoding in np.unique(entry.pages["encoding"]).tolist():
        if encoding not in known:
            raise Malformed(f"unknown column encoding {encoding}")


def _check_pages(entry: ColumnEntry, extent: int) -> None:
    pages = entry.pages
    lengths, rows = pages["length"], pages["rows"]
    if extent < PAGE_HEADER_SIZE:
        raise Malformed(f"{extent} bytes up to the next column")
    # One by one first, since a sum of hostile numbers would wrap around.
    if len(pages) > 1 and (int(lengths.max()) > extent or int(lengths.min()) < PAGE_HEADER_SIZE):
        raise Malformed(f"a page of {lengths.min()} to {lengths.max()} bytes")
    if int(rows.max()) > entry.rows or (entry.rows and not int(rows.min())):
        raise Malformed(f"a page of {rows.min()} to {rows.max()} rows")
    # How long a page is of which there is only one is found in its own header.
    if int(rows.sum()) != entry.rows or (len(pages) > 1 and int(lengths.sum()) != extent):
        fewer = int(rows.sum()) < entry.rows and int(lengths.sum()) < extent
        raise Malformed(
            f"{len(pages)} pages of {lengths.sum()} bytes and {rows.sum()} rows, where there are "
            f"{extent} bytes up to the next column and {entry.rows} rows",
            # The checksum of the column is that of more pages than are listed.
            fault=FileFault.CHECKSUM if fewer else FileFault.CORRUPT,
        )
    if not entry.rows and len(pages) > 1:
        raise Malformed(f"{len(pages)} pages for no rows")
    if not np.array_equal(pages["first_row"], np.cumsum(rows) - rows):
        raise Malformed("the pages do not begin where those before end")


def _check_zones(entry: ColumnEntry, column: Column) -> None:
    pages = entry.pages
    valid, least, greatest = pages["zone_valid"], pages["zone_min"], pages["zone_max"]
    if not column.has_zones or not entry.rows:
        if entry.zone is not None or valid.any() or least.any() or greatest.any():
            raise Malformed("a least and greatest value where there is none")
        return
    if entry.zone is None or (valid != 1).any():
        raise Malformed("no least and greatest value")
    if (least > greatest).any() or int(greatest.max()) >> 8 * column.width:
        raise Malformed("a least value above the greatest, or one that the column cannot hold")
    if column.name == "host_key" and (least[1:] < greatest[:-1]).any():
        raise Malformed("a page has lower keys than the one before it", fault=FileFault.NOT_SORTED)
    if entry.zone != (int(least.min()), int(greatest.max())):
        raise Malformed("least and greatest value are not those of the pages")


def _check_due(footer: Footer) -> None:
    """Check what the statistics say of `next_due` as far as the directory knows it."""
    statistics = footer.statistics
    least, greatest = footer.url_columns[10].zone or (0, 0)
    # The least time may be that of a row that is not scheduled, 0, and then says nothing.
    known = statistics.due_min == least or (not least and (statistics.due_min == 0) == (greatest == 0))
    if statistics.due_max != greatest or not known or statistics.due_min > greatest:
        raise Malformed(
            f"statistics: due from {statistics.due_min} to {statistics.due_max}, "
            f"but the column is from {least} to {greatest}"
        )


def check_sums(footer: Footer, header: Header) -> None:
    """Raise `Malformed` where the statistics are not the sums of what the directory says.

    Nothing is found by them, so that they need not be right for a file to be opened.
    """
    columns = footer.url_columns + footer.host_columns
    wanted = {
        "scheduled": 0,
        "total_compressed": sum(column.total_compressed for column in columns),
        "total_uncompressed": sum(column.total_uncompressed for column in columns),
        "bytes_per_url": bytes_per_url(header.footer_offset, header.url_rows),
    }
    for name, value in wanted.items():
        found = getattr(footer.statistics, name)
        if found != value:
            raise Malformed(f"statistics: {name} is {found} instead of {value}")
