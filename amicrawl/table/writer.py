"""Rows of a table into Parquet files: one directory for each crawl and subset, files cut at a row count.

Files bear names that end in `.open` until `seal` renames them all, so that a table that was given up is
not met by `*.parquet`. Memory is bounded by bytes over all files that are being written: the one that
holds back most gives a row group to its file. Row groups have minimum and maximum of every column, pages
have too, columns that are sought by value have a bloom filter, and the metadata of each file say by
which list of public suffixes its columns were made, and that its rows are in order where they are.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from amicrawl.disk import OutputFile, explained, rename_durably
from amicrawl.errors import UsageError
from amicrawl.index.lines.arrow_texts import mask_from, missing_in, numbers_of
from amicrawl.record.parquet_sink import Sink
from amicrawl.table.partition import Place
from amicrawl.table.schema import (
    PARTITION_COLUMNS,
    SOUGHT_BY_VALUE,
    WITHOUT_DICTIONARY,
    as_held,
    held,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from amicrawl.disk import Disk
    from amicrawl.table.schema import TableSchema

ROW_GROUP_ROWS = 1_000_000
ROW_GROUP_BYTES = 64 << 20
"""Bytes in memory after which a row group is ended although it has fewer rows: some 200,000."""
HELD_BACK = 128 << 20
"""Bytes of rows that all files together hold back."""
FILE_ROWS = 5_000_000
"""Rows after which the next file of a partition is begun: filters and indexes of a file are held."""
MOST_PARTITIONS = 400
"""Files that are open at a time; file names are untrusted, and could ask for any number."""
COMPRESSION_LEVEL = 3

ROW_GROUP_BLOOM = 250_000
"""Distinct values that a bloom filter is sized for: about as many rows as a row group has in bytes."""
_FALSE_POSITIVES = 0.05


class TableFile:
    """One Parquet file being written, and the rows that it holds back for its next row group."""

    def __init__(
        self, path: Path, columns: pa.Schema, *, metadata: Mapping[str, str], in_order: bool, disk: Disk
    ) -> None:
        self.path = path
        self.rows = 0
        """Rows it was given."""
        self.held_bytes = 0
        """Bytes in memory of those that are not in the file yet."""
        self._columns = columns
        self._batches: list[pa.RecordBatch] = []
        self._held_rows = 0
        self._output = OutputFile.replacing(path, disk=disk)
        self._sink = Sink(self._output)
        self._metadata = dict(metadata)
        # The stubs know neither files that are only written to nor the newer options.
        options: dict[str, Any] = {"where": self._sink, **_options(columns, in_order=in_order)}
        # A dictionary is how rows are held; what reads the file is not to be told of it.
        self._writer = pq.ParquetWriter(schema=as_held(columns), store_schema=False, **options)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows of *batch*, as they are held; it has the columns of the file, maybe more."""
        batch = batch.select(self._columns.names)
        self._batches.append(batch)
        self._held_rows += batch.num_rows
        self.rows += batch.num_rows
        self.held_bytes += batch.nbytes
        if self._held_rows >= ROW_GROUP_ROWS or self.held_bytes >= ROW_GROUP_BYTES:
            self.end_group()

    def end_group(self) -> None:
        """Write what is held back as a row group."""
        if self._batches:
            # A dictionary that changes within a row group would be given up, and the texts written out.
            table = pa.Table.from_batches(self._batches).unify_dictionaries()
            self._writer.write_table(table, row_group_size=self._held_rows)
        self._batches, self._held_rows, self.held_bytes = [], 0, 0

    def finish(self) -> None:
        """Write what is left and force it to disk; the name keeps its `.open`."""
        self.end_group()
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
    ) -> None:
        """Write below *directory*; *flat* puts all files there, with crawl and subset in them.

        *in_order* claims in the files that rows come by `url_surtkey` and `fetch_time`.
        """
        self.files = 0
        """Files that were begun."""
        self.rows = 0
        """Rows that were taken."""
        self._directory = directory
        self._schema = schema
        self._disk = disk
        self._flat = flat
        self._in_order = in_order
        self._metadata = dict(metadata or {})
        self._file_rows = file_rows
        self._prefix = first_part
        self._open: dict[Place, TableFile] = {}
        self._finished: list[Path] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows of *batch*, in order; UsageError where they belong to too many partitions."""
        self.rows += batch.num_rows
        batch = held(batch)
        for place, rows in [(Place(), batch)] if self._flat else _by_place(batch):
            self._add(place, rows)
        while sum(file.held_bytes for file in self._open.values()) > HELD_BACK:
            max(self._open.values(), key=lambda file: file.held_bytes).end_group()

    def finish(self) -> list[Path]:
        """Write all that is left; return the paths that the files have once they are sealed."""
        for place in list(self._open):
            self._finish(place)
        return self._finished

    def give_up(self) -> None:
        """Let go of all files; those not sealed keep their `.open`."""
        for file in self._open.values():
            file.give_up()
        self._open.clear()

    def _add(self, place: Place, rows: pa.RecordBatch) -> None:
        while rows.num_rows:
            file = self._open.get(place) or self._begin(place)
            room = self._file_rows - file.rows
            file.add(rows.slice(0, room))
            rows = rows.slice(room)
            if file.rows >= self._file_rows:
                self._finish(place)

    def _begin(self, place: Place) -> TableFile:
        if len(self._open) >= MOST_PARTITIONS:
            raise UsageError(
                f"The rows belong to more than {MOST_PARTITIONS} crawls and subsets, the last to "
                f"{place.directory()}. Say where they belong with --crawl and --subset, or make "
                "several tables."
            )
        directory = self._directory if self._flat else self._directory / place.directory()
        with explained(directory, "created"):
            directory.mkdir(parents=True, exist_ok=True)
        columns = self._schema.columns if self._flat else self._schema.in_files
        path = directory / f"{self._prefix}-{self.files:05d}.zstd.parquet"
        self.files += 1
        self._open[place] = TableFile(
            path, columns, metadata=self._metadata, in_order=self._in_order, disk=self._disk
        )
        return self._open[place]

    def _finish(self, place: Place) -> None:
        file = self._open.pop(place)
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


def _by_place(batch: pa.RecordBatch) -> Iterator[tuple[Place, pa.RecordBatch]]:
    """Yield the rows of *batch* for each crawl and subset that is in it; the segment does not count."""
    columns: list[Any] = [batch[name] for name in PARTITION_COLUMNS]
    known = [[*column.dictionary.to_pylist(), None] for column in columns]
    crawls, subsets = map(_places_in, columns)
    which = crawls * len(known[1]) + subsets
    for each in np.unique(which):
        place = Place(known[0][each // len(known[1])], None, known[1][each % len(known[1])])
        mine = which == each
        yield place, batch if mine.all() else batch.filter(mask_from(mine))


def _places_in(column: Any) -> NDArray[np.int32]:
    """Return the places of *column* in its dictionary; behind its last for what is null."""
    places = numbers_of(column.indices)
    missing = missing_in(column.indices)
    return places if missing is None else np.where(missing, len(column.dictionary), places)


def _options(columns: pa.Schema, *, in_order: bool) -> dict[str, Any]:
    names = columns.names
    options: dict[str, Any] = {
        "compression": "zstd",
        "compression_level": COMPRESSION_LEVEL,
        "use_dictionary": [name for name in names if name not in WITHOUT_DICTIONARY],
        "write_page_index": True,
    }
    if "bloom_filter_options" in signature(pq.ParquetWriter).parameters:
        # Older versions of pyarrow cannot write them; such a table is whole, only slower to ask.
        filter_options = {"ndv": ROW_GROUP_BLOOM, "fpp": _FALSE_POSITIVES}
        options["bloom_filter_options"] = {
            name: filter_options for name in SOUGHT_BY_VALUE if name in names
        }
    if in_order:
        options["sorting_columns"] = [
            pq.SortingColumn(names.index(name)) for name in ("url_surtkey", "fetch_time")
        ]
    return options
