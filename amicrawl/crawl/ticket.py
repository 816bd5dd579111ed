"""Ticket: what a request in flight carries, so that its end finds its way back.

Scrapy tells a scheduler nothing about the end of a request. Every request that leaves ours therefore
has a ticket in its `meta`; the download handler writes on it what came of the fetch, and the
downloader hands it in when the request has left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.exceptions import IgnoreRequest

if TYPE_CHECKING:
    from amicrawl.frontier import Dispatch, Offer, Outcome

TICKET = "amicrawl_ticket"
"""The `Request.meta` key that holds the ticket."""

NOTHING_MORE = Request("about:blank")
"""Stands in the place of a response that nobody reads; the scheduler takes it and does nothing."""


@dataclass(slots=True)
class Ticket:
    """One permission to ask one host."""

    host: int
    """The host key whose gate was entered."""
    dispatch: Dispatch | None = None
    """The frontier's row; None for requests that the frontier does not hold."""
    started: float = float("-inf")
    """The moment at which the gate was entered, on the clock of the run."""
    entered: bool = False
    """Whether it has had its turn at its address, or needs none."""
    expected: float = 0.0
    """Bytes that were charged for it before its answer came."""
    received: int = 0
    """Bytes that its answer had."""
    outcome: Outcome | None = None
    """What came of it; None while, or where, nothing was fetched."""
    redirect_to: str = ""
    """Where the answer points, resolved and as found; empty where it is no redirect."""
    offers: list[Offer] = field(default_factory=list)
    """What the page leads to, in a crawl that follows links."""


def ticket_of(request: Request) -> Ticket | None:
    """Return the ticket that *request* carries, if it was given one."""
    ticket = request.meta.get(TICKET)
    return ticket if isinstance(ticket, Ticket) else None


class TryAgainLater(IgnoreRequest):
    """The fetch failed, and the frontier will hand the URL out again: nobody else need retry it."""


class NotYet(IgnoreRequest):
    """It is too early for this row: it goes back to the frontier, and the attempt does not count."""


class RefusedByRobots(IgnoreRequest):
    """robots.txt says no, or cannot be had."""


class Stopped(IgnoreRequest):
    """The crawl ended before the fetch did: the URL is as good as not asked for."""
