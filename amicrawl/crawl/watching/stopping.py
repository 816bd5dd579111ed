"""Watches the stop conditions: counts with every row of the index, clock and disk every 0.25 s."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from amicrawl.crawl.extensions import CrawlExtension
from amicrawl.crawl.state import BYTES, DISK, ERRORS, PAGES, TIME
from amicrawl.terminal import human_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from amicrawl.config import CrawlConfig
    from amicrawl.crawl.decision import Tally
    from amicrawl.crawl.run import Run
    from amicrawl.record import CaptureItem

logger = logging.getLogger(__name__)

_LOOK_EVERY = 0.25
_LOOK_AT_DISK_EVERY = 1.0
REASON = "disk"
"""The reason for a pause."""


def count_reached(config: CrawlConfig, tally: Tally) -> str | None:
    """Return the finish reason that the counts of *tally* lead to, or None while they lead to none."""
    if config.stop_pages and tally.rows >= config.stop_pages:
        return PAGES
    if config.stop_bytes and tally.bytes_received >= config.stop_bytes:
        return BYTES
    if config.stop_errors and tally.failed >= config.stop_errors:
        return ERRORS
    return None


def clock_or_disk_reached(config: CrawlConfig, *, elapsed: float, free: int | None) -> str | None:
    """Return the finish reason that *elapsed* seconds or *free* bytes lead to.

    *free* is None where it is not known; that ends no crawl.
    """
    if config.stop_time and elapsed >= config.stop_time:
        return TIME
    if config.stop_free and free is not None and free < config.stop_free:
        return DISK
    return None


def is_full(free: int, threshold: int, *, was_full: bool) -> bool:
    """Return whether *free* bytes are too few: below *threshold*, and then until there is a tenth more.

    So a disk that hovers at the threshold does not start and stop the crawl with every file.
    """
    # In whole numbers, rounded up: a float would lose bytes of a large disk.
    return free < (-(-threshold * 11 // 10) if was_full else threshold)


class StopConditions(CrawlExtension):
    """Ends the crawl when a limit that was set is reached; not there where none is."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        """Watch what is set; raises NotConfigured where nothing is."""
        config = run.config
        counted = bool(config.stop_pages or config.stop_bytes or config.stop_errors)
        self._timed = bool(config.stop_time or config.stop_free)
        if not counted and not self._timed:
            raise NotConfigured
        super().__init__(crawler, run)
        self._started = run.clock()
        self._reached = False
        if counted:
            # At once and not four times a second: of a quick crawl that would be hundreds of pages more.
            run.tally.on_count.append(self._counted)

    def _opened(self) -> None:
        self._started = self._run.clock()
        if self._timed:
            self._repeat(self._look, every=_LOOK_EVERY)

    def _look(self) -> None:
        run = self._run
        elapsed = run.clock() - self._started
        self._end(
            clock_or_disk_reached(run.config, elapsed=elapsed, free=free_bytes(run.config.directory))
        )

    def _counted(self, _: CaptureItem) -> None:
        self._end(count_reached(self._run.config, self._run.tally))

    def _end(self, reason: str | None) -> None:
        if reason is not None and not self._reached:
            self._reached = True
            logger.info("A limit that was set ends the crawl: %s", reason)
            self._run.end(reason)


def free_bytes(directory: Path) -> int | None:
    """Return how much room is left for a crawl into *directory*; None where that is not known."""
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return None


def own_memory(pid: int | str = "self") -> int:
    """Return the bytes of memory that a process holds alone; 0 where that is not known."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


class DiskRoom(CrawlExtension):
    """Pauses the run below `AMICRAWL_PAUSE_FREE` free bytes; not there where that is 0."""

    def __init__(
        self, crawler: Crawler, run: Run, *, free: Callable[[Path], int | None] = free_bytes
    ) -> None:
        """*free* tells how many bytes are free; None where that is not known, which changes nothing.

        Raises NotConfigured where no threshold is set.
        """
        if not run.config.pause_free:
            raise NotConfigured
        super().__init__(crawler, run)
        self._free = free
        self._is_paused = False

    def look(self) -> None:
        """Measure, and pause or resume accordingly."""
        free, was_paused = self._free(self._run.config.directory), self._is_paused
        if free is not None:
            self._is_paused = is_full(free, self._run.config.pause_free, was_full=was_paused)
        if free is None or self._is_paused is was_paused:
            return
        if was_paused:
            logger.info("There is room on the disk again (%s): the crawl continues.", human_size(free))
            self._run.resume(REASON)
            return
        logger.warning(
            "Only %s are free in %s, less than AMICRAWL_PAUSE_FREE=%s: no new request is started until "
            "there is room again.",
            human_size(free),
            self._run.config.directory,
            human_size(self._run.config.pause_free),
        )
        self._crawler.stats.inc_value("amicrawl/disk/pauses")
        self._run.pause(REASON)

    def _opened(self) -> None:
        self._repeat(self.look, every=_LOOK_AT_DISK_EVERY)
