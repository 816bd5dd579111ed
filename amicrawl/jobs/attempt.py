"""Attempt: one claimed job on this machine, from its directory to its end.

What ends an attempt is told to Redis only when the crawl's process is gone, so that nobody else is given
the job while a process of ours may write; the fence in the directory and the directory's lock hold where
even that is not known.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from amicrawl.disk import DirectoryLock
from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.jobs.checkpoint import SLOTS, checkpoint_path
from amicrawl.jobs.connection import RedisUnavailable
from amicrawl.jobs.copying import Copying
from amicrawl.jobs.held import LEASE_VARIABLE, TOKEN_VARIABLE, UNIT_VARIABLE
from amicrawl.jobs.place import CONSOLE, is_base, new_base, raise_fence
from amicrawl.jobs.shelf import fetch, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.jobs.child import Child
    from amicrawl.jobs.inbox import Inbox
    from amicrawl.jobs.lease import Claim
    from amicrawl.jobs.pulse import Pulse

logger = logging.getLogger(__name__)

RESUMED = "resumed"
RESTARTED = "restarted"


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


@dataclass(slots=True)
class Attempt:
    """A job in a slot."""

    claim: Claim
    inbox: Inbox
    pulse: Pulse
    child: Child | None = None
    """None where no crawl was begun, for want of reason or room."""
    exit_code: int | None = None
    was_stopped: bool = False
    """Whether we asked the crawl to stop."""
    copied_at: float = 0.0
    """When the last checkpoint was begun, or the crawl."""
    is_lost: bool = False
    """Whether the job is somebody else's by now: nothing is told of its end."""
    has_last_words: bool = False
    """Whether its end is among the lines that are told."""
    fault: str = ""
    """Why it was ended, or could not begin."""
    checkpoint: Copying | None = None
    """The last checkpoint, under way or done."""
    shipping: Copying | None = None
    """The copy of what another machine needs, on its way, once the crawl was stopped."""

    @property
    def ident(self) -> str:
        """The job."""
        return self.claim.unit

    @property
    def last_line(self) -> str:
        """What its crawl printed last."""
        return self.child.last_lines[-1] if self.child is not None and self.child.last_lines else ""

    @property
    def is_running(self) -> bool:
        """Whether there is a process that crawls."""
        return self.child is not None and self.exit_code is None

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it is left to wait for."""
        return not self.is_running and (self.shipping is None or self.shipping.is_over)

    def poll(self, workshop: Workshop) -> None:
        """Look whether the crawl has ended, and if it is to go on elsewhere have it shipped there."""
        if self.child is not None and self.exit_code is None:
            self.exit_code = self.child.poll()
            if self.exit_code is not None and self.checkpoint is not None:
                self.checkpoint.stop()
            if self.exit_code == ExitCode.STOPPED and self.was_stopped and workshop.bucket:
                self.shipping = self._copying(workshop)

    def checkpoint_made(self, workshop: Workshop, now: float) -> int | None:
        """Begin a checkpoint of the running crawl when it is time; return the slot of one just made."""
        last = self.checkpoint
        if last is not None and not last.is_over:
            return None
        made = last.slot if last is not None and not last.is_told and not last.fault else None
        if last is not None:
            last.is_told = True
            # A large crawl is copied less often: that must not be most of what its machine does.
            pause = max(workshop.checkpoint_every, 20 * last.seconds)
        else:
            pause = workshop.checkpoint_every
        if self.is_running and now - self.copied_at >= pause:
            self.copied_at = now
            slot = _slot_after(self.claim.checkpoint)
            if last is not None and last.slot is not None:
                slot = last.slot if last.fault else (last.slot + 1) % SLOTS
            self.checkpoint = self._copying(workshop, slot=slot)
        return made

    def _copying(self, workshop: Workshop, *, slot: int | None = None) -> Copying:
        directory = workshop.data / self.claim.directory
        return Copying(directory, workshop.bucket, disk=workshop.disk, slot=slot)

    def stop(self) -> None:
        """Have the crawl drain."""
        if self.child is not None:
            self.was_stopped = True
            self.child.interrupt()

    def kill(self, why: str) -> None:
        """Kill the crawl, because of *why*."""
        if self.child is not None and self.is_running:
            logger.warning("Job %s: %s; its crawl is killed", self.ident, why)
            self.fault = self.fault or why
            self.child.kill()
            self.exit_code = self.child.poll()


def _slot_after(slot: str) -> int:
    """Return the slot that is not the one in use."""
    return (int(slot) + 1) % SLOTS if slot in map(str, range(SLOTS)) else 0


def placed(claim: Claim, workshop: Workshop, *, now: datetime) -> Claim:
    """Return *claim* with the directory it is crawled into, and whether that resumes an earlier attempt.

    A directory that this data directory holds already is gone on with; one that was shipped to the
    bucket is fetched from there. Raises OutputError.
    """
    claim = replace(claim, run_id=f"{claim.unit}-{claim.token}")
    old = claim.directory
    if claim.store == workshop.store_id and is_base(old) and (workshop.data / old).is_dir():
        first = claim.first_started_at or claim.record.get("started_at", "")
        return replace(claim, resumed=RESUMED, first_started_at=first)
    if workshop.bucket and is_base(old) and _fetched(claim, workshop):
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


def _fetched(claim: Claim, workshop: Workshop) -> bool:
    """Fetch what the bucket has of a job; False where that fails: then it begins again."""
    base = claim.directory
    slots = [slot for slot in range(SLOTS) if claim.checkpoint]
    slots.sort(key=lambda slot: str(slot) != claim.checkpoint)
    if not claim.shipped and not slots:
        return False
    checkpoints = [path_of(workshop.bucket, checkpoint_path(base, slot)) for slot in slots]
    url = path_of(workshop.bucket, base)
    try:
        source = fetch(workshop.data / base, url, checkpoints=checkpoints, disk=workshop.disk)
        logger.info("%s goes on with what lies in %s", base, source)
    except Exception as error:  # noqa: BLE001  # whatever a stranger has put into the bucket
        logger.warning("The job of %s begins again: %s", base, error)
        return False
    return True


def begun(
    attempt: Attempt, workshop: Workshop, start: Callable[..., Child], *, ready: Callable[[Claim], bool]
) -> None:
    """Give the job of *attempt* a directory and start its crawl; what keeps it from that is its `fault`.

    *ready* writes the claim down in Redis, and tells whether it is still ours.
    """
    try:
        attempt.claim = claim = placed(attempt.claim, workshop, now=datetime.now(UTC))
        directory = workshop.data / claim.directory
        if not ready(claim):
            attempt.is_lost = True
            return
        if not raise_fence(directory, claim.unit, claim.token, disk=workshop.disk):
            attempt.fault = f"{directory} is fenced off by a later claim"
            return
        # An owner that was frozen, or has not noticed yet, has the directory until it sees the fence.
        with DirectoryLock(directory):
            pass
        attempt.inbox.tell(_greeting(claim))
        attempt.child = start(
            workshop.command(claim.unit, directory),
            environment={
                **workshop.environment,
                UNIT_VARIABLE: claim.unit,
                TOKEN_VARIABLE: str(claim.token),
                LEASE_VARIABLE: str(workshop.lease_seconds),
            },
            console=directory / CONSOLE,
            tell=attempt.inbox.tell,
            disk=workshop.disk,
        )
    except RedisUnavailable as error:
        attempt.fault, attempt.was_stopped = str(error), True
    except Exception as error:
        # Also what no one thought of: a poisoned file of one job must not end the crawls of the others.
        if not isinstance(error, (AmicrawlError, OSError)):
            logger.exception("Job %s cannot begin", attempt.ident)
        attempt.fault = str(error) if isinstance(error, (AmicrawlError, OSError)) else repr(error)


def _greeting(claim: Claim) -> str:
    """Return the first line of the log; ArchiveBot's page knows a running job by its first words."""
    how = {RESUMED: ", resumed where the last attempt ended", RESTARTED: ", begun again from its start"}
    which = f"attempt {claim.attempt}{how.get(claim.resumed, '')}"
    return f"Received item {claim.unit} ({which}), into {claim.directory}"
