"""What a crawl begins with: the seed list of a crawl of URLs, the start URLs of a crawl of sites.

A seed list is opened before anything else and fed into the frontier, its faults logged. Start URLs are
all read before the crawl begins, since they make its scope. A list on the web that a crawl has to know
before it begins is fetched over a wire of its own.
"""

from __future__ import annotations

import asyncio
import io
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, BinaryIO

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from amicrawl.capture import REDIRECTS, Failure, Truncation, final_url
from amicrawl.crawl.arguments import SiteArguments
from amicrawl.crawl.feeding import SkippedLine, feed, offer_seed
from amicrawl.crawl.processes.specification import is_child
from amicrawl.crawl.run import run_of
from amicrawl.crawl.wiring import make_resolver, make_wire
from amicrawl.errors import AmicrawlError, DamagedFileError, InputError, UsageError
from amicrawl.fetch import WireRequest
from amicrawl.listing import read_crawl_json
from amicrawl.seed import Seed, count_entries, open_seed
from amicrawl.threads import on_a_thread
from amicrawl.urls import Refused, fetchable, with_scheme, without_userinfo

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.crawler import Crawler

    from amicrawl.capture import Capture
    from amicrawl.config import CrawlConfig
    from amicrawl.crawl.arguments import SeedArguments
    from amicrawl.crawl.decision import Tally
    from amicrawl.seed import SeedFault, SeedFormat, SeedReader

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
        self._left_out: list[SkippedLine] = []
        """Lines that are to have their rows."""
        self._loop: asyncio.AbstractEventLoop | None = None
        # One on the web is opened when the crawl runs: it is fetched, guarded and archived like a page.
        # So is standard input, which may be silent for long: on a thread that keeps nothing waiting.
        self._is_file = not arguments.file.lower().startswith(("http://", "https://", "-"))
        self._is_elsewhere = bool(arguments.share)
        """Whether the seeds come in batches, since another process reads the list."""
        self._reader = self._open() if self._is_file and not self._is_elsewhere else None

    async def feed(self) -> None:
        """Offer every seed to the frontier.

        A list that turns out to be unreadable is remembered as the crawl's fault; what was read of it
        is crawled.
        """
        run = run_of(self._crawler)
        if self._is_elsewhere or run.spec.gets_seeds:
            run.tally.seeds_ended = True
            run.wake()
            return
        self._loop = asyncio.get_running_loop()
        try:
            reader = self._reader if self._reader is not None else await on_a_thread(self._open)
            self._count_ahead(run.tally, reader.format)
            await feed(run, reader)
            await self._record_left_out()
            run.seed_fault = reader.cut if self._reports_faults() else None
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

    def _told(self, fault: SeedFault) -> None:
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
            self._left_out.append(SkippedLine(fault.left_out, Failure.UNFETCHABLE_URL, detail))
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


_MOST = 1_000_000
"""Start URLs that are held in memory with their scope; a list of pages is for the spider `seeds`."""


_OF_SITE = ("url", "file", "format", "depth", "share")


def read_starts(arguments: SiteArguments) -> tuple[Seed, ...]:
    """Return the start URLs. Raises UsageError or InputError, saying which one cannot be followed."""
    starts = [Seed(without_userinfo(with_scheme(url))) for url in arguments.url]
    for start in starts:
        found = fetchable(start.url)
        if isinstance(found, Refused):
            raise UsageError(f"Start URL {start.url!r} cannot be fetched: {found.reason}.")
    if arguments.file is not None:
        starts += _listed(arguments.file, arguments.format)
    if not starts and not arguments.share:
        raise InputError(f"Not one line of {arguments.file} could be used as a start URL.")
    return tuple(starts)


def site_crawled_in(directory: Path) -> SiteArguments | None:
    """Return by which arguments the spider `site` crawled into *directory*; None where it did not."""
    try:
        asked = read_crawl_json(directory)["asked"]
        known = {name: str(asked[name]) for name in _OF_SITE if asked.get(name)}
    except (DamagedFileError, KeyError, TypeError, AttributeError):
        return None
    return SiteArguments.parse(known) if "depth" in known else None


async def offer_starts(crawler: Crawler, arguments: SiteArguments, starts: tuple[Seed, ...]) -> None:
    """Offer *starts* to the frontier of *crawler*."""
    run = run_of(crawler)
    if arguments.share is None:
        run.tally.seeds_announced = len(starts)
        for start in starts:
            await offer_seed(run, start)
    run.tally.seeds_ended = True
    run.wake()


def _listed(file: str, file_format: str | None) -> list[Seed]:
    if file.lower().startswith(("http://", "https://")):
        raise UsageError(
            f"Argument file={file!r} is an address. Start at a site with -a url=, and have its sitemaps "
            "read with -s AMICRAWL_SITEMAPS=1."
        )

    def tell(fault: SeedFault) -> None:
        logger.warning("%s, line %d: %s", fault.source, fault.line, fault.reason)

    starts: list[Seed] = []
    for seed in (reader := open_seed(file, format=file_format, on_fault=tell)):
        if isinstance(fetchable(seed.url), Refused):
            logger.warning("%s: start URL %r cannot be fetched", file, seed.url)
            continue
        starts.append(seed)
        if len(starts) > _MOST:
            raise InputError(
                f"{file} has more than {_MOST:,} start URLs. For a list of pages use the spider `seeds`."
            )
    if reader.cut is not None:
        # They make the scope, which would be another one.
        raise reader.cut
    return starts


LARGEST_LIST = 64 * 1024**2
"""Bytes of a list that is fetched."""
_LONGEST_CHAIN = 5


def fetched_list(url: str, config: CrawlConfig) -> bytes:
    """Return what lies at *url*, redirects followed, over the guarded wire of a crawl by *config*.

    Raises InputError for any response but a whole one with status 200, and for one that is too large.
    """
    try:
        # On a thread, since the loop of this one may be running.
        with ThreadPoolExecutor(1, "amicrawl-list") as thread:
            return thread.submit(asyncio.run, _fetch(url, config)).result()
    except AmicrawlError:
        raise
    except Exception as error:  # whatever goes wrong, the list cannot be had
        raise InputError(f"The list {url} cannot be fetched: {error!r}.") from error


async def _fetch(url: str, config: CrawlConfig) -> bytes:
    bounded = config.model_copy(update={"max_body": LARGEST_LIST})
    async with make_wire(bounded, resolver=make_resolver(config)) as wire:
        for _ in range(_LONGEST_CHAIN):
            target = fetchable(url)
            if isinstance(target, Refused):
                raise InputError(f"The list {url!r} cannot be fetched: {target.reason}.")
            fields = [
                (b"User-Agent", b"amicrawl"),
                (b"Accept", b"*/*"),
                (b"Accept-Encoding", b"identity"),
            ]
            capture = await wire.fetch(
                WireRequest(url=target.url, wire_url=target.wire_url, fields=fields, proxy=config.proxy)
            )
            try:
                leads_on = final_url(capture)
                if capture.status not in REDIRECTS or leads_on == url:
                    return _whole(url, capture)
            finally:
                capture.body.close()
            url = leads_on
    raise InputError(f"The list {url} cannot be fetched: more than {_LONGEST_CHAIN} redirects.")


def _whole(url: str, capture: Capture) -> bytes:
    if capture.failure is not None:
        raise InputError(
            f"The list {url} cannot be fetched: {capture.failure}, {capture.failure_detail}."
        )
    if capture.status != 200:
        raise InputError(f"The list {url} cannot be fetched: status {capture.status}.")
    if capture.truncated is Truncation.LENGTH:
        raise InputError(f"The list {url} has more than {LARGEST_LIST} bytes.")
    if capture.truncated is not None:
        raise InputError(f"The list {url} broke off: {capture.truncated}.")
    return b"".join(capture.payload())
