"""Opening: which job is crawled, by which claim, into which directory; and its end, without a pipeline.

A pipeline says so in the environment. By hand, `scrapy crawl job -a ident=IDENT` claims the job itself,
out of the queue in which it waits, and has to end it, too. A job that Redis has forgotten and the
directory remembers is written down again.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from amicrawl.clock import steady_clock
from amicrawl.errors import AmicrawlError, InputError, UsageError
from amicrawl.fleet.checkpoints import JobCopy
from amicrawl.fleet.database import (
    JobStore,
    RedisUnavailable,
    checked_ident,
    connect_from_scrapy,
    hash_at,
)
from amicrawl.fleet.jobs.queues import queue_names
from amicrawl.fleet.jobs.record import JobRecord, encoded_info, info_of
from amicrawl.fleet.jobs.restoring import fetched_copy, is_forgotten, restore
from amicrawl.fleet.leases import (
    LEASE,
    LEASE_VARIABLE,
    TOKEN_VARIABLE,
    UNIT_VARIABLE,
    Claim,
    Claims,
    Finished,
    Happened,
    LeaseLost,
    Renewal,
    milliseconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from scrapy.settings import BaseSettings

    from amicrawl.crawl import Run

logger = logging.getLogger(__name__)

_REDIS = ("REDIS_URL", "REDIS_HOST", "REDIS_PORT", "REDIS_DB", "REDIS_PARAMS", "AMICRAWL_REDIS_PREFIX")
OPENING = 600.0
"""Seconds for which the lease is renewed before the event loop turns, whatever the start takes: a list
that is fetched, a large directory that is repaired."""
_PATIENCE = 20.0
"""Seconds that a start waits for Redis."""


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that this process may crawl."""

    store: JobStore
    copy: JobCopy
    claim: Claim
    ttl: timedelta
    renewed: float
    """When, by `steady_clock`, its lease was known to be good for `ttl`."""
    by_hand: bool
    """Whether no pipeline looks after it: this process ends it."""

    @property
    def ident(self) -> str:
        """The job."""
        return self.copy.ident


def open_job(
    ident: str,
    settings: BaseSettings,
    *,
    directory: Path,
    environment: Mapping[str, str] = os.environ,
) -> HeldJob:
    """Return the job *ident*, which this process may crawl into *directory*.

    In *environment*, a pipeline says what it has claimed.

    Raises UsageError where it is not an ident or cannot be claimed, InputError where there is no such
    job, RedisUnavailable where Redis does not respond for a while, LeaseLost where another owner has it.
    """
    unit = environment.get(UNIT_VARIABLE) or checked_ident(ident)
    token = environment.get(TOKEN_VARIABLE, "")
    store = store_of_crawl(settings, environment)
    ttl = timedelta(seconds=_seconds(environment.get(LEASE_VARIABLE, ""), LEASE.total_seconds()))
    job = _patiently(
        lambda: (
            _held(store, unit, token, ttl, directory) if token else _claimed(store, unit, ttl, directory)
        )
    )
    if not job.copy.record:
        store.close()
        raise InputError(f"There is no job {job.ident} in Redis at {store.where}. Submit it first.")
    return job


@contextmanager
def starting(job: HeldJob) -> Iterator[None]:
    """Renew the lease of *job* while the block runs, for `OPENING` at most: no link does it yet.

    One that was claimed by hand is given back where the block fails, since no pipeline does that.
    """
    claims, over = Claims(job.store), threading.Event()

    def renew() -> None:
        until = time.monotonic() + OPENING
        while not over.wait(min(1.0, job.ttl.total_seconds() / 8)) and time.monotonic() < until:
            # One that is lost, or cannot be renewed, is the link's to find.
            with suppress(AmicrawlError):
                claims.renew(job.copy.unit, job.copy.token, job.ttl, beats=1, by_crawl=True)

    thread = threading.Thread(target=renew, name="amicrawl-lease", daemon=True)
    thread.start()
    try:
        yield
    except AmicrawlError as error:
        if job.by_hand:
            with suppress(AmicrawlError):
                claims.give_back(job.copy.unit, job.copy.token, Happened.CRASHED, why=str(error))
        raise
    finally:
        over.set()
        thread.join()


def end_by_hand(job: HeldJob, run: Run, *, is_done: bool, is_aborted: bool) -> None:
    """End *job*, claimed by hand, in Redis, or give it back. Blocks; what fails is logged."""
    claims, copy = Claims(job.store), job.copy
    try:
        if is_done or is_aborted:
            if not copy.reported or job.claim.attempt > 1:
                _settle(job, run.config.directory)
            if is_aborted:
                claims.mark_aborted(job.ident)
            with job.store.responding():
                # With the figures, which the copy leaves out.
                record = hash_at(job.store, job.store.keys.job(job.ident))
            info = encoded_info(info_of(record, job.claim, exit_code=int(run.exit_code())))
            if claims.finish(copy.unit, copy.token, info=info) is Finished.LOST:
                logger.warning("The job %s was another owner's when it ended", job.ident)
        else:
            happened = Happened.DRAINED if run.fault is None else Happened.CRASHED
            claims.give_back(copy.unit, copy.token, happened, why=str(run.fault or ""))
    except AmicrawlError as error:
        logger.warning("The end of the job could not be reported: %s", error)


def _settle(job: HeldJob, directory: Path) -> None:
    """Take the figures of *job*, and what its log lacks, from its index."""
    from amicrawl.fleet.jobs.accounting import account_of, settle  # noqa: PLC0415  # loads Arrow

    account = account_of(directory)
    if account is not None:
        settle(job.store, job.ident, job.copy.token, account, job.copy.unsent)


def store_of_crawl(settings: BaseSettings, environment: Mapping[str, str]) -> JobStore:
    """Return the store that a crawl uses; see `redis_of`."""
    return connect_from_scrapy(redis_of(settings, environment))


def redis_of(settings: BaseSettings, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return how Redis is reached, by what *settings* and the *environment* say.

    In a crawl that a pipeline or worker has started, its environment overrides the project: the unit is
    in that Redis. In any other crawl the settings override the environment.
    """
    given = {name: settings.get(name) for name in _REDIS if settings.get(name)}
    if environment.get(TOKEN_VARIABLE):
        return given | {name: environment[name] for name in _REDIS if name in environment}
    return {name: environment[name] for name in _REDIS if environment.get(name)} | given


def _held(store: JobStore, unit: str, token: str, ttl: timedelta, directory: Path) -> HeldJob:
    """Return the job that a pipeline has claimed with *token*.

    One that Redis has lost since is written again, from what the pipeline has put into *directory*.
    """
    if not token.isascii() or not token.isdigit():
        raise UsageError(
            f"{TOKEN_VARIABLE} is {token!r}: it is a number, and set by `amicrawl pipeline`."
        )
    renewed = steady_clock()
    found = Claims(store).renew(unit, int(token), ttl, by_crawl=True)
    if found is Renewal.GONE and _is_written_back(store, unit, int(token), ttl, directory):
        found = Renewal.REGAINED
    if found not in {Renewal.RENEWED, Renewal.REGAINED}:
        raise LeaseLost(f"The job {unit} is not ours any more ({found.value}): nothing is crawled.")
    copy = fetched_copy(store, unit, token=int(token))
    return HeldJob(
        store, copy, Claim.read(unit, copy.claim | {"token": token}), ttl, renewed, by_hand=False
    )


def _is_written_back(store: JobStore, unit: str, token: int, ttl: timedelta, directory: Path) -> bool:
    copy = JobCopy.read(directory)
    if copy is None or (copy.unit, copy.token) != (unit, token) or not is_forgotten(store, copy):
        return False
    logger.warning("Redis had lost job %s, which was just taken; it is written again", unit)
    return restore(store, copy, lease_ms=milliseconds(ttl), epoch=os.urandom(16).hex())


def _claimed(store: JobStore, unit: str, ttl: timedelta, directory: Path) -> HeldJob:
    """Claim the job *unit*, which waits or was left behind, for this process."""
    copy = fetched_copy(store, unit, token=0)
    claims, owner = Claims(store), f"by hand on {socket.gethostname()}, process {os.getpid()}"
    remembered = JobCopy.read(directory) if not copy.record and not copy.claim else None
    # Where Redis has forgotten nothing, the job has ended, and its record was removed or has expired.
    if remembered is not None and remembered.unit == unit and is_forgotten(store, remembered):
        return _remembered(store, remembered, ttl)
    if not copy.record:
        return HeldJob(store, copy, Claim(unit, 0), ttl, 0.0, by_hand=True)
    if copy.record["url"].lower().startswith("ftp:"):
        raise UsageError(f"The job {unit} is for FTP, which only ArchiveBot's pipelines fetch.")
    record = JobRecord.parse(copy.record, ident=unit)
    if record.has_ended:
        raise UsageError(f"Job {unit} {record.state.phrase}. Submit it with --force to crawl it again.")
    renewed = steady_clock()
    claim = claims.take(unit, owner, ttl)
    if claim is None:
        raise UsageError(
            f"The job {unit} is being crawled, or is done. `amicrawl job show {unit}` says which."
        )
    queue = _taken_out(store, unit) or copy.claim.get("queue", "")
    where = {"directory": directory.name, "queue": queue, "resumed": _how(claim, directory)}
    claims.settle(unit, claim.token, started_at=f"{time.time():.6f}", **where)
    copy = fetched_copy(store, unit, token=claim.token)
    return HeldJob(store, copy, Claim.read(unit, copy.claim), ttl, renewed, by_hand=True)


def _remembered(store: JobStore, copy: JobCopy, ttl: timedelta) -> HeldJob:
    """Write down a job again that Redis has forgotten, and claim it."""
    renewed = steady_clock()
    copy.token += 1
    epoch = os.urandom(16).hex()
    if not restore(store, copy, lease_ms=int(ttl.total_seconds() * 1000), epoch=epoch):
        raise LeaseLost(f"The job {copy.unit} is another owner's now: nothing is crawled.")
    logger.info("Redis had forgotten the job %s; it is written down again", copy.unit)
    claim = replace(Claim.read(copy.unit, copy.claim), token=copy.token)
    return HeldJob(store, copy, claim, ttl, renewed, by_hand=True)


def _taken_out(store: JobStore, unit: str) -> str:
    """Move *unit* from its queue to `working`; return the name of that queue, empty for none."""
    with store.responding():
        names = queue_names(store)
        pipe = store.client.pipeline(transaction=True)
        for name in names:
            pipe.lrem(store.keys.queue(name), 0, unit)
        pipe.lrem(store.keys.working, 0, unit)
        pipe.lpush(store.keys.working, unit)
        replies = pipe.execute(raise_on_error=False)
    # What is not a list replies with an error.
    return next((name for name, n in zip(names, replies, strict=False) if type(n) is int and n), "")


def _how(claim: Claim, directory: Path) -> str:
    if (directory / "frontier").is_dir():
        return "resumed"
    return "restarted" if claim.attempt > 1 else ""


def _patiently(work: Any) -> HeldJob:
    """Do *work*, again and again while Redis does not respond, for a while."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            job: HeldJob = work()
        except RedisUnavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
        else:
            return job


def _seconds(text: str, default: float) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return default
    return seconds if 1 <= seconds <= 24 * 3600 else default
