"""The downloader: Scrapy's, without slots.

Scrapy's downloader keeps a queue, a delay and a timer per host. The scheduler here only lets go of
what may start at once, so all of that would be work for nothing (it is most of an engine pass), and a
slow host would hold places that others could use. What other components may rely on stays: the
middlewares, the signals, `active`, `slots` (empty) and `handlers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler

from amicrawl.capture import Failure
from amicrawl.crawl.decision import STOPPED, provenance_of
from amicrawl.crawl.internals import Signaller
from amicrawl.crawl.reconstruct import ForeignResponses
from amicrawl.crawl.requests import NOTHING_MORE, TICKET, ticket_of
from amicrawl.crawl.responses import (
    NotYet,
    RefusedByRobots,
    Stopped,
    TryAgainLater,
    deliveries,
    exception_of,
    is_among,
)
from amicrawl.crawl.run import run_of
from amicrawl.crawl.spec import reads_responses
from amicrawl.crawl.watching.logs import format_handlers
from amicrawl.errors import AmicrawlError
from amicrawl.frontier import Outcome

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from amicrawl.crawl.decision import Ticket


class ArchiveDownloader:
    """Runs requests through the middlewares and a handler, and hands in their tickets at the end."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._run = run_of(crawler)
        self._signals = Signaller(crawler)
        # The engine begins with this, and Scrapy has just made its log handler for the last time.
        format_handlers(self._run.config.log_format)
        self.active: set[Request] = set()
        self.slots: dict[str, Any] = {}
        self.total_concurrency = self._run.config.inflight_max
        self._reads = reads_responses(crawler)
        self.handlers = DownloadHandlers(crawler)
        self._foreign = ForeignResponses.from_crawler(crawler)
        self.middleware: DownloaderMiddlewareManager = build_from_crawler(
            DownloaderMiddlewareManager, crawler
        )

    def fetch(self, request: Request) -> Deferred[Response | Request]:
        """Download *request*; the result is a response, or a request that takes its place."""
        return deferred_from_coro(self._fetch(request))

    def needs_backout(self) -> bool:
        """Tell whether as many requests are in flight as the in-flight limit allows."""
        return len(self.active) >= self._run.limit.limit

    def get_slot_key(self, request: Request) -> str:
        """Return the name under which Scrapy's priority queues spread *request* over hosts."""
        return urlparse_cached(request).hostname or ""

    def close(self) -> None:
        """Nothing runs on its own here that would have to be ended."""

    async def _fetch(self, request: Request) -> Response | Request:
        self.active.add(request)
        ticket = ticket_of(request)
        try:
            result = await self.middleware.download_async(self._transfer, request)
        except (Stopped, NotYet, TryAgainLater):
            # It goes on later, and no errback is to hear of what is not over.
            request.errback = None
            raise
        except AmicrawlError:
            raise
        except Exception as error:
            if ticket is not None and ticket.outcome is None:
                await self._record_refusal(ticket, error)
            raise
        else:
            if ticket is not None and ticket.outcome is None:
                # A middleware responded in the server's place, or put another request in this one's:
                # nothing was fetched, and there is nothing left to do for this row.
                ticket.outcome = Outcome(status=0, failure=Failure.REFUSED_BY_CRAWL)
            if isinstance(result, Request) and result is not request:
                # Copied with the rest of `meta`, for a redirect say: one ticket is one permission.
                result.meta.pop(TICKET, None)
            return self._ended_here(request, ticket, result)
        finally:
            self.active.remove(request)
            # A middleware may have given the ticket only now, to a request that brought none.
            ticket = ticket or ticket_of(request)
            if ticket is not None:
                self._run.leave(ticket, read_as=request if self._run.reads else None)

    def _ended_here(
        self, request: Request, ticket: Ticket | None, result: Response | Request
    ) -> Response | Request:
        """Return *result*, or NOTHING_MORE where it is a response that no callback reads.

        Scrapy's scraper takes longer over a response than the fetch took, even to find that the
        callback yields nothing. For a row of a spider that reads none, the way ends here.
        """
        if self._reads or ticket is None or ticket.dispatch is None or not isinstance(result, Response):
            return result
        spider = self.crawler.spider
        # What counts pages (CLOSESPIDER_PAGECOUNT, LogStats) hears this; the engine will not say it.
        self._signals.send(signals.response_received, response=result, request=request, spider=spider)
        return NOTHING_MORE

    async def _record_refusal(self, ticket: Ticket, error: Exception) -> None:
        """Give a row of the frontier that a middleware refused its row in the index."""
        if ticket.dispatch is None:
            return
        failure, detail = Failure.REFUSED_BY_CRAWL, f"{type(error).__name__}: {error}"
        if isinstance(error, RefusedByRobots):
            failure, detail = Failure.ROBOTS_DENIED, str(error)
        offer = ticket.dispatch.offer
        await self._run.record_skipped(offer.seed, failure, detail, provenance_of(offer))
        ticket.outcome = Outcome(status=0, failure=failure)

    async def _transfer(self, request: Request) -> Response:
        """Hand *request* to the handler of its scheme, with the signals that Scrapy sends around it."""
        send, spider = self._signals.send, self.crawler.spider
        ticket = ticket_of(request)
        if self._run.recorder.is_closed and (ticket is None or ticket.dispatch is None):
            # From what closes a pipeline, say: it could not be archived.
            raise exception_of(STOPPED)
        send(signals.request_reached_downloader, request=request, spider=spider)
        try:
            with deliveries() as delivered:
                response = await self.handlers.download_request_async(request)
            if self._foreign.expected and not is_among(response, delivered):
                response = await self._foreign.keep(request, response)
            send(signals.response_downloaded, response=response, request=request, spider=spider)
            return response
        finally:
            send(signals.request_left_downloader, request=request, spider=spider)
