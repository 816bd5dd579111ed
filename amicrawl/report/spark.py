"""A summary over a Spark cluster: files are counted by tasks, and the counts of all tasks added here.

A task counts a range of the files, one after the other, as the local engine counts all of them. Adding
is associative, and the ranges are added in their order, so the result is the local one, bit by bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.errors import InputError
from amicrawl.index.location import Location
from amicrawl.index.spark import attempts_of, explained
from amicrawl.report.counts import CORRECTED, Counts
from amicrawl.report.reading import Reading, check_kind, count_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from amicrawl.report.inputs import InputFile

_TASKS = 1000
"""Tasks at most: the driver holds the counts of each."""


def count_on_spark(
    spark: SparkSession, files: Sequence[InputFile], *, rules: str = CORRECTED, kind: str | None = None
) -> Reading:
    """Count *files*, which all workers see under their absolute names, as `count_files` does.

    An error that may pass, of the system or of a store, is retried by Spark (`spark.task.maxFailures`).
    Raises InputError where a file cannot be read, or Spark fails.
    """
    check_kind(kind)
    attempts = attempts_of(spark)

    def count(some: Iterator[InputFile]) -> Iterator[Reading | str]:
        from pyspark import TaskContext  # noqa: PLC0415  # only a worker has one

        context = TaskContext.get()
        is_last = context is None or context.attemptNumber() + 1 >= attempts
        yield counted_or_reason(list(some), rules=rules, kind=kind, is_last=is_last)

    # Workers have working directories of their own.
    named = [file._replace(location=Location.of(file.location.name)) for file in files]
    with explained("count the files"):
        context = spark.sparkContext
        parts = context.parallelize(named, min(len(named), _TASKS)).mapPartitions(count).collect()
    whole = Reading(Counts(rules=rules))
    for part in parts:
        if isinstance(part, str):
            raise InputError(part)
        whole.counts.absorb(part.counts)
        whole.damage += part.damage
    return whole


def counted_or_reason(
    files: Sequence[InputFile], *, rules: str, kind: str | None, is_last: bool
) -> Reading | str:
    """Return what is in *files*, or why one cannot be read.

    An error that may pass is raised, unless this *is_last* attempt.
    """
    try:
        return count_files(files, rules=rules, kind=kind, threads=1)
    except InputError as error:
        may_pass = isinstance(error.__cause__, OSError)
        if may_pass and not is_last and not isinstance(error.__cause__, FileNotFoundError):
            raise
        return str(error)
