"""A worker: takes partitions of a shared crawl, as many at a time as it has slots, until none is left.

    take --> fence, wait for the directory --> child: scrapy crawl site -a share=NAME --> release

Each partition has its directory, DATA/NAME/part-NNN, and a child process that crawls it. Until the child
keeps the lease itself, and after its end, the worker keeps it. A child that hangs loses its lease, and
is killed. On the first signal the worker takes nothing more and has its children stop in order.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from amicrawl.disk import DirectoryLock, Disk, OutputFile, explained, rename_durably
from amicrawl.errors import AmicrawlError, ExitCode, UsageError
from amicrawl.jobs.child import Child
from amicrawl.jobs.connection import RedisUnavailable
from amicrawl.jobs.held import LEASE_VARIABLE, TOKEN_VARIABLE, UNIT_VARIABLE
from amicrawl.jobs.place import opened_store, raise_fence, show_life
from amicrawl.jobs.reaper import GRACE
from amicrawl.jobs.sharing.share import LEASE, Ended, Held, Nothing, Taken
from amicrawl.jobs.sharing.share_record import directory_of, unit_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from amicrawl.jobs.sharing.share import Share
    from amicrawl.jobs.sharing.share_record import ShareRecord
    from amicrawl.jobs.sharing.shipping import Shipper

logger = logging.getLogger(__name__)

LOG_NAME = "worker.log"
_EVERY = 0.25
_DIRECTORY_PATIENCE = 20.0
_PATIENCE_AT_THE_END = 60.0
_AGREED = {ExitCode.DONE, ExitCode.STOPPED, ExitCode.SEEDS_BAD, ExitCode.UNREACHED}


@dataclass(slots=True)
class _Slot:
    """A partition that this worker holds, and the child that crawls it."""

    taken: Taken
    directory: Path
    since: float
    child: Child | None = None
    held_at: float = 0.0
    lost: bool = False
    lapsed_at: float | None = None
    """Since when its crawl has not renewed the lease in time."""


@dataclass
class Worker:
    """Crawls partitions of *share* below the directory *data*."""

    share: Share
    data: Path
    command: Callable[[int, Path], Sequence[str]]
    """Makes the command line of the crawl of a partition, by its number and its directory."""
    environment: Mapping[str, str]
    """What the child's environment has beside this process's."""
    slots: int = 1
    ttl: timedelta = LEASE
    turn: timedelta = timedelta(0)
    shipper: Shipper | None = None
    """What brings partitions to other machines, and from there; None for nothing."""
    disk: Disk = field(default_factory=Disk)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    tell: Callable[[str], None] = lambda _: None
    """Who is told, in sentences, what becomes of partitions."""
    owner: str = field(
        default_factory=lambda: f"{os.uname().nodename}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    )

    def __post_init__(self) -> None:
        self._grace = min(timedelta(seconds=GRACE), self.ttl / 2)
        self._held: list[_Slot] = []
        self._stopping = 0
        self._trouble = ""
        self._store = opened_store(self.data, disk=self.disk)
        self._failed = 0
        self._told_waiting = False
        with explained(self.data, "used"):
            (self.data / self.share.record.name).mkdir(exist_ok=True)

    def stop(self) -> None:
        """Take nothing more and have the children stop in order; the second time, at once."""
        self._stopping += 1
        for slot in self._held:
            if slot.child is not None:
                slot.child.interrupt()

    def run(self) -> ExitCode:
        """Work until the crawl has ended, or is stopped; return how it ended.

        Raises UsageError where Redis does not let us in; crawls that run here are stopped first.
        """
        try:
            return self._work()
        finally:
            self._leave_nobody_behind()

    def _leave_nobody_behind(self) -> None:
        running = [slot.child for slot in self._held if slot.child is not None]
        for child in running:
            child.interrupt()
        until = self.clock() + _PATIENCE_AT_THE_END
        while self.clock() < until and any(child.poll() is None for child in running):
            self.sleep(_EVERY)
        for child in running:
            child.kill()

    def _work(self) -> ExitCode:
        shown = float("-inf")
        while True:
            if self.clock() - shown >= 1:
                shown = self.clock()
                show_life(self.data)
            for slot in list(self._held):
                self._look_after(slot)
            if self._stopping and not self._held:
                return ExitCode.STOPPED
            end = None if self._stopping else self._take_what_there_is()
            if end is not None and not self._held:
                return end
            self.sleep(_EVERY)

    def _take_what_there_is(self) -> ExitCode | None:
        """Fill the slots; return how the crawl ended, if it has."""
        while len(self._held) < self.slots:
            try:
                place = self.share.record.place if self.shipper is not None else ""
                taken = self.share.take(
                    self.owner, ttl=self.ttl, data=self._store, place=place, grace=self._grace
                )
            except AmicrawlError as error:
                self._troubled(error)
                return None
            self._untroubled()
            if isinstance(taken, Nothing):
                return self._end_of(taken)
            self._told_waiting = False
            self._begin(taken)
        return None

    def _end_of(self, nothing: Nothing) -> ExitCode | None:
        if nothing.why == "gone":
            self.tell(
                f"There is no shared crawl {self.share.record.name} in Redis any more. If nobody "
                "removed it, make it again as it was: the directories here go on from where they are."
            )
            return ExitCode.INPUT
        if nothing.why == "stopped":
            return ExitCode.STOPPED
        if nothing.why == "ended":
            failed = [
                number
                for number, known in enumerate(self.share.standings())
                if known.get("state") in {"failed", "limit"}
            ]
            for number in failed:
                self.tell(f"Partition {number} was given up: see `amicrawl share status`.")
            return ExitCode.OUR_ERROR if failed else ExitCode.DONE
        if nothing.away and not nothing.held and not self._held and not self._told_waiting:
            self._told_waiting = True
            self.tell(
                f"{nothing.away} partitions wait for the machine that has their directories: start a "
                "worker there."
            )
        return None

    def _begin(self, taken: Taken) -> None:
        directory = self.data / self.share.record.name / directory_of(taken.number)
        slot = _Slot(taken, directory, self.clock(), held_at=self.clock())
        self._held.append(slot)
        what = "taken over" if taken.lapsed else "taken"
        self.tell(f"Partition {taken.number} {what} (token {taken.token}).")

    def _look_after(self, slot: _Slot) -> None:
        """Do what is next for *slot*."""
        code = slot.child.poll() if slot.child is not None else None
        running = slot.child is not None and code is None
        self._hold(slot, running=running)
        if slot.lost:
            if slot.child is not None and running:
                # It is nobody's child any more that it could obey: it hangs, or was cut off too long.
                slot.child.kill()
            self.tell(f"Partition {slot.taken.number} was lost to another worker.")
            self._held.remove(slot)
        elif slot.child is None:
            self._start(slot)
        elif code is not None:
            self._give_back(slot, _ended_by(code))

    def _hold(self, slot: _Slot, *, running: bool) -> None:
        now = self.clock()
        if now - slot.held_at < self.ttl.total_seconds() / 4:
            return
        try:
            held = self.share.hold(slot.taken.number, slot.taken.token, ttl=self.ttl, running=running)
        except AmicrawlError as error:
            slot.lapsed_at = None
            self._troubled(error)
            return
        slot.held_at = now
        if held is Held.LOST:
            slot.lost = True
        elif held is not Held.LAPSED:
            slot.lapsed_at = None
        elif slot.lapsed_at is None:
            # Redis may have been away for both of us: the crawl has time to say that it lives.
            slot.lapsed_at = now
        elif now - slot.lapsed_at > self.ttl.total_seconds() and slot.child is not None:
            self.tell(f"The crawl of partition {slot.taken.number} hangs, and is ended.")
            slot.child.kill()

    def _start(self, slot: _Slot) -> None:
        """Start the crawl of *slot* once its directory is free, or give the partition back."""
        taken, directory = slot.taken, slot.directory
        if self._stopping:
            self._give_back(slot, Ended.BUSY)
            return
        try:
            with explained(directory, "made"):
                directory.mkdir(exist_ok=True)
            raise_fence(
                directory, unit_of(self.share.record.name, taken.number), taken.token, disk=self.disk
            )
            if not _is_free(directory):
                if self.clock() - slot.since > _DIRECTORY_PATIENCE:
                    self.tell(f"{directory} is still written to by another process; trying again later.")
                    self._give_back(slot, Ended.BUSY)
                return
            if taken.fetch and self.shipper is not None:
                with self._keeping(slot):
                    self.shipper.fetch(taken.number, directory)
                if not self.share.fetched(taken.number, taken.token, data=self._store):
                    slot.lost = True
                    return
                self.tell(f"Partition {taken.number} was fetched from {self.shipper.url}.")
            slot.child = self._child(slot)
        except AmicrawlError as error:
            self.tell(f"Partition {taken.number} cannot be begun: {error}")
            self._give_back(slot, Ended.CRASHED)

    def _child(self, slot: _Slot) -> Child:
        log = slot.directory / LOG_NAME
        with explained(log, "written to"):
            return Child(
                self.command(slot.taken.number, slot.directory),
                environment={
                    **os.environ,
                    **self.environment,
                    UNIT_VARIABLE: unit_of(self.share.record.name, slot.taken.number),
                    TOKEN_VARIABLE: str(slot.taken.token),
                    LEASE_VARIABLE: str(self.ttl.total_seconds()),
                    "AMICRAWL_JOB_TURN": str(self.turn.total_seconds()),
                },
                console=log,
                tell=lambda _: None,
                disk=self.disk,
            )

    def _give_back(self, slot: _Slot, ended: Ended) -> None:
        """Release *slot*, shipped where others are to fetch it; again later where Redis is away."""
        place = ""
        number = slot.taken.number
        try:
            if self.shipper is not None and ended is Ended.ENDED and slot.child is not None:
                place = self._shipped(slot)
            standing = self.share.release(number, slot.taken.token, ended, place=place)
        except RedisUnavailable as error:
            self._troubled(error)
            return
        except AmicrawlError as error:
            self.tell(f"Partition {number} cannot be given back in order: {error}")
            standing = "lost"
        self._untroubled()
        self._held.remove(slot)
        if ended is Ended.CRASHED and slot.child is not None:
            self.tell(
                f"The crawl of partition {number} ended with code {slot.child.poll()}, see "
                f"{slot.directory / LOG_NAME}."
            )
        self.tell(f"Partition {number} is {standing}.")

    def _shipped(self, slot: _Slot) -> str:
        """Ship the partition of *slot*; return where to, or nothing where that failed."""
        assert self.shipper is not None
        try:
            with self._keeping(slot):
                self.shipper.ship(slot.taken.number, slot.directory)
        except AmicrawlError as error:
            self.tell(f"Partition {slot.taken.number} stays on this machine: {error}")
            return ""
        return self.share.record.place

    @contextlib.contextmanager
    def _keeping(self, slot: _Slot) -> Iterator[None]:
        """Keep the lease of *slot* while the block takes its time."""
        done = threading.Event()

        def hold() -> None:
            while not done.wait(self.ttl.total_seconds() / 4):
                with contextlib.suppress(AmicrawlError):
                    self.share.hold(slot.taken.number, slot.taken.token, ttl=self.ttl, running=False)

        thread = threading.Thread(target=hold, name="amicrawl-hold", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _troubled(self, error: AmicrawlError) -> None:
        if not isinstance(error, RedisUnavailable):
            self.tell(str(error))
            if isinstance(error, UsageError):
                raise error
        elif not self._trouble:
            self.tell(f"{error} Trying again.")
        self._trouble = str(error)
        self.sleep(1.0)

    def _untroubled(self) -> None:
        if self._trouble:
            self.tell("Redis answers again.")
        self._trouble = ""


def child_command(
    record: ShareRecord, number: int, directory: Path, further: Sequence[str]
) -> list[str]:
    """Return the command line of the crawl of partition *number* of *record* into *directory*."""
    spider = "seeds" if record.is_list else "site"
    line = [sys.executable, "-m", "scrapy", "crawl", spider]
    arguments = [f"share={record.name}", f"out={directory}"]
    arguments += [f"shard={number}", f"shards={record.partitions}"]
    return [*line, *(part for argument in arguments for part in ("-a", argument)), *further]


def written_once(path: Path, content: bytes, *, disk: Disk) -> Path:
    """See to it that *path* holds *content*; raises OutputError. Several workers may do so at once."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == content:
            return path
    # Under a name of its own until it is whole: of two that write one file, each would rename it.
    file = OutputFile.replacing(path.with_name(f".{path.name}-{uuid.uuid4()}"), disk=disk)
    try:
        file.write(content)
        file.seal()
    finally:
        file.close()
    rename_durably(file.path, path, disk=disk)
    return path


def _is_free(directory: Path) -> bool:
    """Tell whether no process writes to *directory*."""
    try:
        for place in (directory, directory / "frontier"):
            if place.exists():
                DirectoryLock(place).release()
    except UsageError:
        return False
    return True


def _ended_by(code: int) -> Ended:
    if code == ExitCode.LIMIT:
        return Ended.LIMIT
    return Ended.ENDED if code in _AGREED else Ended.CRASHED
