"""Products of archive files over a Spark cluster: each file by one task, as the local engine does it.

Sources and output are paths that all workers see under the same names. What a task writes is what a
process on one machine writes, byte for byte, its mark included: so what is done is not done again,
whichever engine did it, and the driver learns from the marks what came of each file. A session is handed
in (`amicrawl.table.spark` opens one); nothing here imports Spark before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from amicrawl.errors import InputError
from amicrawl.index.collection.file import collect_file
from amicrawl.index.collection.marks import read_mark
from amicrawl.index.workers import Done, Lost

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from amicrawl.index.collection.collecting import Told
    from amicrawl.index.collection.file import FileJob

_FIELDS: list[pa.Field[Any]] = [
    pa.field("job", pa.int64()),
    pa.field("error", pa.string()),
    pa.field("reason", pa.string()),
]
_CAME = pa.schema(_FIELDS)
_MOST_REASON = 2000


def done_on_spark(spark: SparkSession, jobs: Sequence[FileJob]) -> Iterator[Told]:
    """Do *jobs* and yield what came of each, in order, once all are done.

    Paths are made absolute, for workers have working directories of their own. Raises InputError where
    Spark itself fails.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415  # an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  # an extra

    if not jobs:
        return
    sent = [replace(job, source=job.source.absolute(), out=job.out.absolute()) for job in jobs]

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return came_of(batches, sent)

    try:
        # A task a file: they differ in size, and Spark hands the next to whoever is done.
        rows = (
            spark.range(0, len(jobs), 1, numPartitions=len(jobs))
            .mapInArrow(work, from_arrow_schema(_CAME))
            .collect()
        )
    except (PySparkException, Py4JError) as error:
        reason = str(error).partition("\n")[0][:500]
        raise InputError(f"Spark could not read the files: {reason}. Its own log says more.") from error
    for row in sorted(rows, key=lambda row: int(row["job"])):
        job = jobs[row["job"]]
        outcome = read_mark(job.mark, source=job.source, settings=job.settings, out=job.out)
        if row["error"]:
            yield Lost(job, row["reason"], None, row["error"])
        elif outcome is None or not {*job.products} <= outcome.products.keys():
            reason = f"a worker read it, but {job.path} is not here. Give a directory that all share."
            yield Lost(job, reason, None)
        else:
            yield Done(job, outcome)


def came_of(batches: Iterable[pa.RecordBatch], jobs: Sequence[FileJob]) -> Iterator[pa.RecordBatch]:
    """Do the jobs whose numbers are in *batches*, and yield what came of each; one may fail."""
    for batch in batches:
        numbers: Any = batch["id"].to_pylist()
        for number in numbers:
            error = reason = ""
            try:
                collect_file(jobs[number], lambda _: None)
            except Exception as caught:  # noqa: BLE001  # whatever it is, it costs this job only
                error, reason = type(caught).__name__, str(caught)[:_MOST_REASON]
            yield pa.RecordBatch.from_pydict(
                {"job": [number], "error": [error], "reason": [reason]}, schema=_CAME
            )
