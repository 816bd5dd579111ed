"""Rows of a table into Parquet files: one directory for each crawl and subset, files cut at a row count.

Files bear names that end in `.open` until `seal` renames them all, so that a table that was given up is
not met by `*.parquet`. Memory is bounded over all files that are being written: by bytes of rows, so
that the partition that holds back most gives a row group to its file, and by what Parquet keeps until a
file ends, so that the file with most of that is ended. Row groups have minimum and maximum of every
column, pages have too, columns that are sought by value have a bloom filter, and the metadata of each
file say by which list of public suffixes its columns were made, and that its rows are in order where
they are.

A block of lines leaves some ninety buffers, between those that reading it took and gave back. Kept for
long, they keep what lies between them from being used again: half as much memory as all rows take. So
rows that wait for their row group are copied behind each other, and what the blocks took can go. Of a
dictionary, rows that are a few of many keep what they use.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from amicrawl.archive.arrow_texts import missing_in, numbers_from, numbers_of
from amicrawl.archive.table.schema import (
    PARTITION_COLUMNS,
    SOUGHT_BY_VALUE,
    WITHOUT_DICTIONARY,
    CapturePlace,
    as_held,
)
from amicrawl.disk import OutputFile, explained, rename_durably
from amicrawl.errors import UsageError
from amicrawl.record import OutputSink

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from amicrawl.archive.table.schema import TableSchema
    from amicrawl.disk import Disk


_LOOSE = 16
"""Pieces that are made one, as long as they are small."""
_SMALL = 16 << 20
"""Bytes of so many pieces up to which that is worth a copy."""
_OF_A_PIECE = 1 << 10
"""Bytes that a column of a piece takes besides its values, about."""


class HeldRows:
    """The rows of one partition that are in no row group yet."""

    def __init__(self) -> None:
        self.rows = 0
        """How many there are."""
        self.held_bytes = 0
        """Bytes that they take in memory."""
        self._pieces: list[pa.RecordBatch] = []
        self._loose: list[pa.RecordBatch] = []
        self._loose_bytes = 0

    def add(self, piece: pa.RecordBatch) -> None:
        """Take the rows of *piece*."""
        size = _size_of(piece)
        self.rows += piece.num_rows
        self.held_bytes += size
        self._loose.append(piece)
        self._loose_bytes += size
        if len(self._loose) >= _LOOSE and self._loose_bytes <= _SMALL:
            self._pieces.append(in_one(self._loose))
            self.held_bytes += _size_of(self._pieces[-1]) - self._loose_bytes
            self._loose, self._loose_bytes = [], 0

    def take(self) -> pa.Table:
        """Return all rows, with one dictionary for each column that has one, and hold none."""
        # A dictionary that changes within a row group would be given up, and the texts written out.
        rows = pa.Table.from_batches([*self._pieces, *self._loose]).unify_dictionaries()
        self._pieces, self._loose, self._loose_bytes = [], [], 0
        self.rows = self.held_bytes = 0
        return rows


def in_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of *batches*, of which there are some, in memory of their own."""
    rows = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return rows.to_batches()[0]


def some_of(batch: pa.RecordBatch, numbers: pa.Array[Any]) -> pa.RecordBatch:
    """Return the rows of *batch* with these *numbers*, and of its dictionaries what they use."""
    columns: list[Any] = [_used(column.take(numbers)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _used(column: Any) -> Any:
    """Return *column* without the texts of its dictionary that it does not use, if they are many."""
    if not pa.types.is_dictionary(column.type) or len(column.dictionary) <= len(column):
        return column
    places, missing = numbers_of(column.indices), missing_in(column.indices)
    used = np.unique(places if missing is None else places[~missing])
    anew = np.zeros(len(column.dictionary) + 1, np.int32)
    anew[used] = np.arange(len(used), dtype=np.int32)
    indices = numbers_from(anew[places], missing=missing)
    return pa.DictionaryArray.from_arrays(indices, column.dictionary.take(numbers_from(used)))


def _size_of(piece: pa.RecordBatch) -> int:
    return piece.nbytes + piece.num_columns * _OF_A_PIECE


ROW_GROUP_ROWS = 1_000_000
FILE_ROWS = 2_000_000
"""Rows after which the next file of a partition is begun: filters and indexes of a file are held."""
MOST_PARTITIONS = 400
"""Partitions that are written at a time; file names are untrusted, and could name any number."""
COMPRESSION_LEVEL = 3

ROW_GROUP_BLOOM = 250_000
"""Distinct values that a bloom filter is made for at most: as many rows as 64 MiB have, about."""
_LEAST_BLOOM = 1000
_FALSE_POSITIVES = 0.05

_DICTIONARY_BYTES = 1_000_000
"""Bytes after which a dictionary is given up. At 1 MiB, Parquet's own, the table by which it is made of
numbers of 64 bits has grown to four times its size, 24 MiB, just before."""

_DEALT_TO_EACH = 32 << 10
"""Bytes of rows, for each partition there is, that are put in their partitions at a time at least."""
_OF_A_COLUMN = 2 << 10
"""Bytes that are kept of a column of a row group, about: places and extremes of it and of its pages."""


class MemoryLimits(NamedTuple):
    """Bytes of memory after which something is written although it has fewer rows than it might have."""

    row_group: int = 64 << 20
    """Of rows, for a row group: some 200,000 of them."""
    held_back: int = 128 << 20
    """Of rows, of all partitions together; the one that has most is made a row group."""
    dealt: int = 5 << 20
    """Of rows, which are put in their partitions then."""
    kept: int = 32 << 20
    """Of filters and indexes, about, of all open files together; the one that has most is ended."""


_LIMITS = MemoryLimits()


class TableFile:
    """One Parquet file being written, a row group at a time."""

    def __init__(
        self,
        path: Path,
        columns: pa.Schema,
        *,
        metadata: Mapping[str, str],
        in_order: bool,
        group_rows: int,
        disk: Disk,
    ) -> None:
        """Begin the file; filters are as large as its first row group, of *group_rows* rows, needs."""
        self.path = path
        self.rows = 0
        """Rows that are in the file."""
        self.kept_bytes = 0
        """Bytes in memory, about, of what is written at the end of the file."""
        self._most_rows = min(max(2 * group_rows, _LEAST_BLOOM), ROW_GROUP_BLOOM)
        sought = sum(name in columns.names for name in SOUGHT_BY_VALUE)
        self._of_a_group = sought * self._most_rows + len(columns.names) * _OF_A_COLUMN
        self._output = OutputFile.replacing(path, disk=disk)
        self._sink = OutputSink(self._output)
        self._metadata = dict(metadata)
        # The stubs know neither files that are only written to nor the newer options.
        options = _options(columns, in_order=in_order, distinct=self._most_rows) | {"where": self._sink}
        # A dictionary is how rows are held; the schema in the file does not mention it.
        self._writer = pq.ParquetWriter(schema=as_held(columns), store_schema=False, **options)

    def has_filters_for(self, rows: int) -> bool:
        """Return whether its filters are large enough for a row group of so many *rows*."""
        return rows <= self._most_rows or self._most_rows == ROW_GROUP_BLOOM

    def write(self, group: pa.Table) -> None:
        """Write *group*, rows as they are held, as a row group."""
        self._writer.write_table(group, row_group_size=group.num_rows)
        self.rows += group.num_rows
        self.kept_bytes += self._of_a_group

    def finish(self) -> None:
        """End the file and force it to disk; the name keeps its `.open`."""
        self._writer.add_key_value_metadata(self._metadata)
        self._writer.close()
        self._output.sync()
        self._output.close()

    def give_up(self) -> None:
        """Let go of what is held; the file stays as it is."""
        self._sink.give_up()
        self._writer.close()
        self._output.close()


class TableWriter:
    """The files of a table below one directory."""

    def __init__(
        self,
        directory: Path,
        schema: TableSchema,
        *,
        disk: Disk,
        flat: bool = False,
        in_order: bool = True,
        metadata: Mapping[str, str] | None = None,
        file_rows: int = FILE_ROWS,
        first_part: str = "part",
        limits: MemoryLimits = _LIMITS,
    ) -> None:
        """Write below *directory*; *flat* puts all files there, with crawl and subset in them.

        *in_order* claims in the files that rows come by `url_surtkey` and `fetch_time`.
        """
        self.files = 0
        """Files that were begun."""
        self.rows = 0
        """Rows that were taken."""
        self._directory = directory
        self._columns = schema.columns if flat else schema.in_files
        self._disk = disk
        self._flat = flat
        self._in_order = in_order
        self._metadata = dict(metadata or {})
        self._file_rows = file_rows
        self._prefix = first_part
        self._limits = limits
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._held: dict[CapturePlace, HeldRows] = {}
        self._open: dict[CapturePlace, TableFile] = {}
        self._finished: list[Path] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows of *batch*, as `rows_of_block` gives them, in order.

        UsageError where they belong to too many partitions.
        """
        self.rows += batch.num_rows
        if batch.num_rows:
            self._waiting.append(batch)
            self._waiting_bytes += self._waiting[-1].nbytes
        if self._waiting_bytes >= max(self._limits.dealt, _DEALT_TO_EACH * len(self._held)):
            self._deal()

    def finish(self) -> list[Path]:
        """Write all that is left; return the paths that the files have once they are sealed."""
        self._deal()
        for place in list(self._held):
            self._end_group(place)
        for place in list(self._open):
            self._finish(place)
        return self._finished

    def give_up(self) -> None:
        """Let go of all rows and files; files not sealed keep their `.open`."""
        for file in self._open.values():
            file.give_up()
        self._open.clear()
        self._held.clear()
        self._waiting.clear()

    def _deal(self) -> None:
        """Put the rows that wait in their partitions."""
        if not self._waiting:
            return
        rows = in_one(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        for place, mine in [(CapturePlace(), rows)] if self._flat else _by_place(rows):
            self._hold(place, mine.select(self._columns.names))
        while sum(each.held_bytes for each in self._held.values()) > self._limits.held_back:
            self._end_group(max(self._held, key=lambda place: self._held[place].held_bytes))

    def _hold(self, place: CapturePlace, rows: pa.RecordBatch) -> None:
        mine = self._held.get(place) or self._first_of(place)
        while rows.num_rows:
            in_file = self._open[place].rows if place in self._open else 0
            room = self._file_rows - in_file - mine.rows
            mine.add(rows.slice(0, room))
            rows = rows.slice(room)
            if in_file + mine.rows >= self._file_rows:
                self._end_group(place)
                self._finish(place)
            elif mine.rows >= ROW_GROUP_ROWS or mine.held_bytes >= self._limits.row_group:
                self._end_group(place)

    def _first_of(self, place: CapturePlace) -> HeldRows:
        """Begin to hold rows of *place*."""
        if len(self._held) >= MOST_PARTITIONS:
            raise UsageError(
                f"The rows belong to more than {MOST_PARTITIONS} crawls and subsets, the last to "
                f"{place.directory()}. Name one crawl and one subset for all rows, or make several "
                "tables."
            )
        self._held[place] = HeldRows()
        return self._held[place]

    def _end_group(self, place: CapturePlace) -> None:
        """Write what is held of *place* as a row group."""
        if not self._held[place].rows:
            return
        group = self._held[place].take()
        if place in self._open and not self._open[place].has_filters_for(group.num_rows):
            self._finish(place)
        file = self._open.get(place) or self._begin(place, group.num_rows)
        file.write(group)
        while sum(file.kept_bytes for file in self._open.values()) > self._limits.kept:
            self._finish(max(self._open, key=lambda place: self._open[place].kept_bytes))

    def _begin(self, place: CapturePlace, group_rows: int) -> TableFile:
        directory = self._directory if self._flat else self._directory / place.directory()
        with explained(directory, "created"):
            directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{self._prefix}-{self.files:05d}.zstd.parquet"
        self.files += 1
        self._open[place] = TableFile(
            path,
            self._columns,
            metadata=self._metadata,
            in_order=self._in_order,
            group_rows=group_rows,
            disk=self._disk,
        )
        return self._open[place]

    def _finish(self, place: CapturePlace) -> None:
        """End the file of *place*, if there is one."""
        file = self._open.pop(place, None)
        if file is None:
            return
        try:
            file.finish()
        except BaseException:
            file.give_up()
            raise
        self._finished.append(file.path)


def seal(paths: list[Path], *, disk: Disk) -> None:
    """Give the finished files *paths* their names."""
    for path in paths:
        rename_durably(path.with_name(path.name + ".open"), path, disk=disk)


def _by_place(batch: pa.RecordBatch) -> Iterator[tuple[CapturePlace, pa.RecordBatch]]:
    """Yield the rows of *batch* for each crawl and subset that is in it; the segment does not count."""
    columns: list[Any] = [batch[name] for name in PARTITION_COLUMNS]
    known = [[*column.dictionary.to_pylist(), None] for column in columns]
    crawls, subsets = map(_places_in, columns)
    which = crawls * len(known[1]) + subsets
    for each in np.unique(which):
        place = CapturePlace(known[0][each // len(known[1])], None, known[1][each % len(known[1])])
        mine = np.flatnonzero(which == each)
        yield place, batch if len(mine) == len(which) else some_of(batch, numbers_from(mine))


def _places_in(column: Any) -> NDArray[np.int32]:
    """Return the places of *column* in its dictionary; behind its last for what is null."""
    places = numbers_of(column.indices)
    missing = missing_in(column.indices)
    return places if missing is None else np.where(missing, len(column.dictionary), places)


def _options(columns: pa.Schema, *, in_order: bool, distinct: int) -> dict[str, Any]:
    names = columns.names
    options: dict[str, Any] = {
        "compression": "zstd",
        "compression_level": COMPRESSION_LEVEL,
        "use_dictionary": [name for name in names if name not in WITHOUT_DICTIONARY],
        "dictionary_pagesize_limit": _DICTIONARY_BYTES,
        "write_page_index": True,
    }
    if "bloom_filter_options" in signature(pq.ParquetWriter).parameters:
        # Older versions of pyarrow cannot write them; such a table is whole, only slower to query.
        filter_options = {"ndv": distinct, "fpp": _FALSE_POSITIVES}
        options["bloom_filter_options"] = {
            name: filter_options for name in SOUGHT_BY_VALUE if name in names
        }
    if in_order:
        options["sorting_columns"] = [
            pq.SortingColumn(names.index(name)) for name in ("url_surtkey", "fetch_time")
        ]
    return options
