"""One partition on an executor: the ordinary crawl of its hosts as a child, in scratch space.

    lease -> what the bucket has of it -> child: scrapy crawl seeds -> frontier, index and answer

The task is the parent of the child, as `processes/parent.py` is of several: it brings batches, takes
those for other partitions to the bucket, and says when the crawl ends: when nothing is left and every
batch is where it belongs. While the child runs, it is copied to the bucket every few minutes. Whatever
goes wrong is raised, so that Spark tries the task again; that goes on from the last checkpoint.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.clock import steady_clock
from amicrawl.crawl import (
    BATCHES_AT_ONCE,
    Arrived,
    Batch,
    End,
    PartitionMessage,
    Specification,
    Standing,
    allow,
)
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.fleet.jobs import Checkpoints, begin_anew, checkpoint_url, fetch, path_of, serial_of, ship
from amicrawl.fleet.jobs.checkpoint import SLOTS
from amicrawl.fleet.spark.bucket_objects import (
    ANSWER,
    CAPTURES,
    batches_name,
    copy_file,
    directory_of,
    packed,
    read_json,
    unpacked,
    write_json,
)
from amicrawl.fleet.spark.leases import Address, PartitionLease
from amicrawl.record import TABLE_NAME, open_bucket, opened_index, read_crawl_json, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_SILENCE = 600.0
"""Seconds in which a child may say nothing, as while it opens a large frontier."""
_LAST_WORDS = 3000
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
        self._child: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._pipe = -1
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
        its end, its answer is returned. Raises AmicrawlError where the task is to be tried again.
        """
        self._lease.take()
        try:
            answered = read_json(self._bucket, ANSWER) or {}
            if digest and answered.get("digest") == digest and answered["code"] != ExitCode.LIMIT:
                return dict(answered)
            with self._place(), self._explained():
                self._restore(answered)
                code = self._crawled(batches)
                return self._answer(code, digest or str(answered.get("digest", "")))
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

    def _restore(self, answered: dict[str, Any]) -> None:
        """Have the directory be what the bucket has of the partition, if anything."""
        while (said := read_json(self._bucket, batches_name(len(self._sent)))) is not None:
            self._sent.append(sorted({int(to) for to, _ in said}))
        done = int(answered.get("serial", -1))
        urls = [checkpoint_url(self._order.bucket, self._name, slot) for slot in range(SLOTS)]
        serials = {url: serial_of(url, disk=self._disk) for url in urls}
        newer = sorted(
            (url for url in urls if serials[url] > done), key=serials.__getitem__, reverse=True
        )
        self._serial = max(done, *serials.values()) + 1
        # The newest one stays until the next one is whole.
        slot = (urls.index(newer[0]) + 1) % SLOTS if newer else 0
        self._checkpoints = Checkpoints(
            self._order.bucket, every=self._order.checkpoint, now=steady_clock(), slot=slot
        )
        try:
            fetch(self._directory, self._url, checkpoints=newer, disk=self._disk)
        except AmicrawlError:
            if done >= 0:
                raise
            begin_anew(self._directory, self._url, disk=self._disk)

    def _crawled(self, batches: Iterator[str]) -> int:
        """Run the crawl until nothing is left, and return its exit code."""
        messages = self._begin()
        assert self._child is not None
        try:
            self._converse(messages, batches)
            code = self._child.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            os.close(self._pipe)
            self._pipe = -1
            self._checkpoints.stop()
        if self._lease.lost:
            raise AmicrawlError(f"{self._name}: {self._lease.lost}. Nothing more was written.")
        if code not in _GOOD:
            raise AmicrawlError(
                f"The crawl of {self._name} ended with code {code}. Its last words: {self._last_words()}"
            )
        return code

    def _begin(self) -> queue.Queue[PartitionMessage | None]:
        """Start the child; what it says comes out of the queue, and None behind the last."""
        ours, theirs = socket.socketpair()
        self._socket = ours
        pipe, self._pipe = os.pipe()
        given = Specification(
            number=self._number,
            processes=self._order.partitions,
            out=str(self._directory),
            prefix=f"{self._order.prefix}-{self._name}",
            socket=theirs.fileno(),
            file="-",
            pipe=pipe,
            until=self._lease.until,
        )
        command = [sys.executable, "-P", "-m", "amicrawl.crawl.start", "seeds", "-a", "file=-"]
        further = [*self._order.options, "-s", f"AMICRAWL_BUCKET={self._url}"]
        with theirs, (self._directory / "console.log").open("ab") as console:
            self._child = subprocess.Popen(  # noqa: S603  # a list, and no shell
                [*command, *further],
                env={
                    **os.environ,
                    **self._order.environment,
                    **given.environment(),
                },
                cwd=self._directory.parent,
                pass_fds=[theirs.fileno(), pipe],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        os.close(pipe)
        messages: queue.Queue[PartitionMessage | None] = queue.Queue()

        def read() -> None:
            with suppress(OSError, ValueError), ours.makefile("rb") as stream:
                for line in stream:
                    messages.put(PartitionMessage.of(line))
            messages.put(None)

        threading.Thread(target=read, name="amicrawl-child", daemon=True).start()
        return messages

    def _converse(self, messages: queue.Queue[PartitionMessage | None], batches: Iterator[str]) -> None:
        """Bring batches and take them until the child has ended."""
        under_way: set[int] = set()
        outgoing: list[Batch] = []
        last, is_all, is_told = 0, False, False
        while (said := self._next(messages, is_ending=is_told)) is not None:
            if isinstance(said, Batch):
                outgoing.append(said)
            if not isinstance(said, Standing):
                continue
            under_way.difference_update(number for _, number in said.kept)
            facts = self._facts = said.facts
            is_busy = bool(facts["waiting"] or facts["in_flight"])
            if outgoing and (not is_busy or len(outgoing) >= BATCHES_AT_ONCE):
                self._keep(outgoing)
            while not is_all and len(under_way) < BATCHES_AT_ONCE and said.has_room:
                batch = next(batches, None)
                if batch is None:
                    is_all = True
                    break
                last += 1
                under_way.add(last)
                self._tell(Batch(self._number, last, batch))
            self._copy()
            if is_all and not under_way and not outgoing and said.idle and not is_told:
                is_told = True
                self._tell(End("finished"))
        if outgoing:
            # One that has come to a limit sends what it has in its last words.
            self._keep(outgoing)

    def _next(
        self, messages: queue.Queue[PartitionMessage | None], *, is_ending: bool
    ) -> PartitionMessage | None:
        """Return what the child says next; raises AmicrawlError where it is silent for too long."""
        try:
            return messages.get(timeout=None if is_ending else _LONGEST_SILENCE)
        except queue.Empty as error:
            raise AmicrawlError(f"The crawl of {self._name} hangs: {self._last_words()}") from error

    def _keep(self, outgoing: list[Batch]) -> None:
        """Put the batches of the child into the bucket, and have it forget them."""
        self._check()
        batches = [[batch.partition, packed(batch.content)] for batch in outgoing]
        write_json(self._bucket, batches_name(len(self._sent)), batches)
        self._sent.append(sorted({batch.partition for batch in outgoing}))
        self._tell(Arrived(tuple(batch.number for batch in outgoing)))
        outgoing.clear()

    def _copy(self) -> None:
        """Begin a checkpoint when it is time."""
        now = steady_clock()
        if self._checkpoints.is_due(now) and (self._directory / "frontier").is_dir():
            self._check()
            self._serial += 1
            self._checkpoints.begin(self._directory, now, disk=self._disk, serial=self._serial)

    def _answer(self, code: int, digest: str) -> dict[str, Any]:
        """Bring what the next round and the driver need to the bucket; return what is said of it."""
        ship(self._directory, self._url, disk=self._disk, stopped=lambda: not self._lease.is_held)
        self._check()
        copy_file(self._out, f"{CAPTURES}/{self._name}.parquet", self._directory / TABLE_NAME)
        record = read_crawl_json(self._directory)
        files = [each.file for each in read_manifest(self._directory).files.values()]
        with opened_index(self._directory / TABLE_NAME) as table:
            rows = table.rows
        answer = {
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
        write_json(self._bucket, ANSWER, answer)
        return answer

    def _check(self) -> None:
        """Raise AmicrawlError where another attempt may have the partition."""
        if not self._lease.is_held:
            raise AmicrawlError(
                f"{self._name} may be another attempt's by now. Nothing more is written."
            )

    def _renewed(self, until: float) -> None:
        """Tell the child until when it may crawl; 0 ends it. On the thread of the lease."""
        pipe = self._pipe
        with suppress(OSError):
            if pipe >= 0:
                allow(pipe, until)
        if not until:
            self._checkpoints.stop()

    def _said(self) -> dict[str, Any]:
        return {name: self._facts[name] for name in ("rows", "waiting") if name in self._facts}

    def _tell(self, message: PartitionMessage) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.sendall(message.line())

    def _last_words(self) -> str:
        with suppress(OSError):
            return (
                (self._directory / "console.log").read_bytes()[-_LAST_WORDS:].decode("utf-8", "replace")
            )
        return ""


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
