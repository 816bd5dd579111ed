"""Changes of a job that is there: each verb checks, then changes everything in one step.

A change writes its fields, then increments `settings_age`, then publishes the new age, so a crawl that
receives it finds the change done. Every verb raises UsageError for what is refused, with the reason:
WrongStateError if that is the state of the job; and NoSuchJobError where there is no such job.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.discovery import ignore_set
from amicrawl.errors import UsageError
from amicrawl.fleet.database import checked_ident, hash_at
from amicrawl.fleet.jobs import lookup
from amicrawl.fleet.jobs.live_settings import checked_pattern
from amicrawl.fleet.jobs.queues import queue_names
from amicrawl.fleet.jobs.record import encoded_info, info_of
from amicrawl.fleet.leases import ABORTED_KEPT, NOTIFICATIONS_KEPT, Claim
from amicrawl.fleet.logs import MOST_ENTRIES, Stdout, encoded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amicrawl.fleet.database import JobStore
    from amicrawl.fleet.jobs.job_settings import JobSetting, Value
    from amicrawl.fleet.jobs.record import JobRecord

_ABSENT, _ENDED, _ODD = -1, -2, -3
_PATTERNS_AT_ONCE = 5_000


class Aborted(StrEnum):
    """What an abort has led to."""

    REMOVED = "removed"
    """No pipeline crawled it: it was removed from its queue, and is aborted."""
    ASKED = "asked"
    """Its crawl was asked to abort."""
    AGAIN = "again"
    """Its crawl was asked before."""


class AbortResult(NamedTuple):
    """What an abort has led to, and what it leaves behind."""

    done: Aborted
    left: str = ""
    """Where the archive of earlier attempts is, for a sentence; empty where it runs or has none."""


class Where(NamedTuple):
    """Which pipeline crawls a job."""

    pipeline_id: str
    """Its key; empty where none does."""
    nickname: str
    """Empty where the pipeline is gone."""
    hostname: str
    directory: str = ""
    """The name of its crawl directory, below the data directory of the pipeline; empty for none yet."""


def abort(store: JobStore, ident: str, *, now: float) -> AbortResult:
    """Abort a job: a queued one is removed from its queue at once, a running one is asked to abort.

    The log of a queued one says where its archive is: its record and claim, which know, are kept for
    seconds.
    """
    record = lookup.job(store, ident)
    keys = store.keys
    fields = hash_at(store, keys.job(ident))
    left = _left_behind(store, ident, fields)
    words = [encoded(Stdout(now, f"What was archived before the abort is {left}\n"))] if left else []
    ours = (*keys.ours_of_job(ident), keys.claim(ident))
    queues = [keys.queue(name) for name in queue_names(store)]
    own = [*keys.of_job(ident), keys.working, keys.aborted, keys.finish_notifications]
    own += [keys.lease(ident), keys.ended]
    info = {**info_of(fields, None), "aborted": True}
    done = store.scripts(
        "abort",
        keys=[*own, *ours, *queues],
        args=[
            *(ident, keys.job_channel(ident), keys.updates, int(now)),
            int(ABORTED_KEPT.total_seconds()),
            *(encoded_info({**info, "ident": ident}), len(ours)),
            NOTIFICATIONS_KEPT,
            MOST_ENTRIES,
            *words,
        ],
    )
    if done == "ended":
        raise _ended(record)
    if done == "absent":
        raise lookup.no_such_job(ident)
    return AbortResult(Aborted(done), left if done == Aborted.REMOVED else "")


def _left_behind(store: JobStore, ident: str, record: Mapping[str, str]) -> str:
    """Return where the archive of the job with *record* is, for a sentence; empty for none."""
    held = hash_at(store, store.keys.claim(ident))
    # That of an earlier job of the same URL may still be there.
    is_its_own = held.get("queued_at", "") == record.get("queued_at", "")
    return Claim.read(ident, held).whereabouts if is_its_own else ""


def ignore(store: JobStore, ident: str, patterns: Sequence[str]) -> int:
    """Add ignore patterns; return how many were new. One that no crawl can use refuses them all."""
    return _change(store, ident, [("ignore", checked_pattern(pattern), "") for pattern in patterns])


def unignore(store: JobStore, ident: str, patterns: Sequence[str]) -> int:
    """Remove ignore patterns, by their exact text; return how many were there."""
    return _change(store, ident, [("unignore", pattern, "") for pattern in patterns])


def add_ignore_sets(store: JobStore, ident: str, names: Sequence[str]) -> int:
    """Add all patterns of the shipped sets *names*; return how many were new."""
    patterns = dict.fromkeys(entry.expression for name in names for entry in ignore_set(name))
    return _change(store, ident, [("ignore", pattern, "") for pattern in patterns])


def change_setting(store: JobStore, ident: str, setting: JobSetting, values: Mapping[str, Value]) -> str:
    """Set the fields of *setting* to *values*; return the sentence that says so."""
    checked = setting.checked(values)
    _change(
        store,
        ident,
        [("set", name, text) if text else ("unset", name, "") for name, text in setting.stored(checked)],
    )
    return setting.said(checked)


def pause(store: JobStore, ident: str) -> None:
    """Have the crawl request nothing new until it is resumed."""
    _change(store, ident, [("wish", "paused", "1")])


def resume(store: JobStore, ident: str) -> bool:
    """Resume a paused crawl; tell whether it was paused."""
    return _change(store, ident, [("unwish", "paused", "")]) > 0


def expire(store: JobStore, ident: str) -> None:
    """Delete the record of an ended job, so that its URL can be submitted again; captures are kept."""
    keys = store.keys
    gone = [*keys.of_job(checked_ident(ident)), *keys.ours_of_job(ident), keys.claim(ident)]
    done = store.scripts("expire", keys=gone)
    if done == "absent":
        raise lookup.no_such_job(ident)
    if done == "alive":
        raise lookup.WrongStateError(
            f"Job {ident} has not ended: its record cannot be deleted. Abort it first."
        )


def where(store: JobStore, ident: str) -> Where:
    """Return which pipeline crawls a job, or has crawled it."""
    record = lookup.job(store, ident)
    key = record.pipeline_id
    directory = hash_at(store, store.keys.claim(ident)).get("directory", "")[:300]
    if not key.startswith(f"{store.keys.prefix}pipeline:"):
        return Where("", "", "", directory)
    fields = hash_at(store, key)
    return Where(key, fields.get("nickname", "")[:100], fields.get("hostname", "")[:300], directory)


def _change(store: JobStore, ident: str, changes: Sequence[tuple[str, str, str]]) -> int:
    """Make *changes* in one step; return how many of them changed something."""
    keys = store.keys
    if len(changes) > _PATTERNS_AT_ONCE:
        raise UsageError(f"{len(changes)} changes at once are too many: at most {_PATTERNS_AT_ONCE}.")
    age, changed = store.scripts(
        "change",
        keys=[keys.job(checked_ident(ident)), keys.ignores(ident), keys.desired(ident)],
        args=[keys.job_channel(ident), *(text for change in changes for text in change)],
    )
    if age == _ABSENT:
        raise lookup.no_such_job(ident)
    if age == _ENDED:
        raise _ended(lookup.job(store, ident))
    if age == _ODD:
        raise UsageError(
            f"Key {keys.ignores(ident)} or {keys.desired(ident)} in Redis is of a wrong type. "
            "Remove it by hand."
        )
    return int(changed)


def _ended(record: JobRecord) -> lookup.WrongStateError:
    return lookup.WrongStateError(
        f"Job {record.ident} {record.state.phrase}: it can no longer be changed."
    )
