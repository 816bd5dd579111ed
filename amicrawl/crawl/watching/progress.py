"""Reports on a crawl that runs: rewritten lines on a terminal, else prose or JSON lines; then a summary.

`AMICRAWL_LOG_FORMAT` decides for the log and for the reports, so that standard error has one format.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Self, TextIO

from scrapy import signals
from scrapy.exceptions import NotConfigured

from amicrawl.config import LogFormat
from amicrawl.crawl.extensions import before_shutdown
from amicrawl.crawl.processes.specification import BY_PARENT
from amicrawl.crawl.run import run_of
from amicrawl.crawl.watching.busy_hosts import (
    BusyHost,
    BusyHosts,
    first_reason,
    longest_waiting,
    shown_hosts,
)
from amicrawl.crawl.watching.screen import (
    Moment,
    dropped,
    left,
    live_lines,
    nothing_due,
    reasons,
    report,
    retried,
    start_line,
    status_line,
    summary,
    unreached,
)
from amicrawl.listing import read_crawl_json
from amicrawl.record import unkept_sentences
from amicrawl.terminal import LiveLines, harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scrapy.crawler import Crawler

    from amicrawl.crawl.decision import Tally
    from amicrawl.crawl.processes.specification import Order
    from amicrawl.crawl.run import Run

_LONG = 2.0
"""Seconds of waiting for hosts from which on a report has them."""


def _said_of(unkept: object, directory: str) -> str:
    """Return the lines of what the crawl into *directory* could not keep, its text made harmless."""
    return "".join(f"{harmless(line)}\n" for line in unkept_sentences(unkept, directory))


def in_flight(crawler: Crawler, run: Run) -> int:
    """Return how many requests are in flight, past Scrapy's engine or by it."""
    rows = run.frontier.in_flight if run.has_frontier else 0
    return max(rows, len(crawler.engine.downloader.active))


def next_in(run: Run) -> float | None:
    """Return the seconds until a host may be contacted; None where nothing waits, or the run is held."""
    if run.paused or run.stopping or not run.waiting:
        return None
    now = run.clock()
    moment = run.frontier.next_moment(now)
    return None if moment is None else moment - now


def if_long(wait: float | None) -> float | None:
    """Return *wait*, in seconds, if it is so long that a report has it, else None."""
    return wait if wait is not None and wait >= _LONG else None


class Reports:
    """Writes to *stream* how a crawl goes: lines that are rewritten, else prose or JSON lines."""

    def __init__(
        self,
        stream: TextIO,
        *,
        log_format: LogFormat,
        every: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """*every*: seconds between two reports; 0 for what suits *stream*."""
        self._stream = stream
        self._lines = LiveLines(stream)
        self._clock = clock
        self.as_json = log_format is LogFormat.JSON
        self.on_terminal = self._lines.is_watched and not self.as_json
        self.every = every or (1.0 if self.on_terminal else 10.0)
        self.begin()

    def begin(self) -> None:
        """Count time from now on."""
        self._started = self._clock()
        self._last = (self._started, 0, 0)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._started

    def rates(self, tally: Tally) -> tuple[float, float]:
        """Return pages and bytes per second since the last call."""
        now, (then, rows, size) = self._clock(), self._last
        self._last = (now, tally.rows, tally.bytes_received)
        span = max(now - then, 0.001)
        return (tally.rows - rows) / span, (tally.bytes_received - size) / span

    def show(
        self, tally: Tally, moment: Moment, hosts: Sequence[BusyHost] = (), **further: object
    ) -> None:
        """Show how things stand, and why *hosts* have to wait, if all have to; *further* is for JSON."""
        if moment.next_in is not None:
            moment = replace(moment, next_reason=first_reason(hosts))
        if self.as_json:
            self.say(report(tally, moment) | further)
        elif self.on_terminal:
            self._lines.show(*live_lines(tally, moment, hosts, ascii_only=self._lines.is_ascii))
        else:
            self.say(status_line(tally, moment))

    def say(self, what: str | Mapping[str, object]) -> None:
        """Print *what*, lines or a JSON object, above the lines that are rewritten."""
        self.make_room()
        # A terminal that went away does not stop a crawl.
        with suppress(OSError):
            self._stream.write((what if isinstance(what, str) else json.dumps(what)) + "\n")
            self._stream.flush()

    def make_room(self) -> None:
        """Take away the lines that are rewritten."""
        self._lines.clear()

    def end(self, tally: Tally, moment: Moment, *, reason: str, notes: str, directory: str) -> None:
        """Print what was done until *moment*, which ended for *reason*, then *notes* and where it is."""
        notes = reasons(tally.failures) + notes
        if not self.as_json:
            self.say(f"{summary(tally, moment.elapsed, reason=reason)}\n{notes}output in {directory}")
            return
        seconds = max(moment.elapsed, 0.001)
        whole = replace(
            moment,
            pages_per_second=tally.rows / seconds,
            bytes_per_second=tally.bytes_received / seconds,
            is_stopping=False,
        )
        ended = {
            "event": "finished",
            "reason": reason,
            "failures": dict(tally.failures.most_common()),
            "directory": directory,
            "notes": notes.splitlines(),
        }
        self.say(report(tally, whole) | ended)


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
        self._at_shutdown = at_shutdown
        self._timer: asyncio.TimerHandle | None = None
        self._busy = BusyHosts(run)
        config = run.config
        self._reports = Reports(
            stream, log_format=config.log_format, every=config.progress_every, clock=run.clock
        )
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*; it writes to standard error, and not where logs are off."""
        if not crawler.settings.getbool("LOG_ENABLED"):
            raise NotConfigured
        return cls(crawler, run_of(crawler), stream=sys.stderr)

    def _opened(self) -> None:
        run, reports = self._run, self._reports
        reports.begin()
        self._timer = asyncio.get_running_loop().call_later(reports.every, self._tick)
        # A second signal closes no spider.
        self._at_shutdown(lambda: self._closed("shutdown"))
        if reports.on_terminal:
            for handler in logging.getLogger().handlers:
                handler.addFilter(self._make_room)
        resumed, config = run.resumed, run.config
        if not reports.as_json:
            reports.say(start_line(config, asked=run.spec.asked, directory=config.directory))
        if resumed.found:
            in_json = {"event": "resumed", **asdict(resumed)}
            reports.say(in_json if reports.as_json else resumed.sentence())

    def _make_room(self, _: logging.LogRecord) -> bool:
        """Take our lines away before a log line is written; all of these are."""
        self._reports.make_room()
        return True

    def _tick(self) -> None:
        reports = self._reports
        self._timer = asyncio.get_running_loop().call_later(reports.every, self._tick)
        moment = self._moment()
        hosts = shown_hosts(self._busy) if reports.on_terminal or moment.next_in is not None else ()
        reports.show(self._run.tally, moment, hosts)

    def _closed(self, reason: str) -> None:
        if self._timer is None:
            # It never opened: the process ends with a sentence that says why. Or this was called before.
            return
        self._timer.cancel()
        self._timer = None
        for handler in logging.getLogger().handlers:
            handler.removeFilter(self._make_room)
        self._reports.end(
            self._run.tally,
            self._moment(),
            reason=reason,
            notes=self._notes(reason),
            directory=str(self._run.config.directory),
        )

    def _notes(self, reason: str) -> str:
        """Return, in a line each, what is left to do, and how."""
        run, where = self._run, str(self._run.config.directory)
        note = unreached(run.tally) if reason == "finished" and run.tally.reached_nothing else ""
        if run.following is not None:
            note += dropped(run.following.selection.ignores.kept_out_by_sets)
        if run.unkept is not None:
            note += _said_of(run.unkept.as_dict(), where)
        if reason == "finished" and not run.tally.rows:
            note += self._why_nothing(where)
        elif run.later and run.tally.rows:
            note += retried(run.later, where, is_job=run.spec.is_job)
        return note if reason == "finished" else note + self._left_over()

    def _why_nothing(self, where: str) -> str:
        """Return why a crawl that finished had nothing to fetch; empty where that is not known."""
        run = self._run
        if run.resumed.standing:
            return nothing_due(
                run.resumed.standing,
                directory=where,
                next_due=run.resumed.next_due,
            )
        tally, listed = run.tally, run.spec.asked.get("file")
        return f"{listed} has no URLs\n" if listed and not tally.seeds_read + tally.seeds_bad else ""

    def _left_over(self) -> str:
        """Return how much a crawl that was stopped has left, and how it is resumed."""
        run, beside = self._run, self._beside()
        resumes = run.spec.resumes and not run.spec.is_job
        note = left(run.waiting + beside, is_list_unread=self._has_unread_seeds(), resumes=resumes)
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
        run, tally = self._run, self._run.tally
        pages_per_second, bytes_per_second = self._reports.rates(tally)
        under_way = in_flight(self._crawler, run)
        return Moment(
            elapsed=self._reports.elapsed,
            total=tally.rows + run.waiting if tally.seeds_ended else tally.seeds_announced,
            in_flight=under_way,
            inflight_limit=run.limit.limit,
            pages_per_second=pages_per_second,
            bytes_per_second=bytes_per_second,
            paused_by=tuple(sorted(run.paused)),
            next_in=None if under_way else if_long(next_in(run)),
            is_stopping=run.stopping,
        )


class ParentProgress(Reports):
    """The reports on the crawl of several processes, by their parent."""

    def __init__(self, order: Order) -> None:
        super().__init__(
            sys.stderr, log_format=order.config.log_format, every=order.config.progress_every
        )
        self._order = order

    def start(self) -> None:
        """Print what is crawled, how politely, into what; a report in JSON has no such line."""
        if self._order.start and not self.as_json:
            self.say(self._order.start)

    def note(self, sentence: str) -> None:
        """Print *sentence*, one of the parent's own."""
        self.say({"event": "note", "message": sentence} if self.as_json else sentence)

    def show_all(self, tally: Tally, facts: Sequence[dict[str, Any]], reason: str) -> None:
        """Show how things stand, by the *facts* of each process, and why the crawl ends, if it does."""
        if any(facts):
            hosts = [BusyHost(*host) for each in facts for host in each.get("hosts", ())]
            moment = self._moment(tally, facts, reason)
            self.show(tally, moment, longest_waiting(hosts), processes=len(facts))

    def _moment(self, tally: Tally, facts: Sequence[dict[str, Any]], reason: str) -> Moment:
        known = [each for each in facts if each]
        waiting = sum(each["waiting"] for each in known)
        pages_per_second, bytes_per_second = self.rates(tally)
        in_flight = sum(each["in_flight"] for each in known)
        waits = [each["next_in"] for each in known if each["next_in"] is not None]
        return Moment(
            elapsed=self.elapsed,
            total=tally.rows + waiting if tally.seeds_ended else tally.seeds_announced,
            in_flight=in_flight,
            inflight_limit=sum(each["inflight_limit"] for each in known),
            pages_per_second=pages_per_second,
            bytes_per_second=bytes_per_second,
            next_in=None if in_flight else if_long(min(waits, default=None)),
            paused_by=tuple(sorted({name for each in known for name in each["paused"]} - {BY_PARENT})),
            is_stopping=bool(reason) and reason != "finished",
        )

    def end_all(self, tally: Tally, facts: Sequence[dict[str, Any]], reason: str) -> None:
        """Print the summary."""
        known, where = [each for each in facts if each], str(self._order.directory)
        notes = unreached(tally) if reason == "finished" and tally.reached_nothing else ""
        notes += _said_of(read_crawl_json(self._order.directory).get("unkept"), where)
        notes += retried(sum(each["later"] for each in known), where)
        if reason != "finished":
            waiting = sum(each["waiting"] for each in known)
            notes += left(waiting, is_list_unread=not tally.seeds_ended)
        moment = self._moment(tally, facts, reason)
        self.end(tally, moment, reason=reason, notes=notes, directory=where)
