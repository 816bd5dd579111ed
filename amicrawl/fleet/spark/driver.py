"""The driver: rounds of tasks until no batch is left; then one manifest, and one dataset.

A partition for which batches came goes on in the next round, with its frontier. Everything that a round
needs is in the bucket: a driver that is started again with the same command has each task look at what
is there, and those that were done return their results again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import time
import uuid
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, ExitCode, UsageError
from amicrawl.fleet.spark.bucket_objects import MANIFEST, RUN, read_json, write_json
from amicrawl.fleet.spark.leases import LeaseServer
from amicrawl.fleet.spark.partition import PartitionOrder, PartitionTask, batches_for
from amicrawl.fleet.spark.seed_partitions import PARTITIONED, opened_list, partitioned
from amicrawl.partition import batches_of
from amicrawl.uploads import open_bucket, usable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from amicrawl.uploads import Bucket

FORMAT = 1
MOST_PARTITIONS = 100_000

_RESULT_FIELDS: list[pa.Field[Any]] = [pa.field("result", pa.string())]
_RESULT = pa.schema(_RESULT_FIELDS)
_SHOWN_EVERY = 10.0


@dataclass(frozen=True, slots=True)
class SparkCrawl:
    """A seed list to be crawled over Spark."""

    source: str
    """The list: a path that all executors see, or a URI that Spark has a file system for."""
    out: str
    """URL of the bucket and the path in it."""
    partitions: int
    """0 for one for each core of the cluster, three times over."""
    format: str | None = None
    strict: bool = False
    prefix: str = "ami"
    options: tuple[str, ...] = ()
    """Of the command line of each crawl."""
    environment: dict[str, str] = field(default_factory=dict)
    lease: float = 30.0
    checkpoint: float = 300.0
    scratch: str = ""
    lease_port: int = 0


@dataclass(slots=True)
class CrawlOutcome:
    """What came of a crawl."""

    rows: int
    rounds: int
    bad: int
    """Lines of the list that could not be used."""
    why: str
    """Why the first of them could not."""
    code: ExitCode


def crawl_on_spark(
    spark: SparkSession, crawl: SparkCrawl, *, tell: Callable[[str], None]
) -> CrawlOutcome:
    """Do *crawl* on *spark*, and return what came of it; *tell* receives its progress.

    Raises UsageError where another driver works at the same place, InputError and OutputError for what
    cannot be read and written, AmicrawlError where a partition failed as often as Spark tries a task.
    """
    bucket = open_bucket(crawl.out, disk=Disk())
    host = str(spark.sparkContext.getConf().get("spark.driver.host") or "127.0.0.1")
    reader, batches = opened_list(spark, crawl.source, crawl.format)
    partitions = _partitions(bucket, crawl, spark.sparkContext.defaultParallelism)
    with _at_work(bucket, partitions, crawl.lease, tell) as lost:
        server = LeaseServer(_listening(host), crawl.lease, port=crawl.lease_port, fault=lost)
        order = PartitionOrder(
            bucket=crawl.out, partitions=partitions, prefix=crawl.prefix,
            leases=type(server.address)(host, server.address.port, server.address.secret),
            lease=crawl.lease, checkpoint=crawl.checkpoint, options=crawl.options,
            environment=crawl.environment, scratch=crawl.scratch,
        )  # fmt: skip

        def deal(pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return partitioned(pieces, reader, partitions=partitions)

        seeds = batches.mapInArrow(deal, _spark_schema(PARTITIONED)).repartitionById(partitions, "part")
        try:
            with _shown(server, tell, partitions):
                return _rounds(spark, seeds, order, bucket, strict=crawl.strict, tell=tell)
        finally:
            server.close()


def _rounds(
    spark: SparkSession,
    seeds: DataFrame,
    order: PartitionOrder,
    bucket: Bucket,
    *,
    strict: bool,
    tell: Callable[[str], None],
) -> CrawlOutcome:
    results = {result["partition"]: result for result in _collected(seeds, _first_task(order))}
    read: dict[int, int] = {}
    rounds = 1
    while mail := _mail(results, read):
        tell(f"Links to other partitions wait for {len(mail)} of them: round {rounds}.")
        numbers = sorted(mail)
        frame = spark.range(0, len(numbers), 1, numPartitions=len(numbers))
        for result in _collected(frame, _batch_task(order, mail, numbers)):
            before = results.get(result["partition"], {})
            results[result["partition"]] = before | result
        rounds += 1
    return _finished(bucket, order, results, rounds=rounds, strict=strict)


def _first_task(order: PartitionOrder) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, bad, why, count, digest = None, 0, "", 0, 0
        with tempfile.TemporaryFile(dir=order.scratch_space()) as spool:
            for batch in batches:
                for row in batch.to_pylist():
                    number, bad, why = row["part"], bad + row["bad"], why or row["why"]
                    if row["link"] is not None:
                        line = row["link"].encode("ascii")
                        # They come in any order: the sum of their hashes is the same for all.
                        digest += int.from_bytes(hashlib.blake2b(line, digest_size=16).digest())
                        count += 1
                        spool.write(line + b"\n")
            if number is None:
                return
            spool.seek(0)
            named = f"{count}-{digest % 2**128:032x}"
            result = PartitionTask(order, number).crawl(_link_batches(spool), digest=named)
        yield _result_batch(result | {"bad": bad, "why": why})

    return work


def _batch_task(
    order: PartitionOrder, mail: dict[int, list[tuple[str, int]]], numbers: list[int]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch["id"].to_pylist():
                number = numbers[int(str(place))]
                links = batches_for(order, number, mail[number])
                yield _result_batch(PartitionTask(order, number).crawl(links))

    return work


def _link_batches(lines: Iterable[bytes]) -> Iterator[str]:
    """Yield batches with the links in *lines*."""
    links = (line.decode("ascii").rstrip("\n") for line in lines)
    return (batch for batch, _ in batches_of(links))


def _result_batch(result: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"result": [json.dumps(result)]}, schema=_RESULT)


def _collected(frame: DataFrame, work: Callable[..., Iterator[pa.RecordBatch]]) -> list[dict[str, Any]]:
    """Run *work* on each partition of *frame*, and return the results."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  # an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra

    try:
        rows = frame.mapInArrow(work, _spark_schema(_RESULT)).collect()
    except (PySparkException, Py4JError) as error:
        raise AmicrawlError(
            f"Spark gave a partition up: {_cause(str(error))} The same command goes on from there."
        ) from error
    return [json.loads(row["result"]) for row in rows]


def _cause(text: str) -> str:
    """Return what of an error of Spark's, a page of traces, says what went wrong in the task."""
    errors = [line for line in text.splitlines() if "amicrawl.errors." in line or "Error:" in line]
    return (errors[-1] if errors else text.partition("\n")[0]).strip()[:1000]


def _mail(results: dict[int, dict[str, Any]], read: dict[int, int]) -> dict[int, list[tuple[str, int]]]:
    """Return the objects with batches that were not brought yet, by recipient; note them as *read*."""
    mail: dict[int, list[tuple[str, int]]] = {}
    for number, result in results.items():
        for which, recipients in enumerate(result["batches"]):
            if which >= read.get(number, 0):
                for to in recipients:
                    mail.setdefault(to, []).append((result["directory"], which))
        read[number] = len(result["batches"])
    return mail


def _finished(
    bucket: Bucket,
    order: PartitionOrder,
    results: dict[int, dict[str, Any]],
    *,
    rounds: int,
    strict: bool,
) -> CrawlOutcome:
    """Write the manifest; return what came of the crawl."""
    parts = [results[number] for number in sorted(results)]
    bad, why = (
        sum(each.get("bad", 0) for each in parts),
        next((each["why"] for each in parts if each.get("why")), ""),
    )
    kept = ("partition", "directory", "rows", "finish_reason", "files")
    rows = sum(each["rows"] for each in parts)
    manifest = {
        "format": FORMAT,
        "captures": "captures/*.parquet",
        "partitions": order.partitions,
        "rounds": rounds,
        "rows": rows,
        "lines_bad": bad,
        "parts": [{name: each[name] for name in kept} for each in parts],
    }
    with usable(bucket):
        write_json(bucket, MANIFEST, manifest)
    codes = Counter(each["code"] for each in parts)
    code = ExitCode.DONE
    if codes[ExitCode.LIMIT]:
        code = ExitCode.LIMIT
    elif bad and strict:
        code = ExitCode.SEEDS_BAD
    elif parts and codes[ExitCode.UNREACHED] == len(parts):
        code = ExitCode.UNREACHED
    return CrawlOutcome(rows, rounds, bad, why, code)


def _partitions(bucket: Bucket, crawl: SparkCrawl, cores: int) -> int:
    """Return how many partitions there are; as many as before, where the crawl was begun before."""
    before = _said_in(bucket).get("partitions")
    number = crawl.partitions or (before if type(before) is int else max(1, 3 * cores))
    if type(before) is int and number != before:
        raise UsageError(
            f"{crawl.out} was begun with {before} partitions, which say where each host belongs. Leave "
            "--partitions away, or choose another place."
        )
    return number


@contextmanager
def _at_work(
    bucket: Bucket, partitions: int, lease: float, tell: Callable[[str], None]
) -> Iterator[Callable[[], str]]:
    """Be the driver at *bucket*; yields what says why that is not so any more.

    Raises UsageError where another one is. One that was killed has left attempts that hold leases: they
    are waited for.
    """
    said = _said_in(bucket)
    if said.get("driver"):
        tell(
            f"A driver at {bucket.url} has not come to its end: waiting {lease:.0f} s for what it left."
        )
        time.sleep(lease)
        again = _said_in(bucket)
        if again != said and again.get("driver"):
            raise UsageError(f"Another driver is at work at {bucket.url}. Wait for its end.")
    over, fault = threading.Event(), [""]
    ours: dict[str, object] = {"partitions": partitions, "driver": uuid.uuid4().hex, "beat": 0}

    def beat() -> None:
        number = 0
        while not over.wait(lease / 3):
            number += 1
            # A bucket that fails is for the tasks to find out, which are tried again.
            with suppress(OSError):
                if (read_json(bucket, RUN) or {}).get("driver") != ours["driver"]:
                    fault[0] = f"another driver has begun to work at {bucket.url}"
                    return
                write_json(bucket, RUN, ours | {"beat": number})

    _say_in(bucket, ours)
    thread = threading.Thread(target=beat, name="amicrawl-driver", daemon=True)
    thread.start()
    try:
        yield lambda: fault[0]
    finally:
        over.set()
        thread.join()
        if not fault[0]:
            _say_in(bucket, ours | {"driver": ""})


def _said_in(bucket: Bucket) -> dict[str, Any]:
    with usable(bucket):
        return read_json(bucket, RUN) or {}


def _say_in(bucket: Bucket, said: dict[str, Any]) -> None:
    with usable(bucket):
        write_json(bucket, RUN, said)


@contextmanager
def _shown(server: LeaseServer, tell: Callable[[str], None], partitions: int) -> Iterator[None]:
    """Say now and then how far the crawl is."""
    over = threading.Event()

    def show() -> None:
        while not over.wait(_SHOWN_EVERY):
            facts = list(server.facts.values())
            rows, waiting = (sum(each.get(name, 0) for each in facts) for name in ("rows", "waiting"))
            tell(f"{rows:,} rows, {waiting:,} wait, in {len(facts)} of {partitions} partitions.")

    thread = threading.Thread(target=show, name="amicrawl-shown", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _listening(host: str) -> str:
    """Return where to listen so that executors reach *host*: on this machine alone, if it is that."""
    return host if host in ("127.0.0.1", "localhost") else os.environ.get("SPARK_LOCAL_IP", "")


def _spark_schema(columns: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  # an extra

    return from_arrow_schema(columns)
