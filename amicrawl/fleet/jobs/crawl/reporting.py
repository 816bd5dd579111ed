"""What a crawl reports of its job: the figures of the record, facts for the dashboard, log entries.

Facts are what the dashboard shows of a job and its record has no field for, as JSON texts:

    now       state, rates, the frontier in numbers, what is in force; every second
    hosts     those in flight and those with the longest queues; every second, queues less often
    ignores   expressions and how often each has kept a URL out; when that has changed
    files     those that were finished
    history   one point a minute for a day

Everything is bounded. A fact that has not changed is not sent again.

The log has one `download` for every row that was requested, redirects among them, each under its own
URL; one `ignore` for every URL that a rule kept out, unless such reports are off; and lines of text for
people. A line about a URL agrees with the index.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.capture import Failure
from amicrawl.crawl import BusyHosts
from amicrawl.fleet.jobs.accounting import BROKEN_OFF, Figures

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.crawl import Run
    from amicrawl.fleet.jobs.crawl.live_job_settings import LiveJobSettings
    from amicrawl.fleet.jobs.crawl.opening import HeldJob
    from amicrawl.fleet.jobs.link import CrawlLink
    from amicrawl.fleet.leases import Claim
    from amicrawl.fleet.logs import Inbox
    from amicrawl.record import CaptureItem

_RULES = {
    Failure.ROBOTS_DENIED: "[robots.txt]",
    Failure.HOST_SKIPPED: "[host given up]",
    Failure.REFUSED_BY_CRAWL: "[crawl]",
}
_IGNORED = "ignored by "
_DROPS_TOLD_EVERY = 10


MOST_HOSTS = 50
MOST_IGNORES = 2000
MOST_FILES = 500
HISTORY = 24 * 60
"""Points, one a minute."""

_IGNORES_EVERY = 5.0
_MINUTE = 60.0
_RATE_OVER = 10.0
_LONGEST = 2048


class JobFacts:
    """What is reported of one crawl; read once a second, on the event loop."""

    def __init__(
        self,
        run: Run,
        orders: LiveJobSettings,
        link: CrawlLink,
        claim: Claim,
        *,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._orders = orders
        self._link = link
        self._claim = claim
        self._wall = wall
        self._clock = clock
        self._began = clock()
        self._told: dict[str, bytes] = {}
        self._revisions: Counter[str] = Counter()
        self._rates: deque[tuple[float, int, int, int]] = deque()
        self._history: deque[dict[str, Any]] = deque(maxlen=HISTORY)
        self._busy = BusyHosts(run)
        self._due = {"ignores": 0.0, "history": 0.0}
        self.ignored_dropped = 0
        """Rows that waited and were dropped, since an expression that came later kept them out."""

    def begin_anew(self) -> None:
        """Tell everything again: Redis has forgotten it."""
        self._told.clear()

    def current(self, figures: Figures | None, *, own: Figures, is_last: bool = False) -> dict[str, str]:
        """Return the facts that have changed since the last call, given the *figures* of the job.

        *figures* is None until what earlier attempts left is counted. *own* are those of this process;
        rates come from them: the others arrive all at once. The last time, everything is looked at.
        """
        now = self._clock()
        if is_last:
            self._due = dict.fromkeys(self._due, now)
        facts: dict[str, Any] = {"hosts": self._hosts(is_last=is_last)}
        if self._is_due("ignores", now, _IGNORES_EVERY):
            facts["ignores"] = self._ignores()
        facts["files"] = self._files()
        if figures is not None and self._is_due("history", now, _MINUTE):
            self._history.append(self._point(figures))
            facts["history"] = list(self._history)
        changed = {}
        for name, fact in facts.items():
            text = orjson.dumps(fact)
            if self._told.get(name) != text:
                self._told[name] = text
                self._revisions[name] += 1
                changed[name] = text.decode()
        changed["now"] = orjson.dumps(self._now(own, now)).decode()
        return changed

    def _is_due(self, name: str, now: float, every: float) -> bool:
        if now < self._due[name] and name in self._told:
            return False
        self._due[name] = now + every
        return True

    def _now(self, own: Figures, now: float) -> dict[str, Any]:
        run, orders, claim = self._run, self._orders, self._claim
        frontier = run.frontier if run.has_frontier else None
        return {
            "ts": round(self._wall(), 3),
            "unit": claim.unit,
            "token": claim.token,
            "attempt": claim.attempt,
            "resumed": claim.resumed[:100],
            "state": run.state,
            "paused_by": sorted(run.paused),
            "finish_reason": run.finish_reason or None,
            "elapsed": round(now - self._began, 1),
            "rates": self._rate(own, now),
            "waiting": frontier.queued if frontier else 0,
            "in_flight": frontier.in_flight if frontier else 0,
            "later": run.later if frontier else 0,
            "known": len(frontier) if frontier else 0,
            "limit": run.limit.limit,
            "delay": orders.delay,
            "delay_max": orders.delay_max,
            "concurrency": orders.concurrency,
            "suppress_ignore_reports": orders.suppress_ignore_reports,
            "settings_age": _age(orders.age),
            "faults": [_shown(fault) for fault in orders.faults],
            "counts": run.tally.as_dict(),
            "ignored_dropped": self.ignored_dropped,
            "log_dropped": self._link.inbox.dropped,
            "rev": {name: self._revisions[name] for name in ("ignores", "files", "history")},
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "directory": _shown(str(run.config.directory.absolute())),
        }

    def _rate(self, own: Figures, now: float) -> dict[str, float]:
        """Return how much a second has come of late."""
        seen = (now, own.items_downloaded, own.bytes_downloaded, own.error_count)
        rates = self._rates
        rates.append(seen)
        while len(rates) > 2 and now - rates[1][0] >= _RATE_OVER:
            rates.popleft()
        first = rates[0]
        span = now - first[0]
        if span <= 0:
            return {"items": 0.0, "bytes": 0.0, "errors": 0.0}
        names = ("items", "bytes", "errors")
        return {name: round((seen[n] - first[n]) / span, 2) for n, name in enumerate(names, start=1)}

    def _hosts(self, *, is_last: bool) -> list[dict[str, Any]]:
        """Return the hosts in flight, then those with the longest queues."""
        return [
            {
                "host": _shown(host.name),
                "in_flight": host.in_flight,
                "pages": host.pages,
                "waiting": host.waiting,
                "delay_ms": round(host.delay * 1000),
            }
            for host in self._busy.found(most=MOST_HOSTS, recount=is_last)
        ]

    def _ignores(self) -> list[dict[str, Any]]:
        following = self._run.following
        if following is None:
            return []
        ignores = following.selection.ignores
        hits = sorted(ignores.hits.items(), key=lambda hit: (-hit[1], hit[0]))[:MOST_IGNORES]
        return [
            {"pattern": _shown(text), "source": ignores.source_of(text) or "job", "hits": count}
            for text, count in hits
        ]

    def _files(self) -> list[dict[str, Any]]:
        return [
            {
                "name": file.name,
                "bytes": file.size,
                "records": file.records,
                "sha256": file.sha256,
                "sealed": True,
            }
            for file in self._run.sealed[-MOST_FILES:]
        ]

    def _point(self, figures: Figures) -> dict[str, Any]:
        return {
            "ts": round(self._wall(), 1),
            "downloaded": figures.requested,
            "bytes": figures.bytes_downloaded,
            "errors": figures.error_count,
            "todo": self._run.waiting,
        }


def _age(text: str) -> int | None:
    """Return the age of settings, which any client may have written, as JSON can say it."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _shown(text: str) -> str:
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return cut if cut.isascii() else cut.encode("utf-8", "replace").decode()


class JobLog:
    """Turns what happens in one crawl into log entries."""

    def __init__(self, run: Run, inbox: Inbox, orders: LiveJobSettings, facts: JobFacts) -> None:
        self._run = run
        self._inbox = inbox
        self._orders = orders
        self._facts = facts
        self._dropped_told = 0
        self._seconds = 0
        if run.following is not None:
            run.following.on_ignored = self._ignored

    def tell(self, line: str) -> None:
        """Say *line*."""
        self._inbox.tell(line)

    def ended(self, job: HeldJob, *, is_done: bool) -> None:
        """Say that the job is done, where no pipeline will."""
        if job.by_hand and is_done:
            # By these words ArchiveBot's page knows a job that has finished.
            self.tell(f"Finished RsyncUpload for Item {job.ident}")

    def started(self, job: HeldJob, settings: list[str]) -> None:
        """Say how the crawl begins."""
        if job.by_hand:
            # By these words ArchiveBot's page knows a job that runs.
            self.tell(f"Received item {job.ident}, crawled by hand, attempt {job.claim.attempt}")
        if self._run.resumed.found:
            self.tell(self._run.resumed.sentence())
        if settings:
            self.tell("Settings: " + ", ".join(settings))

    def counted(self, item: CaptureItem) -> None:
        """Tell of a row of the index."""
        capture = item.capture
        if capture.failure is not None and capture.failure.never_requested:
            self._left_out(capture.url, capture.failure, capture.failure_detail)
        elif capture.failure is not None:
            word = f"{capture.failure.value}: {capture.failure_detail}"[:300]
            self._inbox.download(capture.url, 0, word)
        elif capture.truncated in BROKEN_OFF:
            self._inbox.download(capture.url, capture.status, f"truncated: {capture.truncated}")
        else:
            self._inbox.download(capture.url, capture.status, "OK")

    def every_second(self) -> None:
        """Say now and then how many rows that waited were dropped."""
        self._seconds += 1
        dropped = self._facts.ignored_dropped
        if dropped > self._dropped_told and self._seconds >= _DROPS_TOLD_EVERY:
            self.tell(
                f"{dropped - self._dropped_told} queued URLs were dropped: they match an ignore pattern"
            )
            self._dropped_told, self._seconds = dropped, 0

    def _left_out(self, url: str, failure: Failure, detail: str) -> None:
        pattern = _RULES[failure]
        if failure is Failure.REFUSED_BY_CRAWL and detail.startswith(_IGNORED):
            self._facts.ignored_dropped += 1
            pattern = detail.removeprefix(_IGNORED)
        self._ignored(url, pattern)

    def _ignored(self, url: str, pattern: str) -> None:
        if not self._orders.suppress_ignore_reports:
            self._inbox.ignore(url, pattern)
