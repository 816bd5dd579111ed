"""Scrapy's downloader, with every http response of a foreign handler archived before it is handed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.core.downloader import Downloader

from amicrawl.config import LogFormat
from amicrawl.crawl.guest.foreign import ArchivedHandlers, foreign_schemes
from amicrawl.crawl.run import run_of
from amicrawl.crawl.watching.logs import format_handlers

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class GuestDownloader(Downloader):
    """Keeps Scrapy's slots, delays, signals and middlewares."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        run = run_of(crawler)
        if run.config.log_format is LogFormat.JSON:
            # The engine begins with this, and Scrapy has just made its log handler for the last time.
            format_handlers(run.config.log_format)
        foreign = foreign_schemes(crawler.settings)
        if foreign:
            self.handlers = ArchivedHandlers(  # type: ignore[assignment]  # all of it, by delegation
                self.handlers, run, foreign
            )
