"""A worker: crawls partitions of a shared crawl, as many at a time as it has slots, until none is left.

    take --> fence, directory --> child: scrapy crawl site -a share=NAME --> release

Each partition has its directory, DATA/NAME/part-NNN, and a child process that crawls it. Where the crawl
has a place for it, the state of a partition is copied there when it is released, and fetched by the
machine that takes it next:

    PLACE/NAME-part-NNN-TOKEN/    frontier and outbox, as a checkpoint (`checkpoint.py`)

TOKEN is the fencing token under which it was crawled: no later owner writes to that path. Captures stay
where they were made. On the receiving side the frontier is completed beside the old one, and replaces
it by renaming.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from amicrawl.disk import Disk, explained, rename_durably, replace_file
from amicrawl.errors import AmicrawlError, ExitCode, OutputError, UsageError
from amicrawl.fleet.checkpoints import Copying, opened_store, path_of, restore_checkpoint, ship_state
from amicrawl.fleet.database import RedisUnavailable, unit_of
from amicrawl.fleet.jobs import Attempt, Child, Supervisor, crawl_environment, take_directory
from amicrawl.fleet.leases import GRACE, LEASE, Claim, Claims, HeartbeatMonitor
from amicrawl.fleet.sharing.record import directory_of
from amicrawl.fleet.sharing.share import Ended, NoPartition
from amicrawl.partition import Outbox
from amicrawl.uploads import open_bucket

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from amicrawl.fleet.sharing.record import ShareRecord
    from amicrawl.fleet.sharing.share import Share

LOG_NAME = "worker.log"
_DIRECTORY_PATIENCE = 20.0
"""Seconds for which a partition waits for a directory that another process has."""
_END_PATIENCE = 60.0
_PHRASES = {"failed": "has failed", "limit": "has reached a limit", "lost": "has another owner"}
_LONGEST_REST = 60.0
"""Seconds, at most, for which a worker takes no partition after one that it could not crawl."""
_UNABLE = {ExitCode.OUTPUT, ExitCode.UNAVAILABLE}
_AGREED = {ExitCode.DONE, ExitCode.STOPPED, ExitCode.SEEDS_BAD, ExitCode.UNREACHED}


@dataclass(slots=True, kw_only=True)
class PartitionAttempt(Attempt):
    """A partition in a slot of a worker."""

    number: int
    directory: Path
    shipped: str
    """The token under which its state was shipped, if that is not here; or else empty."""
    since: float
    """When it was taken."""
    is_put_off: bool = False
    """Whether a disk or the bucket kept it from beginning, which may do otherwise later."""


class ShareWorker(Supervisor[PartitionAttempt]):
    """Crawls partitions of *share* below the directory *data*."""

    def __init__(
        self,
        share: Share,
        data: Path,
        *,
        command: Callable[[int, Path], Sequence[str]],
        environment: Mapping[str, str],
        slots: int = 1,
        ttl: timedelta = LEASE,
        turn: timedelta = timedelta(0),
        disk: Disk | None = None,
        tell: Callable[[str], None] = lambda _: None,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """*command* makes the command line of the crawl of a partition, by its number and directory.

        *environment* is added to that of this process. *tell* is called with sentences for the operator.
        Raises UsageError or OutputError where the place of the crawl or *data* cannot be used.
        """
        super().__init__(
            Claims(share.store),
            data,
            slots=slots,
            lease=ttl,
            report=tell,
            end_patience=_END_PATIENCE,
            wait=wait,
        )
        self._share = share
        self._command = command
        self._environment = environment
        self._turn = turn
        self._disk = disk or Disk()
        self._grace = min(timedelta(seconds=GRACE), ttl / 2)
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._place = share.record.place
        if self._place:
            open_bucket(self._place, disk=self._disk)
        self._store_id = opened_store(data, disk=self._disk)
        self._has_ended = False
        self._has_reported_waiting = False
        self._takes_from = 0.0
        self._unable = 0
        """Partitions, one after the other, that this machine could not crawl."""
        self.code = ExitCode.STOPPED
        """How the crawl ended, once `run` has returned."""
        with explained(data, "used"):
            (data / share.record.name).mkdir(exist_ok=True)

    @property
    def is_over(self) -> bool:
        """Whether the crawl has ended, or this worker was stopped."""
        return super().is_over or (self._has_ended and not self.attempts)

    def _take(self) -> PartitionAttempt | None:
        record, now = self._share.record, time.monotonic()
        if now < self._takes_from:
            return None
        taken = self._share.take(
            self._owner,
            ttl=self._lease,
            data=self._store_id,
            place=self._place,
            grace=self._grace,
        )
        if isinstance(taken, NoPartition):
            self._note_end(taken)
            return None
        self._has_reported_waiting = False
        what = "taken over" if taken.lapsed else "taken"
        self._report(f"Partition {taken.number} {what} (token {taken.token}).")
        return PartitionAttempt(
            Claim(unit_of(record.name, taken.number), taken.token),
            HeartbeatMonitor(self._lease.total_seconds(), now),
            number=taken.number,
            directory=self._data / record.name / directory_of(taken.number),
            shipped=taken.shipped,
            since=now,
        )

    def _note_end(self, nothing: NoPartition) -> None:
        """Note whether the crawl has ended, and how, from why there is *nothing* to take."""
        code = None
        if nothing.why == "gone":
            code = ExitCode.INPUT
        elif nothing.why == "stopped":
            code = ExitCode.STOPPED
        elif nothing.why == "ended":
            code = ExitCode.OUR_ERROR if self._failed() else ExitCode.DONE
        self._has_ended = code is not None
        if code is None:
            waits = nothing.away and not nothing.held and not self.attempts
            if waits and not self._has_reported_waiting:
                self._has_reported_waiting = True
                self._report(
                    f"{nothing.away} partitions wait for the machine that has their directories: start "
                    "a worker there."
                )
            return
        self.code = code
        if self.attempts:
            return
        if code is ExitCode.INPUT:
            self._report(
                f"There is no shared crawl {self._share.record.name} in Redis any more. If it was not "
                "removed on purpose, create it again as it was: the directories here are resumed."
            )
        elif code is ExitCode.OUR_ERROR:
            for number in self._failed():
                self._report(f"Partition {number} was given up: see `amicrawl share status`.")

    def _failed(self) -> list[int]:
        standings = enumerate(self._share.standings())
        return [number for number, known in standings if known.get("state") in {"failed", "limit"}]

    def _begin(self, attempt: PartitionAttempt) -> None:
        attempt.is_waiting = True
        try:
            if self._is_in_place(attempt):
                self._start(attempt)
        except RedisUnavailable:
            raise
        except AmicrawlError as error:
            attempt.is_waiting, attempt.fault = False, str(error)
            attempt.is_put_off = isinstance(error.__cause__, OSError)
            self._report(f"Partition {attempt.number} cannot begin: {error}")

    def _is_in_place(self, attempt: PartitionAttempt) -> bool:
        """Bring the partition into its directory; return whether its crawl may start there now."""
        directory = attempt.directory
        if attempt.copying is None:
            with explained(directory, "made"):
                directory.mkdir(exist_ok=True)
            try:
                take_directory(directory, attempt.claim, disk=self._disk)
            except UsageError:
                if time.monotonic() - attempt.since > _DIRECTORY_PATIENCE:
                    attempt.is_waiting = False
                    self._report(f"{directory} is still written to by another process; trying later.")
                return False
            if not attempt.shipped:
                return True
            url = self._shipped_to(attempt, attempt.shipped)
            attempt.copying = Copying(lambda _: fetch_state(directory, url, disk=self._disk))
        if not attempt.copying.is_over:
            return False
        if attempt.copying.fault:
            error = attempt.copying.error
            raise OutputError(attempt.copying.fault) from error and (error.__cause__ or error)
        # From here on what was shipped is behind what is here.
        unit, token = attempt.claim.unit, attempt.claim.token
        if not self._claims.settle(unit, token, store=self._store_id, place=""):
            attempt.is_waiting, attempt.is_lost = False, True
            return False
        attempt.copying, attempt.shipped = None, ""
        self._report(f"Partition {attempt.number} was fetched from {self._place}.")
        return True

    def _shipped_to(self, attempt: PartitionAttempt, token: str) -> str:
        return shipped_to(self._place, self._share.record.name, attempt.number, token)

    def _start(self, attempt: PartitionAttempt) -> None:
        log = attempt.directory / LOG_NAME
        attempt.pulse.begin_anew(time.monotonic())
        with explained(log, "written to"):
            attempt.child = Child(
                self._command(attempt.number, attempt.directory),
                environment={
                    **os.environ,
                    **self._environment,
                    **crawl_environment(attempt.claim, self._lease.total_seconds()),
                    "AMICRAWL_JOB_TURN": str(self._turn.total_seconds()),
                },
                console=log,
                tell=lambda _: None,
                disk=self._disk,
            )
        attempt.is_waiting = False

    def _exited(self, attempt: PartitionAttempt) -> None:
        if self._place and _how_ended(attempt) is Ended.ENDED:
            url = self._shipped_to(attempt, str(attempt.claim.token))
            attempt.copying = Copying(lambda _: ship_state(attempt.directory, url, disk=self._disk))

    def _end(self, attempt: PartitionAttempt) -> None:
        """Release the partition; again later where Redis is unavailable."""
        number, ended, place = attempt.number, _how_ended(attempt), ""
        if attempt.is_lost:
            self.attempts.remove(attempt)
            self._report(f"Partition {number} was lost to another worker.")
            return
        shipped = attempt.copying if attempt.exit_code is not None else None
        if shipped is not None and not shipped.fault:
            place = self._place
        try:
            standing = self._share.release(number, attempt.claim.token, ended, place=place)
        except RedisUnavailable:
            raise
        except AmicrawlError as error:
            self._report(f"Partition {number} cannot be released: {error}")
            standing = "lost"
        self.attempts.remove(attempt)
        self._unable = self._unable + 1 if ended is Ended.BUSY else 0
        if self._unable:
            self._takes_from = time.monotonic() + min(2.0 ** min(self._unable, 10) / 2, _LONGEST_REST)
        if shipped is not None and shipped.fault:
            self._report(f"Partition {number} stays on this machine: {shipped.fault}")
        if ended is Ended.CRASHED and attempt.child is not None:
            log = attempt.directory / LOG_NAME
            self._report(
                f"The crawl of partition {number} ended with code {attempt.exit_code}, see {log}."
            )
        self._report(f"Partition {number} {_PHRASES.get(standing, f'is {standing}')}.")

    def _could_not(self, error: Exception) -> None:
        if isinstance(error, UsageError):
            raise error
        super()._could_not(error)


def child_command(
    record: ShareRecord, number: int, directory: Path, further: Sequence[str]
) -> list[str]:
    """Return the command line of the crawl of partition *number* of *record* into *directory*."""
    spider = "seeds" if record.is_list else "site"
    line = [sys.executable, "-P", "-m", "amicrawl.crawl.start", spider]
    arguments = [f"share={record.name}", f"out={directory}"]
    arguments += [f"shard={number}", f"shards={record.partitions}"]
    return [*line, *(part for argument in arguments for part in ("-a", argument)), *further]


def written_once(path: Path, content: bytes, *, disk: Disk) -> Path:
    """See to it that *path* holds *content*; raises OutputError. Several workers may do so at once."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == content:
            return path
    # Under a name of its own until it is whole: of two that write one file, each would rename it.
    own = path.with_name(f".{path.name}-{uuid.uuid4()}")
    replace_file(own, content, disk=disk)
    rename_durably(own, path, disk=disk)
    return path


def _how_ended(attempt: PartitionAttempt) -> Ended:
    code = attempt.exit_code
    if code is None:
        return Ended.CRASHED if attempt.fault and not attempt.is_put_off else Ended.BUSY
    if code in _UNABLE:
        return Ended.BUSY
    if code == ExitCode.LIMIT:
        return Ended.LIMIT
    return Ended.ENDED if code in _AGREED else Ended.CRASHED


def shipped_to(place: str, name: str, number: int, token: str) -> str:
    """Return the URL to which partition *number* of the crawl *name* is shipped under *token*."""
    return path_of(place, f"{name}-{directory_of(number)}-{token}")


def fetch_state(directory: Path, url: str, *, disk: Disk) -> None:
    """Replace the state of the partition in *directory* by what was shipped to *url*.

    Raises AmicrawlError where what is there is not whole, and as the disk does; then the old state
    stays.
    """
    incoming = directory / "frontier.incoming"
    with explained(incoming, "made"):
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir(parents=True)
    restore_checkpoint(incoming, url, disk=disk)
    with explained(directory, "exchanged for what was shipped"):
        old = directory / f"frontier.before-{uuid.uuid4().hex[:8]}"
        if (directory / "frontier").exists():
            disk.rename(directory / "frontier", old)
        for name in Outbox.FILES:
            if (incoming / name).exists():
                disk.rename(incoming / name, directory / name)
        # Last of all: without a frontier, what is here is not taken for the partition.
        disk.rename(incoming / "frontier", directory / "frontier")
        disk.sync_directory(directory)
        for left in (incoming, *directory.glob("frontier.before-*")):
            shutil.rmtree(left, ignore_errors=True)
