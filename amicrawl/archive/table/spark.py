"""The table of a collection over a Spark cluster: the rows and the files that `builder.py` writes.

Tasks read lines, a file each; Spark sorts them by key and second, as bytes, since nothing else has to
cross the network; then each task converts its range of keys and writes it with the writer of the local
engine. What a task writes is kept next to the table until all are done: the driver moves the files of
the attempts that counted into it and removes the rest, so a task that was killed, tried again or run
twice leaves nothing there. Inputs and output are paths that all workers see under their names, or URIs
of stores (`archive/location.py`). Needs the extra `amicrawl[spark]` and Java 17.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.archive.location import reachable
from amicrawl.archive.spark import (
    ATTEMPTS_SUFFIX,
    DAMAGE,
    LINE,
    damage_in,
    lines_of_files,
    written_parts,
)
from amicrawl.archive.table.block_rows import rows_of_block
from amicrawl.archive.table.builder import (
    REJECTS_SUFFIX,
    REPORT_SUFFIX,
    NoRowsError,
    RejectsFile,
    TableOptions,
    TableReport,
    file_metadata,
    report_bytes,
)
from amicrawl.archive.table.writer import TableWriter
from amicrawl.disk import OPEN_SUFFIX, Disk
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from amicrawl.archive.location import Location


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
    # Strings are compared by their bytes, whether they are UTF-8 or not.
    keyed = lines_of_files(spark, inputs).selectExpr(
        LINE,
        DAMAGE,
        f"substring_index(CAST({LINE} AS STRING), ' ', 1) AS key",
        f"left(substring_index(substring_index(CAST({LINE} AS STRING), ' ', 2), ' ', -1), 14) AS second",
    )

    def write(batches: Iterable[pa.RecordBatch], part: str) -> dict[str, Any]:
        return write_part(batches, attempts, f"part-{part}", options=options, metadata=metadata)

    try:
        reports = written_parts(
            keyed, write, by=("key", "second"), partitions=partitions, doing="make the table"
        )
        with reachable(out):
            return seal_table(reports, attempts, out, inputs)
    finally:
        with reachable(out):
            attempts.remove()


def write_part(
    batches: Iterable[pa.RecordBatch],
    attempts: Location,
    part: str,
    *,
    options: TableOptions,
    metadata: dict[str, str],
) -> dict[str, Any]:
    """Write the lines in *batches*, in order, to files below *attempts* that begin with *part*.

    Returns the names of the files, the report, and the name of the file of rejects.
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
                report.damaged += [damage.sentence for damage in damage_in(batch)]
                lines: Any = batch[LINE].drop_null().to_pylist()
                found = rows_of_block(b"\n".join([*lines, b""]), options.schema, place=options.place)
                report.add(found, place=options.place)
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
    return {"files": names, "report": asdict(report), "rejects": rejects.path.name}


def seal_table(
    reports: Sequence[dict[str, Any]], attempts: Location, out: Location, inputs: Sequence[Location]
) -> TableReport:
    """Move the files that the *reports* of tasks name into the table; return the report of all.

    NoRowsError where no line of *inputs* gave a row.
    """
    whole = TableReport()
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as scratch:
        rejected = Path(scratch) / "rejects"
        with rejected.open("wb") as file:
            for each in reports:
                report = TableReport(**each["report"])
                whole.add_report(report)
                whole.files += len(each["files"])
                if report.rejects:
                    file.write(attempts.below(each["rejects"]).read() or b"")
        for each in reports:
            for name in each["files"]:
                attempts.below(name).move_to(out.below(name))
        if whole.rejects:
            out.beside(REJECTS_SUFFIX).put(rejected)
    if not whole.rows:
        raise NoRowsError(whole, inputs)
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
