"""Stop conditions: the limits at which a crawl ends by itself. Pure: numbers in, a finish reason out.

Counts are those of this process: a crawl that is started again after a limit goes on, and the limit
counts from nothing. What was in flight when a limit was reached is still drained and kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amicrawl.config import CrawlConfig
    from amicrawl.crawl.tally import Tally

PAGES = "limit-pages"
BYTES = "limit-bytes"
ERRORS = "limit-errors"
TIME = "limit-time"
DISK = "limit-disk"
LIMITS = frozenset({PAGES, BYTES, ERRORS, TIME, DISK})
"""The finish reasons of a crawl that a limit of its own ended."""


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
