"""The politeness middleware: the last check before the wire, per host key and per address.

What the scheduler let go has entered its host's gate already, and had its turn at its address if that
was known. Here the address of a name that was never asked is looked up, and a row that is too early for
it goes back to the frontier. Some requests never pass the scheduler (robots.txt, media pipelines,
`engine.download_async`): they enter the gate here, so that the host's next request is spaced from them
too, and a host that was given up is not asked by them either. They cannot wait for a turn at an
address, since nothing would bring them back, but they are counted there; robots.txt waits as the row
that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.exceptions import IgnoreRequest

from amicrawl.crawl.decision import NO_TURN, Ticket
from amicrawl.crawl.run import Run, run_of
from amicrawl.crawl.ticket import TICKET, exception_of, ticket_of
from amicrawl.fetch.resolver import Unresolved
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler

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
        run, ticket = self._run, ticket_of(request)
        if ticket is None:
            key = run.key_of(request.url)
            if isinstance(key, Refused):
                return
            if run.breaker.is_open(key.host):
                raise IgnoreRequest("the host had not answered before and was given up")
            ticket = Ticket(key.host)
        decision = await self.admit(request.url, ticket, request.meta)
        if decision is not None:
            self._crawler.stats.inc_value("amicrawl/addresses/waits")
            raise exception_of(decision)
        if ticket_of(request) is None:
            run.pacing.enter(ticket, run.clock())
            ticket.entered = True
            request.meta[TICKET] = ticket

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

    async def _look_up(self, url: str) -> str | None:
        """Return an address of the host of *url*; None where there is none, as the fetch will tell."""
        target = fetchable(url)
        if isinstance(target, Refused):
            return None
        within = min(_LOOK_UP, self._run.config.connect_timeout)
        found = await self._run.resolver.addresses(target.host, within=within)
        return None if isinstance(found, Unresolved) else found[0]
