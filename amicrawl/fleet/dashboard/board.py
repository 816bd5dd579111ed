"""The board: what Redis says right now, for one request; the stream has the hub instead.

Every method reads Redis, blocks, and raises RedisUnavailable. What is there by name is looked for among
all keys at most every few seconds, however many clients there are.
"""

from __future__ import annotations

import threading
import time
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.fleet.dashboard.overview import LISTS, QUEUES, Overview, lists_of
from amicrawl.fleet.dashboard.views import (
    SEARCHED,
    detail_view,
    ended_view,
    entry_view,
    ignores_view,
    job_view,
    past_view,
    pipeline_view,
)
from amicrawl.fleet.dashboard.wording import plain
from amicrawl.fleet.database import dead_letters, is_ident, number_of, scored_at
from amicrawl.fleet.jobs import ENDED, Watch, lookup, queues

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from amicrawl.fleet.dashboard.job_choice import JobChoice
    from amicrawl.fleet.dashboard.shapes import (
        DeadLetter,
        IgnoreFacts,
        Job,
        JobDetail,
        Log,
        LogEntry,
        Pipeline,
        Queue,
        SearchedJob,
        Totals,
    )
    from amicrawl.fleet.database import JobStore
    from amicrawl.fleet.jobs import JobNames, Live, SeenJob

_NAMES_EVERY = 2.0
_FRESH = 0.25
_LARGEST_READ = 128 * 1024
_END_FIELDS = ("finished_at", "failed", "aborted")
"""Those of a record of which a job that has ended has one."""
_COUNTED = ("url", "started_by", *_END_FIELDS)
_AT_ONCE = 1000
"""Jobs that have ended and are searched at once."""


class FinishedPage(NamedTuple):
    """One page of the jobs that have ended."""

    jobs: list[Job]
    idents: frozenset[str]
    """Those that have a record, on this page or not."""
    choice: JobChoice
    """What was chosen, with a page that exists."""
    found: int
    all: int
    """How many there are, chosen or not."""


class _EndedJob(NamedTuple):
    """What a choice and an order look at of a job that has ended."""

    second: int
    """In which it ended, in Unix time; 0 where that is not known."""
    job: SearchedJob
    past: Mapping[str, str] | None
    """What is left of one that has no record."""


class Board:
    """Reads what one request needs. For several threads."""

    def __init__(self, store: JobStore, *, has_summary: Callable[[str, SeenJob], bool]) -> None:
        self._store = store
        self._watch = Watch(store)
        self._has_summary = has_summary
        self._overview = Overview(
            self._watch, has_summary=has_summary, names_every=_NAMES_EVERY, queued_every=0.0
        )
        self._reading = threading.Lock()
        self._lock = threading.Lock()
        self._names: JobNames | None = None
        self._names_at = 0.0

    def overview(self, *, viewers: int) -> tuple[list[Job], Totals]:
        """Return the jobs that run and are queued, and all jobs in figures, from one reading."""
        # One for all: it remembers the names, for which all keys are looked through, and the rates.
        with self._reading:
            self._overview.read(viewers=viewers)
            assert self._overview.totals is not None
            return list(self._overview.jobs.values()), self._overview.totals

    def totals(self, *, viewers: int) -> Totals:
        """Return all jobs in figures."""
        return self.overview(viewers=viewers)[1]

    def live(self) -> Live:
        """Return which jobs run and which are queued."""
        return self._watch.live(dict.fromkeys([*QUEUES, *self._found().queues]))

    def running(self) -> list[str]:
        """Return the idents of the jobs that run."""
        return self.live().working

    def live_of(self, user: str) -> int:
        """Return how many jobs that *user* submitted run or are queued.

        The names of queues are looked up: the last of these jobs may wait in a new one.
        """
        with self._store.responding():
            names = queues.queue_names(self._store)
        live = self._watch.live(names, whole=True)
        idents = list(dict.fromkeys([*live.working, *chain.from_iterable(live.queues.values())]))
        records = [one.record for one in self._watch.jobs(idents, fields=_COUNTED, facts=())]
        return sum(
            record.get("started_by") == user and not any(map(record.get, _END_FIELDS))
            for record in records
            if record.get("url")
        )

    def jobs(self, states: Collection[str], choice: JobChoice, *, most: int) -> list[Job]:
        """Return jobs in one of *states* that *choice* takes, in its order.

        By state: running ones, queued ones in the order of their queues, then the latest that ended.
        """
        live = self.live()
        queue_of = {ident: name for name, idents in live.queues.items() for ident in idents}
        idents = list(dict.fromkeys([*live.working, *queue_of]))
        found = self._views(idents, queue_of)
        place = {
            ident: n for waiting in live.queues.values() for n, ident in enumerate(waiting, start=1)
        }
        for job in found:
            job["place"] = place.get(job["ident"])
        found = choice.of_all([job for job in found if job["state"] in states])
        if ENDED.intersection(states):
            found += self._chosen_ends(states, choice, most=most, but=frozenset(idents))
            if choice.sort != "state":
                found = choice.of_all(found)
        return found[:most]

    def _chosen_ends(
        self, states: Collection[str], choice: JobChoice, *, most: int, but: frozenset[str]
    ) -> list[Job]:
        """Return the *most* latest of those that ended, all of them where the order is not by time."""
        idents = [ident for ident in self._latest() if ident not in but]
        chosen = (
            end.job["ident"]
            for end in self._ends(idents, self._nicknames())
            if end.job["state"] in states and choice.takes(end.job)
        )
        return self._views(list(islice(chosen, most if choice.sort == "state" else None)), {})

    def ended(self, *, most: int) -> list[Job]:
        """Return jobs that have ended and are remembered, the latest first."""
        found = [job for job in self._views(self._latest()[:most], {}) if job["state"] in ENDED]
        return sorted(found, key=lambda job: -(job["finished_at"] or 0.0))

    def finished(self, choice: JobChoice, *, most: int, most_past: int) -> FinishedPage:
        """Return the page of *choice* of the jobs that ended, the latest first.

        They are the *most* latest with a record, and the *most_past* latest of which only the result is
        left. Of those that are not on the page, no more is read than what is searched.
        """
        nicknames = self._nicknames()
        latest = self._latest()
        ends = list(self._ends(latest[:most], nicknames))
        known = {(end.job["ident"], end.second) for end in ends}
        with self._store.responding():
            past = [_end_of(fields, nicknames) for fields in lookup.past_fields(self._store, most_past)]
        ends += [end for end in past if end.second and (end.job["ident"], end.second) not in known]
        chosen = sorted(
            (end for end in ends if choice.takes(end.job)),
            key=lambda end: (-end.second, end.job["ident"]),
        )
        choice = choice.page_of(len(chosen))
        jobs = self._rows(chosen[choice.rows])
        return FinishedPage(jobs, frozenset(latest), choice, len(chosen), len(ends))

    def _rows(self, ends: Sequence[_EndedJob]) -> list[Job]:
        """Return the jobs of *ends* but those whose record has expired in between."""
        found = self._views([end.job["ident"] for end in ends if end.past is None], {})
        views = {job["ident"]: job for job in found}
        jobs = [
            views.get(end.job["ident"])
            if end.past is None
            else past_view(lookup.past_record(end.past), pipeline=end.job["pipeline"])
            for end in ends
        ]
        return [job for job in jobs if job is not None]

    def past(self, ended: Sequence[Job], *, most: int) -> list[Job]:
        """Return the jobs that ended last and have no record any more: those that are not in *ended*."""
        with self._store.responding():
            records = lookup.past(self._store, most=most)
        known = {(job["ident"], job["finished_at"]) for job in ended}
        nicknames = self._nicknames()
        return [
            past_view(record, pipeline=nicknames.get(record.pipeline_id, ""))
            for record in records
            if (record.ident, record.ended_at) not in known
        ]

    def job(self, ident: str) -> Job:
        """Return one job; NoSuchJobError where there is none."""
        return self._job(ident)[0]

    def job_or_none(self, ident: str) -> Job | None:
        """Return one job, None where there is none."""
        try:
            return self.job(ident)
        except lookup.NoSuchJobError:
            return None

    def detail(self, ident: str) -> JobDetail:
        """Return one job in full; NoSuchJobError where there is none."""
        job, seen = self._job(ident)
        lists: Any = lists_of(ident, LISTS, self._watch)
        return {**detail_view(job, seen), **lists}

    def seen(self, ident: str) -> SeenJob:
        """Return one job as Redis has it; NoSuchJobError where there is none."""
        return self._job(ident)[1]

    def ignores(self, ident: str) -> list[IgnoreFacts]:
        """Return the ignore patterns of a job."""
        self._job(ident)
        (seen,) = self._watch.jobs([ident], facts=("ignores",))
        return ignores_view(self._watch.ignores(ident), seen.facts.get("ignores"))

    def log(self, ident: str, *, after: int | None, before: int | None, most: int) -> Log:
        """Return a part of the log of a job: behind *after*, else in front of *before*, else the end."""
        self._job(ident)
        with self._store.responding():
            found = scored_at(
                self._store,
                self._store.keys.log(ident),
                after=after,
                before=before if after is None else None,
                most=most,
                longest=_LARGEST_READ,
                newest=after is None,
            )
        entries = [entry_view(score, text) for score, text in found]
        return {"entries": entries, "last": entries[-1]["score"] if entries else after or 0}

    def recent(self, idents: Sequence[str], *, most: int) -> dict[str, list[LogEntry]]:
        """Return the last lines of some jobs."""
        found = self._watch.logs(dict.fromkeys(idents, 0.0), most=most)
        return {
            ident: [entry_view(score, text) for score, text in entries]
            for ident, entries in found.items()
        }

    def pipelines(self) -> list[Pipeline]:
        """Return all pipelines, by nickname."""
        records = self._watch.pipelines(self._found(fresh=True).pipelines)
        working = self.running()
        seen = dict(zip(working, self._watch.jobs(working, facts=()), strict=True))
        now = self._store.now()
        found = [
            pipeline_view(key, record, jobs=seen, prefix=self._store.keys.prefix, now=now)
            for key, record in records.items()
        ]
        return sorted(found, key=lambda pipeline: (pipeline["nickname"], pipeline["id"]))

    def pipeline_records(self) -> list[dict[str, str]]:
        """Return the records of all pipelines, as they stand in Redis."""
        return list(self._watch.pipelines(self._found(fresh=True).pipelines).values())

    def queues(self) -> list[Queue]:
        """Return all queues, those that are empty and always there included."""
        live = self.live()
        idents = [ident for waiting in live.queues.values() for ident in waiting]
        jobs = {job["ident"]: job for job in self._views(idents, {})}
        return [
            {
                "name": plain(name, limit=200),
                "jobs": [
                    {
                        "ident": ident,
                        "url": jobs[ident]["url"] if ident in jobs else "",
                        "note": jobs[ident]["note"] if ident in jobs else "",
                        "queued_at": jobs[ident]["queued_at"] if ident in jobs else None,
                        "started_by": jobs[ident]["started_by"] if ident in jobs else "",
                    }
                    for ident in waiting
                ],
            }
            for name, waiting in live.queues.items()
        ]

    def letters(self) -> list[DeadLetter]:
        """Return what was found in Redis and could not be followed."""
        with self._store.responding():
            found = dead_letters(self._store, 500)
        return [
            {
                "id": f"{letter.seen:.6f}",
                "ts": letter.seen or None,
                "kind": plain(letter.where, limit=500),
                "ident": next((w for w in letter.where.replace("_", " ").split() if is_ident(w)), ""),
                "reason": plain(letter.why, limit=1000),
                "content": plain(letter.excerpt, limit=1000),
            }
            for letter in found
        ]

    def _job(self, ident: str) -> tuple[Job, SeenJob]:
        if is_ident(ident):
            (seen,) = self._watch.jobs([ident])
            if seen.record.get("url"):
                nickname = self._nickname(seen.record.get("pipeline_id", ""))
                queue = None
                if not seen.record.get("started_at"):
                    queues = self.live().queues
                    queue = next((name for name, idents in queues.items() if ident in idents), None)
                job = job_view(
                    ident,
                    seen,
                    queue=queue,
                    pipeline=nickname,
                    has_summary=self._has_summary(ident, seen),
                )
                return job, seen
        raise lookup.NoSuchJobError(
            "There is no such job. It was never submitted, or its record has expired."
        )

    def _latest(self) -> list[str]:
        """Return the idents of the jobs that have ended and are remembered, the latest first."""
        with self._store.responding():
            return lookup.latest_ended(self._store, self._found().jobs)

    def _ends(self, idents: Sequence[str], nicknames: Mapping[str, str]) -> Iterator[_EndedJob]:
        """Yield those of *idents* that have a record, read a few at a time."""
        for at in range(0, len(idents), _AT_ONCE):
            some = idents[at : at + _AT_ONCE]
            seen = self._watch.jobs(some, fields=SEARCHED, facts=("hosts",))
            for ident, one in zip(some, seen, strict=True):
                if one.record.get("url"):
                    end = _end_of({**one.record, "ident": ident}, nicknames, one.facts.get("hosts"))
                    yield end._replace(past=None)

    def _views(self, idents: Sequence[str], queue_of: dict[str, str]) -> list[Job]:
        nicknames = self._nicknames()
        return [
            job_view(
                ident,
                one,
                queue=queue_of.get(ident),
                pipeline=nicknames.get(one.record.get("pipeline_id", ""), ""),
                has_summary=self._has_summary(ident, one),
            )
            for ident, one in zip(idents, self._watch.jobs(idents), strict=True)
            if one.record.get("url")
        ]

    def _nickname(self, key: str) -> str:
        if not key.startswith(self._store.keys.pipeline("")):
            return ""
        return plain(self._watch.pipelines([key]).get(key, {}).get("nickname", ""), limit=100)

    def _nicknames(self) -> dict[str, str]:
        records = self._watch.pipelines(self._found().pipelines)
        return {key: plain(record.get("nickname", ""), limit=100) for key, record in records.items()}

    def _found(self, *, fresh: bool = False) -> JobNames:
        with self._lock:
            now = time.monotonic()
            every = _FRESH if fresh else _NAMES_EVERY
            if self._names is None or now - self._names_at >= every:
                self._names = self._watch.names()
                self._names_at = now
            return self._names


def _end_of(
    fields: Mapping[str, str], nicknames: Mapping[str, str], hosts: str | None = None
) -> _EndedJob:
    """Return the end of the job of which these *fields* are known, its *hosts* as it reported them."""
    return _EndedJob(
        # A job that failed has no `finished_at`.
        number_of(fields.get("finished_at") or fields.get("amicrawl_failed_at")),
        ended_view(fields, pipeline=nicknames.get(fields.get("pipeline_id", ""), ""), hosts=hosts),
        fields,
    )
