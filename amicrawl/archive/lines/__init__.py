"""Lines of an index: made of records, sorted, and read from files."""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.archive.lines.blocks import Alike, Block, Fields, is_utf8
    from amicrawl.archive.lines.cdxj import CdxjLine, Layout, cdx_line
    from amicrawl.archive.lines.line_reader import (
        ARCHIVE_BEGINS,
        ARCHIVE_ENDINGS,
        PARQUET_BEGINS,
        archive_files,
        files_in,
        line_blocks,
        octet_blocks,
        refuse_archive,
        refuse_collection,
    )
    from amicrawl.archive.lines.record_lines import (
        Compat,
        IndexOptions,
        cdxj_lines,
        key_of,
        line_of_wanted,
        timestamp_of,
        url_of,
        wanted_by,
    )
    from amicrawl.archive.lines.shapes import LineShape, Scalar
    from amicrawl.archive.lines.sorted_lines import SortedLines
    from amicrawl.archive.lines.sorting import (
        LineFile,
        LineSort,
        external_sort,
        merged_files,
        without_repeats,
        write_lines,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        PARQUET_BEGINS="line_reader",
        ARCHIVE_BEGINS="line_reader",
        Alike="blocks",
        Block="blocks",
        CdxjLine="cdxj",
        Compat="record_lines",
        Fields="blocks",
        IndexOptions="record_lines",
        Layout="cdxj",
        LineFile="sorting",
        LineSort="sorting",
        Scalar="shapes",
        LineShape="shapes",
        SortedLines="sorted_lines",
        cdx_line="cdxj",
        cdxj_lines="record_lines",
        external_sort="sorting",
        ARCHIVE_ENDINGS="line_reader",
        archive_files="line_reader",
        files_in="line_reader",
        key_of="record_lines",
        is_utf8="blocks",
        line_blocks="line_reader",
        line_of_wanted="record_lines",
        merged_files="sorting",
        octet_blocks="line_reader",
        refuse_archive="line_reader",
        refuse_collection="line_reader",
        timestamp_of="record_lines",
        url_of="record_lines",
        wanted_by="record_lines",
        without_repeats="sorting",
        write_lines="sorting",
    )

__all__ = [
    "ARCHIVE_BEGINS",
    "ARCHIVE_ENDINGS",
    "PARQUET_BEGINS",
    "Alike",
    "Block",
    "CdxjLine",
    "Compat",
    "Fields",
    "IndexOptions",
    "Layout",
    "LineFile",
    "LineShape",
    "LineSort",
    "Scalar",
    "SortedLines",
    "archive_files",
    "cdx_line",
    "cdxj_lines",
    "external_sort",
    "files_in",
    "is_utf8",
    "key_of",
    "line_blocks",
    "line_of_wanted",
    "merged_files",
    "octet_blocks",
    "refuse_archive",
    "refuse_collection",
    "timestamp_of",
    "url_of",
    "wanted_by",
    "without_repeats",
    "write_lines",
]
