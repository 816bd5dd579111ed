"""What the extensions of a crawl have in common: a run, a beginning, a timer, an end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, cast

from scrapy import signals
from scrapy.utils.reactor import is_reactor_installed

from amicrawl.crawl.run import run_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run

    Later = Coroutine[Any, Any, None] | None


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
            every, lambda: self._repeat(act, every=every)
        )
        act()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def before_shutdown(act: Callable[[], None]) -> None:
    """Have *act* called before the process ends, after what was registered before it.

    A second signal stops the reactor and closes no spider.
    """
    if is_reactor_installed():
        from twisted.internet import reactor  # noqa: PLC0415  # importing it earlier would install one

        cast("Any", reactor).addSystemEventTrigger("before", "shutdown", act)
