"""The seed list of a crawl: opened before anything else, fed into the frontier, its faults logged."""

from __future__ import annotations

import asyncio
import io
import logging
import threading
from typing import TYPE_CHECKING, BinaryIO

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from amicrawl.capture import Failure
from amicrawl.crawl.feeding import feed, on_a_thread
from amicrawl.crawl.left_out import Line
from amicrawl.crawl.processes.specification import is_child
from amicrawl.crawl.run import run_of
from amicrawl.errors import AmicrawlError, InputError
from amicrawl.seed import count_entries, open_seed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from amicrawl.crawl.arguments import SeedArguments
    from amicrawl.crawl.tally import Tally
    from amicrawl.seed import Fault, SeedFormat, SeedReader

logger = logging.getLogger(__name__)

_ROWS_AT_ONCE = 500
_FAULTS_TOLD = 100
"""Faults that are logged one by one; a list that is wrong throughout must not fill the disk."""


class SeedList:
    """A seed list and its way into the frontier of *crawler*.

    Raises UsageError or InputError where it cannot be opened.
    """

    def __init__(self, crawler: Crawler, arguments: SeedArguments) -> None:
        self._crawler = crawler
        self._arguments = arguments
        self._reports = 0
        self._faults = 0
        self._left_out: list[Line] = []
        """Lines that are to have their rows."""
        self._loop: asyncio.AbstractEventLoop | None = None
        # One on the web is opened when the crawl runs: it is fetched, guarded and archived like a page.
        # So is standard input, which may be silent for long: on a thread that keeps nothing waiting.
        self._is_file = not arguments.file.lower().startswith(("http://", "https://", "-"))
        self._reader = self._open() if self._is_file else None

    async def feed(self) -> None:
        """Offer every seed to the frontier.

        A list that turns out to be unreadable is remembered as the crawl's fault; what was read of it
        is crawled.
        """
        run = run_of(self._crawler)
        if run.spec.gets_seeds:
            run.tally.seeds_ended = True
            return
        self._loop = asyncio.get_running_loop()
        try:
            reader = self._reader if self._reader is not None else await on_a_thread(self._open)
            self._count_ahead(run.tally, reader.format)
            await feed(run, reader)
            await self._record_left_out()
        except AmicrawlError as error:
            run.seed_fault = error
        unfetchable = run.tally.seeds_bad
        if self._reports_faults():
            run.tally.seeds_bad += self._faults
        bad = self._faults + unfetchable
        if run.seed_fault is None and bad and run.tally.seeds_read == unfetchable:
            run.seed_fault = InputError(
                f"Not one line of {self._arguments.file} could be used ({bad} were tried). "
                "Check that it is a seed list, or name its format with -a format=."
            )

    def _open(self) -> SeedReader:
        return open_seed(
            self._arguments.file,
            format=self._arguments.format,
            on_fault=self._told,
            fetch=self._fetch,
        )

    def _count_ahead(self, tally: Tally, seed_format: SeedFormat) -> None:
        """Find out how long the list is while it is being read, for the screen; on a thread."""
        if not self._is_file:
            return

        def count() -> None:
            tally.seeds_announced = count_entries(self._arguments.file, seed_format)

        threading.Thread(target=count, name="amicrawl-count", daemon=True).start()

    def _reports_faults(self) -> bool:
        """Return whether this process reports faults: of several that read the list, the first."""
        return not (is_child() and run_of(self._crawler).spec.shard)

    def _told(self, fault: Fault) -> None:
        """Tell of a fault, with file, line and reason; runs on the reading thread.

        It waits there until many lines that are left out have their rows: a list may have nothing else.
        """
        self._faults += not fault.kept
        self._reports += 1
        if not self._reports_faults():
            pass
        elif self._reports <= _FAULTS_TOLD:
            logger.warning("%s, line %d: %s", fault.source, fault.line, fault.reason)
        elif self._reports == _FAULTS_TOLD + 1:
            logger.warning(
                "%s: further faults are not logged; lines that are left out have rows in the index",
                fault.source,
            )
        if fault.left_out is not None:
            detail = f"line {fault.line} of {fault.source}: {fault.reason}"
            self._left_out.append(Line(fault.left_out, Failure.UNFETCHABLE_URL, detail))
            if len(self._left_out) >= _ROWS_AT_ONCE:
                assert self._loop is not None
                asyncio.run_coroutine_threadsafe(self._record_left_out(), self._loop).result()

    async def _record_left_out(self) -> None:
        lines, self._left_out = self._left_out, []
        run = run_of(self._crawler)
        # Of all that read the same list, the first accounts for what has no host.
        if lines and run.takes_offers and (run.spec.deals_seeds or not run.spec.shard):
            await run.left_out.record(lines)

    def _fetch(self, url: str) -> BinaryIO:
        """Fetch a sitemap through the crawl itself; runs on the reading thread."""
        assert self._loop is not None
        request = Request(url, callback=NO_CALLBACK, meta={"verbatim_url": True})
        downloading = self._crawler.engine.download_async(request)
        try:
            response = asyncio.run_coroutine_threadsafe(downloading, self._loop).result()
        except Exception as error:  # whatever a middleware raises: the list cannot be had
            raise InputError(f"{url} cannot be fetched: {error}. Check the URL.") from error
        if response.status != 200:
            raise InputError(f"{url} cannot be fetched: status {response.status}. Check the URL.")
        return io.BytesIO(response.body)


def seeds_come_in_batches(crawler: Crawler) -> None:
    """Note that *crawler*, a partition of a shared list crawl, has no list to read itself."""
    run = run_of(crawler)
    run.tally.seeds_ended = True
    run.wake()
