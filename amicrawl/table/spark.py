"""The table of a collection over a Spark cluster: the rows and the files that `making.py` gives.

Tasks read lines, a file each; Spark puts them in order by key and second, as octets, for that is all
that has to cross the network; then each task converts its range of keys and writes it with the writer of
the local engine. What a task writes is kept next to the table until all have done their part: the driver
moves the files of those that counted into it and removes the rest, so that a task that was killed, tried
again or run twice leaves nothing there. Inputs and output are paths that all workers see under their
names, or URIs of stores (`index/location.py`). Needs the extra `amicrawl[spark]` and Java 17.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from amicrawl.disk import OPEN_SUFFIX, Disk
from amicrawl.errors import DamagedFileError, UsageError
from amicrawl.index.lines.line_reader import octet_blocks
from amicrawl.index.location import reachable
from amicrawl.index.spark import explained, spark_schema
from amicrawl.table.block_rows import rows_of_block
from amicrawl.table.builder import (
    REJECTS_SUFFIX,
    REPORT_SUFFIX,
    RejectsFile,
    TableOptions,
    TableReport,
    file_metadata,
    report_bytes,
)
from amicrawl.table.writer import TableWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from amicrawl.index.location import Location

LINE = "line"
"""The column of octets of lines; in the rows that say what damage there was, null."""
DAMAGE = "damage"
ATTEMPTS_SUFFIX = ".attempts"
"""What stands behind the table's name in that of the directory in which tasks write."""
_LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_READ_FIELDS: list[pa.Field[Any]] = [pa.field(LINE, pa.binary()), pa.field(DAMAGE, pa.string())]
_READ = pa.schema(_READ_FIELDS)
_WRITTEN_FIELDS: list[pa.Field[Any]] = [pa.field("said", pa.binary())]
_WRITTEN = pa.schema(_WRITTEN_FIELDS)


@contextmanager
def session(master: str = "", *, shows_tasks: bool = True) -> Iterator[SparkSession]:
    """Have a Spark session, on *master* where one is given, and end it.

    On a terminal it *shows_tasks*: how many of them are done.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise UsageError(
            "There is no pyspark here. Install the extra: pip install 'amicrawl[spark]'."
        ) from error
    # The workers have to be the Python that has amicrawl.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("amicrawl")
    if master:
        builder = builder.master(master)
    if master.startswith("local"):
        # One machine talks to itself: nothing has to listen on its network.
        for name, value in _LOOPBACK.items():
            builder = builder.config(name, value)
    shows_tasks = shows_tasks and sys.stderr.isatty()
    builder = builder.config("spark.ui.showConsoleProgress", str(shows_tasks).lower())
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def lines_frame(spark: SparkSession, inputs: Sequence[Location]) -> DataFrame:
    """Return the lines of the CDXJ files *inputs*, as octets, and where a file is damaged."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers: Any = batch["id"].to_pylist()
            for number in numbers:
                yield from batches_of(inputs[number])

    numbers = spark.range(0, len(inputs), 1, numPartitions=len(inputs))
    return numbers.mapInArrow(read, spark_schema(_READ))


def batches_of(location: Location) -> Iterator[pa.RecordBatch]:
    """Yield the lines of a CDXJ file; behind what could be read of a damaged one, what is wrong."""
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as scratch:
        path = location.fetched(Path(scratch))
        try:
            for octets in octet_blocks(path):
                yield _batch_of(octets)
        except DamagedFileError as error:
            sentence = str(error).replace(str(path), str(location))
            yield pa.RecordBatch.from_pydict({LINE: [None], DAMAGE: [sentence]}, schema=_READ)


def make_table_on_spark(
    spark: SparkSession,
    inputs: Sequence[Location],
    out: Location,
    *,
    options: TableOptions | None = None,
    partitions: int = 0,
) -> TableReport:
    """Make the table of the CDXJ files *inputs* at *out*.

    *partitions* is the number of ranges that keys are cut into, each a file for every crawl and subset;
    Spark's choice where it is 0. Raises UsageError where *out* holds a table, InputError where Spark or
    a store fails.
    """
    options = options or TableOptions()
    attempts = out.beside(ATTEMPTS_SUFFIX)
    with reachable(out):
        _refuse_table(out)
        attempts.remove()
    metadata = file_metadata(options.schema, [location.as_path for location in inputs])
    try:
        with explained("make the table"):
            said = _written(lines_frame(spark, inputs), attempts, options, metadata, partitions)
        with reachable(out):
            return seal_table(said, attempts, out)
    finally:
        with reachable(out):
            attempts.remove()


def _written(
    lines: DataFrame,
    attempts: Location,
    options: TableOptions,
    metadata: dict[str, str],
    partitions: int,
) -> list[dict[str, Any]]:
    """Have the tasks write *lines*, each a range of keys, and return what each says."""
    # Texts are compared by their octets, whether they are UTF-8 or not.
    keyed = lines.selectExpr(
        LINE,
        DAMAGE,
        f"substring_index(CAST({LINE} AS STRING), ' ', 1) AS key",
        f"left(substring_index(substring_index(CAST({LINE} AS STRING), ' ', 2), ' ', -1), 14) AS second",
    )
    by = ["key", "second"]
    rows = keyed.repartitionByRange(partitions, *by) if partitions else keyed.repartitionByRange(*by)
    rows = rows.sortWithinPartitions(*by).select(LINE, DAMAGE)

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415  # only a worker has one

        context = TaskContext.get()
        assert context is not None
        part = f"part-{context.partitionId():05d}-{context.taskAttemptId()}"
        yield from write_part(batches, attempts, part, options=options, metadata=metadata)

    found = rows.mapInArrow(write, spark_schema(_WRITTEN)).collect()
    return [orjson.loads(bytes(row["said"])) for row in found]


def write_part(
    batches: Iterable[pa.RecordBatch],
    attempts: Location,
    part: str,
    *,
    options: TableOptions,
    metadata: dict[str, str],
) -> Iterator[pa.RecordBatch]:
    """Write the lines in *batches*, in order, to files below *attempts* that begin with *part*.

    Yields what was written, and the report: a row of JSON; none where there were no lines.
    """
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as scratch:
        here = Path(scratch)
        writer = TableWriter(
            here, options.schema, disk=Disk(), flat=options.flat, metadata=metadata,
            file_rows=options.file_rows, first_part=part,
        )  # fmt: skip
        report = TableReport()
        rejects = RejectsFile(here / f"{part}{REJECTS_SUFFIX}", disk=Disk())
        try:
            for batch in batches:
                report.damaged += [each for each in batch[DAMAGE].to_pylist() if each is not None]
                lines: Any = batch[LINE].drop_null().to_pylist()
                found = rows_of_block(b"\n".join([*lines, b""]), options.schema, place=options.place)
                report.add(found)
                rejects.add(found.rejects)
                writer.add(found.rows)
            paths = writer.finish()
            rejects.seal()
        finally:
            writer.give_up()
            rejects.close()
        names = [path.relative_to(here).as_posix() for path in paths]
        for name in names:
            attempts.below(name).put(here / f"{name}{OPEN_SUFFIX}")
        if report.rejects:
            attempts.below(rejects.path.name).put(rejects.path)
        if report.lines or report.damaged:
            said = {"files": names, "report": asdict(report), "rejects": rejects.path.name}
            yield pa.RecordBatch.from_pydict({"said": [orjson.dumps(said)]}, schema=_WRITTEN)


def seal_table(said: Sequence[dict[str, Any]], attempts: Location, out: Location) -> TableReport:
    """Move what tasks have written, and *said*, to where it belongs; return the report of all."""
    whole = TableReport()
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as scratch:
        rejected = Path(scratch) / "rejects"
        with rejected.open("wb") as file:
            for each in said:
                report = TableReport(**each["report"])
                whole.add_report(report)
                whole.files += len(each["files"])
                if report.rejects:
                    file.write(attempts.below(each["rejects"]).read() or b"")
        for each in said:
            for name in each["files"]:
                attempts.below(name).move_to(out.below(name))
        if whole.rejects:
            out.beside(REJECTS_SUFFIX).put(rejected)
    # It comes last: a table that has one is whole.
    out.beside(REPORT_SUFFIX).write(report_bytes(whole))
    return whole


def _refuse_table(out: Location) -> None:
    present = next((name for name in out.files() if name.endswith(".parquet")), None)
    if present is not None:
        raise UsageError(
            f"{out} holds a table already ({present}). Remove it, or choose another directory."
        )
    for suffix in (REPORT_SUFFIX, REJECTS_SUFFIX):
        out.beside(suffix).remove_file()


def _batch_of(octets: bytes) -> pa.RecordBatch:
    """Return the lines of *octets*, without their LF."""
    lines: list[bytes | None] = [*octets.split(b"\n")[:-1]]
    column = pa.array(lines, pa.binary())
    return pa.RecordBatch.from_arrays([column, pa.nulls(len(lines), pa.string())], schema=_READ)
