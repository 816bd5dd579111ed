"""The rows of a crawl's index in batches of the columns that its report is made of."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from amicrawl.errors import InputError
from amicrawl.listing import TABLE_NAME
from amicrawl.record import NAMES, opened_index_files, rows_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLUMNS = (
    *("url", "host", "status", "fetched_at", "content_type", "body_length", "unchanged", "error"),
    *("truncated", "original_url", "digest"),
)
"""What is read of an index."""
ROWS = 65_536
"""Rows of a batch."""


def index_batches(directory: Path, notes: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the index in *directory*, and of journals that are not in it yet.

    Each batch has COLUMNS and no nulls. What could not be read is said in *notes* at the end. Raises
    InputError where *directory* holds no index, DamagedFileError where it cannot be read.
    """
    damaged: list[object] = []
    with opened_index_files(directory) as (tables, unread):
        if not tables and not unread:
            raise InputError(
                f"{directory} has no {TABLE_NAME}: it is not the output directory of a crawl. Give one."
            )
        for index in tables:
            yield from map(without_nulls, index.batches(COLUMNS, rows=ROWS))
        for journal in unread:
            rows = rows_in(journal, on_damage=damaged.append)
            while block := list(islice(rows, ROWS)):
                yield batch_of([dict(zip(NAMES, row, strict=True)) for row in block])
    if damaged:
        notes.append(f"{len(damaged):,} damaged lines of journals in {directory} are not counted")


def without_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return *batch* with what stands for unknown values; an index of ours has none but in `ttfb_ms`."""
    unknown: dict[pa.DataType, Any] = {pa.string(): "", pa.bool_(): False}
    columns: list[Any] = [
        column.fill_null(unknown.get(column.type, 0)) if column.null_count else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Return COLUMNS of *rows*, as a journal has them."""
    from amicrawl.record import CAPTURES  # noqa: PLC0415  # Arrow's schema, where a journal is read

    columns = [pa.array([row[name] for row in rows], CAPTURES.field(name).type) for name in COLUMNS]
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))
