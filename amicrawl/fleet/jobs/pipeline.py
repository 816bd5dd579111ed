"""Pipeline: takes jobs from queues, runs their crawls, and reports how they end.

    claim -> directory, fence -> crawl as a child process -> its end -> finished, or given back

Its record says once a second that it lives (`pipeline_record.py`); it gives jobs of dead pipelines back
to their queues (`ending.py`), and copies running crawls to a bucket (`checkpoint.py`). It ends only when
it is asked to, by a signal, by its record or by the file `STOP`.
"""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import redis

from amicrawl.discovery import ignore_set
from amicrawl.errors import AmicrawlError, UsageError
from amicrawl.fleet.checkpoints import (
    CONSOLE,
    STOP_FILE,
    Checkpoints,
    NothingToFetchError,
    end_of_finished,
    is_base_of,
)
from amicrawl.fleet.database import RedisUnavailable, put_dead_letter
from amicrawl.fleet.jobs.attempt import (
    JobAttempt,
    Workshop,
    crawl_environment,
    fetching,
    greeting,
    placed,
    placed_fields,
    slot_after,
    take_directory,
)
from amicrawl.fleet.jobs.child import Child
from amicrawl.fleet.jobs.ending import Ending, EndVerdict, Reaper
from amicrawl.fleet.jobs.pipeline_record import RUNNING, STOPPING, PipelineRecord, figures
from amicrawl.fleet.jobs.restoring import begin_epoch, fetched_copy, is_forgotten, restore
from amicrawl.fleet.jobs.submission import GLOBAL_SET
from amicrawl.fleet.jobs.supervisor import Mode, Supervisor
from amicrawl.fleet.leases import GRACE, Claim, Claims, HeartbeatMonitor, RefusedEntry
from amicrawl.fleet.logs import Inbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.fleet.checkpoints import JobCopy
    from amicrawl.fleet.database import JobStore
    from amicrawl.fleet.jobs.pipeline_record import PipelineIdentity

logger = logging.getLogger(__name__)

LONGEST_REST = 60.0
"""Longest time, in seconds, for which no job is taken after crashes."""
UNABLE_TO_BEGIN = 3
"""Different jobs in a row that cannot begin here, after which no job is taken for a while."""

_INBOX_ROOM = 2000


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """The options of one pipeline."""

    slots: int = 2
    """Jobs at a time."""
    queues: tuple[str, ...] = ()
    """Names of the queues it takes from, in order."""
    lease: timedelta = timedelta(seconds=30)
    min_free: int = 5 * 1024**3
    """Free bytes below which no job is taken."""
    on_signal: Mode = Mode.RELEASES
    """What the first signal causes."""
    grace: float = GRACE
    """Seconds that the lease of another owner must have been expired before its job is taken over."""
    failures_borne: int = 5
    kept_for: timedelta = timedelta(0)
    """How long a job that is given back waits for a pipeline that has its directory."""


class Pipeline(Supervisor[JobAttempt]):
    """A pipeline."""

    def __init__(
        self,
        store: JobStore,
        workshop: Workshop,
        options: PipelineOptions,
        *,
        identity: PipelineIdentity,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        claims = Claims(
            store,
            refused=self._refuse,
            failures_borne=options.failures_borne,
            kept_for=options.kept_for,
            has_bucket=bool(workshop.state_bucket),
        )
        super().__init__(
            claims,
            workshop.data,
            slots=options.slots,
            lease=options.lease,
            report=logger.warning,
            on_signal=options.on_signal,
            wait=wait,
        )
        self._store = store
        self._workshop = workshop
        self._options = options
        self._ending = Ending(store, claims, workshop)
        self._record = PipelineRecord(store, identity, store_id=workshop.store_id)
        self._reaper = Reaper(store, claims, grace=options.grace)
        self._takes_from = float("-inf")
        self._crashes = 0
        self._unable: set[str] = set()
        self._stop_mark = _touched(workshop.data / STOP_FILE)
        self._is_full = False

    def run(self) -> None:
        """Work until it was asked to stop and has."""
        super().run()
        try:
            self._record.unregister()
        except AmicrawlError as error:
            logger.warning("The pipeline's record stays where it is: %s", error)

    def turn(self) -> None:
        """Do what is due now."""
        if self.mode is Mode.RUNS:
            touched = _touched(self._workshop.data / STOP_FILE)
            if touched is not None and touched != self._stop_mark:
                self._drain(Mode.FINISHES, f"the file {STOP_FILE}")
        super().turn()

    def _every_second(self) -> None:
        drain = self._record.report(
            STOPPING if self.mode > Mode.RUNS else RUNNING,
            time.time(),
            figures(self._workshop.data),
            slots=self._options.slots,
            running=len(self.attempts),
        )
        if drain:
            self._drain(Mode.FINISHES if drain == "finish" else Mode.RELEASES, "the pipeline's record")
        self._reaper.reap(ours=[each.ident for each in self.attempts if not each.has_ended])

    def _is_lost(self, claim: Claim, ours: Claim) -> bool:
        # An older one means that Redis was put back in time: the crawl writes its job again.
        return claim.token >= ours.token and super()._is_lost(claim, ours)

    def _held(self, attempt: JobAttempt, now: float) -> None:
        self._ending.say(attempt)
        if self._workshop.state_bucket and attempt.pulse.has_begun:
            slot = attempt.checkpoint_made(self._workshop, now)
            if slot is not None:
                self._claims.settle(attempt.ident, attempt.claim.token, checkpoint=str(slot))

    def _exited(self, attempt: JobAttempt) -> None:
        attempt.exited(self._workshop)

    def _end(self, attempt: JobAttempt) -> None:
        try:
            judged = self._ending.report(attempt)
        except (AmicrawlError, OSError, redis.ConnectionError, redis.TimeoutError):
            raise
        except Exception as error:
            # Its keys are something else than ours, or whatever was not foreseen. The lease runs out; no
            # other job waits for that.
            if not isinstance(error, redis.RedisError):
                logger.exception("The end of job %s cannot be reported", attempt.ident)
            where = self._store.keys.job(attempt.ident)
            put_dead_letter(self._store, where=where, why=f"its end cannot be written: {error}")
            judged = EndVerdict.CRASHED
        if judged is not None or not attempt.is_busy:
            self._freed(attempt, judged)

    def _freed(self, attempt: JobAttempt, judged: EndVerdict | None) -> None:
        """Take *attempt* out of its slot; after a crash no job is taken for a while.

        One that cannot begin is itself put off by the script that takes it back. Where several cannot,
        one after the other, it is this machine that cannot begin any.
        """
        self.attempts.remove(attempt)
        if judged is EndVerdict.UNABLE:
            # A directory that another process has, which may stand still, says nothing of others.
            if not attempt.is_elsewhere:
                self._unable.add(attempt.ident)
        elif judged is not None:
            self._unable.clear()
        if judged is EndVerdict.CRASHED or len(self._unable) >= UNABLE_TO_BEGIN:
            self._crashes += 1
            self._takes_from = time.monotonic() + min(2.0 ** min(self._crashes, 10) / 2, LONGEST_REST)
        elif judged is not None:
            self._crashes = 0

    def _take(self) -> JobAttempt | None:
        if time.monotonic() < self._takes_from or not self._has_room():
            return None
        claim = self._claims.reserve(
            self._options.queues,
            self._record.key,
            self._options.lease,
            store_id=self._workshop.store_id,
        )
        if claim is None:
            return None
        if not is_base_of(claim.directory, claim.unit):
            # Of another job, of a place outside, or of a crawl by hand, which chooses the name itself.
            claim = replace(claim, directory="")
        now, workshop = time.monotonic(), self._workshop
        return JobAttempt(
            claim,
            HeartbeatMonitor(self._options.lease.total_seconds(), now),
            inbox=Inbox(clock=time.time, room=_INBOX_ROOM),
            checkpoints=Checkpoints(
                workshop.state_bucket,
                every=workshop.checkpoint_every,
                now=now,
                slot=slot_after(claim.checkpoint),
            ),
        )

    def _begin(self, attempt: JobAttempt) -> None:
        """Fetch the directory of the job if another machine had it, and start its crawl.

        What keeps it from that is its `fault`.
        """
        claim = attempt.claim
        if claim.record.get("abort_requested"):
            attempt.fault = "its end was requested before it began"
            return
        try:
            attempt.copy = attempt.copy or self._copied(claim)
        except RedisUnavailable as error:
            attempt.fault, attempt.was_stopped = str(error), True
            return
        if attempt.copying is None:
            attempt.copying = fetching(claim, self._workshop)
        attempt.is_waiting = attempt.copying is not None and not attempt.copying.is_over
        if attempt.is_waiting:
            return
        fetched, attempt.copying = attempt.copying, None
        if fetched is not None and fetched.fault and not isinstance(fetched.error, NothingToFetchError):
            # What is in the bucket is not given up because the bucket fails now: the job is put off.
            attempt.fault = fetched.fault
            return
        try:
            self._start_in_place(attempt, is_fetched=fetched is not None and not fetched.fault)
        except RedisUnavailable as error:
            attempt.fault, attempt.was_stopped = str(error), True
        except Exception as error:
            # Including what was not foreseen: a poisoned file of one job must not end the other crawls.
            if not isinstance(error, (AmicrawlError, OSError)):
                logger.exception("Job %s cannot begin", attempt.ident)
            attempt.fault = str(error) if isinstance(error, (AmicrawlError, OSError)) else repr(error)
        if attempt.child is None and attempt.exit_code is not None:
            logger.info("Job %s had finished before its machine died", claim.unit)
        elif attempt.child is None:
            logger.warning("Job %s cannot begin: %s", claim.unit, attempt.fault or "it is lost")
        else:
            logger.info("Job %s begins in %s", claim.unit, attempt.claim.directory)

    def _start_in_place(self, attempt: JobAttempt, *, is_fetched: bool) -> None:
        workshop = self._workshop
        attempt.claim = claim = placed(
            attempt.claim, workshop, is_fetched=is_fetched, now=datetime.now(UTC)
        )
        directory = workshop.data / claim.directory
        if not self._settled(claim) and not self._written_back(attempt):
            attempt.is_lost = True
            return
        try:
            take_directory(directory, claim, disk=workshop.disk)
        except UsageError:
            attempt.is_elsewhere = True
            raise
        assert attempt.copy is not None
        attempt.copy.claim |= {name: text for name, text in placed_fields(claim).items() if text}
        attempt.copy.write(directory, disk=workshop.disk)
        attempt.inbox.tell(greeting(claim))
        if workshop.bucket and claim.resumed and (ended := end_of_finished(directory)) is not None:
            attempt.inbox.tell("The last attempt had finished, and all its files are in the bucket")
            attempt.exit_code = int(ended)
            return
        attempt.pulse.begin_anew(time.monotonic())
        attempt.child = Child(
            workshop.command(claim.unit, directory),
            environment={
                **workshop.environment,
                **crawl_environment(claim, workshop.lease_seconds),
            },
            console=directory / CONSOLE,
            tell=attempt.inbox.tell,
            disk=workshop.disk,
        )

    def _copied(self, claim: Claim) -> JobCopy:
        """Return what Redis holds of the job of *claim*, or what it held a moment ago."""
        begin_epoch(self._store)
        copy = fetched_copy(self._store, claim.unit, token=claim.token)
        if not copy.record:
            # Emptied since the job was taken: of its ignores, the set that every job has is known.
            copy.record, copy.epoch = dict(claim.record), ""
            copy.ignores = [entry.expression for entry in ignore_set(GLOBAL_SET)]
            copy.claim = {"owner": claim.owner, "queue": claim.queue, "attempt": str(claim.attempt)}
        return copy

    def _written_back(self, attempt: JobAttempt) -> bool:
        """Write the job of *attempt* into a Redis that was emptied since; return whether it was."""
        copy = attempt.copy
        if copy is None or not is_forgotten(self._store, copy):
            return False
        lease_ms = int(self._workshop.lease_seconds * 1000)
        if not restore(self._store, copy, lease_ms=lease_ms, epoch=uuid.uuid4().hex):
            return False
        logger.warning("Redis had lost job %s, which was just taken; it is written again", attempt.ident)
        return self._settled(attempt.claim)

    def _settled(self, claim: Claim) -> bool:
        return self._claims.settle(
            claim.unit, claim.token, started_at=claim.first_started_at, **placed_fields(claim)
        )

    def _has_room(self) -> bool:
        free = int(figures(self._workshop.data)["disk_available"])
        is_full = free < self._options.min_free
        if is_full and not self._is_full:
            logger.warning(
                "No more jobs are taken: %s has %d bytes free, and --min-free is %d",
                self._workshop.data,
                free,
                self._options.min_free,
            )
        self._is_full = is_full
        return not is_full

    def _could_not(self, error: Exception) -> None:
        super()._could_not(error)
        self._reaper.forget()
        # One that was put back in time has jobs in its queues that run: their crawls write that first.
        self._takes_from = max(self._takes_from, time.monotonic() + self._options.grace)

    def _refuse(self, refusal: RefusedEntry) -> None:
        where = self._store.keys.queue(refusal.queue)
        put_dead_letter(self._store, where=where, why=refusal.reason, value=refusal.entry)


def _touched(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
