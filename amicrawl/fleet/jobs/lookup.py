"""Looking jobs up: records, ignores, counts, pipelines. Reads only, bounded, past anything odd."""

from __future__ import annotations

import json
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from amicrawl.fleet.database import JobStore

LARGEST_CONFIG = 1 << 20
"""Bytes of a crawl file."""
LARGEST_LIST = 4 << 20
"""Bytes of a list of URLs that is kept in Redis."""

_DECISIVE = ("url", "started_at", "finished_at", "aborted", "failed")
_LONGEST_NICKNAME = 100
_LONGEST_PAST = 4096
_AT_ONCE = 1000
"""Records that one script looks at: Redis serves no other client meanwhile."""


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
    latest = latest_ended(store, [ident for ident in idents if is_ident(ident)])[:most]
    found = [record for record in jobs(store, latest).values() if record.has_ended]
    return sorted(found, key=lambda record: record.ended_at or 0, reverse=True)


def latest_ended(store: JobStore, idents: Sequence[str]) -> list[str]:
    """Return those of *idents* that have ended, or are marked as aborted, the latest first.

    Of each record only what tells the end is read, so that what else there is need be read of few.
    """
    seconds: list[str] = []
    for at in range(0, len(idents), _AT_ONCE):
        records = [store.keys.job(ident) for ident in idents[at : at + _AT_ONCE]]
        seconds += store.scripts("when_ended", keys=records).split(" ")
    ended = [(int(text), ident) for text, ident in zip(seconds, idents, strict=True) if text != "-"]
    return [ident for _, ident in sorted(ended, key=lambda each: -each[0])]


def past(store: JobStore, *, most: int = 1000) -> list[JobRecord]:
    """Return what became of the *most* jobs that ended last, also of those that are forgotten by now.

    Only ends that our own pipelines and commands brought about are known.
    """
    records = map(past_record, past_fields(store, most))
    return [record for record in records if record.ended_at is not None]


def past_record(fields: Mapping[str, str]) -> JobRecord:
    """Return the record of a job of which *fields* are all that is left."""
    return JobRecord.parse(
        {name: text for name, text in fields.items() if name != "ident"}, ident=fields["ident"]
    )


def past_fields(store: JobStore, most: int) -> Iterator[dict[str, str]]:
    """Yield the fields of the same, `ident` among them, as they are in Redis: some have no valid end."""
    last, left, room = "+", most, LARGEST_READ
    while left > 0 and room > 0:
        looked_at, last, *texts = store.scripts(
            "read_ended", keys=[store.keys.ended], args=[last, min(left, _AT_ONCE), _LONGEST_PAST, room]
        )
        for fields in map(json.loads, texts):
            if is_ident(fields.get("ident", "")) and fields.get("url"):
                yield fields
        left -= looked_at
        room -= sum(map(len, texts))
        if looked_at < _AT_ONCE:
            return


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
