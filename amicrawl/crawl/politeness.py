"""The politeness middleware: the last check before the wire, per host key.

What the scheduler let go has entered its host's gate already. Some requests never pass the scheduler
(robots.txt, media pipelines, `engine.download_async`): they enter the gate here, so that the host's
next request is spaced from them too, and a host that was given up is not asked by them either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.exceptions import IgnoreRequest

from amicrawl.crawl.run import Run, run_of
from amicrawl.crawl.ticket import TICKET, Ticket, ticket_of
from amicrawl.urls import Refused

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


class PolitenessMiddleware:
    """Lets nothing through that no gate has seen."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*."""
        return cls(run_of(crawler))

    def process_request(self, request: Request) -> None:
        """Give *request* a ticket if it has none; raises IgnoreRequest for a host given up."""
        if ticket_of(request) is not None:
            return
        key = self._run.key_of(request.url)
        if isinstance(key, Refused):
            return
        if self._run.breaker.is_open(key.host):
            raise IgnoreRequest("the host had not answered before and was given up")
        self._run.gates.start(key.host, self._run.clock())
        request.meta[TICKET] = Ticket(key.host)
