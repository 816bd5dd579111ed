"""Scrapy's extensions of a crawl: what all have in common, and the two that every crawl of ours has.

`FrontierWriter` writes the frontier's changes while the crawl runs: what was written survives the
process, what was forced to disk survives a power failure. Writing is cheap and happens many times a
second; forcing is slow and happens on a thread. `Closing` is the end of a crawl: drained at the first
signal, sealed at once at the second, and accounted for.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

from scrapy import signals
from scrapy.utils.reactor import is_reactor_installed

from amicrawl.config import Durability
from amicrawl.crawl import internals
from amicrawl.crawl.processes.specification import is_child
from amicrawl.crawl.run import run_of
from amicrawl.errors import AmicrawlError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future
    from pathlib import Path

    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run

    Later = Coroutine[Any, Any, None] | None

logger = logging.getLogger(__name__)


class CrawlExtension:
    """A part of a crawl that begins when its spider is opened, and ends when that is closed."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        self._crawler = crawler
        self._run = run
        self._timer: asyncio.TimerHandle | None = None
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*."""
        return cls(crawler, run_of(crawler))

    def _opened(self) -> Later:
        """Begin; the engine does not run yet."""
        return None

    def _closed(self) -> Later:
        """End; only what comes behind may still be at work."""
        self._stop_timer()
        return None

    def _repeat(self, act: Callable[[], None], *, every: float) -> None:
        """Call *act* now and then *every* so many seconds, until `_stop_timer`."""
        self._timer = asyncio.get_running_loop().call_later(
            every, partial(self._repeat, act, every=every)
        )
        act()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _directories_of_crawl(self) -> list[Path]:
        """Return the directories of this crawl: its own, and those of the other processes of it."""
        own = self._run.config.directory
        if not is_child():
            return [own]
        return [own.parent.parent, *(path for path in own.parent.iterdir() if path.is_dir())]


def before_shutdown(act: Callable[[], None]) -> None:
    """Have *act* called before the process ends, after what was registered before it.

    A second signal stops the reactor and closes no spider.
    """
    if is_reactor_installed():
        from twisted.internet import reactor  # noqa: PLC0415  # importing it earlier would install one

        cast("Any", reactor).addSystemEventTrigger("before", "shutdown", act)


_WRITE_EVERY = 0.05
_NOTE_EVERY = 1.0
"""Seconds after which the frontier notes what is counted: the rows of the index, and those of hosts."""
_FORCE_EVERY = {Durability.NONE: float("inf"), Durability.NORMAL: 1.0, Durability.FULL: 0.0}


class FrontierWriter(CrawlExtension):
    """Writes the journal of the frontier, and a snapshot when the journal has grown long."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        super().__init__(crawler, run)
        self._thread = ThreadPoolExecutor(1, "amicrawl-journal")
        self._forcing: Future[None] | None = None
        self._force_every = _FORCE_EVERY[run.config.durability]
        self._forced_at = run.clock()
        self._noted, self._noted_at = 0, run.clock()
        """The number of rows of the index that the frontier noted last, and when."""

    def _opened(self) -> None:
        self._repeat(self._write, every=_WRITE_EVERY)

    def _write(self) -> None:
        if not self._run.has_frontier or self._run.recorder.fault is not None:
            return
        if not self._run.may_write():
            return
        try:
            self._keep()
        except AmicrawlError as fault:
            # The crawl stops as it does when a record cannot be written.
            self._run.recorder.fault = fault

    def _keep(self) -> None:
        """Do what is due; raises OutputError where the disk fails."""
        frontier, now = self._run.frontier, self._run.clock()
        if now - self._noted_at >= _NOTE_EVERY:
            rows = self._run.index_rows
            if rows != self._noted:
                frontier.partition.note_index(rows)
            self._noted, self._noted_at = rows, now
            frontier.flush()
        else:
            # Without what is counted of hosts, whose rows change with every page: those that are to be
            # left alone for seconds are written at once, and the others may be a second late.
            frontier.partition.flush()
        if self._forcing is not None and self._forcing.done():
            forcing, self._forcing = self._forcing, None
            forcing.result()
        if self._forcing is None and now - self._forced_at >= self._force_every:
            self._forced_at = now
            self._forcing = self._thread.submit(frontier.sync)
        frontier.partition.poll()
        if frontier.partition.snapshot_is_due:
            frontier.snapshot()

    def _closed(self) -> None:
        self._stop_timer()
        self._thread.shutdown(wait=True)


_LOOK_EVERY = 0.25


class Closing(CrawlExtension):
    """Watches for the end, bounds the drain, and leaves whole files in every case."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        super().__init__(crawler, run)
        self._stopping_since: float | None = None
        self._ended = False
        crawler.signals.connect(self._spider_closed, signals.spider_closed)

    def _opened(self) -> None:
        before_shutdown(self._seal_at_once)
        for reason in self._run.paused:
            # The engine could not be paused before it was there.
            self._run.pause(reason)
        _heed_hangup()
        self._repeat(self._watch, every=_LOOK_EVERY)

    def _watch(self) -> None:
        """Look whether the crawl was asked to stop (Scrapy sends no signal for it), or must."""
        if self._run.recorder.fault is not None and not self._run.stopping:
            self._run.end("output_failed")
        elif not self._run.spec.is_guest and internals.is_closing(self._crawler):
            self._bound_the_drain()

    def _bound_the_drain(self) -> None:
        now = self._run.clock()
        self._run.stopping = True
        if self._stopping_since is None:
            self._stopping_since = now
        elif now - self._stopping_since > self._run.config.drain_time:
            self._run.abort()

    def _spider_closed(self, reason: str) -> None:
        self._end(reason)

    def _seal_at_once(self) -> None:
        if not self._ended:
            self._run.recorder.seal_now()
            self._end("stopped at once")

    def _end(self, reason: str) -> None:
        self._ended = True
        self._run.finish(reason)
        if self._run.spec.is_guest and self._run.fault is not None:
            # The commands and scripts that run other projects' spiders say nothing of it.
            logger.error("%s", self._run.fault)
        for key, count in self._run.tally.as_stats().items():
            self._crawler.stats.set_value(key, count)
        if self._run.following is not None:
            for name, count in self._run.following.counts.items():
                self._crawler.stats.set_value(f"amicrawl/links/{name}", count)


def _heed_hangup() -> None:
    """Have a terminal that is closed end the crawl as SIGTERM does, unless SIGHUP is ignored (nohup)."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    ):
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
