"""The pages that a crawl's `captures.parquet` has whole, for a package's list. Reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.errors import InputError
from amicrawl.parquet import ParquetTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.index.reading.records import Record

_COLUMNS = ["warc_file", "warc_offset", "status", "truncated"]


def pages_in_table(table: Path) -> Callable[[Record], bool]:
    """Return what tells whether a record is a capture that *table* has with status 200 and not cut off.

    The rows of one WARC file are held at a time. InputError where *table* is no such table.
    """
    if not table.is_file():
        raise InputError(f"{table} is not a file. Name the captures.parquet of a crawl.")
    try:
        with ParquetTable(table, str(table)) as opened:
            missing = set(_COLUMNS) - set(opened.schema.names)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{table} cannot be read as a capture index: {error}") from error
    if missing:
        raise InputError(f"{table} is not a capture index: it has no column {min(missing)}.")
    name, offsets = "", frozenset[int]()

    def is_page(record: Record) -> bool:
        nonlocal name, offsets
        if record.path.name != name:
            name, offsets = record.path.name, _offsets(table, record.path.name)
        return record.offset in offsets

    return is_page


def _offsets(table: Path, name: str) -> frozenset[int]:
    wanted: Any = (
        (pc.field("warc_file") == name) & (pc.field("status") == 200) & (pc.field("truncated") == "")
    )
    offsets = set[object]()
    try:
        with ParquetTable(table, str(table)) as opened:
            for batch in opened.batches(_COLUMNS):
                rows: Any = batch
                offsets.update(rows.filter(wanted)["warc_offset"].to_pylist())
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{table} cannot be read as a capture index: {error}") from error
    return frozenset(offset for offset in offsets if isinstance(offset, int))
