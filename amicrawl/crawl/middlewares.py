"""The downloader middlewares: politeness, redirects, and content codings for callbacks.

**Politeness** is the last check before the wire, per host key and per address. What the scheduler let go
has entered its host's gate already, and had its turn at its address if that was known. Here the address
of a name that was never used is looked up, and a row that is too early for it goes back to the
frontier. Some requests never pass the scheduler (robots.txt, media pipelines, `engine.download_async`):
they enter the gate here, so that the host's next request is spaced from them too, and a host that was
given up is not contacted by them either. They cannot wait for a turn at an address, since nothing would
bring them back, but they are counted there; robots.txt waits as the row that needs it.

**Redirects:** each hop is a capture of its own, and its target is requested as the server wrote it.
Scrapy's middleware rewrites the target and copies the request's headers onto it, conditional ones
included. A row of the frontier is redirected here instead: to a clean request for the `Location` as
found. Requests that the frontier does not hold keep Scrapy's behaviour.

**Decoding:** Scrapy's middleware raises on a body that is not what its Content-Encoding says, unpacks a
bomb to a gibibyte, and the response is lost to the spider. It has been archived by then; the callback
gets the bytes as they came. What a body may unpack to is bounded by its own size, since nothing else
gives a bomb away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy import Request
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.exceptions import IgnoreRequest

from amicrawl.capture import REDIRECTS
from amicrawl.crawl.decision import NO_TURN, Ticket
from amicrawl.crawl.links import META_JSON
from amicrawl.crawl.requests import TICKET, ticket_of
from amicrawl.crawl.responses import exception_of
from amicrawl.crawl.run import Run, run_of
from amicrawl.fetch import Unresolved
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from amicrawl.crawl.decision import Decision

TAKES_TURN = "amicrawl_takes_turn"
"""The `Request.meta` key of a request whose sender knows what to do when it is too early (`NotYet`)."""

_LOOK_UP = 5.0
"""Seconds that the look-up of a name is waited for here; the fetch will wait for the rest."""


class PolitenessMiddleware:
    """Lets nothing through that no gate has seen."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        self._crawler = crawler
        self._run = run

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*."""
        return cls(crawler, run_of(crawler))

    async def process_request(self, request: Request) -> None:
        """Give *request* a ticket if it has none.

        Raises IgnoreRequest for a host given up, and NotYet where its address has another host's turn.
        """
        ticket = ticket_of(request)
        if ticket is None:
            if (ticket := await self.enter(request.url, request.meta)) is not None:
                request.meta[TICKET] = ticket
        elif (decision := await self.admit(request.url, ticket, request.meta)) is not None:
            raise self._too_early(decision)

    async def enter(self, url: str, words: Mapping[str, object]) -> Ticket | None:
        """Return the ticket of a request for *url* that never passed the scheduler; its gate is entered.

        None where *url* has no host. Raises as `process_request` does.
        """
        run, key = self._run, self._run.key_of(url)
        if isinstance(key, Refused):
            return None
        if key.host in run.breaker.given_up:
            raise IgnoreRequest("the host had not responded before and was given up")
        ticket = Ticket(key.host)
        if (decision := await self.admit(url, ticket, words)) is not None:
            raise self._too_early(decision)
        run.pacing.enter(ticket, run.clock())
        ticket.entered = True
        return ticket

    def _too_early(self, decision: Decision) -> IgnoreRequest:
        self._crawler.stats.inc_value("amicrawl/addresses/waits")
        return exception_of(decision)

    async def admit(
        self, url: str, ticket: Ticket | None, words: Mapping[str, object]
    ) -> Decision | None:
        """Have the request for *url* take its turn at its address, or return why it cannot yet."""
        addresses = self._run.pacing.addresses
        # With a proxy the address is the proxy's, and of the host's nothing is known here.
        if ticket is None or ticket.entered or addresses is None or words.get("proxy"):
            return None
        # A hop of robots.txt goes ahead: from the beginning it would only come here again.
        takes_turn = words.get(TAKES_TURN) and "redirect_times" not in words
        may_wait = ticket.dispatch is not None or takes_turn
        address = addresses.address_of(url)
        if address is None and may_wait:
            address = await self._look_up(url)
        if address is None:
            return None
        now, host = self._run.clock(), ticket.host
        assert host is not None
        if not may_wait:
            addresses.start(address, now)
            return None
        addresses.learn(url, address)
        if not addresses.enter(address, host, now):
            self._run.pacing.withdraw(ticket)
            return NO_TURN
        ticket.entered = True
        return None

    async def admit_requisite(self, url: str) -> Decision | None:  # noqa: ARG002  # a rule like others
        """Return None: the exchanges of an open page take their turns themselves."""
        return None

    async def _look_up(self, url: str) -> str | None:
        """Return an address of the host of *url*; None where there is none, as the fetch will tell."""
        target = fetchable(url)
        if isinstance(target, Refused):
            return None
        within = min(_LOOK_UP, self._run.config.connect_timeout)
        found = await self._run.resolver.addresses(target.host, within=within)
        return None if isinstance(found, Unresolved) else found[0]


class AsFoundRedirectMiddleware(RedirectMiddleware):
    """Offers the target of a redirect as it was found."""

    def _engine_started(self) -> None:
        # Without the parent's warning: a row is requested without a Referer.
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
        """Tell whether the spider is to see redirects itself, by any of Scrapy's ways to say so."""
        meta = request.meta
        return bool(
            meta.get("dont_redirect")
            or meta.get("handle_httpstatus_all")
            or response.status in meta.get("handle_httpstatus_list", ())
            or response.status in getattr(self.crawler.spider, "handle_httpstatus_list", ())
        )


_MOST_CODINGS = 2
"""Codings one inside the other; no server sends more in good faith."""
_ALWAYS_ALLOWED = 32 << 20
"""Bytes that any body may unpack to: a page of nothing but table cells packs a thousandfold."""
_RATIO = 100
"""Times its own size that a larger one may unpack to."""
_MOST = 256 << 20
"""Bytes that nothing may exceed."""


class TolerantDecodingMiddleware(HttpCompressionMiddleware):
    """Decodes as Scrapy does, and hands on undecoded what cannot be decoded, flagged `undecodable`."""

    def process_response(  # type: ignore[override]  # the parent's deprecated spider argument is gone
        self, request: Request, response: Response
    ) -> Request | Response:
        """Return *response* decoded, or as it is with the flag."""
        try:
            return super().process_response(request, response)
        except (_UndecodableError, UnicodeDecodeError):  # the latter of a coding whose name is not text
            if self.stats:
                self.stats.inc_value("amicrawl/decoding/undecodable")
            return response.replace(flags=[*response.flags, "undecodable"])

    def _handle_encoding(
        self, body: bytes, content_encoding: list[bytes], max_size: int
    ) -> tuple[bytes, list[bytes]]:
        """Decode *body* within its bounds. Private in Scrapy, which has no other place for them."""
        if len(b",".join(content_encoding).split(b",")) > _MOST_CODINGS:
            raise _UndecodableError
        allowed = min(max(_ALWAYS_ALLOWED, _RATIO * len(body)), max_size or _MOST, _MOST)
        try:
            return super()._handle_encoding(body, content_encoding, allowed)
        except Exception as error:  # each coding's library has errors of its own
            raise _UndecodableError from error


class _UndecodableError(Exception):
    """The body is not what its Content-Encoding says, or too much of it."""
