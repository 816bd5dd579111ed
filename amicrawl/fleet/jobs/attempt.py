"""Attempt: one claimed unit on this machine, from its directory to its end.

The end of an attempt is reported to Redis only when the crawl's process is gone, so that no other
process is given the unit while one of ours may write; the fence in the directory and the directory's
lock hold even where that is not known.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from amicrawl.directory_lock import DirectoryLock
from amicrawl.errors import ExitCode, OutputError
from amicrawl.fleet.checkpoints import (
    SLOTS,
    Checkpoints,
    Copying,
    NothingToFetchError,
    checkpoint_url,
    fetch,
    fetch_finished,
    is_begun,
    new_base,
    path_of,
    ship,
)
from amicrawl.fleet.leases import (
    LEASE_VARIABLE,
    TOKEN_VARIABLE,
    UNIT_VARIABLE,
    Fence,
    LeasedDisk,
    raise_fence,
)
from amicrawl.uploads import keeps_state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.fleet.checkpoints import JobCopy
    from amicrawl.fleet.jobs.accounting import Account
    from amicrawl.fleet.jobs.child import Child
    from amicrawl.fleet.leases import Claim, HeartbeatMonitor
    from amicrawl.fleet.logs import Inbox
    from amicrawl.uploads import UploadProgress

logger = logging.getLogger(__name__)

RESUMED = "resumed"
RESTARTED = "restarted"


@dataclass(slots=True)
class Attempt:
    """A unit in a slot."""

    claim: Claim
    pulse: HeartbeatMonitor
    child: Child | None = None
    """None until its crawl was started."""
    is_waiting: bool = False
    """Whether it cannot start yet: its files are fetched, or another process has the directory."""
    exit_code: int | None = None
    was_stopped: bool = False
    """Whether its supervisor asked the crawl to stop."""
    is_lost: bool = False
    """Whether the unit is another owner's now: its end is not reported."""
    fault: str = ""
    """Why it was ended, or could not begin."""
    copying: Copying | None = None
    """What is fetched before the crawl starts, or copied to the bucket after its end."""

    @property
    def last_line(self) -> str:
        """What its crawl printed last."""
        return self.child.last_lines[-1] if self.child is not None and self.child.last_lines else ""

    @property
    def is_running(self) -> bool:
        """Whether there is a process that crawls."""
        return self.child is not None and self.exit_code is None

    @property
    def is_busy(self) -> bool:
        """Whether its lease is the supervisor's to renew, since no crawl can."""
        return self.is_waiting or (self.copying is not None and not self.copying.is_over)

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it is left to wait for."""
        return not self.is_running and not self.is_busy

    def poll(self) -> bool:
        """Return whether the crawl has exited since the last look."""
        if self.child is None or self.exit_code is not None:
            return False
        self.exit_code = self.child.poll()
        return self.exit_code is not None

    def stop(self) -> None:
        """Have the crawl drain, or never start."""
        if self.child is not None:
            self.was_stopped = True
            self.child.interrupt()
        elif self.is_waiting:
            self.was_stopped, self.is_waiting = True, False
            if self.copying is not None:
                self.copying.stop()

    def kill(self, why: str) -> None:
        """Kill the crawl, because of *why*."""
        if self.child is not None and self.is_running:
            logger.warning("%s: %s; its crawl is killed", self.claim.unit, why)
            self.fault = self.fault or why
            self.child.kill()
            self.exit_code = self.child.poll()

    def give_up_copying(self) -> None:
        """Wait no longer for what is copied, which a bucket may hold up; nothing of it is counted on."""
        if self.copying is not None and not self.copying.is_over:
            self.fault = self.fault or "its files were not copied to the end"
            self.pulse.lose(self.fault)
            self.copying.stop()
            self.copying = None


def take_directory(directory: Path, claim: Claim, *, disk: Disk) -> None:
    """Fence *directory* for *claim*; raises UsageError while another process has it.

    Raises OutputError where a later claim has fenced it, and as the disk does.
    """
    if not raise_fence(directory, claim.unit, claim.token, disk=disk):
        raise OutputError(f"{directory} is fenced off by a later claim")
    # An owner that was frozen, or has not noticed yet, has the directory until it sees the fence.
    for place in (directory, directory / "frontier"):
        if place.exists():
            DirectoryLock(place).release()


def crawl_environment(claim: Claim, lease_seconds: float) -> dict[str, str]:
    """Return the variables by which a crawl knows what it holds."""
    return {
        UNIT_VARIABLE: claim.unit,
        TOKEN_VARIABLE: str(claim.token),
        LEASE_VARIABLE: str(lease_seconds),
    }


@dataclass(frozen=True, slots=True)
class Workshop:
    """What all attempts of a pipeline have in common."""

    data: Path
    """The data directory, absolute."""
    store_id: str
    """Its UUID."""
    command: Callable[[str, Path], Sequence[str]]
    """Makes the command line of a crawl of an ident into a directory."""
    environment: Mapping[str, str]
    """Of every crawl; what differs between them is added."""
    lease_seconds: float
    disk: Disk
    bucket: str = ""
    """URL below which each job has a path; empty for none."""
    checkpoint_every: float = 300.0
    """Seconds between two copies of a running crawl to the bucket, at least."""

    @property
    def state_bucket(self) -> str:
        """The URL of the bucket if it can hold what a job is resumed from; empty otherwise."""
        return self.bucket if keeps_state(self.bucket) else ""


@dataclass(slots=True, kw_only=True)
class JobAttempt(Attempt):
    """A job in a slot of a pipeline."""

    inbox: Inbox
    checkpoints: Checkpoints
    copy: JobCopy | None = None
    """What Redis held of the job when it was taken, for a Redis that is emptied meanwhile."""
    account: Account | None = None
    """What the index says of the job, once `counting` has ended."""
    needs_account: bool = False
    """Whether the record was written anew since its crawl has reported."""
    counting: Copying | None = None
    """What reads the index, after the end of the crawl."""
    is_elsewhere: bool = False
    """Whether another process has its directory, so that its crawl could not begin."""
    shipped: UploadProgress | None = None
    """How far the copying to the bucket is, of a job that is to be resumed elsewhere."""
    last_step: str = ""
    """The `step` that the record has."""
    has_last_words: bool = False
    """Whether its end is among the lines of its log."""

    @property
    def ident(self) -> str:
        """The job."""
        return self.claim.unit

    @property
    def is_busy(self) -> bool:
        """Whether its lease is the pipeline's to renew, since no crawl can."""
        if self.counting is not None and not self.counting.is_over:
            return True
        return super(JobAttempt, self).is_busy  # its slots have made it another class

    def count(self, directory: Path) -> None:
        """Begin to read the index in *directory*, for `account`."""

        def read(_: Callable[[], bool]) -> None:
            # Loaded where it is needed: Arrow takes 50 MB, of which a pipeline that waits has no use.
            from amicrawl.fleet.jobs.accounting import account_of  # noqa: PLC0415

            self.account = account_of(directory)

        self.counting = Copying(read, what=f"The index of {directory.name} cannot be counted")

    def exited(self, workshop: Workshop) -> None:
        """Have the job copied to the bucket if it is to be resumed elsewhere; its crawl has exited."""
        self.checkpoints.stop()
        if self.exit_code == ExitCode.STOPPED and self.was_stopped and workshop.state_bucket:
            directory = workshop.data / self.claim.directory
            url = path_of(workshop.state_bucket, directory.name)
            self.copying = Copying(
                lambda stopped: ship(
                    directory,
                    url,
                    disk=self._disk(directory, workshop.disk),
                    stopped=stopped,
                    begun=self._shipping,
                ),
                what=f"{directory.name} cannot be resumed on another machine",
            )

    @property
    def step(self) -> str:
        """How far the end of the job is here, after that of its crawl; empty before."""
        if self.exit_code is None or not self.is_busy:
            return ""
        return "counting" if self.counting is not None else str(self.shipped or "")

    def _shipping(self, progress: UploadProgress) -> None:
        self.shipped = progress

    def checkpoint_made(self, workshop: Workshop, now: float) -> int | None:
        """Begin a checkpoint of the running crawl when it is time; return the slot of one just made."""
        made = self.checkpoints.made()
        directory = workshop.data / self.claim.directory
        # Before the crawl has opened its directory there is nothing to copy.
        if self.is_running and self.checkpoints.is_due(now) and is_begun(directory):
            self.checkpoints.begin(directory, now, disk=self._disk(directory, workshop.disk))
        return made

    def _disk(self, directory: Path, disk: Disk) -> Disk:
        """Return what *directory* is copied with: nothing arrives once the job is another owner's."""
        fence = Fence(directory, self.claim.unit, self.claim.token)
        return LeasedDisk(self.pulse, fence, patient=True, disk=disk)


def slot_after(slot: str) -> int:
    """Return the slot that is not the one in use."""
    return (int(slot) + 1) % SLOTS if slot in map(str, range(SLOTS)) else 0


def fetching(claim: Claim, workshop: Workshop) -> Copying | None:
    """Begin to fetch what the bucket has of a job that was crawled elsewhere; None for nothing."""
    base = claim.directory
    if not workshop.bucket or not base or _is_here(claim, workshop):
        return None
    slots = sorted(range(SLOTS), key=lambda slot: str(slot) != claim.checkpoint)

    def work(_: Callable[[], bool]) -> None:
        directory, url = workshop.data / base, path_of(workshop.bucket, base)
        if fetch_finished(directory, url, disk=workshop.disk):
            return
        if not workshop.state_bucket or (not claim.checkpoint and not claim.shipped):
            raise NothingToFetchError("its last owner has made no checkpoint.")
        checkpoints = [checkpoint_url(workshop.bucket, base, slot) for slot in slots]
        fetch(directory, url, checkpoints=checkpoints if claim.checkpoint else [], disk=workshop.disk)

    return Copying(work, what=f"{base} cannot be fetched")


def placed(claim: Claim, workshop: Workshop, *, is_fetched: bool, now: datetime) -> Claim:
    """Return *claim* with the directory it is crawled into, and whether that resumes an earlier attempt.

    A directory that this data directory holds already, or that was fetched, is resumed. Raises
    OutputError.
    """
    claim = replace(claim, run_id=f"{claim.unit}-{claim.token}")
    if is_fetched or _is_here(claim, workshop):
        first = claim.first_started_at or claim.record.get("started_at", "")
        return replace(claim, store=workshop.store_id, resumed=RESUMED, first_started_at=first)
    base = new_base(claim.record.get("slug", ""), now, claim.unit, data=workshop.data)
    return replace(
        claim,
        directory=base,
        store=workshop.store_id,
        resumed=RESTARTED if claim.attempt > 1 else "",
        shipped="",
        checkpoint="",
        first_started_at=claim.record.get("started_at", ""),
    )


def placed_fields(claim: Claim) -> dict[str, str]:
    """Return the fields of *claim* in Redis that `placed` has set; empty ones are to be removed."""
    return {
        "directory": claim.directory,
        "store": claim.store,
        "resumed": claim.resumed,
        "shipped": claim.shipped,
        "checkpoint": claim.checkpoint,
        "first_started_at": claim.first_started_at,
        "run_id": claim.run_id,
    }


def _is_here(claim: Claim, workshop: Workshop) -> bool:
    base = claim.directory
    return claim.store == workshop.store_id and bool(base) and (workshop.data / base).is_dir()


def greeting(claim: Claim) -> str:
    """Return the first line of the log; ArchiveBot's page knows a running job by its first words."""
    how = {RESUMED: ", resumed where the last attempt ended", RESTARTED: ", begun again from its start"}
    which = f"attempt {claim.attempt}{how.get(claim.resumed, '')}"
    return f"Received item {claim.unit} ({which}), into {claim.directory}"
