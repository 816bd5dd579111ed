"""The end of a crawl: drained at the first signal, sealed at once at the second, and accounted for."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

from scrapy import signals

from amicrawl.crawl import internals
from amicrawl.crawl.extension import CrawlExtension, before_shutdown

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run

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
        elif not self._run.spec.is_guest and self._is_closing():
            self._bound_the_drain()

    def _is_closing(self) -> bool:
        return internals.is_closing(self._crawler)

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
