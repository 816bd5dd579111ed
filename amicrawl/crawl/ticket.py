"""Tickets in `Request.meta`, and the exceptions for a request that is not carried out.

Scrapy does not report the end of a request to a scheduler. Every request that leaves ours therefore
has a ticket in its `meta`; the visit notes on it what came of the fetch, and the downloader hands it in
when the request has left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from amicrawl.capture import Failure
from amicrawl.crawl.decision import OUTPUT_FAILED, STOPPED, Decision, Disposition, Ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Container

TICKET = "amicrawl_ticket"
"""The `Request.meta` key that holds the ticket."""

NOTHING_MORE = Request("about:blank")
"""In the place of a response that no callback reads; the scheduler takes it and does nothing."""


def ticket_of(request: Request) -> Ticket | None:
    """Return the ticket that *request* carries, if it was given one."""
    ticket = request.meta.get(TICKET)
    return ticket if isinstance(ticket, Ticket) else None


class TryAgainLater(IgnoreRequest):
    """The fetch failed, and the frontier will hand the URL out again: nothing else need retry it."""


class NotYet(IgnoreRequest):
    """It is too early for this row: it goes back to the frontier, and the attempt does not count."""


class RefusedByRobots(IgnoreRequest):
    """robots.txt says no, or cannot be had."""


class Stopped(IgnoreRequest):
    """The crawl ended before the fetch did: the URL is as good as not asked for."""


def exception_of(decision: Decision) -> IgnoreRequest:
    """Return the exception by which Scrapy learns of a *decision* against a request."""
    if decision.failure is Failure.ROBOTS_DENIED:
        return RefusedByRobots(decision.reason)
    if decision is STOPPED or decision is OUTPUT_FAILED:
        return Stopped(decision.reason)
    if decision.disposition is Disposition.AGAIN_LATER:
        return TryAgainLater(decision.reason)
    return (
        NotYet(decision.reason)
        if decision.disposition is Disposition.AGAIN_NOW
        else IgnoreRequest(decision.reason)
    )


class Reading:
    """Rows whose responses callbacks are reading; *settle* is called once that is over.

    A response opens the gate of its host at once, but its row stays in flight until what the callback
    asked for is in the frontier: a crawl that dies in between has the page read again, as the links that
    the callback had not yielded yet would be lost with a settled row.
    """

    def __init__(self, settle: Callable[[Ticket], object]) -> None:
        self._settle = settle
        self._unread: dict[Request, Ticket] = {}

    def begin(self, request: Request, ticket: Ticket) -> None:
        """Note that the response to *request* is being read."""
        self._unread[request] = ticket

    def end(self, unfinished: Container[Request] = ()) -> None:
        """Settle the rows of all that were read: those whose requests are not *unfinished*."""
        if not self._unread:
            return
        for request in [each for each in self._unread if each not in unfinished]:
            self._settle(self._unread.pop(request))
