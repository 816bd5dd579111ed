"""The politeness middleware: the last check before the wire, per host key and per address.

What the scheduler let go has entered its host's gate already, and had its turn at its address if that
was known. Here the address of a name that was never asked is looked up, and a row that is too early for
it goes back to the frontier. Some requests never pass the scheduler (robots.txt, media pipelines,
`engine.download_async`): they enter the gate here, so that the host's next request is spaced from them
too, and a host that was given up is not asked by them either. They cannot wait for a turn at an
address, since nobody would bring them back, but they are counted there; robots.txt waits as the row
that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.exceptions import IgnoreRequest

from amicrawl.crawl.run import Run, run_of
from amicrawl.crawl.ticket import TICKET, NotYet, Ticket, ticket_of
from amicrawl.fetch.resolver import Unresolved
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from amicrawl.crawl.addresses import AddressPace

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
        run, ticket = self._run, ticket_of(request)
        if ticket is not None and ticket.entered:
            return
        if ticket is not None:
            host = ticket.host
        else:
            key = run.key_of(request.url)
            if isinstance(key, Refused):
                return
            host = key.host
            if run.breaker.is_open(host):
                raise IgnoreRequest("the host had not answered before and was given up")
        addresses = run.pacing.addresses
        # With a proxy the address is the proxy's, and of the host's nothing is known here.
        if addresses is not None and not request.meta.get("proxy"):
            await self._take_turn(addresses, request, host, ticket)
        if ticket is None:
            now = run.clock()
            run.gates.start(host, now)
            request.meta[TICKET] = Ticket(host, started=now, entered=True)

    async def _take_turn(
        self, addresses: AddressPace, request: Request, host: int, ticket: Ticket | None
    ) -> None:
        """Have *request* start at its address; raises NotYet where it can wait and must."""
        run = self._run
        is_row = ticket is not None and ticket.dispatch is not None
        # A hop of robots.txt goes ahead: from the beginning it would only come here again.
        may_wait = is_row or (request.meta.get(TAKES_TURN) and "redirect_times" not in request.meta)
        address = addresses.address_of(request.url)
        if address is None and may_wait:
            address = await self._look_up(request.url)
        if address is None:
            return
        now = run.clock()
        if not may_wait:
            addresses.start(address, now)
            return
        addresses.learn(request.url, address)
        if not addresses.enter(address, host, now):
            if ticket is not None:
                run.gates.withdraw(host, ticket.started)
            self._crawler.stats.inc_value("amicrawl/addresses/waits")
            raise NotYet("its address has the turn of another host")
        if ticket is not None:
            ticket.entered = True

    async def _look_up(self, url: str) -> str | None:
        """Return an address of the host of *url*; None where there is none, as the fetch will tell."""
        target = fetchable(url)
        if isinstance(target, Refused):
            return None
        within = min(_LOOK_UP, self._run.config.connect_timeout)
        found = await self._run.resolver.addresses(target.host, within=within)
        return None if isinstance(found, Unresolved) else found[0]
