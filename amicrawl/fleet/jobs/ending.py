"""The end of attempts: of our own, whose crawls have ended, and of those whose owners are dead.

`Ending` reports to Redis and to disk how the crawl of a job has ended. Each step may be repeated: if
Redis became unavailable in between it has been done or not, and the scripts return the same result the
second time.

`Reaper` gives the jobs of dead pipelines back to their queues, and removes their records. A job is one
of ours if it has a claim; it is abandoned if its lease has expired and stayed so for a while. The while
is counted here and restarts when Redis did not respond, so that owners that were cut off by the same
outage can regain their leases first. Jobs of ArchiveBot's own pipelines have no claim, and are never
touched. Every pipeline reaps; that several do at once does no harm.
"""

from __future__ import annotations

import logging
import signal
import time
import uuid
from enum import Enum
from typing import TYPE_CHECKING

from amicrawl.disk import explained, replace_file
from amicrawl.errors import AmicrawlError, ExitCode, InputError
from amicrawl.fleet.checkpoints import JobCopy
from amicrawl.fleet.database import hash_at, is_ident, list_at, names_of_keys, put_dead_letter
from amicrawl.fleet.jobs.pipeline_record import remove_stale
from amicrawl.fleet.jobs.record import encoded_info, info_of
from amicrawl.fleet.jobs.restoring import is_forgotten, restore
from amicrawl.fleet.leases import GRACE, Claim, Claims, Finished, GivenBack, Happened
from amicrawl.fleet.logs import say

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from amicrawl.fleet.database import JobStore
    from amicrawl.fleet.jobs.accounting import Account
    from amicrawl.fleet.jobs.attempt import JobAttempt, Workshop

logger = logging.getLogger(__name__)

REAPED_EVERY = 2.0
"""Seconds between two searches for abandoned jobs."""
CLEARED_EVERY = 600.0
"""Seconds between two searches for records of dead pipelines and claims of no job."""

_MOST_ENTRIES = 500
_MOST_TEXT = 1024**2


class EndVerdict(Enum):
    """What becomes of a job whose crawl has ended."""

    DONE = "done"
    ABORTED = "aborted"
    """It was asked to end, and has."""
    RELEASED = "released"
    """Its pipeline has stopped it; another one may resume it."""
    CRASHED = "crashed"
    UNABLE = "unable"
    """Not for want of the job's: the disk, the bucket or Redis failed."""


_DONE = {ExitCode.DONE, ExitCode.SEEDS_BAD, ExitCode.LIMIT, ExitCode.UNREACHED}
"""Every URL was taken care of; some seeds were unreadable; a limit was reached; no server responded."""
_UNABLE = {ExitCode.OUTPUT, ExitCode.UNAVAILABLE}


def verdict(exit_code: int, *, was_stopped: bool, abort_requested: bool) -> EndVerdict:
    """Judge a crawl by its *exit_code*, minus the signal for one that was killed.

    *was_stopped*: its pipeline asked it to stop. *abort_requested*: a user asked the job to end.
    """
    if exit_code in _DONE:
        return EndVerdict.DONE
    if abort_requested and (exit_code == ExitCode.STOPPED or was_stopped):
        return EndVerdict.ABORTED
    if was_stopped:
        return EndVerdict.RELEASED
    return EndVerdict.UNABLE if exit_code in _UNABLE else EndVerdict.CRASHED


def sentence(exit_code: int) -> str:
    """Say how a process ended."""
    if exit_code >= 0:
        return f"the crawl ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return f"the crawl was ended by {name}"


_HAPPENED = {
    EndVerdict.RELEASED: Happened.DRAINED,
    EndVerdict.CRASHED: Happened.CRASHED,
    EndVerdict.UNABLE: Happened.UNABLE,
}


class Ending:
    """Ends attempts. Methods raise RedisUnavailable, and leave what they were about to be done again."""

    def __init__(self, store: JobStore, claims: Claims, workshop: Workshop) -> None:
        self._store = store
        self._claims = claims
        self._workshop = workshop

    def say(self, attempt: JobAttempt) -> None:
        """Put the lines that wait into the log of the job, and into its record how far its end is."""
        entries, step = attempt.inbox.peek(_MOST_ENTRIES, size=_MOST_TEXT), attempt.step
        figures = {"amicrawl_step": step} if step and step != attempt.last_step else {}
        if not entries and not figures:
            return
        say(self._store, attempt.ident, attempt.claim.token, entries, figures=figures)
        attempt.last_step = step
        attempt.inbox.taken()

    def report(self, attempt: JobAttempt) -> EndVerdict | None:
        """Report how *attempt* ended; return how that is judged.

        None where the job is another's, or while its index is counted first: `is_busy` says which.
        """
        [(claim, _)] = self._claims.look([attempt.ident])
        if claim is not None and claim.token > attempt.claim.token:
            attempt.is_lost = True
        if attempt.is_lost:
            logger.warning("Job %s is another pipeline's now; its end is not reported", attempt.ident)
            return None
        record = hash_at(self._store, self._store.keys.job(attempt.ident))
        is_known = record.get("url") and claim is not None and claim.token == attempt.claim.token
        if not is_known and self._restored(attempt):
            record = hash_at(self._store, self._store.keys.job(attempt.ident))
            attempt.needs_account = True
        judged = _judged(attempt, asked=bool(record.get("abort_requested") or record.get("aborted")))
        if judged in {EndVerdict.DONE, EndVerdict.ABORTED}:
            if self._is_counting(attempt):
                return None
            self._finish(attempt, judged)
        else:
            reply = self._give_back(attempt, judged)
            # One that was marked as failed says nothing of this machine.
            judged = EndVerdict.RELEASED if reply is GivenBack.FAILED else judged
        return judged

    def _is_counting(self, attempt: JobAttempt) -> bool:
        """Have the index counted where the crawl has not reported all of it; return whether that runs.

        It has not where Redis did not respond at its end, or has forgotten the job since, and where an
        earlier attempt was cut off.
        """
        if attempt.counting is None and attempt.claim.directory:
            directory = self._workshop.data / attempt.claim.directory
            copy = self._copy(attempt)
            if attempt.needs_account or attempt.claim.attempt > 1 or copy is None or not copy.reported:
                attempt.count(directory)
        return attempt.is_busy

    def _finish(self, attempt: JobAttempt, judged: EndVerdict) -> None:
        ident, claim = attempt.ident, attempt.claim
        if attempt.account is not None:
            # What was printed until now comes before what the crawl could not report at its end.
            self._say_all(attempt)
            self._settle(attempt, attempt.account)
        if judged is EndVerdict.ABORTED:
            self._claims.mark_aborted(ident)
        record = hash_at(self._store, self._store.keys.job(ident))
        info = info_of(record, claim, exit_code=attempt.exit_code)
        word = "was aborted" if record.get("aborted") else "has completed"
        if self._is_elsewhere(attempt) and not attempt.has_last_words:
            # Its record, which says where, is kept for seconds.
            words = _left_elsewhere(claim, attempt.fault)
            attempt.inbox.tell(words)
            logger.warning("Job %s: %s", ident, words)
        # ArchiveBot's page takes a job for finished at the first words of this.
        self._last_words(attempt, f"Finished RsyncUpload for Item {ident}: the job {word}")
        if claim.directory:
            path = self._workshop.data / f"{claim.directory}.json"
            try:
                with explained(path, "written"):
                    replace_file(path, encoded_info(info).encode() + b"\n", disk=self._workshop.disk)
            except AmicrawlError as error:
                # The captures are safe, and that must be reported.
                logger.error("%s", error)  # noqa: TRY400  # a sentence for the operator
        reply = self._claims.finish(ident, claim.token, info=encoded_info(info))
        if reply is Finished.GONE:
            self._claims.give_back(ident, claim.token, Happened.DRAINED)
        logger.info("Job %s: %s", ident, reply)

    def _is_elsewhere(self, attempt: JobAttempt) -> bool:
        """Tell whether *attempt* began no crawl, and what others have archived is not here."""
        directory = attempt.claim.directory
        return bool(
            attempt.exit_code is None and directory and not (self._workshop.data / directory).is_dir()
        )

    def _settle(self, attempt: JobAttempt, account: Account) -> None:
        from amicrawl.fleet.jobs.accounting import settle  # noqa: PLC0415  # as in `JobAttempt.count`

        copy = self._copy(attempt)
        unsent = copy.unsent if copy is not None else []
        settle(self._store, attempt.ident, attempt.claim.token, account, unsent)

    def _last_words(self, attempt: JobAttempt, words: str) -> None:
        """Put *words*, and what waits before them, into the log of the job."""
        if not attempt.has_last_words:
            attempt.has_last_words = True
            attempt.inbox.tell(words)
        self._say_all(attempt)

    def _say_all(self, attempt: JobAttempt) -> None:
        while len(attempt.inbox):
            self.say(attempt)

    def _give_back(self, attempt: JobAttempt, judged: EndVerdict) -> GivenBack:
        ident, claim = attempt.ident, attempt.claim
        why = attempt.fault or sentence(attempt.exit_code or 0)
        last, released = attempt.last_line, judged is EndVerdict.RELEASED
        verb = "failed" if judged is EndVerdict.CRASHED else "could not continue here"
        failed = f"Attempt {claim.attempt} {verb}: {why}"
        self._last_words(
            attempt, "The pipeline stops; another one may resume the job" if released else failed
        )
        if attempt.exit_code is not None and attempt.copying is not None and not attempt.copying.fault:
            self._claims.settle(ident, claim.token, shipped="1", checkpoint="")
        kept = f"{why}: {last}" if last else why
        reply = self._claims.give_back(ident, claim.token, _HAPPENED[judged], why=kept)
        if reply is GivenBack.DEAD:
            _report_failed(self._store, ident, f"the last time because {why}", last)
        logger.warning("Job %s: %s; %s", ident, "given back" if released else why, reply)
        return reply

    def _copy(self, attempt: JobAttempt) -> JobCopy | None:
        """Return what is in the `job.json` of *attempt*, if this attempt has written it."""
        if not attempt.claim.directory:
            return None
        try:
            copy = JobCopy.read(self._workshop.data / attempt.claim.directory)
        except InputError as error:
            logger.warning("%s", error)
            return None
        is_its = copy is not None and (copy.unit, copy.token) == (attempt.ident, attempt.claim.token)
        return copy if is_its else None

    def _restored(self, attempt: JobAttempt) -> bool:
        """Write the job again into a Redis that was emptied, from what its crawl remembers."""
        copy = self._copy(attempt) or attempt.copy
        # A Redis that remembers has removed the record: another pipeline has ended the job.
        if copy is None or not is_forgotten(self._store, copy):
            return False
        lease_ms = int(self._workshop.lease_seconds * 1000)
        return restore(self._store, copy, lease_ms=lease_ms, epoch=uuid.uuid4().hex)


def _judged(attempt: JobAttempt, *, asked: bool) -> EndVerdict:
    """Say what follows from how *attempt* ended; *asked* whether the job was asked to end."""
    if attempt.exit_code is not None:
        return verdict(attempt.exit_code, was_stopped=attempt.was_stopped, abort_requested=asked)
    # No crawl was begun, for want of a directory for example.
    if asked:
        return EndVerdict.ABORTED
    return EndVerdict.RELEASED if attempt.was_stopped else EndVerdict.UNABLE


def _left_elsewhere(claim: Claim, fault: str) -> str:
    """Say where the archive of a job is that has ended without a crawl here, for *fault*."""
    why = fault or "its end was requested before"
    return (
        f"Attempt {claim.attempt} began no crawl here: {why}. What was archived before is "
        f"{claim.whereabouts}"
    )


def _report_failed(store: JobStore, ident: str, why: str, value: str = "") -> None:
    where = store.keys.job(ident)
    put_dead_letter(store, where=where, why=f"the job has failed too often, {why}", value=value)


class Reaper:
    """Gives back the jobs of other pipelines that are dead. For one thread; raises RedisUnavailable."""

    def __init__(
        self,
        store: JobStore,
        claims: Claims,
        *,
        grace: float = GRACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._claims = claims
        self._grace = grace
        self._lapsed: dict[tuple[str, int], float] = {}
        """Claims whose lease has expired, and since when that is known."""
        self._looked = float("-inf")
        self._cleared = float("-inf")

    def forget(self) -> None:
        """Count the time of expired leases anew: Redis did not respond."""
        self._lapsed.clear()

    def reap(self, *, ours: Collection[str] = ()) -> dict[str, GivenBack]:
        """Give abandoned jobs back, if it is time to look; return what became of each.

        *ours* are units whose crawls run here, and are watched by their pulse.
        """
        now = self._clock()
        if now - self._looked < REAPED_EVERY:
            return {}
        self._looked = now
        if now - self._cleared >= CLEARED_EVERY:
            self._cleared = now
            self._clear()
        found = {}
        for claim in self._abandoned(now, ours):
            reply = self._claims.give_back(
                claim.unit, claim.token, Happened.LAPSED, why=f"its owner {claim.owner[:100]} was gone"
            )
            if reply is GivenBack.DEAD:
                _report_failed(self._store, claim.unit, "since its pipelines were gone")
            logger.warning("Job %s was abandoned by %r: %s", claim.unit, claim.owner[:100], reply)
            found[claim.unit] = reply
        return found

    def _abandoned(self, now: float, ours: Collection[str]) -> list[Claim]:
        units = [
            unit
            for unit in dict.fromkeys(list_at(self._store, self._store.keys.working))
            if is_ident(unit) and unit not in ours
        ]
        lapsed: dict[tuple[str, int], float] = {}
        over = []
        for claim, left in self._claims.look(units):
            if claim is None or claim.state != "held" or left:
                continue
            key = (claim.unit, claim.token)
            lapsed[key] = self._lapsed.get(key, now)
            if now - lapsed[key] >= self._grace:
                over.append(claim)
        self._lapsed = lapsed
        return over

    def _clear(self) -> None:
        for key in remove_stale(self._store):
            logger.info("%s has not reported for a day; its record is gone", key)
        keys, client = self._store.keys, self._store.client
        start = keys.claim("")
        with self._store.responding():
            units = [key.removeprefix(start) for key in names_of_keys(self._store, start)]
        for claim, left in self._claims.look([unit for unit in units if is_ident(unit)]):
            if claim is None or left:
                continue
            with self._store.responding():
                # One that is not held can be forgotten by the same script, which looks again.
                if client.type(keys.job(claim.unit)) == "none":
                    client.expire(keys.claim(claim.unit), 60)
