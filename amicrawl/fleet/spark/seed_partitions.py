"""Dealing: the seeds of a list, each to the partition of its host, by Spark.

Spark reads the list, wherever it has a file system for. A seed travels as a link of a batch does
(`partition/batch.py`), so that nothing that is known of it is lost. URLs that cannot be fetched,
and what is said of lines that cannot be read, go to partition 0, which accounts for them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from amicrawl.config import Identity
from amicrawl.errors import InputError
from amicrawl.frontier import Source
from amicrawl.partition import PartitionLink, encoded_link
from amicrawl.seed import BatchReader, SeedFormat
from amicrawl.urls import Refused, fetchable, shard_of, url_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from amicrawl.seed import SeedFault

_FIELDS: list[pa.Field[Any]] = [
    pa.field("part", pa.int32()),
    pa.field("link", pa.string()),
    pa.field("bad", pa.int64()),
    pa.field("why", pa.string()),
]
PARTITIONED = pa.schema(_FIELDS)
"""A row is a seed, as `encoded_link` gives it, or how many lines are none, and why."""


def opened_list(spark: SparkSession, source: str, format: str | None) -> tuple[BatchReader, DataFrame]:  # noqa: A002
    """Return the reader of the list *source*, a path or URI that all executors see, and its batches.

    Raises InputError where Spark cannot open it, or it is not a list; UsageError for a sitemap.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415  # an extra

    try:
        text = spark.read.option("lineSep", "\n").text(source)
        lines = text.selectExpr("CAST(value AS BINARY) AS line")
        first = lines.head()
        reader = BatchReader.of(source, bytes(first["line"]) if first else b"", format)
        if reader.format is not SeedFormat.PARQUET:
            return reader, lines
        table = spark.read.parquet(source)
        columns = replace(reader, schema=to_arrow_schema(table.schema)).columns
        table = table.select(columns)
        return replace(reader, schema=to_arrow_schema(table.schema)), table
    except PySparkException as error:
        reason = str(error).partition("\n")[0][:500]
        raise InputError(f"Spark cannot read {source}: {reason}. Check the path.") from error


def partitioned(
    batches: Iterable[pa.RecordBatch], reader: BatchReader, *, partitions: int
) -> Iterator[pa.RecordBatch]:
    """Yield the seeds of *batches* with their partitions, as `PARTITIONED`."""
    for batch in batches:
        faults: list[SeedFault] = []
        seeds = list(reader.seeds(batch, faults.append))
        bad = [fault for fault in faults if not fault.kept]
        parts = [_partition_of(seed.url, partitions) for seed in seeds]
        links: list[str | None] = [encoded_link(PartitionLink(seed, Source.SEED)) for seed in seeds]
        counts, reasons = [0] * len(seeds), [""] * len(seeds)
        if bad:
            parts, links = [*parts, 0], [*links, None]
            counts, reasons = [*counts, len(bad)], [*reasons, bad[0].reason]
        yield pa.RecordBatch.from_pydict(
            {"part": parts, "link": links, "bad": counts, "why": reasons}, schema=PARTITIONED
        )


def _partition_of(url: str, partitions: int) -> int:
    target = fetchable(url)
    if isinstance(target, Refused):
        return 0
    return shard_of(url_key(url, Identity.EXACT).host, partitions)
