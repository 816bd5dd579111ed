"""Supervisor: one pipeline. Takes jobs into its slots, watches their crawls, and tells how they end.

    claim -> directory, fence -> crawl as a child -> its end -> finished, or given back

One thread does everything but read the children's output. Redis may go away at any time: the crawls go
on, nothing is decided, and what there is to tell waits, with longer and longer pauses between two tries.
The pipeline itself ends only when it is told to.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from typing import TYPE_CHECKING

import redis

from amicrawl.errors import AmicrawlError
from amicrawl.jobs import letters
from amicrawl.jobs.attempt import Attempt, Workshop, begun
from amicrawl.jobs.child import Child
from amicrawl.jobs.ending import Ending
from amicrawl.jobs.inbox import Inbox
from amicrawl.jobs.lease import Claim, Claims, Refusal
from amicrawl.jobs.pipeline_record import RUNNING, STOPPING, PipelineRecord, figures
from amicrawl.jobs.place import STOP_FILE, show_life
from amicrawl.jobs.pulse import STARTUP, Pulse
from amicrawl.jobs.reaper import GRACE, Reaper
from amicrawl.jobs.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.jobs.connection import JobStore
    from amicrawl.jobs.pipeline_record import PipelineIdentity

logger = logging.getLogger(__name__)

TICK = 0.2
"""Seconds between two looks at the children."""
SECOND = 1.0
"""Seconds between two of everything that Redis is asked."""
LONGEST_PAUSE = 5.0
"""Seconds between two tries while Redis does not answer, at most."""
HURRY = 15.0
"""Seconds that crawls have to seal their files after the second signal, before they are killed."""
LONGEST_REST = 60.0
"""Seconds for which no job is taken after crashes, at most."""
UNABLE_TO_BEGIN = 3
"""Different jobs in a row that cannot begin here, after which no job is taken for a while."""

_INBOX_ROOM = 2000


class Mode(IntEnum):
    """What a pipeline is doing; it only goes up."""

    RUNS = 0
    FINISHES = 1
    """It takes no more jobs, and runs those it has to their end."""
    RELEASES = 2
    """It takes no more jobs, has its crawls stopped, and gives their jobs back."""
    HURRIES = 3
    """Its crawls seal their files at once."""


_WHAT_NOW = {
    Mode.FINISHES: "those it has come to their end",
    Mode.RELEASES: "those it has are stopped and given back",
    Mode.HURRIES: "those it has seal their files at once and are given back",
}


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """How one pipeline works."""

    slots: int = 2
    """Jobs at a time."""
    queues: tuple[str, ...] = ()
    """Names of the queues it takes from, in order."""
    lease: timedelta = timedelta(seconds=30)
    min_free: int = 5 * 1024**3
    """Free bytes below which no job is taken."""
    startup: float = STARTUP
    """Seconds that a crawl may take until it renews its lease itself."""
    on_signal: Mode = Mode.RELEASES
    """What the first signal brings about."""
    grace: float = GRACE
    """Seconds that the leases of others have to be out."""
    failures_borne: int = 5
    kept_for: timedelta = timedelta(0)
    """How long a job that is given back waits for a pipeline that has its directory."""


@dataclass(slots=True)
class _Outage:
    """How long Redis has not answered."""

    failures: int = 0
    until: float = field(default=float("-inf"))


class Supervisor:
    """A pipeline."""

    def __init__(
        self,
        store: JobStore,
        workshop: Workshop,
        options: PipelineOptions,
        *,
        identity: PipelineIdentity,
        start: Callable[..., Child] = Child,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """*start* makes a child of what `Child` takes."""
        self._store = store
        self._workshop = workshop
        self._options = options
        self._start = start
        self._clock = clock
        self._wait = wait
        self._claims = Claims(
            store,
            refused=self._refuse,
            failures_borne=options.failures_borne,
            kept_for=options.kept_for,
        )
        self._ending = Ending(store, self._claims, workshop)
        self._record = PipelineRecord(store, identity, store_id=workshop.store_id)
        self._reaper = Reaper(store, self._claims, grace=options.grace, clock=clock)
        self._outage = _Outage()
        self._asked = float("-inf")
        self._shown = float("-inf")
        self._takes_from = float("-inf")
        self._crashes = 0
        self._unable: set[str] = set()
        self._stop_mark = _touched(workshop.data / STOP_FILE)
        self._hurry_since: float | None = None
        self._is_full = False
        self._signals: list[None] = []
        self.mode = Mode.RUNS
        self.attempts: list[Attempt] = []

    @property
    def redis_is_away(self) -> bool:
        """Whether Redis did not answer the last time."""
        return self._outage.failures > 0

    def signalled(self) -> None:
        """Take in a signal to stop: the first drains, the second hurries, the third kills.

        It is acted upon at the next turn: this may be called in the middle of anything.
        """
        self._signals.append(None)

    def _act_on_signals(self) -> None:
        while self._signals:
            self._signals.pop()
            if self.mode < self._options.on_signal:
                self._drain(self._options.on_signal, "a signal")
            elif self.mode < Mode.HURRIES:
                self._drain(Mode.HURRIES, "another signal")
            else:
                self._hurry_since = float("-inf")

    def run(self) -> None:
        """Work until it was told to stop and has."""
        try:
            while not (self.mode > Mode.RUNS and not self.attempts):
                self.turn()
                self._wait(TICK)
        finally:
            # Only a fault of ours leaves any. Their leases run out, and another pipeline resumes them.
            for attempt in self.attempts:
                attempt.kill("the pipeline ends")
        try:
            self._record.unregister()
        except AmicrawlError as error:
            logger.warning("The pipeline's record stays where it is: %s", error)

    def turn(self) -> None:
        """Do what there is to do now."""
        now = self._clock()
        if now - self._shown >= SECOND:
            self._shown = now
            show_life(self._workshop.data)
        self._act_on_signals()
        for attempt in self.attempts:
            attempt.poll(self._workshop)
        self._look_for_stop_file()
        if self.mode is Mode.HURRIES:
            self._hurry(now)
        if now < self._outage.until:
            return
        has_ended = any(attempt.has_ended for attempt in self.attempts)
        if now - self._asked < SECOND and not has_ended:
            return
        try:
            if now - self._asked >= SECOND:
                self._asked = now
                self._report()
                self._look_after(now)
                self._reaper.reap(ours=[each.ident for each in self.attempts if each.is_running])
            self._end(now)
            self._take(now)
        except (AmicrawlError, redis.RedisError, OSError) as error:
            self._could_not(error, now)
        else:
            if self._outage.failures:
                logger.warning("Redis answers again")
            self._outage = _Outage()

    def _report(self) -> None:
        told = self._record.report(
            STOPPING if self.mode > Mode.RUNS else RUNNING,
            time.time(),
            figures(self._workshop.data),
            slots=self._options.slots,
            running=len(self.attempts),
        )
        if told:
            self._drain(Mode.FINISHES if told == "finish" else Mode.RELEASES, "the pipeline's record")

    def _look_after(self, now: float) -> None:
        """See whether the crawls renew their leases, and whether their jobs are still ours."""
        running = [attempt for attempt in self.attempts if not attempt.has_ended]
        ttl = self._options.lease
        looks = self._claims.look([attempt.ident for attempt in running])
        for attempt, (claim, left) in zip(running, looks, strict=True):
            self._ending.say(attempt)
            if claim is not None and (claim.token != attempt.claim.token or claim.state != "held"):
                attempt.is_lost = True
                attempt.kill("the job is somebody else's by now")
                continue
            # Without a claim, Redis was emptied: the crawl has as long to write it again.
            attempt.pulse.looked(left.total_seconds(), now)
            if claim is not None:
                self._checkpoint(attempt, now)
                if attempt.shipping is not None or attempt.pulse.is_our_turn(now):
                    self._claims.renew(attempt.ident, attempt.claim.token, ttl, beats=1)
                    attempt.pulse.renewed(now)
            if attempt.is_running and attempt.pulse.is_hung(now):
                attempt.kill("its crawl has not renewed the lease: it hangs, or does not reach Redis")

    def _checkpoint(self, attempt: Attempt, now: float) -> None:
        if not self._workshop.bucket or not attempt.pulse.has_begun:
            return
        slot = attempt.checkpoint_made(self._workshop, now)
        if slot is not None:
            self._claims.settle(attempt.ident, attempt.claim.token, checkpoint=str(slot))

    def _end(self, now: float) -> None:
        for attempt in [attempt for attempt in self.attempts if attempt.has_ended]:
            try:
                judged = self._ending.told(attempt)
            except redis.ResponseError as error:
                # Its keys are something else than ours. The lease runs out; no other job waits for that.
                where = self._store.keys.job(attempt.ident)
                letters.put(self._store, where=where, why=f"its end cannot be told: {error}")
                judged = Verdict.CRASHED
            self._freed(attempt, now, judged)

    def _freed(self, attempt: Attempt, now: float, judged: Verdict | None) -> None:
        """Take *attempt* out of its slot; after a crash no job is taken for a while.

        One that cannot begin is itself put off by the script that takes it back. Where several cannot,
        one after the other, it is this machine that cannot begin any.
        """
        self.attempts.remove(attempt)
        if judged is Verdict.UNABLE:
            self._unable.add(attempt.ident)
        elif judged is not None:
            self._unable.clear()
        if judged is Verdict.CRASHED or len(self._unable) >= UNABLE_TO_BEGIN:
            self._crashes += 1
            self._takes_from = now + min(2.0 ** min(self._crashes, 10) / 2, LONGEST_REST)
        elif judged is not None:
            self._crashes = 0

    def _take(self, now: float) -> None:
        """Claim jobs for the slots that are free, one after the other."""
        while self.mode is Mode.RUNS and len(self.attempts) < self._options.slots:
            if now < self._takes_from or not self._has_room():
                return
            claim = self._claims.reserve(
                self._options.queues,
                self._record.key,
                self._options.lease,
                store_id=self._workshop.store_id,
            )
            if claim is None:
                return
            self.attempts.append(self._begun(claim))

    def _begun(self, claim: Claim) -> Attempt:
        attempt = Attempt(
            claim,
            Inbox(clock=time.time, room=_INBOX_ROOM),
            Pulse(self._options.lease.total_seconds(), self._clock(), startup=self._options.startup),
            copied_at=self._clock(),
        )
        if claim.record.get("abort_requested"):
            attempt.fault = "its end was asked for before it began"
            return attempt
        begun(attempt, self._workshop, self._start, ready=self._settled)
        if attempt.child is None:
            logger.warning("Job %s cannot begin: %s", claim.unit, attempt.fault or "it is lost")
        else:
            logger.info("Job %s begins in %s", claim.unit, attempt.claim.directory)
        return attempt

    def _settled(self, claim: Claim) -> bool:
        return self._claims.settle(
            claim.unit,
            claim.token,
            started_at=claim.first_started_at,
            directory=claim.directory,
            store=claim.store,
            resumed=claim.resumed,
            shipped=claim.shipped,
            checkpoint=claim.checkpoint,
            first_started_at=claim.first_started_at,
            run_id=claim.run_id,
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

    def _drain(self, mode: Mode, why: str) -> None:
        if mode <= self.mode:
            return
        logger.warning("The pipeline takes no more jobs because of %s; %s", why, _WHAT_NOW[mode])
        self.mode = mode
        if mode >= Mode.RELEASES:
            for attempt in self.attempts:
                if not attempt.has_ended:
                    attempt.stop()
        if mode is Mode.HURRIES:
            self._hurry_since = self._clock()

    def _hurry(self, now: float) -> None:
        if self._hurry_since is not None and now - self._hurry_since >= HURRY:
            for attempt in self.attempts:
                attempt.kill("the pipeline was told to stop at once")
                if attempt.shipping is not None:
                    attempt.shipping.stop()

    def _look_for_stop_file(self) -> None:
        if self.mode is Mode.RUNS:
            touched = _touched(self._workshop.data / STOP_FILE)
            if touched is not None and touched != self._stop_mark:
                self._drain(Mode.FINISHES, f"the file {STOP_FILE}")

    def _could_not(self, error: Exception, now: float) -> None:
        """Take in that Redis does not answer."""
        if not self._outage.failures:
            logger.warning("%s The crawls go on; it is tried again", error)
        failures = self._outage.failures + 1
        self._outage = _Outage(
            failures, self._clock() + min(2.0 ** min(failures - 1, 10), LONGEST_PAUSE)
        )
        self._reaper.forget()
        for attempt in self.attempts:
            attempt.pulse.could_not_look(now)

    def _refuse(self, refusal: Refusal) -> None:
        where = self._store.keys.queue(refusal.queue)
        letters.put(self._store, where=where, why=refusal.reason, value=refusal.entry)


def _touched(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
