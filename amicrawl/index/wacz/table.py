"""The pages that a crawl's `captures.parquet` has whole, for a package's list. Reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amicrawl.errors import InputError

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
        raise InputError(f"{table} is no file. Name the captures.parquet of a crawl.")
    try:
        missing = set(_COLUMNS) - set(pq.read_schema(table).names)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{table} cannot be read as a capture index: {error}") from error
    if missing:
        raise InputError(f"{table} is no capture index: it has no column {min(missing)}.")
    name, offsets = "", frozenset[int]()

    def is_page(record: Record) -> bool:
        nonlocal name, offsets
        if record.path.name != name:
            name, offsets = record.path.name, _offsets(table, record.path.name)
        return record.offset in offsets

    return is_page


def _offsets(table: Path, name: str) -> frozenset[int]:
    wanted = (
        (pc.field("warc_file") == name) & (pc.field("status") == 200) & (pc.field("truncated") == "")
    )
    try:
        rows = pq.read_table(table, columns=["warc_offset"], filters=wanted)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{table} cannot be read as a capture index: {error}") from error
    return frozenset(offset for offset in rows.column("warc_offset").to_pylist() if offset is not None)
