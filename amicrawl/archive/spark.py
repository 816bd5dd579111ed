"""A Spark cluster: its session, jobs of a task each, files of lines read by tasks, sorted parts written.

Jobs differ in size, so each is a task, and Spark gives the next to the executor that is free. A
transient error, of the system or of a store, is raised, and Spark tries again; at the last attempt, and
if the input is the cause, that job alone is lost. A job has to be repeatable: an attempt may be killed
at any time, and two may run at once. So what a task writes has a name of its attempt, and counts when
the task is reported as done. Spark is imported when it is used.
"""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from amicrawl.archive.lines import line_blocks
from amicrawl.archive.workers import JobDone, Lost
from amicrawl.errors import DamagedFileError, InputError, OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from amicrawl.archive.location import Location

ATTEMPTS_SUFFIX = ".attempts"
"""Ends the name of the directory beside an output in which tasks write."""
LINE, DAMAGE = "line", "damage"
"""Columns of octets: a line without its LF; where that is null, a `Damage` as JSON."""
_PART, _REPORT = "part", "report"
_LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_MOST_REASON = 2000
_WAKE = 0.5
"""Seconds between two checks for jobs that have ended."""


class TransientError(Exception):
    """An error after which another attempt may succeed, besides those of the system."""


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


def done_on_spark(
    spark: SparkSession, jobs: Sequence[Any], work: Callable[[Any], Any]
) -> Generator[JobDone[Any, Any] | Lost[Any]]:
    """Have *work* do each of *jobs*; yield each result once it is there. InputError if Spark fails."""
    from pyspark.accumulators import AddingAccumulatorParam  # noqa: PLC0415  # an extra

    if not jobs:
        return
    attempts = attempts_of(spark)
    context = spark.sparkContext
    # Spark collects rows when all tasks are done. An accumulator has what a task adds as soon as it is
    # done, without what failed attempts and copies of a task add.
    ended = context.accumulator([], AddingAccumulatorParam([]))

    def task(numbers: Iterable[int]) -> None:
        from pyspark import TaskContext  # noqa: PLC0415  # only a worker has one

        task_context = TaskContext.get()
        is_last = task_context is None or task_context.attemptNumber() + 1 >= attempts
        for number in numbers:
            ended.add([(number, came_of(jobs[number], work, is_last=is_last))])

    tasks = context.parallelize(range(len(jobs)), len(jobs))
    yielded = 0
    with spark_errors("do the work"), ThreadPoolExecutor(1) as pool:
        running = pool.submit(tasks.foreachPartition, task)
        try:
            is_over = False
            while not is_over:
                is_over = not wait([running], timeout=_WAKE).not_done
                for number, (result, error, reason) in ended.value[yielded:]:
                    yielded += 1
                    job = jobs[number]
                    yield Lost(job, reason, None, error) if error else JobDone(job, result)
            running.result()
        finally:
            if not running.done():
                context.cancelAllJobs()
    if yielded < len(jobs):
        raise InputError(f"Spark did not report {len(jobs) - yielded} tasks. See its own log.")


def attempts_of(spark: SparkSession) -> int:
    """Return how many times Spark tries a task."""
    master = spark.sparkContext.master
    if master.startswith("local") and not master.startswith("local-cluster"):
        # `local[2,4]`: two threads, four attempts; without the second number, one.
        _, comma, attempts = master.partition("[")[2].rstrip("]").partition(",")
        return int(attempts) if comma else 1
    return int(spark.sparkContext.getConf().get("spark.task.maxFailures", "4") or 4)


def came_of(job: Any, work: Callable[[Any], Any], *, is_last: bool = True) -> tuple[Any, str, str]:
    """Do *job* and return its result, or the name of an error and the reason.

    Where it is not the last attempt, a transient error is raised.
    """
    try:
        return work(job), "", ""
    except Exception as caught:  # whatever it is, it costs this job only
        may_pass = isinstance(caught, (OSError, OutputError, TransientError))
        if may_pass and not is_last and not isinstance(caught, FileNotFoundError):
            raise
        return None, type(caught).__name__, str(caught)[:_MOST_REASON]


@contextmanager
def spark_errors(doing: str) -> Iterator[None]:
    """Turn an error of Spark's into InputError: that it could not do what *doing* says."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  # an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra

    try:
        yield
    except (PySparkException, Py4JError) as error:
        reason = str(error).partition("\n")[0][:500]
        raise InputError(f"Spark could not {doing}: {reason}. Its own log says more.") from error


class Damage(NamedTuple):
    """Where a file of lines cannot be read any further."""

    file: str
    """Its path or URI."""
    offset: int
    reason: str

    @property
    def sentence(self) -> str:
        """What DamagedFileError says."""
        return f"{self.file}, byte {self.offset}: {self.reason}"


def damage_in(batch: pa.RecordBatch) -> list[Damage]:
    """Return the damage among the rows of *batch*, lines as `batch_of_lines` returns them."""
    rows: Any = batch[DAMAGE].drop_null().to_pylist()
    return [Damage(*orjson.loads(each)) for each in rows]


def batch_of_lines(lines: Sequence[bytes], damage: Damage | None = None) -> pa.RecordBatch:
    """Return *lines* as rows, and *damage* as one more if there is any."""
    import pyarrow as pa  # noqa: PLC0415  # an index of paths does without

    found = [] if damage is None else [orjson.dumps([*damage])]
    columns = {LINE: [*lines, *([None] * len(found))], DAMAGE: [*([None] * len(lines)), *found]}
    return pa.RecordBatch.from_pydict(
        {name: pa.array(values, pa.binary()) for name, values in columns.items()}
    )


def lines_of_files(spark: SparkSession, files: Sequence[Location], *, ending: bytes = b"") -> DataFrame:
    """Return the lines of *files*, read by a task each, as `lines_of_file` returns them."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers: Any = batch["id"].to_pylist()
            for number in numbers:
                yield from lines_of_file(files[number], ending=ending)

    numbers = spark.range(0, len(files), 1, numPartitions=len(files))
    return numbers.mapInArrow(read, f"{LINE} BINARY, {DAMAGE} BINARY")


def lines_of_file(file: Location, *, ending: bytes = b"") -> Iterator[pa.RecordBatch]:
    """Yield the lines of *file*, the octets *ending* stripped from their ends; then what is damaged."""
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as scratch:
        try:
            for block in line_blocks(file.fetched(Path(scratch))):
                yield batch_of_lines([line.rstrip(ending) for line in block] if ending else block)
        except DamagedFileError as error:
            yield batch_of_lines([], Damage(str(file), error.offset, error.reason))


def written_parts(
    lines: DataFrame,
    write: Callable[[Iterable[pa.RecordBatch], str], dict[str, Any]],
    *,
    by: Sequence[str],
    partitions: int,
    doing: str,
) -> list[dict[str, Any]]:
    """Have tasks *write* ranges of *lines* in the order of the columns *by*; return their reports.

    *write* receives the rows of a range, and a name that no other attempt has; its report is JSON. The
    reports come in the order of the ranges, of which there are *partitions*, or, if that is 0, as many
    as Spark chooses. InputError, which says what Spark was *doing*, if it fails.
    """

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415  # an index of paths does without
        from pyspark import TaskContext  # noqa: PLC0415  # only a worker has one

        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        report = write(batches, f"{part:05d}-{context.taskAttemptId()}")
        columns: list[Any] = [
            pa.array([part], pa.int32()),
            pa.array([orjson.dumps(report)], pa.binary()),
        ]
        yield pa.RecordBatch.from_arrays(columns, names=[_PART, _REPORT])

    ranges = lines.repartitionByRange(partitions, *by) if partitions else lines.repartitionByRange(*by)
    in_order = ranges.sortWithinPartitions(*by).select(LINE, DAMAGE)
    with spark_errors(doing):
        rows = in_order.mapInArrow(task, f"{_PART} INT, {_REPORT} BINARY").collect()
    return [orjson.loads(bytes(row[_REPORT])) for row in sorted(rows, key=lambda row: row[_PART])]
