"""Other http handlers, a browser's for instance: what they deliver is archived before it is read.

They hand on a parsed response, so the exchange is written down again from its parts, and the record says
by which handler it was reconstructed. Where a browser followed redirects, each hop that it reports has a
record of its own, and the page is recorded under the URL that it came from.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DownloadFailedError
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import load_object

from amicrawl.capture import Capture, Failure
from amicrawl.crawl.carried import META_JSON
from amicrawl.crawl.guest.handler import GuestHandler
from amicrawl.crawl.reconstruct import reconstruct, reconstructed_hop
from amicrawl.errors import AmicrawlError
from amicrawl.record import CaptureItem
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scrapy import Request
    from scrapy.core.downloader.handlers import DownloadHandlers
    from scrapy.settings import BaseSettings

    from amicrawl.crawl.run import Run


def foreign_schemes(settings: BaseSettings) -> dict[str, str]:
    """Return the dotted names of the http handlers in *settings* that are not ours, by URL scheme."""
    configured = settings.getwithbase("DOWNLOAD_HANDLERS")
    return {
        scheme: handler if isinstance(handler, str) else f"{handler.__module__}.{handler.__qualname__}"
        for scheme in ("http", "https")
        if (handler := configured.get(scheme)) and load_object(handler) is not GuestHandler
    }


class ArchivedHandlers:
    """The *handlers* of a crawl; what those of *foreign* schemes deliver is recorded."""

    def __init__(self, handlers: DownloadHandlers, run: Run, foreign: Mapping[str, str]) -> None:
        self._handlers = handlers
        self._run = run
        self._foreign = foreign

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handlers, name)

    async def download_request_async(self, request: Request) -> Response:
        """Have *request* downloaded, and record what came of it."""
        run, by = self._run, self._foreign.get(urlparse_cached(request).scheme)
        if by is None:
            return await self._handlers.download_request_async(request)
        began = datetime.now(UTC)
        redirects = len(request.meta.get("redirect_urls", ()))
        try:
            response = await self._handlers.download_request_async(request)
        except Exception as error:
            await _record(run, request, [_failed(request, error, began=began, by=by)])
            raise
        if isinstance(response, Response):
            hops = _hops(request, response, known=redirects, by=by)
            page = reconstruct(request, response, by=by, began=began, now=datetime.now(UTC))
            await _record(run, request, [*hops, page])
        return response


def _hops(request: Request, response: Response, *, known: int, by: str) -> Iterator[Capture]:
    """Yield the redirects that the handler followed by itself, as far as it reports them in `meta`."""
    urls = [str(url) for url in request.meta.get("redirect_urls", ())][known:]
    reasons: list[Any] = list(request.meta.get("redirect_reasons", ()))[known:]
    for url, reason, target in zip(urls, reasons, [*urls[1:], response.url], strict=False):
        if isinstance(reason, int) and 300 <= reason < 400:
            yield reconstructed_hop(url, reason, target, by=by, now=datetime.now(UTC))


def _failed(request: Request, error: Exception, *, began: datetime, by: str) -> Capture:
    now = datetime.now(UTC)
    return Capture(
        url=request.url,
        started=began.replace(microsecond=began.microsecond // 1000 * 1000),
        duration_ms=max(0, int((now - began).total_seconds() * 1000)),
        failure=Failure.OTHER,
        failure_detail=f"{type(error).__name__}: {error}"[:300],
        reconstructed_by=by,
    )


async def _record(run: Run, request: Request, captures: list[Capture]) -> None:
    """Record *captures*. Raises DownloadFailedError where the output fails, which ends the crawl."""
    meta_json, attempts = (
        str(request.meta.get(META_JSON, "")),
        int(request.meta.get("retry_times", 0)) + 1,
    )
    for capture in captures:
        location = capture.header(b"location") if 300 <= capture.status < 400 else None
        item = CaptureItem(
            capture=capture,
            seed=Seed(capture.url, meta_json=meta_json),
            attempts=attempts,
            final_url=location.decode("latin-1") if location else "" if capture.failure else capture.url,
        )
        try:
            await run.record(item)
        except AmicrawlError:
            raise DownloadFailedError("the output of the crawl failed") from None
