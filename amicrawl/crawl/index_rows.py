"""Rows of the index in a crawl's directory, as record batches; of ours, or of ami before us.

A column that the table does not have, as of ami or of an earlier version, is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amicrawl.capture import Failure
from amicrawl.listing import TABLE_NAME
from amicrawl.record.captures import COLUMNS, EMPTY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amicrawl.parquet import ParquetTable

_BATCH = 4096
_COLUMNS = [
    "url",
    "status",
    "error",
    "fetched_at",
    "duration_ms",
    "digest",
    "etag",
    "last_modified",
    "unchanged",
    "final_url",
    "content_type",
    "meta_json",
    "warc_file",
    "warc_offset",
    "payload_digest",
    "original_url",
    "original_at",
    "via",
]
_KINDS = dict(COLUMNS)


def index_rows(directory: Path) -> int:
    """Return how many rows the index in *directory* has; 0 where there is none."""
    table = _index(directory)
    if table is None:
        return 0
    with table:
        return table.rows


def rows_from(directory: Path, first: int, columns: Sequence[str] = _COLUMNS) -> Iterator[Any]:
    """Yield the rows of the index from number *first* on, as record batches of *columns*, in order."""
    table = _index(directory)
    if table is None:
        return
    with table:
        for group, rows in enumerate(table.group_rows):
            if first >= rows:
                first -= rows
                continue
            for batch in _batches(table, columns, groups=[group]):
                if first < batch.num_rows:
                    yield batch.slice(first)
                first = max(0, first - batch.num_rows)


def rows_of_ami(paths: Sequence[Path]) -> Iterator[Any]:
    """Yield the rows of the indexes *paths* of ami."""
    from amicrawl.record import opened_index  # noqa: PLC0415

    for path in paths:
        with opened_index(path, is_ours=False) as table:
            yield from _batches(table, _COLUMNS)


def _batches(
    table: ParquetTable, columns: Sequence[str], *, groups: Sequence[int] | None = None
) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415  # dear to load, and loaded by then

    there = [name for name in columns if name in table.schema.names]
    for batch in table.batches(there, rows=_BATCH, groups=groups):
        values = [
            batch[name] if name in there else pa.repeat(EMPTY[_KINDS[name]], batch.num_rows)
            for name in columns
        ]
        yield pa.record_batch(values, names=list(columns))


def _index(directory: Path) -> ParquetTable | None:
    path = directory / TABLE_NAME
    if not path.exists():
        return None
    from amicrawl.record import opened_index  # noqa: PLC0415  # dear to load, and seldom needed

    return opened_index(path)


def of_captures(rows: Any) -> Any:
    """Return the record batch *rows* without those of lines that say more of a URL that was fetched."""
    import pyarrow.compute as pc  # noqa: PLC0415  # dear to load, and loaded by then

    return rows.filter(pc.invert(pc.starts_with(rows["error"], Failure.REPEATED_SEED.value)))
