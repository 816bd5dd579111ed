"""Jobs over a Spark cluster, a task each; and what may be tried again.

Jobs differ in size, so each is a task, and Spark gives the next to the executor that is free. What may
pass, an error of the system or of a store, is raised, and Spark tries again; at the last attempt, and
where the input is to blame, it costs that job only. A job has to be repeatable: an attempt may be killed
at any time, and two may be at work at once. A session is handed in (`amicrawl.table.spark` opens one);
nothing here imports Spark before.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from amicrawl.errors import InputError, OutputError
from amicrawl.index.workers import Done, Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

_MOST_REASON = 2000
_WAKE = 0.5
"""Seconds after which it is looked which jobs have ended."""


class TransientError(Exception):
    """What may pass, besides errors of the system: another attempt may succeed."""


def done_on_spark(
    spark: SparkSession, jobs: Sequence[Any], work: Callable[[Any], Any]
) -> Generator[Done[Any, Any] | Lost[Any]]:
    """Have *work* do each of *jobs*, and yield what came of it once it is done.

    InputError where Spark itself fails.
    """
    from pyspark.accumulators import AddingAccumulatorParam  # noqa: PLC0415  # an extra

    if not jobs:
        return
    attempts = attempts_of(spark)
    context = spark.sparkContext
    # Spark collects rows when all tasks are done; an accumulator has what each adds as soon as it is,
    # and what failed attempts and copies of a task add is left out.
    ended = context.accumulator([], AddingAccumulatorParam([]))

    def task(numbers: Iterable[int]) -> None:
        from pyspark import TaskContext  # noqa: PLC0415  # only a worker has one

        task_context = TaskContext.get()
        is_last = task_context is None or task_context.attemptNumber() + 1 >= attempts
        for number in numbers:
            ended.add([(number, came_of(jobs[number], work, is_last=is_last))])

    tasks = context.parallelize(range(len(jobs)), len(jobs))
    yielded = 0
    with explained("do the work"), ThreadPoolExecutor(1) as pool:
        running = pool.submit(tasks.foreachPartition, task)
        try:
            is_over = False
            while not is_over:
                is_over = not wait([running], timeout=_WAKE).not_done
                for number, (answer, error, reason) in ended.value[yielded:]:
                    yielded += 1
                    job = jobs[number]
                    yield Lost(job, reason, None, error) if error else Done(job, answer)
            running.result()
        finally:
            if not running.done():
                context.cancelAllJobs()
    if yielded < len(jobs):
        raise InputError(f"Spark says nothing of {len(jobs) - yielded} tasks. Its own log says more.")


def attempts_of(spark: SparkSession) -> int:
    """Return how many times Spark tries a task."""
    master = spark.sparkContext.master
    if master.startswith("local") and not master.startswith("local-cluster"):
        # `local[2,4]`: two threads, four attempts; without the second number, one.
        _, comma, attempts = master.partition("[")[2].rstrip("]").partition(",")
        return int(attempts) if comma else 1
    return int(spark.sparkContext.getConf().get("spark.task.maxFailures", "4") or 4)


def came_of(job: Any, work: Callable[[Any], Any], *, is_last: bool = True) -> tuple[Any, str, str]:
    """Do *job* and return its answer, or the name of an error and the reason.

    Where it is not the last attempt, what may pass is raised.
    """
    try:
        return work(job), "", ""
    except Exception as caught:  # whatever it is, it costs this job only
        may_pass = isinstance(caught, (OSError, OutputError, TransientError))
        if may_pass and not is_last and not isinstance(caught, FileNotFoundError):
            raise
        return None, type(caught).__name__, str(caught)[:_MOST_REASON]


def spark_schema(columns: pa.Schema) -> Any:
    """Return *columns* as Spark's type."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  # an extra

    return from_arrow_schema(columns, prefer_timestamp_ntz=True)


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn an error of Spark's into InputError: that it could not do what *doing* says."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  # an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra

    try:
        yield
    except (PySparkException, Py4JError) as error:
        reason = str(error).partition("\n")[0][:500]
        raise InputError(f"Spark could not {doing}: {reason}. Its own log says more.") from error
