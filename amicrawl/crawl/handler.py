"""The download handler: a Scrapy request becomes an exchange on the wire, and a capture on disk.

The order here is the promise of the crawl: the exchange first, then its record and row on disk, then
the response for the callback. A callback may crash; what it was to read is already kept.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import IgnoreRequest

from amicrawl.capture import Failure
from amicrawl.crawl.answering import REDIRECTS, bare_response, exception_of, final_url, response_of
from amicrawl.crawl.asking import Fields, default_fields, wire_request
from amicrawl.crawl.carried import META_JSON
from amicrawl.crawl.errand import reads_responses
from amicrawl.crawl.findings import evidence, outcome_of
from amicrawl.crawl.following import Following, Page
from amicrawl.crawl.run import run_of
from amicrawl.crawl.ticket import Stopped, Ticket, TryAgainLater, ticket_of
from amicrawl.crawl.wiring import make_wire
from amicrawl.errors import AmicrawlError
from amicrawl.frontier import Outcome
from amicrawl.record import CaptureItem
from amicrawl.seed import Seed
from amicrawl.urls import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from amicrawl.capture import Capture
    from amicrawl.fetch import Wire, WireRequest


class WireHandler(BaseDownloadHandler):
    """Fetches http and https over libcurl's connections and has every exchange recorded."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._run = run_of(crawler)
        self._wire: Wire = make_wire(
            self._run.config, resolver=self._run.resolver, patience=self._run.pacing.answer_timeout
        )
        self._max_size = crawler.settings.getint("DOWNLOAD_MAXSIZE")
        # A spider that reads no response spares each page the parsing of its headers and body.
        self._bare = not reads_responses(crawler)
        self._row_fields: Fields = default_fields(crawler.settings) if self._bare else []
        # Whatever is no row (robots.txt, a sitemap) is read by somebody, and not decoded before.
        self._other_fields = self._row_fields[:-1]

    async def download_request(self, request: Request) -> Response:
        """Fetch, record, and only then answer.

        Raises Scrapy's download exceptions for a fetch without a response, and Stopped where the crawl
        ended before it did.
        """
        ticket = ticket_of(request)
        is_row = ticket is not None and ticket.dispatch is not None
        asked = wire_request(
            request,
            seed=ticket.dispatch.offer.seed if ticket is not None and ticket.dispatch else None,
            defaults=self._row_fields if is_row else self._other_fields,
            timeout=self._run.config.timeout,
            credentials=self._run.credentials,
        )
        if isinstance(asked, Refused):
            return await self._refuse(request, ticket, asked)
        if ticket is None:
            capture = await self._exchange(asked)
        else:
            pacing, clock = self._run.pacing, self._run.clock
            capture = await self._exchange(
                asked, departs=lambda: pacing.departs(ticket, request.url, clock())
            )
            pacing.arrived(ticket, capture, url=request.url, proxied=bool(asked.proxy))
        try:
            return await self._keep(request, ticket, capture)
        finally:
            capture.body.close()

    async def close(self) -> None:
        """End what is still under way."""
        await self._wire.close()

    async def _exchange(
        self, asked: WireRequest, *, departs: Callable[[], None] = lambda: None
    ) -> Capture:
        """Fetch; raises Stopped where the run's `abort` ends it."""
        task = asyncio.current_task()
        assert task is not None
        self._run.tasks.add(task)
        try:
            return await self._wire.fetch(asked, departs=departs)
        except asyncio.CancelledError:
            if self._run.stopping:
                raise Stopped("the crawl was stopped") from None
            raise
        finally:
            self._run.tasks.discard(task)

    async def _refuse(self, request: Request, ticket: Ticket | None, refused: Refused) -> Response:
        """Record that *request* has no URL that could be asked for; raises IgnoreRequest."""
        await self._run.record_unasked(_seed(request, ticket), Failure.UNFETCHABLE_URL, refused.reason)
        if ticket is not None:
            ticket.outcome = Outcome(status=0, failure=Failure.UNFETCHABLE_URL)
        raise IgnoreRequest(f"{request.url!r} cannot be fetched: {refused.reason}")

    async def _keep(self, request: Request, ticket: Ticket | None, capture: Capture) -> Response:
        """Record *capture*, note on *ticket* what came of it; return or raise what Scrapy is told."""
        told = evidence(capture)
        dispatch = ticket.dispatch if ticket is not None else None
        if ticket is not None and dispatch is not None and self._run.frontier.will_retry(dispatch, told):
            ticket.outcome = told
            raise TryAgainLater(f"{request.url}: {capture.failure}")
        item = CaptureItem(
            capture=capture,
            seed=_seed(request, ticket),
            attempts=dispatch.attempt if dispatch is not None else _attempt(request),
            final_url=final_url(capture),
        )
        await self._record(item)
        if ticket is not None:
            ticket.outcome = outcome_of(item)
            if capture.status in REDIRECTS:
                ticket.redirect_to = item.final_url
            if self._run.following is not None and dispatch is not None and capture.failure is None:
                await self._follow(self._run.following, ticket, item)
        request.meta["download_latency"] = (capture.ttfb_ms or 0) / 1000
        if capture.failure is not None:
            request.meta["dont_retry"] = dispatch is not None or request.meta.get("dont_retry", False)
            raise exception_of(capture)
        if self._bare and dispatch is not None:
            return bare_response(request, capture)
        return response_of(request, capture, max_size=self._max_size)

    async def _follow(self, following: Following, ticket: Ticket, item: CaptureItem) -> None:
        """Note on *ticket* what the page leads to."""
        assert ticket.dispatch is not None
        ticket.offers = await following.read(item, Page.of(ticket.dispatch.offer))
        if ticket.offers and ticket.redirect_to and ticket.outcome is not None:
            ticket.outcome = replace(ticket.outcome, redirect=ticket.redirect_to)
        if ticket.offers and self._run.elsewhere is not None:
            # On disk before the page is settled: a page that is done has given what it leads to.
            try:
                ticket.offers = await self._run.elsewhere(ticket.offers)
            except AmicrawlError as fault:
                self._run.recorder.fault = self._run.recorder.fault or fault
                ticket.outcome, ticket.offers = None, []
                raise Stopped("the output failed") from None

    async def _record(self, item: CaptureItem) -> None:
        try:
            await self._run.record(item)
        except AmicrawlError:
            # It is the crawl's fault by now, said once at its end, and not this request's.
            raise Stopped("the output failed") from None


def _seed(request: Request, ticket: Ticket | None) -> Seed:
    if ticket is not None and ticket.dispatch is not None:
        return ticket.dispatch.offer.seed
    # What the producer said of a seed belongs to every hop, one that cannot be fetched included.
    return Seed(request.url, meta_json=str(request.meta.get(META_JSON, "")))


def _attempt(request: Request) -> int:
    return int(request.meta.get("retry_times", 0)) + 1
