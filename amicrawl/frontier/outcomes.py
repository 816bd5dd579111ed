"""What an outcome makes of a row, of its host and of the in-flight limit.

    2xx                       captured, or unchanged  back by its rate of change
    304                       unchanged               back by its rate of change
    3xx                       redirected              as captured; the edge is kept
    401, 403, 404, other 4xx  missing                 back after 2, 4, 8 ... weeks, up to a year
    410                       withdrawn               back after a year
    408, 425, 429, 5xx        busy                    back after 1, 2, 4 ... hours, or Retry-After
    no response               failed                  back after 1, 2, 4 ... hours
    the fifth busy or failed  exhausted               back after 2 weeks
    robots.txt                refused by robots       back after 1, 2 ... weeks
    the crawl's configuration refused                 when that changes
    2xx with an error page    soft 404                back after 2, 4, 8 ... weeks, up to a year

`soft404` decides what an error page is. The pauses are those of `states.RETURNS`.
Times are hours since 1970.

Most of it is pure; `Settling` writes the new state of a row after its last attempt.

    outcome -> event (an error page, if that is looked for: soft404) -> state, and when again
            -> of a capture: validators and redirect in the arena, its visit, and its rate of change
            -> the partition, and the wheel for when it is due

The queue is not touched here.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from amicrawl.capture import Failure
from amicrawl.frontier.row_strings import keep_found
from amicrawl.frontier.states import MANY, RETURNS, Cause, Event, Status, after
from amicrawl.politeness import BLAME, Blame, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.flights import StatusCounts
    from amicrawl.frontier.hosts import HostTally
    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.revisits import Revisits
    from amicrawl.frontier.row import Outcome
    from amicrawl.frontier.soft404 import Soft404Detector
    from amicrawl.frontier.url_row import UrlRow
    from amicrawl.frontier.wheel import DueWheel
    from amicrawl.politeness import HostBreaker, InflightLimit
    from amicrawl.seed import Seed

_NOT_NOW = frozenset({408, 425, 429})
_WITHHELD: Mapping[Failure | None, Cause] = {
    Failure.ADDRESS_REFUSED: Cause.ADDRESS,
    Failure.REFUSED_BY_CRAWL: Cause.RULE,
    Failure.UNFETCHABLE_URL: Cause.UNFETCHABLE,
}
_CAUSES: Mapping[Failure | None, Cause] = {
    **_WITHHELD,
    Failure.NAME_LOOKUP_FAILED: Cause.NETWORK,
    Failure.NO_ROUTE: Cause.NETWORK,
    Failure.PROXY: Cause.NETWORK,
}
_NO_ERRORS = frozenset({Event.REFUSED, Event.REFUSED_BY_ROBOTS, Event.SOFT_404})
_FIRST_RETURNS = {
    event: RETURNS[event].first for event in (Event.CAPTURED, Event.UNCHANGED, Event.REDIRECTED)
}
# Bound here, as a look-up in an enumeration is a call, and these are needed for every page.
_IN_FLIGHT, _FINAL = Status.IN_FLIGHT, Verdict.FINAL
_CAPTURED, _BUSY, _FAILED = Event.CAPTURED, Event.BUSY, Event.FAILED
_MANY_SMALL = 0xFF
_MANY_ERRORS = 0xFFFF
LONGEST_WAIT = 7 * 24
"""Hours that a `Retry-After` counts for at most."""


def event_of(outcome: Outcome, *, in_a_row: int) -> Event:
    """Return what *outcome*, on which no further attempt follows, does to its row.

    *in_a_row* is how often before the row came to nothing, without an answer between.
    """
    failure = outcome.failure
    if failure is None:
        event = _event_of_status(outcome)
    elif failure is Failure.ROBOTS_DENIED:
        event = Event.REFUSED_BY_ROBOTS
    elif failure in _WITHHELD:
        event = Event.REFUSED
    else:
        event = _FAILED
    if in_a_row + 1 >= MANY and (event is _BUSY or event is _FAILED):
        return Event.EXHAUSTED
    return event


def _event_of_status(outcome: Outcome) -> Event:
    status = outcome.status
    if 200 <= status <= 299:
        unchanged = outcome.found is not None and outcome.found.unchanged
        return Event.UNCHANGED if unchanged else _CAPTURED
    if status in _NOT_NOW or 500 <= status <= 599:
        return _BUSY
    if status == 410:
        return Event.WITHDRAWN
    if 400 <= status <= 499:
        return Event.MISSING
    if status == 304 or (outcome.found is not None and outcome.found.unchanged):
        return Event.UNCHANGED
    return Event.REDIRECTED if 300 <= status <= 399 else _CAPTURED


def settled(
    row: UrlRow, event: Event, outcome: Outcome, hour: int, *found: Mapping[str, float]
) -> UrlRow:
    """Return what *row*, in flight, says after *event*, which *outcome* was, at *hour*.

    Of a capture, *found* are the fields that say what was found, and when it is due again by its rate of
    change, if that is known.
    """
    status, failure = after(_IN_FLIGHT, event), outcome.failure
    first = _FIRST_RETURNS.get(event)
    if first is not None:
        fields = {
            "status": status,
            "http_status": outcome.status & 0xFFFF,
            "next_due": hour + first,
            "retry_count": 0,
        }
        return row.changed(fields, *found)
    in_a_row = min(row.retry_count + 1, _MANY_SMALL)
    is_error = event not in _NO_ERRORS
    fields = {
        "status": status,
        "http_status": _CAUSES.get(failure, outcome.status & 0xFFFF),
        "next_due": _back_at(event, in_a_row, outcome, hour),
        "retry_count": in_a_row,
        "error_count": min(row.error_count + is_error, _MANY_ERRORS),
    }
    # An error page is a capture as well.
    return row.changed(*found, fields)


def _back_at(event: Event, in_a_row: int, outcome: Outcome, hour: int) -> int:
    """Return the hour at which a row is due again after an *event* other than a capture; 0 for never."""
    back = RETURNS.get(event)
    if back is None:
        return 0
    # What is exhausted was counted up to that; its pauses begin anew with the first.
    asked = min(ceil(outcome.retry_after / 3600), LONGEST_WAIT)
    return hour + max(back.hours(in_a_row - MANY + 1 if event is Event.EXHAUSTED else in_a_row), asked)


def judge(
    host: int, outcome: Outcome, *, attempt: int, breaker: HostBreaker, limit: InflightLimit
) -> Verdict:
    """Give *breaker* and *limit* the evidence that *outcome* is, and return what follows for the row.

    *host* is the host key that was asked, *attempt* the number of the attempt, from 1. To be called once
    for each outcome. A response is final.
    """
    failure = outcome.failure
    if failure is None:
        breaker.answered(host)
        limit.answered()
        return _FINAL
    if outcome.answered:
        breaker.answered(host)
    if BLAME[failure] is Blame.SILENCE and breaker.has_spoken(host):
        limit.lost()
    # The loss just noted counts towards the congestion that may excuse the host.
    return breaker.failed(host, failure, attempt=attempt, congested=limit.congested)


_CAPTURES = frozenset({Event.CAPTURED, Event.UNCHANGED, Event.REDIRECTED, Event.SOFT_404})
_SCHEDULED = Status.SCHEDULED


class Settling:
    """The rules of one frontier. Without *soft404*, error pages are captures like any other.

    With *recrawls* the wheel hears of what was captured, too; else only of what is to be tried again.
    """

    __slots__ = (
        *("_hosts", "_partition", "_recrawls", "_revisits", "_soft404", "_status_counts", "_wheel"),
    )

    def __init__(
        self,
        partition: LivePartition,
        hosts: HostTally,
        revisits: Revisits,
        *,
        status_counts: StatusCounts,
        wheel: DueWheel,
        recrawls: bool,
        soft404: Soft404Detector | None,
    ) -> None:
        self._partition = partition
        self._hosts = hosts
        self._revisits = revisits
        self._soft404 = soft404
        self._status_counts = status_counts
        self._wheel = wheel
        self._recrawls = recrawls

    def settle(
        self, number: int, row: UrlRow, known: Seed, outcome: Outcome, *, was: int, hour: int
    ) -> None:
        """Write *outcome*, of the hour *hour*, to row *number*, which is *row* apart from its status.

        Its status was *was*; *known* is the seed that it was handed out with.
        """
        event = event_of(outcome, in_a_row=row.retry_count)
        if self._soft404 is not None and self._soft404.is_error_page(row, event, outcome):
            event = Event.SOFT_404
        if event in _CAPTURES:
            host = self._hosts.row(row.host) if row.crawl_count else None
            found = keep_found(self._partition, row, known, outcome)
            visited = self._revisits.scheduled(row, outcome, host, hour)
            row = settled(row, event, outcome, hour, found, visited)
        else:
            row = settled(row, event, outcome, hour)
        self._status_counts.put(number, row, was=was)
        if row.next_due and (self._recrawls or row.status == _SCHEDULED):
            self._wheel.add(number, row.next_due)
