"""Scrapy's downloader for guests: what other http handlers deliver is archived before it is read.

Such a handler, a browser's for instance, delivers a parsed response. The exchange is written down again
from its parts, and the record names the handler. Where a browser followed redirects, each hop that it
reports has a record of its own, and the page is recorded under the URL that it came from.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from scrapy.core.downloader import Downloader
from scrapy.exceptions import DownloadCancelledError
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from amicrawl.capture import Capture, Failure
from amicrawl.clock import unix_ms, unix_ms_now
from amicrawl.config import LogFormat
from amicrawl.crawl.guest.connections import policy_of
from amicrawl.crawl.guest.handler import GuestHandler, check_open, record
from amicrawl.crawl.guest.settings import HANDLER
from amicrawl.crawl.reconstruct import (
    foreign_handlers,
    max_size_of,
    reconstruct,
    reconstructed_hop,
)
from amicrawl.crawl.responses import deliveries, is_among
from amicrawl.crawl.run import run_of
from amicrawl.crawl.watching.logs import format_handlers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scrapy import Request
    from scrapy.core.downloader.handlers import DownloadHandlers
    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run


class GuestDownloader(Downloader):
    """Keeps Scrapy's slots, delays, signals and middlewares."""

    def __init__(self, crawler: Crawler) -> None:
        """Refuse TLS settings that our handler cannot follow: it is made at the first request."""
        super().__init__(crawler)
        if HANDLER in crawler.settings.getdict("DOWNLOAD_HANDLERS").values():
            policy_of(crawler.settings)
        run = run_of(crawler)
        if run.config.log_format is LogFormat.JSON:
            # The engine begins with this, and Scrapy has just made its log handler for the last time.
            format_handlers(run.config.log_format)
        foreign = foreign_handlers(crawler.settings, ours=GuestHandler)
        if foreign:
            max_size = crawler.settings.getint("DOWNLOAD_MAXSIZE")
            self.handlers = _ArchivedHandlers(  # type: ignore[assignment]  # all of it, by delegation
                self.handlers, run, foreign, max_size=max_size
            )


class _ArchivedHandlers:
    """The *handlers* of a crawl; what those of *foreign* schemes deliver is recorded."""

    def __init__(
        self, handlers: DownloadHandlers, run: Run, foreign: Mapping[str, str], *, max_size: int
    ) -> None:
        self._handlers = handlers
        self._run = run
        self._foreign = foreign
        self._max_size = max_size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handlers, name)

    async def download_request_async(self, request: Request) -> Response:
        """Have *request* downloaded, and record what came of it.

        Raises DownloadCancelledError, as Scrapy's handlers do, for a body above DOWNLOAD_MAXSIZE; the
        record has it up to there.
        """
        run, by = self._run, self._foreign.get(urlparse_cached(request).scheme)
        if by is None:
            # It may have been begun while another handler was at work, whose list it would fill.
            with deliveries():
                return await self._handlers.download_request_async(request)
        check_open(run, request)
        began = datetime.now(UTC)
        redirects = len(request.meta.get("redirect_urls", ()))
        try:
            with deliveries() as delivered:
                response = await self._handlers.download_request_async(request)
        except Exception as error:
            if None not in delivered and not self._has_archived(request, request.url):
                await record(run, request, _failed(request, error, began=began, by=by))
            raise
        if not isinstance(response, Response) or is_among(response, delivered):
            return response
        if not self._has_archived(request, response.url):
            hops = _hops(request, response, known=redirects, by=by)
            size = len(response.body)
            most = max_size_of(request, self._max_size) or size
            page = reconstruct(
                request, response, by=by, began=began, now=datetime.now(UTC), max_size=most
            )
            for capture in (*hops, page):
                await record(run, request, capture)
            if size > most:
                raise DownloadCancelledError(
                    f"{by} received {size} bytes, more than DOWNLOAD_MAXSIZE ({most}), for {request}."
                )
        return response

    def _has_archived(self, request: Request, url: str) -> bool:
        """Return whether the browser that *request* is for has fetched *url*, archived as it came."""
        by_browser = self._run.is_archived_by_browser
        return by_browser is not None and bool(request.meta.get("playwright")) and by_browser(url)


def _hops(request: Request, response: Response, *, known: int, by: str) -> Iterator[Capture]:
    """Yield the redirects that the handler followed by itself, as far as it reports them in `meta`."""
    urls = [str(url) for url in request.meta.get("redirect_urls", ())][known:]
    reasons: list[Any] = list(request.meta.get("redirect_reasons", ()))[known:]
    for url, reason, target in zip(urls, reasons, [*urls[1:], response.url], strict=False):
        if isinstance(reason, int) and 300 <= reason < 400:
            yield reconstructed_hop(url, reason, target, by=by, now=datetime.now(UTC))


def _failed(request: Request, error: Exception, *, began: datetime, by: str) -> Capture:
    started_ms = unix_ms(began)
    return Capture(
        url=request.url,
        started_ms=started_ms,
        duration_ms=max(0, unix_ms_now() - started_ms),
        failure=Failure.OTHER,
        failure_detail=f"{type(error).__name__}: {error}"[:300],
        reconstructed_by=by,
    )
