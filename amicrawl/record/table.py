"""`captures.parquet` on disk: its schema, its rows read, and an earlier one and new rows made the next.

`captures.py` says what the columns mean. The new table is written as `captures.parquet.open`, the rows
of the earlier one first, forced to disk and renamed over it. It names the last journal it has taken in
(`amicrawl.last_journal` in the file's metadata), and only then are journals removed: a crash at any
point leaves either the old table and its journals, or the new one and journals that it is known to hold.
Memory is bounded by rows and by bytes, since a single row may bring 8 MiB of metadata.

Arrow's JSON reader makes columns of a block of journal lines at once. It refuses what `read_rows`
refuses, but cannot say where: a block that it does not take whole is read line by line.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from amicrawl import __version__
from amicrawl.disk import OutputFile
from amicrawl.errors import DamagedFileError, InputError
from amicrawl.listing import TABLE_NAME, SealedFile, described
from amicrawl.parquet import NotWholeError, ParquetTable
from amicrawl.record.captures import COLUMNS, EMPTY, NULLABLE
from amicrawl.record.journal import (
    LAST_JOURNAL,
    LINE_LIMIT,
    NAMES,
    encode_row,
    journals,
    next_journal,
    opened_index_files,
    own_index_files,
    remove_taken_in,
    rows_in,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from amicrawl.disk import Disk
    from amicrawl.record.journal import DamagedLine, RowTuple


class OutputSink:
    """The file that pyarrow writes to, an output file of ours: no byte passes by its disk.

    pyarrow goes on writing once a write has failed or the table was given up, from destructors too;
    nothing of that may reach the file, or raise.
    """

    closed = False

    def __init__(self, output: OutputFile) -> None:
        self._output = output
        self._given_up = False

    def write(self, block: bytes) -> int:
        """Write *block*."""
        if not self._given_up:
            self._given_up = True
            self._output.write(block)
            self._given_up = False
        return len(block)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._output.tell()

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Do nothing: the file is not pyarrow's to close."""

    def give_up(self) -> None:
        """Let nothing more through."""
        self._given_up = True


SCHEMA_VERSION = 1
"""Raised when a column changes its name, type or meaning; adding one at the end does not count."""

_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "bool": pa.bool_(),
}

CAPTURES: Final = pa.schema(
    [pa.field(name, _TYPES[kind], nullable=name in NULLABLE) for name, kind in COLUMNS],
    metadata={
        "amicrawl.schema_version": str(SCHEMA_VERSION),
        "amicrawl.software": f"amicrawl/{__version__}",
    },
)


class CaptureIndex(ParquetTable):
    """A capture index, of which `batches` raises DamagedFileError for what cannot be read."""

    def stat(self) -> os.stat_result:
        """Return the facts of the opened file, whatever has its name now."""
        return os.fstat(self._file.fileno())

    def batches(self, columns: Sequence[str], **options: Any) -> Iterator[pa.RecordBatch]:
        """Yield the *columns* as `ParquetTable` does; strings are UTF-8."""
        with blamed_on(Path(self.name)):
            for batch in super().batches(columns, **options):
                batch.validate(full=True)
                yield batch


def opened_index(path: Path, *, is_ours: bool = True) -> CaptureIndex:
    """Open the capture index at *path*; if it *is_ours*, its columns are of their types.

    Raises DamagedFileError where it cannot be read or is another table, InputError where it is absurd.
    """
    with blamed_on(path):
        table = CaptureIndex(path, str(path))
    for known in table.schema if is_ours else ():
        if known.name in CAPTURES.names and known.type != CAPTURES.field(known.name).type:
            table.close()
            wanted = CAPTURES.field(known.name).type
            reason = f"no capture index, as its column {known.name} is {known.type} and not {wanted}"
            raise DamagedFileError(path, 0, f"{reason}; move it away and start again")
    return table


@contextmanager
def blamed_on(path: Path) -> Iterator[None]:
    """Turn an error of pyarrow into one that says that the table *path* cannot be read."""
    try:
        yield
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (pa.ArrowException, OSError, NotWholeError) as error:
        reason = f"not a readable capture index ({error}); move it away and start again"
        raise DamagedFileError(path, 0, reason) from error


def offsets_in_table(directory: Path, warc_files: Collection[str]) -> dict[str, set[int]]:
    """Return the offsets that the rows of `captures.parquet` have in each of *warc_files*."""
    offsets = {name: set[int]() for name in warc_files}
    path = directory / TABLE_NAME
    if not offsets or not path.exists():
        return offsets
    with opened_index(path) as table:
        for batch in table.batches(["warc_file", "warc_offset"]):
            # Nearly all rows are of other files, mostly of one: its name is looked at once.
            rows: Any = batch
            names = rows["warc_file"].dictionary_encode()
            for code, name in enumerate(names.dictionary.to_pylist()):
                if name in offsets:
                    same = np.flatnonzero(names.indices.to_numpy(zero_copy_only=False) == code)
                    offsets[name].update(rows["warc_offset"].take(pa.array(same)).to_pylist())
    return offsets


def capture_batches(
    directory: Path, *, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `captures.parquet` in *directory*, then those of its journals, in batches.

    *columns* are all that is read of the table, of any version; missing ones are empty or zero. The
    torn last line of a journal is left out. Raises as `opened_index_files`, also for a damaged line.
    """
    with opened_index_files(directory, listed=own_index_files) as (tables, unread):
        for table in tables:
            known = [name for name in CAPTURES.names if name in table.schema.names]
            for batch in table.batches(columns or known, rows=_BATCH_ROWS):
                yield batch if columns else _conformed(batch)
        yield from chain.from_iterable(map(_batches_of_journal, unread))


def warc_files_in_table(directory: Path) -> Iterator[str]:
    """Yield the WARC files that rows of `captures.parquet` name, some of them more than once.

    Raises as `opened_index`.
    """
    with opened_index(directory / TABLE_NAME) as table:
        for batch in table.batches(["warc_file"]):
            column: Any = batch.column(0)
            yield from filter(None, column.dictionary_encode().dictionary.to_pylist())


ROW_GROUP_ROWS = 100_000
"""Rows after which a row group is ended; the last block of lines may bring some thousands more."""
ROW_GROUP_BYTES = 64 * 1024**2
"""Bytes of columns after which a row group is ended although it has fewer rows."""

_BATCH_ROWS = 10_000
_BLOCK_BYTES = 4 * 1024**2
_REPEATING = ["host", "content_type", "warc_file", "error", "ip_address", "protocol", "truncated"]


def take_in_journals(directory: Path, *, disk: Disk) -> SealedFile:
    """Bring the rows of all journals in *directory* into `captures.parquet`, and remove the journals.

    Raises DamagedFileError, and changes nothing, where a line of a journal holds no row.
    """
    paths = journals(directory)
    path = directory / TABLE_NAME
    if not paths and path.exists():
        with opened_index(path) as earlier:
            return described(path, records=earlier.rows)
    batches = chain.from_iterable(_batches_of_journal(path.open("rb")) for path in paths)
    table = _written(directory, [path] if path.exists() else [], batches, disk=disk)
    remove_taken_in(directory, disk=disk)
    return table


def write_table(directory: Path, rows: Iterable[RowTuple], *, disk: Disk) -> SealedFile:
    """Write `captures.parquet` anew: the rows it has, then *rows*.

    All journals now in *directory* count as taken in.
    """
    path = directory / TABLE_NAME
    return _written(directory, [path] if path.exists() else [], _batches_of_rows(rows), disk=disk)


def join_tables(directory: Path, tables: Iterable[Path], *, disk: Disk) -> SealedFile:
    """Write `captures.parquet` in *directory* anew: the rows of *tables*, one behind the other.

    Raises as `opened_index`.
    """
    return _written(directory, tables, (), disk=disk)


def _written(
    directory: Path, tables: Iterable[Path], batches: Iterable[pa.RecordBatch], *, disk: Disk
) -> SealedFile:
    """Replace `captures.parquet` by the rows of *tables* and then those of *batches*."""
    digest = hashlib.sha256()
    last_journal = next_journal(directory) - 1
    output = OutputFile.replacing(directory / TABLE_NAME, disk=disk, digest=digest)
    try:
        writer = _CapturesWriter(output)
        try:
            for path in tables:
                writer.copy(path)
            for batch in batches:
                writer.add(batch)
            count = writer.finish(last_journal)
        finally:
            writer.close()
        output.seal()
    finally:
        output.close()
    # Arrow keeps what was freed, some 60 MiB, and the crawl has its frontier to write yet.
    pa.default_memory_pool().release_unused()
    return SealedFile(TABLE_NAME, output.tell(), count, digest.hexdigest())


class _CapturesWriter:
    """Rows into the bytes of a Parquet file."""

    def __init__(self, output: OutputFile) -> None:
        self._sink = OutputSink(output)
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
            for batch in table.batches(table.schema.names, rows=_BATCH_ROWS):
                self.add(_conformed(batch))
            self._end_group()

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows of *batch*."""
        self._batches.append(batch)
        self._group_rows += batch.num_rows
        self._group_bytes += batch.nbytes
        if self._group_rows >= ROW_GROUP_ROWS or self._group_bytes >= ROW_GROUP_BYTES:
            self._end_group()

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

    def _end_group(self) -> None:
        if self._batches:
            self._writer.write_table(
                pa.Table.from_batches(self._batches), row_group_size=self._group_rows
            )
        self._count += self._group_rows
        self._batches, self._group_rows, self._group_bytes = [], 0, 0


def _batches_of_journal(stream: BinaryIO) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the journal *stream* and close it; DamagedFileError where a line holds none."""

    def refuse(line: DamagedLine) -> None:
        raise DamagedFileError(
            line.path, line.offset, f"{line.reason}; start the crawl again to repair it"
        )

    with stream:
        offset = 0
        while lines := stream.read(_BLOCK_BYTES) + stream.readline(LINE_LIMIT):
            batch = _batch_of(lines)
            if batch is None:
                yield from _batches_of_rows(rows_in(stream, on_damage=refuse, start=offset))
                return
            yield batch
            offset += len(lines)


def _batches_of_rows(rows: Iterable[RowTuple]) -> Iterator[pa.RecordBatch]:
    lines, size = [], 0
    for row in rows:
        lines.append(encode_row(dict(zip(NAMES, row, strict=True))))
        size += len(lines[-1])
        if size >= _BLOCK_BYTES:
            yield _known_batch(lines)
            lines, size = [], 0
    if lines:
        yield _known_batch(lines)


def _known_batch(lines: list[bytes]) -> pa.RecordBatch:
    """Return the rows of *lines* of ours as columns."""
    batch = _batch_of(b"".join(lines))
    assert batch is not None
    return batch


def _batch_of(lines: bytes) -> pa.RecordBatch | None:
    """Return the rows of journal *lines* as columns; None unless each line holds one, and ends."""
    # Arrow's way from Python values would load pandas where that is installed, which takes longer than
    # all else that the end of a small crawl has to do.
    try:
        if not lines.isascii():
            lines.decode()
        table = pj.read_json(
            BytesIO(lines),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(lines)),
            parse_options=pj.ParseOptions(explicit_schema=CAPTURES, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    # A byte order mark and blank lines would be passed over, and several rows of one line be taken.
    is_whole = lines.startswith(b"{") and lines.endswith(b"\n")
    if not is_whole or table.num_rows != lines.count(b"\n"):
        return None
    if any(table[field.name].null_count for field in CAPTURES if not field.nullable):
        return None
    [batch] = table.to_batches()
    return pa.RecordBatch.from_arrays(batch.columns, schema=CAPTURES)


def _conformed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return *batch* with the columns of `CAPTURES`: what is missing becomes empty or zero."""
    columns = []
    for field in CAPTURES:
        empty = _empty_row().column(field.name)[0]
        if field.name not in batch.schema.names:
            columns.append(pa.repeat(empty, batch.num_rows))
            continue
        column = batch.column(field.name)
        columns.append(column if field.nullable else column.fill_null(empty))
    return pa.RecordBatch.from_arrays(columns, schema=CAPTURES)


@cache
def _empty_row() -> pa.RecordBatch:
    values = {name: None if name in NULLABLE else EMPTY[kind] for name, kind in COLUMNS}
    return _known_batch([orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)])
