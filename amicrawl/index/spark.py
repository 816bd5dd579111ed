"""Products of archive files over a Spark cluster: each file by one task, as the local engine does it.

A task makes the products of its file in a directory of its own and puts them where they belong, the mark
last (`collection/placed.py`). So what is done is not done again, whichever engine did it, and neither a
speculative copy of a task nor one that was believed dead harms the other. What may pass, an error of the
system or of a store, is raised, and Spark tries again; at the last attempt, and where the file is to
blame, it costs that file only. A session is handed in (`amicrawl.table.spark` opens one); nothing here
imports Spark before.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from amicrawl.errors import InputError, OutputError
from amicrawl.index.collection.marks import outcome_of
from amicrawl.index.collection.placed import do_placed
from amicrawl.index.workers import Done, Lost, run_jobs

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from amicrawl.index.collection.collecting import Event
    from amicrawl.index.collection.file import ReadProgress
    from amicrawl.index.collection.marks import Outcome
    from amicrawl.index.collection.placed import PlacedJob

_FIELDS: list[pa.Field[Any]] = [
    pa.field("job", pa.int64()),
    pa.field("outcome", pa.string()),
    pa.field("error", pa.string()),
    pa.field("reason", pa.string()),
]
_CAME = pa.schema(_FIELDS)
_MOST_REASON = 2000
_DETECTING = frozenset({"sidecar", "merged"})
_PASSING = (OSError.__name__, OutputError.__name__)


def done_on_spark(spark: SparkSession, jobs: Sequence[PlacedJob]) -> Generator[Event]:
    """Do *jobs* and yield what came of each, once all are done; InputError where Spark itself fails."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  # an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  # an extra

    if not jobs:
        return
    attempts = attempts_of(spark)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415  # only a worker has one

        context = TaskContext.get()
        is_last = context is None or context.attemptNumber() + 1 >= attempts
        return came_of(batches, jobs, is_last=is_last)

    try:
        # A task a file: they differ in size, and Spark gives the next to the executor that is free.
        rows = (
            spark.range(0, len(jobs), 1, numPartitions=len(jobs))
            .mapInArrow(work, from_arrow_schema(_CAME))
            .collect()
        )
    except (PySparkException, Py4JError) as error:
        reason = str(error).partition("\n")[0][:500]
        raise InputError(f"Spark could not read the files: {reason}. Its own log says more.") from error
    for row in rows:
        yield _event(jobs[row["job"]], row)


def _event(job: PlacedJob, row: Any) -> Event:
    if row["error"]:
        return Lost(job, row["reason"], None, row["error"])
    outcome = outcome_of(json.loads(row["outcome"]))
    for product in outcome.products.values():
        made = job.out.below(product.file).path
        if made is not None and not made.exists():
            reason = f"a worker made {made}, but it is not here. Give a directory that all share."
            return Lost(job, reason, None)
    return Done(job, outcome)


def attempts_of(spark: SparkSession) -> int:
    """Return how many times Spark tries a task."""
    master = spark.sparkContext.master
    if master.startswith("local") and not master.startswith("local-cluster"):
        # `local[2,4]`: two threads, four attempts; without the second number, one.
        _, comma, attempts = master.partition("[")[2].rstrip("]").partition(",")
        return int(attempts) if comma else 1
    return int(spark.sparkContext.getConf().get("spark.task.maxFailures", "4") or 4)


def came_of(
    batches: Iterable[pa.RecordBatch], jobs: Sequence[PlacedJob], *, is_last: bool = True
) -> Iterator[pa.RecordBatch]:
    """Do the jobs whose numbers are in *batches*, and yield what came of each; one may fail.

    Where it is not the last attempt, what may pass is raised.
    """
    for batch in batches:
        numbers: Any = batch["id"].to_pylist()
        for number in numbers:
            outcome, error, reason = "", "", ""
            try:
                outcome = json.dumps(asdict(_done(jobs[number])))
            except Exception as caught:  # whatever it is, it costs this job only
                may_pass = isinstance(caught, (OSError, OutputError, _WorkerDiedError))
                if may_pass and not is_last and not isinstance(caught, FileNotFoundError):
                    raise
                error, reason = type(caught).__name__, str(caught)[:_MOST_REASON]
            yield pa.RecordBatch.from_pydict(
                {"job": [number], "outcome": [outcome], "error": [error], "reason": [reason]},
                schema=_CAME,
            )


class _WorkerDiedError(Exception):
    """The process that detectors ran in has died."""


def _done(job: PlacedJob) -> Outcome:
    """Do *job*; what detectors bring down is a process of their own, as on one machine."""
    if _DETECTING.isdisjoint(job.products):
        return do_placed(job, _unheard)
    for event in run_jobs([job], do_placed, processes=1):
        if isinstance(event, Done):
            outcome: Outcome = event.answer
            return outcome
        if isinstance(event, Lost):
            if event.error in _PASSING:
                raise OSError(event.reason)
            if event.error == InputError.__name__:
                raise InputError(event.reason)
            raise _WorkerDiedError(event.sentence)
    raise AssertionError("a job has an end")


def _unheard(_: ReadProgress) -> None:
    """Hear how far a file is: Spark's own pages tell which tasks are done."""
