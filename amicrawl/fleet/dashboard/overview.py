"""The overview: every queued or running job, read once a second for all viewers, and what changed."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from amicrawl.fleet.dashboard.views import files_view, history_view, ignores_view, job_view
from amicrawl.fleet.dashboard.wording import plain
from amicrawl.fleet.database import PENDING, PENDING_LARGE, PENDING_SHALLOW, number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from amicrawl.fleet.dashboard.shapes import Job, Totals
    from amicrawl.fleet.jobs import JobNames, Live, SeenJob, Watch

LISTS = ("ignores", "files", "history")
"""The long lists among the details of a job, each of them read only when it has changed."""
OVER = 10.0
"""Seconds over which a rate is averaged."""


class Point(NamedTuple):
    """The figures of a job at a moment, in seconds of any monotonic clock."""

    at: float
    items: int
    bytes: int
    lines: int


class Rates:
    """The figures of one job over the last seconds."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=64)

    def add(self, point: Point) -> None:
        """Add *point*. If figures have decreased (a job submitted again), earlier ones are dropped."""
        if self._points and point[1:] < self._points[-1][1:]:
            self._points.clear()
        self._points.append(point)
        while len(self._points) > 2 and self._points[1].at < point.at - OVER:
            self._points.popleft()

    def items(self) -> float | None:
        """Return items a second, None while that is unknown."""
        return self._rate(1)

    def bytes(self) -> float | None:
        """Return bytes a second."""
        return self._rate(2)

    def lines(self) -> float:
        """Return log lines a second."""
        return self._rate(3) or 0.0

    def _rate(self, column: int) -> float | None:
        if len(self._points) < 2:
            return None
        first, last = self._points[0], self._points[-1]
        seconds = last.at - first.at
        return max(0.0, last[column] - first[column]) / seconds if seconds > 0 else None


MOST = 2000
"""Jobs that are shown at once, those that run first."""
QUEUES = (PENDING, PENDING_SHALLOW, PENDING_LARGE)


class Overview:
    """Every job that is queued or runs, as last read. For one thread; `read` raises RedisUnavailable."""

    def __init__(
        self,
        watch: Watch,
        *,
        has_summary: Callable[[str, SeenJob], bool],
        names_every: float = 5.0,
        queued_every: float = 5.0,
    ) -> None:
        """Queues and pipelines are looked up every *names_every* seconds, queued jobs *queued_every*."""
        self._watch = watch
        self._has_summary = has_summary
        self._names_every = names_every
        self._names: JobNames | None = None
        self._names_at = 0.0
        self._memory: int | None = None
        self._nicknames: dict[str, str] = {}
        self._reporting = 0
        """Pipelines that have reported of late."""
        self._queued_every = queued_every
        self._queued_at = float("-inf")
        self._rates: dict[str, Rates] = {}
        self.running: list[str] = []
        self.seen: dict[str, SeenJob] = {}
        """Those that run, as they stand in Redis."""
        self.jobs: dict[str, Job] = {}
        self.encoded: dict[str, bytes] = {}
        """Every job as JSON, by ident."""
        self.changed: dict[str, bytes] = {}
        """Those of them that the last reading changed."""
        self.gone: set[str] = set()
        """Those that the last reading did not find any more."""
        self.totals: Totals | None = None

    def read(self, *, viewers: int) -> None:
        """Read everything again, queued jobs less often; *viewers* is among the figures."""
        now = time.monotonic()
        if self._names is None or now - self._names_at >= self._names_every:
            self._read_names()
            self._names_at = now
        assert self._names is not None
        live = self._watch.live(dict.fromkeys([*QUEUES, *self._names.queues]))
        self.running = live.working[:MOST]
        queue_of = {
            ident: plain(name, limit=200) for name, idents in live.queues.items() for ident in idents
        }
        running = set(self.running)
        waiting = [ident for ident in queue_of if ident not in running][: MOST - len(running)]
        if now - self._queued_at < self._queued_every:
            due = [i for i in waiting if i not in self.jobs or self.jobs[i]["queue"] != queue_of[i]]
        else:
            due, self._queued_at = waiting, now
        shown = [*self.running, *due]
        seen = dict(zip(shown, self._watch.jobs(shown, facts=("now", "hosts")), strict=True))
        self.seen = {ident: seen[ident] for ident in self.running if seen[ident].record.get("url")}
        jobs = {ident: self.jobs[ident] for ident in waiting if ident in self.jobs}
        jobs.update(
            (ident, self.view(ident, one, queue=queue_of.get(ident)))
            for ident, one in seen.items()
            if one.record.get("url")
        )
        for idents in live.queues.values():
            for place, ident in enumerate(idents, start=1):
                if ident in jobs:
                    jobs[ident]["place"] = place
        self._take(jobs)
        self.totals = self._totals(live, viewers)

    def view(self, ident: str, seen: SeenJob, *, queue: str | None) -> Job:
        """Return the job *ident* as *seen*, with a nickname and rates."""
        job = job_view(
            ident,
            seen,
            queue=queue,
            pipeline=self._nicknames.get(seen.record.get("pipeline_id", ""), ""),
            has_summary=self._has_summary(ident, seen),
        )
        rates = self._rates.get(ident)
        if job["items_per_s"] is None and job["state"] == "running" and rates is not None:
            job["items_per_s"], job["bytes_per_s"] = rates.items(), rates.bytes()
        return job

    def _read_names(self) -> None:
        self._names = self._watch.names()
        self._memory = self._watch.memory()
        records = self._watch.pipelines(self._names.pipelines)
        self._reporting = self._watch.reporting(records.values())
        self._nicknames = {key: plain(r.get("nickname", ""), limit=100) for key, r in records.items()}

    def _take(self, jobs: dict[str, Job]) -> None:
        moment = time.monotonic()
        for ident, seen in self.seen.items():
            names = ("items_downloaded", "bytes_downloaded", "log_score")
            point = Point(moment, *(number_of(seen.record.get(name)) for name in names))
            self._rates.setdefault(ident, Rates()).add(point)
        for ident in self._rates.keys() - self.seen.keys():
            del self._rates[ident]
        before = self.encoded
        self.jobs = jobs
        self.encoded = {ident: orjson.dumps(job) for ident, job in jobs.items()}
        self.changed = {i: data for i, data in self.encoded.items() if before.get(i) != data}
        self.gone = set(before) - set(self.encoded)

    def _totals(self, live: Live, viewers: int) -> Totals:
        jobs = self.jobs.values()
        return {
            "time": time.time(),
            "running": len(self.seen),
            "queued": sum(live.waiting.values()),
            "queues": {
                plain(name, limit=200): count
                for name, count in live.waiting.items()
                if count or name == PENDING
            },
            "completed": live.completed,
            "aborted": live.aborted,
            "failed": live.failed,
            "dead": live.dead,
            "pipelines": self._reporting,
            "items_per_s": sum(job["items_per_s"] or 0.0 for job in jobs),
            "bytes_per_s": sum(job["bytes_per_s"] or 0.0 for job in jobs),
            "lines_per_s": sum(rates.lines() for rates in self._rates.values()),
            "redis": {"ok": True, "detail": "", "memory": self._memory},
            "viewers": viewers,
        }


def lists_of(ident: str, names: Sequence[str], watch: Watch) -> dict[str, Any]:
    """Return those of the long lists of a job that *names* names. Raises RedisUnavailable."""
    (seen,) = watch.jobs([ident], facts=names)
    views: dict[str, Callable[[str | None], Any]] = {
        "ignores": lambda text: ignores_view(watch.ignores(ident), text),
        "files": files_view,
        "history": history_view,
    }
    return {name: views[name](seen.facts.get(name)) for name in names}
