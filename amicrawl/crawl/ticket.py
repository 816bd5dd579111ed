"""Tickets in `Request.meta`, and what a request is told that is not carried out.

Scrapy tells a scheduler nothing about the end of a request. Every request that leaves ours therefore
has a ticket in its `meta`; the visit notes on it what came of the fetch, and the downloader hands it in
when the request has left.
"""

from __future__ import annotations

from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from amicrawl.capture import Failure
from amicrawl.crawl.visit import OUTPUT_FAILED, STOPPED, Course, Decision, Ticket

TICKET = "amicrawl_ticket"
"""The `Request.meta` key that holds the ticket."""

NOTHING_MORE = Request("about:blank")
"""Stands in the place of a response that nobody reads; the scheduler takes it and does nothing."""


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


def exception_of(decision: Decision) -> IgnoreRequest:
    """Return the exception by which Scrapy learns of a *decision* against a request."""
    if decision.failure is Failure.ROBOTS_DENIED:
        return RefusedByRobots(decision.reason)
    if decision is STOPPED or decision is OUTPUT_FAILED:
        return Stopped(decision.reason)
    if decision.course is Course.AGAIN_LATER:
        return TryAgainLater(decision.reason)
    return (
        NotYet(decision.reason)
        if decision.course is Course.AGAIN_NOW
        else IgnoreRequest(decision.reason)
    )
