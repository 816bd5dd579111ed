"""One partition on an executor: the ordinary crawl of its hosts as a child, in scratch space.

    lease -> what the bucket has of it -> child: scrapy crawl seeds -> frontier, index and result

The task is the carrier of one partition: it brings the child (`crawl/processes/lone_child.py`) batches,
and takes those for other partitions to the bucket. While the child runs, it is copied there every few
minutes. Whatever goes wrong is raised, so that Spark tries the task again; that goes on from the last
checkpoint.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.clock import steady_clock
from amicrawl.crawl import LoneChild
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.fleet.checkpoints import Checkpoints, begin_anew, fetch, newer_checkpoints, path_of, ship
from amicrawl.fleet.spark.bucket_objects import (
    CAPTURES,
    RESULT,
    batches_name,
    copy_file,
    directory_of,
    packed,
    read_json,
    unpacked,
    write_json,
)
from amicrawl.fleet.spark.leases import Address, PartitionLease
from amicrawl.listing import TABLE_NAME, read_crawl_json, read_manifest
from amicrawl.record import opened_index
from amicrawl.uploads import open_bucket

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amicrawl.partition import Batch

_GOOD = frozenset({ExitCode.DONE, ExitCode.SEEDS_BAD, ExitCode.UNREACHED, ExitCode.LIMIT})


@dataclass(frozen=True, slots=True)
class PartitionOrder:
    """What the partitions of a crawl have in common, as the tasks are sent it."""

    bucket: str
    """URL of the place for everything."""
    partitions: int
    prefix: str
    """What names of WARC files begin with, before the number of the partition."""
    leases: Address
    lease: float
    """Seconds for which a lease is good."""
    checkpoint: float
    """Seconds between two checkpoints, at least."""
    options: tuple[str, ...] = ()
    """Of the crawl's command line."""
    environment: dict[str, str] = field(default_factory=dict)
    """Of the crawl, beside the executor's."""
    scratch: str = ""
    """The directory for scratch space, on each executor; empty for that of temporary files."""

    def scratch_space(self) -> Path:
        """Return the directory for scratch space, made where it is missing. Raises OSError."""
        place = Path(self.scratch or tempfile.gettempdir())
        place.mkdir(parents=True, exist_ok=True)
        return place


class PartitionTask:
    """An attempt at partition *number*."""

    def __init__(self, order: PartitionOrder, number: int) -> None:
        self._order = order
        self._number = number
        self._name = directory_of(number)
        self._attempt = uuid.uuid4().hex
        self._disk = Disk()
        self._out = open_bucket(order.bucket, disk=self._disk)
        self._url = path_of(order.bucket, self._name)
        self._bucket = open_bucket(self._url, disk=self._disk)
        self._scratch = order.scratch_space()
        self._directory = self._scratch
        self._child: LoneChild | None = None
        self._facts: dict[str, Any] = {}
        self._sent: list[list[int]] = []
        """The recipients of each object with batches of this partition."""
        self._serial = 0
        self._checkpoints = Checkpoints(order.bucket, every=order.checkpoint, now=steady_clock())
        self._lease = PartitionLease(
            order.leases, number, self._attempt,
            ttl=order.lease, renewed=self._renewed, facts=self._said,
        )  # fmt: skip

    def crawl(self, batches: Iterator[str], *, digest: str = "") -> dict[str, Any]:
        """Crawl what *batches* name, and what is left; return what came of it.

        *digest* names the batches: where they were all that an earlier attempt was given, and it came to
        its end, its result is returned. Raises AmicrawlError where the task is to be tried again.
        """
        self._lease.take()
        try:
            earlier = read_json(self._bucket, RESULT) or {}
            if digest and earlier.get("digest") == digest and earlier["code"] != ExitCode.LIMIT:
                return dict(earlier)
            with self._place(), self._explained():
                self._restore(earlier)
                code = self._crawled(batches)
                return self._result(code, digest or str(earlier.get("digest", "")))
        finally:
            self._lease.give_back()

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Have scratch space for this attempt alone; what killed ones have left there is removed."""
        begins = f"amicrawl-{zlib.crc32(self._url.encode()):08x}-{self._name}-"
        for left in self._scratch.glob(f"{begins}*"):
            shutil.rmtree(left, ignore_errors=True)
        scratch = self._scratch / f"{begins}{self._attempt}"
        scratch.mkdir()
        self._directory = scratch / self._name
        try:
            yield
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise AmicrawlError(f"{self._name} cannot be crawled here: {error}") from error

    def _restore(self, earlier: dict[str, Any]) -> None:
        """Have the directory be what the bucket has of the partition, if anything."""
        while (said := read_json(self._bucket, batches_name(len(self._sent)))) is not None:
            self._sent.append(sorted({int(to) for to, _ in said}))
        done = int(earlier.get("serial", -1))
        newer = newer_checkpoints(self._order.bucket, self._name, than=done, disk=self._disk)
        self._serial = newer.serial
        self._checkpoints = Checkpoints(
            self._order.bucket, every=self._order.checkpoint, now=steady_clock(), slot=newer.slot
        )
        try:
            fetch(self._directory, self._url, checkpoints=newer.urls, disk=self._disk)
        except AmicrawlError:
            if done >= 0:
                raise
            begin_anew(self._directory, self._url, disk=self._disk)

    def _crawled(self, batches: Iterator[str]) -> int:
        """Run the crawl until nothing is left, and return its exit code."""
        child = self._child = LoneChild(
            self._directory,
            number=self._number,
            partitions=self._order.partitions,
            prefix=f"{self._order.prefix}-{self._name}",
        )
        try:
            code = child.run(
                batches,
                options=[*self._order.options, "-s", f"AMICRAWL_BUCKET={self._url}"],
                environment=self._order.environment,
                until=self._lease.until,
                keep=self._keep,
                look=self._look,
            )
        finally:
            self._child = None
            self._checkpoints.stop()
        if self._lease.lost:
            raise AmicrawlError(f"{self._name}: {self._lease.lost}. Nothing more was written.")
        if code not in _GOOD:
            raise AmicrawlError(
                f"The crawl of {self._name} ended with code {code}. Its last words: {child.last_words()}"
            )
        return code

    def _keep(self, batches: Sequence[Batch]) -> None:
        """Put the *batches* of the child into the bucket."""
        self._check()
        content = [[batch.partition, packed(batch.content)] for batch in batches]
        write_json(self._bucket, batches_name(len(self._sent)), content)
        self._sent.append(sorted({batch.partition for batch in batches}))

    def _look(self, facts: dict[str, Any]) -> None:
        self._facts = facts
        self._copy()

    def _copy(self) -> None:
        """Begin a checkpoint when it is time."""
        now = steady_clock()
        if self._checkpoints.is_due(now) and (self._directory / "frontier").is_dir():
            self._check()
            self._serial += 1
            self._checkpoints.begin(self._directory, now, disk=self._disk, serial=self._serial)

    def _result(self, code: int, digest: str) -> dict[str, Any]:
        """Bring what the next round and the driver need to the bucket; return what is said of it."""
        ship(self._directory, self._url, disk=self._disk, stopped=lambda: not self._lease.is_held)
        self._check()
        copy_file(self._out, f"{CAPTURES}/{self._name}.parquet", self._directory / TABLE_NAME)
        record = read_crawl_json(self._directory)
        files = [each.file for each in read_manifest(self._directory).files.values()]
        with opened_index(self._directory / TABLE_NAME) as table:
            rows = table.rows
        result = {
            "partition": self._number,
            "directory": self._name,
            "code": code,
            "digest": digest,
            "serial": self._serial,
            "rows": rows,
            "finish_reason": record.get("finish_reason", ""),
            "batches": self._sent,
            "files": [
                {
                    "name": file.name,
                    "size": file.size,
                    "records": rows if file.name == TABLE_NAME else file.records,
                    "sha256": file.sha256,
                }
                for file in files
                if not file.name.startswith("frontier/")
            ],
        }
        self._check()
        write_json(self._bucket, RESULT, result)
        return result

    def _check(self) -> None:
        """Raise AmicrawlError where another attempt may have the partition."""
        if not self._lease.is_held:
            raise AmicrawlError(
                f"{self._name} may be another attempt's by now. Nothing more is written."
            )

    def _renewed(self, until: float) -> None:
        """Tell the child until when it may crawl; 0 ends it. On the thread of the lease."""
        if (child := self._child) is not None:
            child.allow(until)
        if not until:
            self._checkpoints.stop()

    def _said(self) -> dict[str, Any]:
        return {name: self._facts[name] for name in ("rows", "waiting") if name in self._facts}


def batches_for(order: PartitionOrder, number: int, mail: list[tuple[str, int]]) -> Iterator[str]:
    """Yield the batches to partition *number* in the objects *mail*: a directory, and a number each.

    Raises AmicrawlError where one is not there or says something else.
    """
    for directory, which in mail:
        bucket = open_bucket(path_of(order.bucket, directory), disk=Disk())
        said = read_json(bucket, batches_name(which))
        if said is None:
            raise AmicrawlError(f"{batches_name(which)} in {bucket.url} is missing, or is not JSON.")
        yield from (unpacked(batch) for to, batch in said if to == number)
