"""Pauses the crawl while the disk of the output is nearly full, and resumes it by itself.

Looked at once a second. What is in flight when it pauses is still received and kept: the threshold has
to leave room for that.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured

from amicrawl.crawl.run import Run, run_of
from amicrawl.crawl.watching.stopping import free_bytes
from amicrawl.politeness.disk_guard import DiskGuard

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

REASON = "disk"
"""The reason for a pause."""

_LOOK_EVERY = 1.0


class DiskRoom:
    """Pauses the run below `AMICRAWL_PAUSE_FREE` free bytes; not there where that is 0."""

    def __init__(
        self, crawler: Crawler, run: Run, *, free: Callable[[Run], int | None] = free_bytes
    ) -> None:
        """*free* tells how many bytes are free; None where that is not known, which changes nothing.

        Raises NotConfigured where no threshold is set.
        """
        if not run.config.pause_free:
            raise NotConfigured
        self._stats = crawler.stats
        self._run = run
        self._free = free
        self._guard = DiskGuard(run.config.pause_free)
        self._timer: asyncio.TimerHandle | None = None
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*."""
        return cls(crawler, run_of(crawler))

    def look(self) -> None:
        """Measure, and pause or resume accordingly."""
        free, was_paused = self._free(self._run), self._guard.paused
        if free is None or self._guard.measured(free) is was_paused:
            return
        if was_paused:
            logger.info("There is room on the disk again (%d bytes): the crawl continues.", free)
            self._run.resume(REASON)
            return
        logger.warning(
            "Only %d bytes are free in %s, AMICRAWL_PAUSE_FREE asks for %d: nothing new is fetched "
            "until there is room again.",
            free,
            self._run.config.directory,
            self._run.config.pause_free,
        )
        self._stats.inc_value("amicrawl/disk/pauses")
        self._run.pause(REASON)

    def _opened(self) -> None:
        self._tick()

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY, self._tick)
        self.look()

    def _closed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
