"""Looking jobs up: records, ignores, counts, pipelines. Reads only, bounded, past anything odd."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amicrawl.errors import InputError, UsageError
from amicrawl.fleet.database import (
    LARGEST_READ,
    checked_ident,
    count_at,
    fault_at,
    hash_at,
    hashes_at,
    is_ident,
    is_utf8,
    keys_like,
    list_at,
    put_dead_letter,
    set_at,
    text_at,
)
from amicrawl.fleet.jobs.live_settings import LONGEST_PATTERN
from amicrawl.fleet.jobs.pipeline_record import is_silent, pipelines
from amicrawl.fleet.jobs.record import JobRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amicrawl.fleet.database import JobStore

LARGEST_CONFIG = 1 << 20
"""Bytes of a crawl file."""
LARGEST_LIST = 4 << 20
"""Bytes of a list of URLs that is kept in Redis."""

_DECISIVE = ("url", "started_at", "finished_at", "aborted", "failed")
_LONGEST_NICKNAME = 100
_LONGEST_PAST = 4096


class NoSuchJobError(InputError):
    """There is no job of that ident."""


class WrongStateError(UsageError):
    """The state that the job is in does not permit the change."""


class JobCounts(NamedTuple):
    """How many jobs ended, and how."""

    completed: int
    aborted: int
    failed: int


def job(store: JobStore, ident: str) -> JobRecord:
    """Return the job *ident*; raises UsageError for an invalid ident, NoSuchJobError for no job."""
    found = job_or_none(store, checked_ident(ident))
    if found is None:
        raise no_such_job(ident)
    return found


def no_such_job(ident: str) -> NoSuchJobError:
    """Return what is raised where there is no job *ident*."""
    return NoSuchJobError(
        f"There is no job {ident}. It was never submitted, or its record has expired: see "
        "`amicrawl job ls`."
    )


def job_or_none(store: JobStore, ident: str) -> JobRecord | None:
    """Return the job *ident*, or None where there is none."""
    return jobs(store, [ident]).get(ident)


def jobs(store: JobStore, idents: Iterable[str]) -> dict[str, JobRecord]:
    """Return those of *idents* that are jobs, in two round trips; faults become dead letters."""
    wanted = [ident for ident in dict.fromkeys(idents) if is_ident(ident)]
    hashes = hashes_at(store, [store.keys.job(ident) for ident in wanted], always=_DECISIVE)
    wishes = hashes_at(store, [store.keys.desired(ident) for ident in wanted])
    found = {}
    for ident, fields, live in zip(wanted, hashes, wishes, strict=True):
        record = JobRecord.parse(fields, ident=ident, paused=bool(live.get("paused")))
        if record.exists:
            found[ident] = record
            for fault in record.faults:
                put_dead_letter(store, where=store.keys.job(ident), why=fault)
    return found


def ignores(store: JobStore, ident: str) -> list[str]:
    """Return the ignore patterns of a job, sorted, as stored; some may be of no use to a crawl."""
    key = store.keys.ignores(ident)
    found = []
    for pattern in set_at(store, key, longest=LONGEST_PATTERN):
        if is_utf8(pattern):
            found.append(pattern)
        else:
            put_dead_letter(store, where=key, why="an expression is not UTF-8", value=pattern)
    return found


def working(store: JobStore) -> list[str]:
    """Return the idents that are crawled, the longest at work last."""
    return only_idents(store, store.keys.working, list_at(store, store.keys.working))


def finished(store: JobStore, *, most: int = 1000) -> list[JobRecord]:
    """Return jobs that have ended and are still remembered, the latest first.

    They are found as ArchiveBot finds them, by the names of their ignores: a walk over all keys.
    """
    suffix = "_ignores"
    begin = len(store.keys.prefix)
    idents = [key[begin : -len(suffix)] for key in keys_like(store, f"*{suffix}")]
    found = [record for record in jobs(store, idents).values() if record.has_ended]
    return sorted(found, key=lambda record: record.ended_at or 0, reverse=True)[:most]


def past(store: JobStore, *, most: int = 1000) -> list[JobRecord]:
    """Return what became of the *most* jobs that ended last, also of those that are forgotten by now.

    Only ends that our own pipelines and commands brought about are known.
    """
    found = []
    for flat in store.scripts(
        "read_ended", keys=[store.keys.ended], args=[most, _LONGEST_PAST, LARGEST_READ]
    ):
        fields = dict(zip(flat[::2], flat[1::2], strict=False))
        ident = fields.pop("ident", "")
        record = JobRecord.parse(fields, ident=ident)
        if is_ident(ident) and record.exists and record.ended_at is not None:
            found.append(record)
    return found


def again(store: JobStore, known: JobRecord) -> JobRecord | None:
    """Return what the job *known* is now, or was at its end; None where Redis knows neither."""
    found = job_or_none(store, known.ident)
    if found is not None:
        return found
    its = (known.ident, known.queued_at)
    return next((each for each in past(store) if (each.ident, each.queued_at) == its), None)


def counts(store: JobStore) -> JobCounts:
    """Return how many jobs ended, and how."""
    keys = store.keys
    return JobCounts(*(count_at(store, key) for key in (keys.completed, keys.aborted, keys.failed)))


def config(store: JobStore, ident: str) -> str | None:
    """Return the text of the crawl file that a job was submitted with; None where it was without one."""
    return _whole(store, store.keys.config(ident), LARGEST_CONFIG)


def config_fault(store: JobStore, ident: str) -> str:
    """Return why the crawl file of a job cannot be read; empty where it can, or there is none."""
    return fault_at(store, store.keys.config(ident), longest=LARGEST_CONFIG)


def url_list_fault(store: JobStore, ident: str) -> str:
    """Return why the list of a job cannot be read; empty where it can, or there is none."""
    return fault_at(store, store.keys.url_list(ident), longest=LARGEST_LIST)


def url_list(store: JobStore, ident: str) -> str | None:
    """Return the lines of a list job whose list was the submitter's file; None for any other job."""
    return _whole(store, store.keys.url_list(ident), LARGEST_LIST)


def desired(store: JobStore, ident: str) -> dict[str, str]:
    """Return the live settings that ArchiveBot has no field for: `paused` is `1`, or is not there."""
    return hash_at(store, store.keys.desired(ident))


def live_nicknames(store: JobStore, now: float) -> list[str]:
    """Return the nicknames of pipelines that have reported of late; *now* in Unix seconds."""
    found = pipelines(store)
    names = {
        fields.get("nickname", "")[:_LONGEST_NICKNAME] for fields in found if not is_silent(fields, now)
    }
    return sorted(name for name in names if name.isprintable())


def only_idents(store: JobStore, key: str, found: Sequence[str]) -> list[str]:
    """Return those of *found*, elements of *key*, that can be idents; the others become dead letters."""
    kept = []
    for element in found:
        if is_ident(element):
            kept.append(element)
        else:
            put_dead_letter(store, where=key, why="an element is not an ident", value=element)
    return kept


def _whole(store: JobStore, key: str, longest: int) -> str | None:
    text = text_at(store, key, longest=longest)
    if text is None or is_utf8(text):
        return text
    put_dead_letter(store, where=key, why="it is not UTF-8", value=text)
    return None
