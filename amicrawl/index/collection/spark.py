"""Products of archive files over a Spark cluster: each file by one task, as the local engine does it.

A task makes the products of its file in a directory of its own and puts them where they belong, the mark
last (`placed.py`). So what is done is not done again, whichever engine did it, and neither a speculative
copy of a task nor one that was believed dead harms the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.errors import InputError, OutputError
from amicrawl.index.collection.placed import do_placed
from amicrawl.index.spark import TransientError, done_on_spark
from amicrawl.index.workers import Done, Lost, run_jobs

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pyspark.sql import SparkSession

    from amicrawl.index.collection.collecting import Event
    from amicrawl.index.collection.file import ReadProgress
    from amicrawl.index.collection.marks import Outcome
    from amicrawl.index.collection.placed import PlacedJob

_DETECTING = frozenset({"sidecar", "merged"})
_PASSING = (OSError.__name__, OutputError.__name__)


def collected_on_spark(spark: SparkSession, jobs: Sequence[PlacedJob]) -> Generator[Event]:
    """Do *jobs* and yield what came of each; InputError where Spark itself fails."""
    for event in done_on_spark(spark, jobs, do_placed_alone):
        yield _checked(event) if isinstance(event, Done) else event


def _checked(event: Done[PlacedJob, Outcome]) -> Event:
    for product in event.answer.products.values():
        made = event.job.out.below(product.file).path
        if made is not None and not made.exists():
            reason = f"a worker made {made}, but it is not here. Give a directory that all share."
            return Lost(event.job, reason, None)
    return event


def do_placed_alone(job: PlacedJob) -> Outcome:
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
            raise TransientError(event.sentence)
    raise AssertionError("a job has an end")


def _unheard(_: ReadProgress) -> None:
    """Hear how far a file is: Spark says of a task only that it is done."""
