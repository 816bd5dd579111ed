"""The table of a collection over a Spark cluster: the rows and the schema that `making.py` gives.

Spark reads the lines, hands them to the same functions in batches, and puts the rows in order; each task
then writes its range of keys with the same writer, or, for a place that is no directory all workers see
(`s3a://`, `hdfs://`), Spark's own. `rows_of_batches` is the function that Spark maps, and knows nothing
of it. Needs the extra `amicrawl[spark]` and Java 17.

    spark-submit examples/spark/submit.py merged/ -o table/
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from amicrawl.disk import Disk
from amicrawl.errors import InputError, UsageError
from amicrawl.table.block_rows import rows_of_block
from amicrawl.table.convert import Reject
from amicrawl.table.making import (
    REJECTS_SUFFIX,
    RejectsFile,
    TableOptions,
    TableReport,
    beside,
    file_metadata,
    prepare,
    write_report,
)
from amicrawl.table.schema import EOT, PARTITION_COLUMNS, SOUGHT_BY_VALUE
from amicrawl.table.writer import TableWriter, seal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

LINE = "line"
"""The column of octets that `rows_of_batches` reads."""
REJECTED = "rejected"
REASON = "reason"
"""The columns that it adds: the line that gave no row, and why. Null where there is a row."""
_LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_WRITTEN_FIELDS: list[pa.Field[Any]] = [
    pa.field("path", pa.string()),
    pa.field("rows", pa.int64()),
    pa.field("without_crawl", pa.int64()),
    pa.field("example", pa.string()),
]
_WRITTEN = pa.schema(_WRITTEN_FIELDS)


@contextmanager
def session(master: str = "") -> Iterator[SparkSession]:
    """Have a Spark session, on *master* where one is given, and end it."""
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
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def rows_of_batches(
    batches: Iterable[pa.RecordBatch], options: TableOptions | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of *batches*, whose column `line` holds the octets of lines, and their rejects."""
    options = options or TableOptions()
    schema = with_rejects(options.schema.columns)
    for batch in batches:
        lines = cast("list[bytes]", batch[LINE].to_pylist())
        found = rows_of_block(b"\n".join([*lines, b""]), options.schema, place=options.place)
        rows, rejects = found.rows.cast(options.schema.columns), found.rejects
        nothing = pa.nulls(rows.num_rows, pa.binary()), pa.nulls(rows.num_rows, pa.string())
        yield pa.RecordBatch.from_arrays(
            [
                column.cast(field.type)
                for column, field in zip([*rows.columns, *nothing], schema, strict=True)
            ],
            schema=schema,
        )
        if rejects:
            yield _reject_rows(rejects, schema)


def with_rejects(columns: pa.Schema) -> pa.Schema:
    """Return *columns* as Spark takes them, with those of a line that gave no row."""
    # Spark knows moments in microseconds only; the writer makes milliseconds of them again.
    place = columns.get_field_index("fetch_time")
    columns = columns.set(place, pa.field("fetch_time", pa.timestamp("us")))
    return columns.append(pa.field(REJECTED, pa.binary())).append(pa.field(REASON, pa.string()))


def table_frame(
    spark: SparkSession, inputs: Sequence[str], options: TableOptions | None = None
) -> DataFrame:
    """Return the table of the CDXJ files *inputs*, paths or URIs that Spark reads, with its rejects.

    Columns are those of the schema and of `with_rejects`; rows come in no order.
    """
    options = options or TableOptions()

    def convert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return rows_of_batches(batches, options)

    # A line is read as its octets: text that is no UTF-8 has to come through, to be a reject.
    lines = (
        spark.read.option("lineSep", "\n")
        .text(list(inputs))
        .selectExpr(f"CAST(value AS BINARY) AS {LINE}")
    )
    return lines.mapInArrow(convert, _spark_schema(with_rejects(options.schema.columns)))


def make_table_on_spark(
    spark: SparkSession,
    inputs: Sequence[Path],
    out: Path,
    *,
    disk: Disk,
    options: TableOptions | None = None,
    partitions: int = 0,
) -> TableReport:
    """Make the table of the CDXJ files *inputs* in the directory *out*.

    All workers have to see files and directory under their names. *partitions* is the number of ranges
    that keys are cut into, each a file for every crawl and subset; Spark's choice where it is 0. Raises
    UsageError where *out* holds a table, InputError where Spark cannot read a file: a damaged one stops
    it, unlike the engine of one machine.
    """
    options = options or TableOptions()
    prepare(out, disk=disk)
    report = TableReport()
    names = [path.resolve().as_uri() for path in inputs]
    frame = table_frame(spark, names, options).persist()
    with _explained():
        try:
            _take_rejects(frame, out, report, disk=disk)
            written = _written(
                frame, out.resolve(), options, file_metadata(options.schema, inputs), partitions
            )
        finally:
            frame.unpersist()
    for row in written:
        report.rows += row["rows"]
        report.rows_without_crawl += row["without_crawl"]
        report.example_without_crawl = report.example_without_crawl or row["example"] or ""
    report.lines = report.rows + report.rejects
    paths = [Path(row["path"]) for row in written if row["path"]]
    report.files = len(paths)
    seal(paths, disk=disk)
    write_report(out, report, disk=disk)
    return report


def write_anywhere(frame: DataFrame, out: str, options: TableOptions | None = None) -> None:
    """Write *frame*, of `table_frame`, to the URI *out* with Spark's writer.

    Rejects go to _rejects below it. Rows and columns are the same; Spark writes microseconds, and has no
    place for the version of the suffix list.
    """
    options = options or TableOptions()
    rows = frame.where(f"{REJECTED} IS NULL").drop(REJECTED, REASON)
    rows = rows.repartitionByRange("url_surtkey", "fetch_time")
    rows = rows.sortWithinPartitions(*PARTITION_COLUMNS, "url_surtkey", "fetch_time")
    writer = rows.write.option("compression", "zstd")
    for name in SOUGHT_BY_VALUE:
        if name in options.schema.columns.names:
            writer = writer.option(f"parquet.bloom.filter.enabled#{name}", "true")
    (writer if options.flat else writer.partitionBy(*PARTITION_COLUMNS)).parquet(out)
    rejects = frame.where(f"{REJECTED} IS NOT NULL")
    rejects.select(REASON, REJECTED).write.mode("ignore").parquet(f"{out.rstrip('/')}/_rejects")


def _written(
    frame: DataFrame, out: Path, options: TableOptions, metadata: dict[str, str], partitions: int
) -> list[Any]:
    """Have the tasks write *frame*, each a range of keys, and return what each has written."""
    by = ["url_surtkey", "fetch_time"]
    rows = frame.where(f"{REJECTED} IS NULL").drop(REJECTED, REASON)
    rows = rows.repartitionByRange(partitions, *by) if partitions else rows.repartitionByRange(*by)
    rows = rows.sortWithinPartitions(*by)

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415  # only a worker has one

        context = TaskContext.get()
        assert context is not None
        # A task that is tried again begins with files of its own.
        part = f"part-{context.partitionId():05d}-{context.taskAttemptId()}"
        return write_part(batches, out, part, options=options, metadata=metadata)

    written: list[Any] = rows.mapInArrow(write, _spark_schema(_WRITTEN)).collect()
    return written


def write_part(
    batches: Iterable[pa.RecordBatch],
    out: Path,
    part: str,
    *,
    options: TableOptions,
    metadata: dict[str, str],
) -> Iterator[pa.RecordBatch]:
    """Write *batches*, rows in order, to files that begin with *part*, and yield what was written.

    The files keep their `.open` until the driver knows that all tasks have done their part.
    """
    writer = TableWriter(
        out, options.schema, disk=Disk(), flat=options.flat, metadata=metadata,
        file_rows=options.file_rows, first_part=part,
    )  # fmt: skip
    report = TableReport()
    try:
        for batch in batches:
            rows = batch.cast(options.schema.columns)
            report.add_rows(rows)
            writer.add(rows)
        paths = writer.finish()
    finally:
        writer.give_up()
    if not paths:
        return
    first, rest = [str(paths[0])], [str(path) for path in paths[1:]]
    yield pa.RecordBatch.from_arrays(
        [
            pa.array(first + rest, pa.string()),
            pa.array([report.rows] + [0] * len(rest), pa.int64()),
            pa.array([report.rows_without_crawl] + [0] * len(rest), pa.int64()),
            pa.array([report.example_without_crawl] + [""] * len(rest), pa.string()),
        ],
        schema=_WRITTEN,
    )


def _take_rejects(frame: DataFrame, out: Path, report: TableReport, *, disk: Disk) -> None:
    rejects = RejectsFile(beside(out, REJECTS_SUFFIX), disk=disk)
    try:
        # One partition at a time comes to the driver.
        for row in frame.where(f"{REJECTED} IS NOT NULL").select(REJECTED, REASON).toLocalIterator():
            reject = Reject(bytes(row[REJECTED]), row[REASON])
            report.add_rejects([reject])
            rejects.add([reject])
        rejects.seal()
    finally:
        rejects.close()


def _reject_rows(rejects: Sequence[Reject], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.nulls(len(rejects), field.type) for field in schema][:-2]
    lines, reasons = zip(*rejects, strict=True)
    return pa.RecordBatch.from_arrays(
        [*columns, pa.array(lines, pa.binary()), pa.array(reasons, pa.string())], schema=schema
    )


def _spark_schema(columns: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  # an extra

    return from_arrow_schema(columns, prefer_timestamp_ntz=True)


@contextmanager
def _explained() -> Iterator[None]:
    """Turn an error of Spark's into one that says what to do."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  # an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra

    try:
        yield
    except (PySparkException, Py4JError) as error:
        reason = str(error).partition("\n")[0][:500]
        raise InputError(f"Spark could not make the table: {reason}. Its own log says more.") from error


__all__ = ["EOT", "make_table_on_spark", "rows_of_batches", "session", "table_frame", "write_anywhere"]
