"""The download handler: a Scrapy request becomes a visit, and its capture a response.

The order of a visit is the promise of the crawl: the exchange first, then its record and row on disk,
then the response for the callback. A callback may crash; what it was to read is already kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import IgnoreRequest

from amicrawl.capture import Failure
from amicrawl.crawl.decision import Disposition, Ticket
from amicrawl.crawl.links import META_JSON
from amicrawl.crawl.requests import (
    Fields,
    default_fields,
    provenance_of_request,
    ticket_of,
    wire_request,
)
from amicrawl.crawl.responses import bare_response, exception_of, failure_of, note_delivery, response_of
from amicrawl.crawl.run import run_of
from amicrawl.crawl.spec import reads_responses
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from amicrawl.capture import Capture
    from amicrawl.crawl.decision import Decision


class WireHandler(BaseDownloadHandler):
    """Fetches http and https over the wire and has every exchange recorded."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._run = run_of(crawler)
        self._max_size = crawler.settings.getint("DOWNLOAD_MAXSIZE")
        # A spider that reads no response spares each page the parsing of its headers and body.
        self._bare = not reads_responses(crawler)
        self._row_fields: Fields = default_fields(crawler.settings) if self._bare else []
        # What is not a row (robots.txt, a sitemap) is read here, and not decoded before.
        self._other_fields = self._row_fields[:-1]

    async def download_request(self, request: Request) -> Response:
        """Fetch, record, and only then respond.

        Raises Scrapy's download exceptions for a fetch without a response, and Stopped where the crawl
        ended before it did.
        """
        ticket = ticket_of(request) or Ticket(None)
        dispatch = ticket.dispatch
        ticket.seed = _seed(request)
        ticket.attempt = int(request.meta.get("retry_times", 0)) + 1
        if dispatch is None:
            ticket.provenance = provenance_of_request(request)
        ticket.wire_request = wire_request(
            request,
            seed=None if dispatch is None else dispatch.offer.seed,
            defaults=self._other_fields if dispatch is None else self._row_fields,
            timeout=self._run.config.timeout,
            credentials=self._run.credentials,
        )
        decision = await self._run.visit.visit(ticket)
        if ticket.capture is None:
            raise _refusal(request, decision)
        response = None
        try:
            response = self._response(request, ticket, ticket.capture, decision)
            return response
        finally:
            note_delivery(response)
            ticket.capture.body.close()

    async def close(self) -> None:
        """End what is still under way."""
        await self._run.wire.close()

    def _response(
        self, request: Request, ticket: Ticket, capture: Capture, decision: Decision
    ) -> Response:
        """Return the response that *capture* is, or raise what Scrapy gets in its place."""
        if decision.disposition in {Disposition.AGAIN_LATER, Disposition.AGAIN_NOW}:
            raise exception_of(decision)
        is_row = ticket.dispatch is not None
        request.meta["download_latency"] = (capture.ttfb_ms or 0) / 1000
        if capture.failure is not None:
            request.meta["dont_retry"] = is_row or request.meta.get("dont_retry", False)
            raise failure_of(capture)
        if self._bare and is_row:
            return bare_response(request, capture)
        return response_of(request, capture, max_size=self._max_size)


def _refusal(request: Request, decision: Decision) -> IgnoreRequest:
    if decision.failure is Failure.UNFETCHABLE_URL:
        return IgnoreRequest(f"{request.url!r} cannot be fetched: {decision.reason}")
    return exception_of(decision)


def _seed(request: Request) -> Seed:
    # What the producer said of a seed belongs to every hop, one that cannot be fetched included.
    return Seed(request.url, meta_json=str(request.meta.get(META_JSON, "")))
