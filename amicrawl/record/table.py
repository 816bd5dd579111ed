"""`captures.parquet` on disk: an earlier one and new rows become the next, in one step.

The new table is written as `captures.parquet.open`, the rows of the earlier one first, forced to disk
and renamed over it. It names the last journal it has taken in (`amicrawl.last_journal` in the file's
metadata), and only then are journals removed: a crash at any point leaves either the old table and its
journals, or the new one and journals that it is known to hold. Memory is bounded by rows and by bytes,
since a single row may bring 8 MiB of metadata.
"""

from __future__ import annotations

import hashlib
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from amicrawl.disk import OutputFile
from amicrawl.errors import DamagedFileError, InputError
from amicrawl.record.journals import LAST_JOURNAL, journals, next_journal, read_rows, remove_taken_in
from amicrawl.record.parquet_sink import Sink
from amicrawl.record.sealed import TABLE_NAME, SealedFile, described
from amicrawl.record.table_reader import CAPTURES, blamed_on, opened_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.record.journals import DamagedLine, RowTuple

ROW_GROUP_ROWS = 100_000
ROW_GROUP_BYTES = 64 * 1024**2
"""Bytes of journal lines after which a row group is ended although it has fewer rows."""

_BATCH_ROWS = 2_000
_BATCH_BYTES = 4 * 1024**2
_NUMBERS: dict[Any, type[np.generic]] = {pa.int32(): np.int32, pa.int64(): np.int64}
_NOTHING: dict[Any, str | int] = {pa.string(): "", pa.bool_(): False, pa.int32(): 0, pa.int64(): 0}
_REPEATING = ["host", "content_type", "warc_file", "error", "ip_address", "protocol", "truncated"]


def take_in_journals(directory: Path, *, disk: Disk) -> SealedFile:
    """Bring the rows of all journals in *directory* into `captures.parquet`, and remove the journals.

    Raises DamagedFileError, and changes nothing, where a line of a journal holds no row.
    """

    def refuse(line: DamagedLine) -> None:
        raise DamagedFileError(
            line.path, line.offset, f"{line.reason}; start the crawl again to repair it"
        )

    paths = journals(directory)
    path = directory / TABLE_NAME
    if not paths and path.exists():
        with opened_index(path) as earlier:
            return described(path, records=earlier.rows)
    rows = (row for path in paths for row in read_rows(path, on_damage=refuse))
    table = write_table(directory, ((row.values, row.size) for row in rows), disk=disk)
    remove_taken_in(directory, disk=disk)
    return table


def write_table(directory: Path, rows: Iterable[tuple[RowTuple, int]], *, disk: Disk) -> SealedFile:
    """Write `captures.parquet` anew: the rows it has, then *rows*, each with its size in bytes.

    All journals now in *directory* count as taken in.
    """
    path = directory / TABLE_NAME
    return _written(directory, [path] if path.exists() else [], rows, disk=disk)


def join_tables(directory: Path, tables: Iterable[Path], *, disk: Disk) -> SealedFile:
    """Write `captures.parquet` in *directory* anew: the rows of *tables*, one behind the other.

    Raises as `opened_index`.
    """
    return _written(directory, tables, (), disk=disk)


def _written(
    directory: Path, tables: Iterable[Path], rows: Iterable[tuple[RowTuple, int]], *, disk: Disk
) -> SealedFile:
    """Replace `captures.parquet` by the rows of *tables* and then *rows*."""
    digest = hashlib.sha256()
    last_journal = next_journal(directory) - 1
    output = OutputFile.replacing(directory / TABLE_NAME, disk=disk, digest=digest)
    try:
        writer = _TableWriter(output)
        try:
            for path in tables:
                writer.copy(path)
            writer.add(rows)
            count = writer.finish(last_journal)
        finally:
            writer.close()
        output.seal()
    finally:
        output.close()
    return SealedFile(TABLE_NAME, output.tell(), count, digest.hexdigest())


class _TableWriter:
    """Rows into the bytes of a Parquet file."""

    def __init__(self, output: OutputFile) -> None:
        self._sink = Sink(output)
        # The stubs know neither files that are only written to nor a choice of columns.
        options: dict[str, Any] = {"where": self._sink, "use_dictionary": _REPEATING}
        self._writer = pq.ParquetWriter(schema=CAPTURES, compression="zstd", **options)
        self._batches: list[pa.RecordBatch] = []
        self._group_rows = 0
        self._group_bytes = 0
        self._count = 0

    def copy(self, path: Path) -> None:
        """Take the rows of the table *path*, row group by row group."""
        with opened_index(path) as table:
            unknown = set(table.schema.names) - set(CAPTURES.names)
            if unknown:
                raise InputError(
                    f"{path} has columns that are not known here ({', '.join(sorted(unknown))}). "
                    "Move it away, or use the version that wrote it, and start again."
                )
            with blamed_on(path):
                for batch in table.batches(table.schema.names, rows=_BATCH_ROWS * 5):
                    self._hold(_conformed(batch), batch.nbytes)
            self._end_group()

    def add(self, rows: Iterable[tuple[RowTuple, int]]) -> None:
        """Take *rows*, each with its size in bytes."""
        batch: list[RowTuple] = []
        size = 0
        for values, row_size in rows:
            batch.append(values)
            size += row_size
            if len(batch) >= _BATCH_ROWS or size >= _BATCH_BYTES:
                self._take(batch, size)
                batch, size = [], 0
        if batch:
            self._take(batch, size)

    def finish(self, last_journal: int) -> int:
        """Write what is left and the footer, and return the number of rows."""
        self._end_group()
        self._writer.add_key_value_metadata({LAST_JOURNAL.decode(): str(last_journal)})
        self._writer.close()
        return self._count

    def close(self) -> None:
        """Let go of what pyarrow holds; a table that is not finished gets no further byte."""
        self._sink.give_up()
        self._writer.close()

    def _take(self, rows: list[RowTuple], size: int) -> None:
        columns = zip(*rows, strict=True)
        arrays = [column_of(column, field.type) for column, field in zip(columns, CAPTURES, strict=True)]
        self._hold(pa.RecordBatch.from_arrays(arrays, schema=CAPTURES), size)

    def _hold(self, batch: pa.RecordBatch, size: int) -> None:
        self._batches.append(batch)
        self._group_rows += batch.num_rows
        self._group_bytes += size
        if self._group_rows >= ROW_GROUP_ROWS or self._group_bytes >= ROW_GROUP_BYTES:
            self._end_group()

    def _end_group(self) -> None:
        if self._batches:
            self._writer.write_table(
                pa.Table.from_batches(self._batches), row_group_size=self._group_rows
            )
        self._count += self._group_rows
        self._batches, self._group_rows, self._group_bytes = [], 0, 0


def _conformed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return *batch* with the columns of `CAPTURES`: what is missing becomes empty or zero."""
    columns = []
    for field in CAPTURES:
        empty = column_of([_empty_value(field)], field.type)[0]
        if field.name not in batch.schema.names:
            columns.append(pa.repeat(empty, batch.num_rows))
            continue
        column = batch.column(field.name)
        columns.append(column if field.nullable else column.fill_null(empty))
    return pa.RecordBatch.from_arrays(columns, schema=CAPTURES)


def _empty_value(field: pa.Field[Any]) -> str | int | bool | None:
    if field.nullable:
        return None
    return "" if field.type == pa.string() else False if field.type == pa.bool_() else 0


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """Return *values*, each of *kind* or None, as an array of *kind*: strings, booleans or integers.

    It is put together from its bytes: Arrow's own way from Python loads pandas where that is installed,
    which takes longer than all else that the end of a small crawl has to do. Raises UnicodeEncodeError
    for a string that UTF-8 cannot encode, OverflowError for a number out of range.
    """
    count, missing = len(values), None
    if None in values:
        missing = [value is None for value in values]
        values = [_NOTHING[kind] if value is None else value for value in values]
    if kind == pa.string():
        written = [value.encode() for value in values]
        # Refused rather than wrapped around, should one batch ever hold more than 2 GiB of text.
        ends = np.fromiter(accumulate(map(len, written), initial=0), np.int32, count + 1)
        parts = [pa.py_buffer(ends.data), pa.py_buffer(b"".join(written))]
    elif kind == pa.bool_():
        parts = [_packed(values)]
    else:
        parts = [pa.py_buffer(np.array(values, _NUMBERS[kind]).data)]
    valid = _packed([not each for each in missing]) if missing else None
    buffers: Any = [valid, *parts]
    return pa.Array.from_buffers(kind, count, buffers)


def _packed(truths: Sequence[bool]) -> Any:
    """Return *truths* as Arrow keeps them: eight to a byte, the first lowest."""
    return pa.py_buffer(np.packbits(np.array(truths, np.bool_), bitorder="little").data)
