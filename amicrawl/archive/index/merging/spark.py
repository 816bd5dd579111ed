"""CDXJ files and sidecars merged over a Spark cluster: the files that `merge.py` gives, byte for byte.

Where each CDXJ file has sidecars of its own, a task merges them as one machine does. Otherwise blocks of
lines and of records are dealt out by second, Spark brings together what belongs to one part, a task
joins each part, and another puts the lines of each file back into their order. Inputs and output are
paths that all workers see under their names, or URIs of stores (`archive/location.py`).
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from amicrawl.archive.index.merging.join import MergeCounts
from amicrawl.archive.index.merging.merge import (
    Merged,
    MergeJob,
    join_blocks,
    line_blocks,
    merge_job,
    output_name,
    plan,
    record_batches,
)
from amicrawl.archive.index.merging.parts import (
    FileSink,
    LinesInTurn,
    in_order,
    inverse,
    pieces_of_lines,
    pieces_of_records,
)
from amicrawl.archive.index.merging.sides import SIDES
from amicrawl.archive.location import all_fetched
from amicrawl.archive.spark import done_on_spark, spark_errors
from amicrawl.archive.workers import Lost
from amicrawl.disk import Disk
from amicrawl.errors import InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from amicrawl.archive.location import Location

PARTITIONS = 200
"""Parts that both sides are dealt out to, where no other number is requested."""

_FIELDS: list[pa.Field[Any]] = [
    pa.field("part", pa.int32()),
    pa.field("file", pa.int32()),
    pa.field("block", pa.int64()),
    pa.field("octets", pa.binary()),
    pa.field("places", pa.binary()),
]
PIECES = pa.schema(_FIELDS)
_PLACE = np.dtype(np.int32)
_END = 2**62
"""The number of the block that stands for the end of a file, behind all others."""


class _PieceRow(NamedTuple):
    """A piece: what of a block of an input belongs to a part."""

    part: int
    file: int
    """The number of the CDXJ file; negative where they are records of a sidecar."""
    block: int
    octets: bytes
    """Lines, or records as an Arrow stream; or a report in JSON."""
    places: bytes | None
    """Which lines of the block they are; None for a report."""


class Merge(NamedTuple):
    """What is merged with what, where all is merged with all."""

    sidecars: tuple[Location, ...]
    indexes: tuple[Location, ...]
    out: Location
    by_key_only: bool
    parts: int


def merge_on_spark(
    spark: SparkSession,
    indexes: Sequence[Location],
    sidecars: Sequence[Location],
    out: Location,
    *,
    by_key_only: bool = False,
    partitions: int = 0,
    show: Callable[[Merged], None] = lambda _: None,
) -> Merged:
    """Merge *indexes* with *sidecars* into *out* and return what became of them.

    *partitions* is the number of parts where all are merged with all. Errors as `merge`; InputError also
    where Spark or a store fails.
    """
    places = {location.as_path: location for location in (*indexes, *sidecars)}
    jobs = plan(
        [location.as_path for location in indexes],
        [location.as_path for location in sidecars],
        out.as_path,
        by_key_only=by_key_only,
    )
    located = [
        Merge(
            tuple(places[path] for path in job.sidecars),
            tuple(places[path] for path in job.indexes),
            out,
            by_key_only,
            partitions or PARTITIONS,
        )
        for job in jobs
    ]
    if len(jobs[0].indexes) > 1:
        whole = _merged_all(spark, located[0])
    else:
        whole = _merged_pairs(spark, located, show)
    for location in indexes:
        made = out.below(output_name(location.as_path)).path
        if made is not None and not made.exists() and not whole.faults:
            raise InputError(
                f"A worker made {made}, but it is not here. Give a directory that all share."
            )
    return whole


def _merged_pairs(
    spark: SparkSession, located: Sequence[Merge], show: Callable[[Merged], None]
) -> Merged:
    """Merge each CDXJ file with its own sidecars, a task each."""
    whole = Merged()
    for event in done_on_spark(spark, located, _merged_pair):
        if not isinstance(event, Lost):
            whole.add(event.result)
        elif event.error == OutputError.__name__:
            raise OutputError(event.reason)
        else:
            whole.note(f"{event.job.indexes[0]} was not merged: {event.reason}")
        show(whole)
    return whole


def _merged_pair(merge: Merge) -> Merged:
    """Merge one CDXJ file with its sidecars."""
    with all_fetched((*merge.indexes, *merge.sidecars)) as (paths, scratch):
        out = scratch / "out"
        out.mkdir()
        job = MergeJob((paths[0],), tuple(paths[1:]), out, merge.by_key_only)
        merged = merge_job(job)
        name = output_name(paths[0])
        merge.out.below(name).put(out / name)
        for path, location in zip(paths, (*merge.indexes, *merge.sidecars), strict=True):
            merged.faults = [fault.replace(str(path), str(location)) for fault in merged.faults]
    return merged


def _merged_all(spark: SparkSession, merge: Merge) -> Merged:
    """Merge all with all: deal out, join, put together; each a stage of tasks."""
    inputs = len(merge.sidecars) + len(merge.indexes)
    schema = "part INT, file INT, block BIGINT, octets BINARY, places BINARY"

    def deal(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers: Any = batch["id"].to_pylist()
            for number in numbers:
                yield from dealt(merge, number)

    pieces = spark.range(0, inputs, 1, numPartitions=inputs).mapInArrow(deal, schema)
    parts = _together(pieces, merge.parts, "part").mapInArrow(partial(joined, merge), schema)
    # Reports come to the first partition, and each file has one of its own.
    files = _together(parts, len(merge.indexes) + 1, "file + 1")
    whole = Merged(files=len(merge.indexes))
    with spark_errors("merge the files"):
        for row in files.mapInArrow(partial(written, merge), schema).collect():
            whole.add(report_in(row["octets"]))
    return whole


def _together(frame: DataFrame, partitions: int, by: str) -> DataFrame:
    """Bring the rows with one value of *by* together, those of each file in their order."""
    from pyspark.sql.functions import expr  # noqa: PLC0415  # an extra

    return frame.repartitionById(partitions, expr(by)).sortWithinPartitions("file", "block")


def dealt(merge: Merge, number: int) -> Iterator[pa.RecordBatch]:
    """Yield the pieces of one input, block by block; then its end, and what could not be read."""
    location = (*merge.sidecars, *merge.indexes)[number]
    file = number - len(merge.sidecars)
    merged = Merged()
    with all_fetched([location]) as ((path,), _):
        if file < 0:
            for block, batch in enumerate(record_batches([path], merged)):
                records = pieces_of_records(batch, merge.parts)
                yield _rows((part, file, block, _packed(some), b"") for part, some, _ in records)
        else:
            for block, octets in enumerate(line_blocks([path], merged)):
                if octets is None:
                    yield _rows([(0, file, _END, b"", b"")])
                    continue
                _, pieces = pieces_of_lines(octets, merge.parts)
                yield _rows(
                    (part, file, block, bytes(lines), places.astype(np.int32).tobytes())
                    for part, lines, places in pieces
                )
        merged.faults = [fault.replace(str(path), str(location)) for fault in merged.faults]
    yield _report(merged)


def joined(merge: Merge, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join the pieces of one part, of which records come first; yield lines and what was counted."""
    rows = _rows_of(batches)
    first_line: list[_PieceRow] = []
    pieces: list[_PieceRow] = []
    merged = Merged()
    reports: list[pa.RecordBatch] = []

    def records() -> Iterator[pa.RecordBatch]:
        for row in rows:
            if row.file >= 0:
                first_line.append(row)
                return
            if row.places is None:
                reports.append(_rows([row]))
            else:
                yield from pa.ipc.open_stream(row.octets)

    def lines() -> Iterator[bytes | None]:
        for row in chain(first_line, rows):
            pieces.append(row._replace(octets=b""))
            if row.octets:
                yield row.octets
        yield None

    disk = Disk()
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as name, disk.temporary(Path(name)) as file:
        join_blocks(
            records(), lines(), FileSink(file), merged.counts,
            by_key_only=merge.by_key_only, scratch=Path(name), disk=disk,
        )  # fmt: skip
        yield from reports
        yield _report(merged)
        lines_out = LinesInTurn(file)
        for piece in pieces:
            count = len(piece.places or b"") // _PLACE.itemsize
            yield _rows([piece._replace(octets=lines_out.take(count))])


def written(merge: Merge, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the lines of one file in their order, and yield what was said of the merge."""
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as name:
        for file, rows in groupby(_rows_of(batches), key=lambda row: row.file):
            if file < 0:
                yield from (_rows([row]) for row in rows)
                continue
            path = Path(name) / output_name(merge.indexes[file].as_path)
            with path.open("wb") as output:
                for _, block in groupby(rows, key=lambda row: row.block):
                    pieces = list(block)
                    places = np.frombuffer(b"".join(row.places or b"" for row in pieces), _PLACE).astype(
                        np.int64
                    )
                    if len(places):
                        octets = b"".join(row.octets for row in pieces)
                        output.write(in_order(octets, inverse(places)))
            merge.out.below(path.name).put(path)


def _report(merged: Merged) -> pa.RecordBatch:
    said = {"counts": asdict(merged.counts), "faults": merged.faults}
    return _rows([(0, -1, -1, orjson.dumps(said), None)])


def report_in(octets: bytes | bytearray) -> Merged:
    """Return what a task said of the merge."""
    said = orjson.loads(bytes(octets))
    return Merged(MergeCounts(**said["counts"]), faults=said["faults"])


def _packed(batch: pa.RecordBatch) -> bytes:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, SIDES) as writer:
        writer.write_batch(batch)
    return stream.getvalue().to_pybytes()


def _rows(rows: Iterable[tuple[int, int, int, bytes, bytes | None]]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in PIECES]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, PIECES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PIECES)


def _rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[_PieceRow]:
    for batch in batches:
        yield from map(
            _PieceRow._make, zip(*[column.to_pylist() for column in batch.columns], strict=True)
        )
