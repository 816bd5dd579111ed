"""The screen: a line rewritten on a terminal, a JSON line every 10 s elsewhere, a summary at the end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Self, TextIO

from scrapy import signals

from amicrawl.crawl.run import Run, run_of
from amicrawl.crawl.watching.screen import Moment, report, status_line, summary

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_ERASE_LINE = "\x1b[2K"


class Progress:
    """Tells on *stream* how the crawl goes."""

    def __init__(self, crawler: Crawler, run: Run, *, stream: TextIO) -> None:
        self._crawler = crawler
        self._run = run
        self._stream = stream
        self._on_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._every = run.config.progress_every or (1.0 if self._on_terminal else 10.0)
        self._timer: asyncio.TimerHandle | None = None
        self._started = run.clock()
        self._last = (self._started, 0, 0)
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*; it writes to standard error, where logs go too."""
        return cls(crawler, run_of(crawler), stream=sys.stderr)

    def _opened(self) -> None:
        self._started = self._run.clock()
        self._last = (self._started, 0, 0)
        self._timer = asyncio.get_running_loop().call_later(self._every, self._tick)
        resumed = self._run.resumed
        if not resumed.found:
            return
        if self._on_terminal:
            self._write(resumed.sentence() + "\n")
        else:
            self._write(json.dumps({"event": "resumed", **asdict(resumed)}) + "\n")

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._every, self._tick)
        moment = self._moment()
        if self._on_terminal:
            width = shutil.get_terminal_size().columns - 1
            # The cursor goes back to the start, so that a log line does not begin behind ours.
            self._write(_ERASE_LINE + status_line(self._run.tally, moment)[:width] + "\r")
        else:
            self._write(json.dumps(report(self._run.tally, moment)) + "\n")

    def _closed(self, reason: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        elapsed = self._run.clock() - self._started
        if self._on_terminal:
            self._write(_ERASE_LINE)
        else:
            last = {**report(self._run.tally, self._moment()), "event": "finished", "reason": reason}
            self._write(json.dumps(last) + "\n")
        note = ""
        if reason != "finished":
            unread = "" if self._run.tally.seeds_ended else " and the rest of the seed list not read"
            note = f"stopped ({reason}) with {self._run.waiting:,} URLs not fetched{unread}\n"
        if later := self._run.later:
            note += f"{later:,} URLs to be tried again when they are due: run the same command then\n"
        where = f"output in {self._run.config.directory}\n"
        self._write(note + summary(self._run.tally, elapsed) + "\n" + where)

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
        )

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # A terminal that went away is no reason to stop a crawl.
            return
