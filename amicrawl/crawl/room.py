"""Pauses the crawl while the disk of the output is nearly full, and resumes it by itself.

Looked at once a second. What is in flight when it pauses is still received and kept: the threshold has
to leave room for that.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from amicrawl.crawl.extension import CrawlExtension
from amicrawl.crawl.watching.stopping import free_bytes
from amicrawl.politeness.disk_guard import DiskGuard

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run

logger = logging.getLogger(__name__)

REASON = "disk"
"""The reason for a pause."""

_LOOK_EVERY = 1.0


class DiskRoom(CrawlExtension):
    """Pauses the run below `AMICRAWL_PAUSE_FREE` free bytes; not there where that is 0."""

    def __init__(
        self, crawler: Crawler, run: Run, *, free: Callable[[Run], int | None] = free_bytes
    ) -> None:
        """*free* tells how many bytes are free; None where that is not known, which changes nothing.

        Raises NotConfigured where no threshold is set.
        """
        if not run.config.pause_free:
            raise NotConfigured
        super().__init__(crawler, run)
        self._free = free
        self._guard = DiskGuard(run.config.pause_free)

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
        self._crawler.stats.inc_value("amicrawl/disk/pauses")
        self._run.pause(REASON)

    def _opened(self) -> None:
        self._repeat(self.look, every=_LOOK_EVERY)
