"""Redirects: each hop is a capture of its own, and its target is asked for as the server wrote it.

Scrapy's middleware rewrites the target and copies the request's headers onto it, conditional ones
included. A row of the frontier is redirected here instead: to a clean request for the `Location` as
found. Requests that the frontier does not hold keep Scrapy's behaviour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.exceptions import IgnoreRequest

from amicrawl.crawl.carried import META_JSON
from amicrawl.crawl.findings import REDIRECTS
from amicrawl.crawl.run import run_of
from amicrawl.crawl.ticket import ticket_of
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from scrapy.http import Response


class AsFoundRedirectMiddleware(RedirectMiddleware):
    """Offers the target of a redirect as it was found."""

    def _engine_started(self) -> None:
        # Without the parent's warning: a row is asked for without a Referer.
        self._referer_spider_middleware = None

    def process_response(  # type: ignore[override]  # the parent's deprecated spider argument is gone
        self, request: Request, response: Response
    ) -> Request | Response:
        """Return the request for the next hop, or *response* where there is none."""
        if response.status not in REDIRECTS:
            return response
        ticket = ticket_of(request)
        if ticket is None or ticket.dispatch is None:
            return self._redirected_by_scrapy(request, response)
        if run_of(self.crawler).following is not None:
            # A crawl that follows links has decided by its scope whether the target is one.
            return response
        # `javascript:`, `file:`, no host: the row that names such a target is all there is to say of it.
        unfetchable = isinstance(fetchable(ticket.redirect_to), Refused)
        if unfetchable or self._is_wanted_as_it_is(request, response):
            return response
        # Of `meta` what the row says; what middlewares put on one request is not for the next.
        said = ticket.dispatch.offer.extra or {}
        carried = {name: request.meta[name] for name in said if name in request.meta}
        carried[META_JSON] = ticket.dispatch.offer.seed.meta_json
        target = Request(ticket.redirect_to, meta={**carried, "verbatim_url": True})
        try:
            following = self._redirect(target, request, response.status)
        except IgnoreRequest:
            self.crawler.stats.inc_value("amicrawl/redirects/chain_too_long")
            return response
        if ticket.outcome is not None:
            ticket.outcome = ticket.outcome._replace(redirect=ticket.redirect_to)
        return following

    def _redirected_by_scrapy(self, request: Request, response: Response) -> Request | Response:
        try:
            return super().process_response(request, response)
        except ValueError:
            # Scrapy makes its request before it looks at the scheme, and of `javascript:` it cannot.
            return response

    def _is_wanted_as_it_is(self, request: Request, response: Response) -> bool:
        """Tell whether the spider asked to see redirects itself, by any of Scrapy's ways to say so."""
        meta = request.meta
        return bool(
            meta.get("dont_redirect")
            or meta.get("handle_httpstatus_all")
            or response.status in meta.get("handle_httpstatus_list", ())
            or response.status in getattr(self.crawler.spider, "handle_httpstatus_list", ())
        )
