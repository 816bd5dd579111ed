"""Lines of an index: made of records, sorted, and read from files."""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.archive.lines.blocks import Alike, Block, Fields, is_utf8
    from amicrawl.archive.lines.cdxj import CdxjLine, Layout, cdx_line, is_keyed
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
    __getattr__, __all__ = lazy_exports(__spec__)
