"""Reports on a crawl that runs: rewritten lines on a terminal, else prose or JSON lines; then a summary.

`AMICRAWL_LOG_FORMAT` decides for the log and for the reports, so that standard error has one format.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections import Counter
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Self, TextIO

from scrapy import signals
from scrapy.exceptions import NotConfigured

from amicrawl.config import LogFormat
from amicrawl.crawl.extensions import before_shutdown
from amicrawl.crawl.run import Run, run_of
from amicrawl.crawl.watching.busy_hosts import BusyHosts
from amicrawl.crawl.watching.screen import (
    Moment,
    dropped,
    live_lines,
    nothing_due,
    reasons,
    report,
    start_line,
    status_line,
    summary,
    unreached,
)
from amicrawl.terminal import LiveLines, counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from amicrawl.record import CaptureItem

_HOSTS = 4
"""Hosts that a terminal shows."""
_LONG = 2.0
"""Seconds of waiting for hosts from which on a report has them."""


class Progress:
    """Writes to *stream* how the crawl goes."""

    def __init__(
        self,
        crawler: Crawler,
        run: Run,
        *,
        stream: TextIO,
        at_shutdown: Callable[[Callable[[], None]], None] = before_shutdown,
    ) -> None:
        """*at_shutdown* registers what runs before the process ends, also where no spider closes."""
        self._crawler = crawler
        self._run = run
        self._stream = stream
        self._at_shutdown = at_shutdown
        self._lines = LiveLines(stream)
        self._busy = BusyHosts(run)
        self._as_json = run.config.log_format is LogFormat.JSON
        self._on_terminal = self._lines.is_watched and not self._as_json
        self._every = run.config.progress_every or (1.0 if self._on_terminal else 10.0)
        self._timer: asyncio.TimerHandle | None = None
        self._started = run.clock()
        self._last = (self._started, 0, 0)
        self._failures: Counter[str] = Counter()
        run.on_count.append(self._counted)
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*; it writes to standard error, and not where logs are off."""
        if not crawler.settings.getbool("LOG_ENABLED"):
            raise NotConfigured
        return cls(crawler, run_of(crawler), stream=sys.stderr)

    def _opened(self) -> None:
        self._started = self._run.clock()
        self._last = (self._started, 0, 0)
        self._timer = asyncio.get_running_loop().call_later(self._every, self._tick)
        # A second signal closes no spider.
        self._at_shutdown(lambda: self._closed("shutdown"))
        run = self._run
        if self._on_terminal:
            for handler in logging.getLogger().handlers:
                handler.addFilter(self._make_room)
        resumed = run.resumed
        if self._as_json:
            if resumed.found:
                self._write(json.dumps({"event": "resumed", **asdict(resumed)}) + "\n")
            return
        config = run.config
        self._write(start_line(config, asked=run.spec.asked, directory=config.directory) + "\n")
        if resumed.found:
            self._write(resumed.sentence() + "\n")

    def _make_room(self, _: logging.LogRecord) -> bool:
        """Take our lines away before a log line is written; all of these are."""
        self._lines.clear()
        return True

    def _counted(self, item: CaptureItem) -> None:
        if item.capture.failure is not None:
            self._failures[item.capture.failure.value] += 1

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._every, self._tick)
        moment = self._moment()
        if self._as_json:
            self._write(json.dumps(report(self._run.tally, moment)) + "\n")
        elif self._on_terminal:
            hosts = self._busy.longest_waiting(most=_HOSTS)
            ascii_only = self._lines.is_ascii
            self._lines.show(*live_lines(self._run.tally, moment, hosts, ascii_only=ascii_only))
        else:
            self._write(status_line(self._run.tally, moment) + "\n")

    def _closed(self, reason: str) -> None:
        if self._timer is None:
            # It never opened: the process ends with a sentence that says why. Or this was called before.
            return
        self._timer.cancel()
        self._timer = None
        elapsed = self._run.clock() - self._started
        for handler in logging.getLogger().handlers:
            handler.removeFilter(self._make_room)
        self._lines.clear()
        notes = self._notes(reason)
        where = self._run.config.directory
        if not self._as_json:
            what = summary(self._run.tally, elapsed, reason=reason)
            self._write(f"{what}\n{notes}output in {where}\n")
            return
        ended = {
            "event": "finished",
            "stopping": False,
            "reason": reason,
            "failures": dict(self._failures.most_common()),
            "directory": str(where),
            "notes": notes.splitlines(),
        }
        tally, seconds = self._run.tally, max(elapsed, 0.001)
        whole = replace(
            self._moment(),
            pages_per_second=tally.rows / seconds,
            bytes_per_second=tally.bytes_received / seconds,
        )
        self._write(json.dumps(report(tally, whole) | ended) + "\n")

    def _notes(self, reason: str) -> str:
        """Return, in a line each, why fetches brought no response, what is left to do, and how."""
        run, where = self._run, str(self._run.config.directory)
        note = reasons(self._failures)
        if reason == "finished" and run.tally.reached_nothing:
            note += unreached(run.tally)
        if run.following is not None:
            note += dropped(run.following.ignored_by_sets)
        if reason == "finished" and not run.tally.rows:
            note += self._why_nothing(where)
        elif run.later and run.tally.rows:
            note += (
                f"{counted(run.later, 'URL')} will be retried by the same command when due "
                f"(`amicrawl frontier stats {where}` shows when), or now after "
                f"`amicrawl frontier retry {where}`\n"
            )
        return note if reason == "finished" else note + self._left_over()

    def _why_nothing(self, where: str) -> str:
        """Return why a crawl that finished had nothing to fetch; empty where that is not known."""
        run = self._run
        if run.resumed.standing:
            return nothing_due(
                run.resumed.standing,
                directory=where,
                next_due=run.resumed.next_due,
                recrawls=run.spec.recrawl_before is not None,
            )
        tally, listed = run.tally, run.spec.asked.get("file")
        return f"{listed} has no URLs\n" if listed and not tally.seeds_read + tally.seeds_bad else ""

    def _left_over(self) -> str:
        """Return how much a crawl that was stopped has left, and how it is resumed."""
        run, beside = self._run, self._beside()
        unread = " and the rest of the seed list not read" if self._has_unread_seeds() else ""
        note = f"{counted(run.waiting + beside, 'URL')} not fetched{unread}"
        # Scrapy's own spiders begin anew.
        note += "; to resume, run the same command again\n" if run.spec.resumes else "\n"
        if beside and not self._crawler.settings.get("JOBDIR"):
            note += f"of them {beside:,} in Scrapy's queue alone, which lasts only with JOBDIR\n"
        return note

    def _has_unread_seeds(self) -> bool:
        has_list = getattr(self._crawler.spider, "arguments", None) is not None
        return has_list and not self._run.tally.seeds_ended

    def _beside(self) -> int:
        """Return how many requests were left in Scrapy's own queue, beside the frontier."""
        put = int(self._crawler.stats.get_value("scheduler/enqueued", 0))
        return max(0, put - int(self._crawler.stats.get_value("scheduler/dequeued", 0)))

    def _moment(self) -> Moment:
        run, tally, now = self._run, self._run.tally, self._run.clock()
        then, rows, size = self._last
        self._last = (now, tally.rows, tally.bytes_received)
        span = max(now - then, 0.001)
        return Moment(
            elapsed=now - self._started,
            total=tally.rows + run.waiting if tally.seeds_ended else tally.seeds_announced,
            in_flight=len(self._crawler.engine.downloader.active),
            inflight_limit=run.limit.limit,
            pages_per_second=(tally.rows - rows) / span,
            bytes_per_second=(tally.bytes_received - size) / span,
            paused_by=tuple(sorted(run.paused)),
            next_in=self._next_in(now),
            is_stopping=run.stopping,
        )

    def _next_in(self, now: float) -> float | None:
        """Return in how many seconds a host may be asked; None where a report need not say so."""
        run = self._run
        if run.paused or run.stopping or self._crawler.engine.downloader.active or not run.waiting:
            return None
        moment = run.frontier.next_moment(now)
        return moment - now if moment is not None and moment - now >= _LONG else None

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # A terminal that went away does not stop a crawl.
            return
