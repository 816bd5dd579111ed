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

The pauses are those of `states.RETURNS`. Times are hours since 1970.

`Settling` writes the new state of a row after its last attempt:

    outcome -> event (an error page, if a `Soft404Detector` finds one) -> state, and when again
            -> of a capture: validators and redirect in the arena, its visit, and its rate of change
            -> the partition, and the wheel for when it is due
"""

from __future__ import annotations

from collections import OrderedDict
from math import ceil
from struct import Struct
from typing import TYPE_CHECKING

from amicrawl.capture import Failure
from amicrawl.frontier.revisits import Observation
from amicrawl.frontier.row import Found
from amicrawl.frontier.row_strings import keep_found
from amicrawl.frontier.tally import DistinctTally
from amicrawl.meguri import RETURNS, Cause, Event, Status, after
from amicrawl.meguri.states import MANY
from amicrawl.politeness import BLAME, Blame, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.hosts import HostTally
    from amicrawl.frontier.revisits import Revisits
    from amicrawl.frontier.row import Outcome
    from amicrawl.frontier.wheel import DueWheel
    from amicrawl.meguri import LivePartition, UrlRow
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
    event: (after(Status.IN_FLIGHT, event), RETURNS[event].first)
    for event in (Event.CAPTURED, Event.UNCHANGED, Event.REDIRECTED)
}
"""What a capture makes of a row, and after how many hours it is due again."""
# Bound here, as a look-up in an enumeration is a call, and these are needed for every page.
_IN_FLIGHT, _FINAL = Status.IN_FLIGHT, Verdict.FINAL
_CAPTURED, _UNCHANGED = Event.CAPTURED, Event.UNCHANGED
_BUSY, _FAILED = Event.BUSY, Event.FAILED
_MANY_SMALL = 0xFF
_MANY_ERRORS = 0xFFFF
LONGEST_WAIT = 7 * 24
"""Hours that a `Retry-After` counts for at most."""


def event_of(outcome: Outcome, *, in_a_row: int) -> Event:
    """Return what *outcome*, on which no further attempt follows, does to its row.

    *in_a_row* is how often before the row came to nothing, without a response between.
    """
    failure, found = outcome.failure, outcome.found
    if failure is None:
        if 200 <= outcome.status <= 299:
            return _UNCHANGED if found is not None and found.unchanged else _CAPTURED
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
    if status in _NOT_NOW or 500 <= status <= 599:
        return _BUSY
    if status == 410:
        return Event.WITHDRAWN
    if 400 <= status <= 499:
        return Event.MISSING
    if status == 304 or (outcome.found is not None and outcome.found.unchanged):
        return Event.UNCHANGED
    return Event.REDIRECTED if 300 <= status <= 399 else _CAPTURED


def settled(row: UrlRow, event: Event, outcome: Outcome, hour: int) -> dict[str, float]:
    """Return the fields of *row*, in flight, that *event*, which *outcome* was, changes at *hour*."""
    capture = _FIRST_RETURNS.get(event)
    if capture is not None:
        status, first = capture
        return {
            "status": status,
            "http_status": outcome.status & 0xFFFF,
            "next_due": hour + first,
            "retry_count": 0,
        }
    status, failure = after(_IN_FLIGHT, event), outcome.failure
    in_a_row = min(row.retry_count + 1, _MANY_SMALL)
    is_error = event not in _NO_ERRORS
    return {
        "status": status,
        "http_status": _CAUSES.get(failure, outcome.status & 0xFFFF),
        "next_due": _back_at(event, in_a_row, outcome, hour),
        "retry_count": in_a_row,
        "error_count": min(row.error_count + is_error, _MANY_ERRORS),
    }


def first_captured(row: UrlRow, event: Event, outcome: Outcome, visit: Observation) -> dict[str, float]:
    """Return all fields that a capture, which *event* was, changes of *row*, which has no history.

    Most rows of a crawl are captured for the first time; `settled` and `Revisits.scheduled` give the
    same in three times as long.
    """
    status, pause = _FIRST_RETURNS[event]
    content_fp = 0 if visit.not_modified else visit.content_fp
    return {
        "status": status,
        "http_status": outcome.status & 0xFFFF,
        "next_due": visit.fetched_at + pause,
        "retry_count": 0,
        "last_crawled": visit.fetched_at,
        "crawl_count": 1,
        "no_change_streak": 1 if visit.not_modified else 0,
        "content_fp": content_fp,
        "simhash": 0 if content_fp else row.simhash,
    }


def _back_at(event: Event, in_a_row: int, outcome: Outcome, hour: int) -> int:
    """Return the hour at which a row is due again after an *event* other than a capture; 0 for never."""
    back = RETURNS.get(event)
    if back is None:
        return 0
    # What is exhausted was counted up to that; its pauses begin anew with the first.
    wished = min(ceil(outcome.retry_after / 3600), LONGEST_WAIT)
    return hour + max(back.hours(in_a_row - MANY + 1 if event is Event.EXHAUSTED else in_a_row), wished)


SETTLED_COLUMNS = ("status", "http_status", "next_due", "retry_count", "first_seen", "last_crawled")
"""What `settled_at` needs of a row."""


def settled_at(row: Mapping[str, int]) -> int:
    """Return the hour at which the URL row with these columns was settled last; 0 for never.

    Only captures leave their hour in a row; that of another outcome follows from when it is due again. A
    `Retry-After` moves it to a later one.
    """
    status, http_status, in_a_row = row["status"], row["http_status"], row["retry_count"]
    if status == Status.CRAWLED or not row["next_due"]:
        return row["last_crawled"]
    if status == Status.EXCLUDED:
        event = Event.REFUSED_BY_ROBOTS
    elif status != Status.GONE:
        if not in_a_row:
            return row["last_crawled"]
        event = _BUSY
    elif 200 <= http_status <= 399:
        event = Event.SOFT_404
    elif 400 <= http_status <= 499 and http_status not in _NOT_NOW:
        event = Event.WITHDRAWN if http_status == 410 else Event.MISSING
    else:
        event, in_a_row = Event.EXHAUSTED, in_a_row - MANY + 1
    pause = RETURNS[event].hours(max(in_a_row, 1))
    return max(row["next_due"] - pause, row["first_seen"], row["last_crawled"])


def judge(
    host: int, outcome: Outcome, *, attempt: int, breaker: HostBreaker, limit: InflightLimit
) -> Verdict:
    """Give *breaker* and *limit* the evidence that *outcome* is, and return what follows for the row.

    *host* is the host key that was contacted, *attempt* the number of the attempt, from 1. To be called
    once for each outcome. A response is final.
    """
    failure = outcome.failure
    if (failure is None or outcome.responded) and host not in breaker.spoken:
        breaker.responded(host)
    if failure is None:
        limit.responded()
        return _FINAL
    if BLAME[failure] is Blame.SILENCE and host in breaker.spoken:
        limit.lost()
    # The loss just noted counts towards the congestion that may excuse the host.
    return breaker.failed(host, failure, attempt=attempt, congested=limit.congested)


def fingerprint_of(digest: str) -> int:
    """Return the fingerprint of a payload: the first 64 bits of its SHA-1 (hex); 0 where not known."""
    try:
        return int(digest[:16], 16)
    except ValueError:
        return 0


_pack = Struct("<QQ").pack


class Soft404Detector:
    """Payloads by host, and which of them are error pages that the server sends with status 200.

    A host that returns the same payload for many URLs returns its template for missing pages. The first
    few count as captures; from then on the payload is known, whatever the URL.

    Payloads and templates are in memory only. *limit* bounds either kind; with both full it takes some
    370 bytes for each: 24 MB by default. Those met longest ago are forgotten first.
    """

    THRESHOLD = 8
    """URLs of one host that show one payload before it counts as a template."""
    LIMIT = 65_536

    __slots__ = ("_limit", "_tally", "_templates")

    def __init__(self, *, threshold: int = THRESHOLD, limit: int = LIMIT) -> None:
        self._tally = DistinctTally(threshold, limit=limit)
        self._templates: OrderedDict[bytes, None] = OrderedDict()
        self._limit = limit

    def observe(self, host: int, content_fp: int, *, path: int) -> bool:
        """Note that the URL keyed (*host*, *path*) shows *content_fp*; return whether it is a template.

        A fingerprint of 0 stands for no payload, which is not a template.
        """
        if not content_fp:
            return False
        subject = _pack(host, content_fp)
        if subject in self._templates:
            self._templates.move_to_end(subject)
            return True
        if not self._tally.add(subject, path):
            return False
        self._templates[subject] = None
        if len(self._templates) > self._limit:
            self._templates.popitem(last=False)
        return True

    def is_error_page(self, row: UrlRow, event: Event, content_fp: int) -> bool:
        """Return whether *event* was a capture of *row*, in flight, whose payload makes it a soft 404.

        A row that was one stays one while its payload is the same, even if the template is forgotten. A
        redirect is never one, whatever its body.
        """
        if event is not Event.CAPTURED and event is not Event.UNCHANGED:
            return False
        if not content_fp and event is Event.UNCHANGED:
            content_fp = row.content_fp
        # Nothing else leaves a row with a response that is fine and with visits that came to nothing.
        was = row.retry_count > 0 and (200 <= row.http_status <= 299 or row.http_status == 304)
        is_same = was and content_fp == row.content_fp
        return self.observe(row.host, content_fp, path=row.path) or is_same


_CAPTURES = frozenset({Event.CAPTURED, Event.UNCHANGED, Event.REDIRECTED, Event.SOFT_404})
_SCHEDULED = Status.SCHEDULED
_NOTHING = Found()


class Settling:
    """The rules of one frontier. Without *soft404*, error pages are captures like any other.

    With *recrawls* the wheel hears of what was captured, too; else only of what is to be tried again.
    """

    __slots__ = (*("_hosts", "_partition", "_recrawls", "_revisits", "_soft404", "_wheel"),)

    def __init__(
        self,
        partition: LivePartition,
        hosts: HostTally,
        revisits: Revisits,
        *,
        wheel: DueWheel,
        recrawls: bool,
        soft404: Soft404Detector | None,
    ) -> None:
        self._partition = partition
        self._hosts = hosts
        self._revisits = revisits
        self._soft404 = soft404
        self._wheel = wheel
        self._recrawls = recrawls

    def settle(
        self, number: int, row: UrlRow, known: Seed, outcome: Outcome, *, was: int, hour: int
    ) -> None:
        """Write *outcome*, of the hour *hour*, to row *number*, which is *row* apart from its status.

        Its status was *was*; *known* is the seed that it was handed out with.
        """
        event, found = event_of(outcome, in_a_row=row.retry_count), outcome.found
        content_fp = 0 if found is None else fingerprint_of(found.digest)
        visit = Observation(hour, outcome.status == 304 or (found or _NOTHING).unchanged, content_fp)
        if self._soft404 is not None and self._soft404.is_error_page(row, event, content_fp):
            event = Event.SOFT_404
        if event in _FIRST_RETURNS and not (row.crawl_count or row.content_fp or row.no_change_streak):
            changes = [first_captured(row, event, outcome, visit)]
        else:
            changes = [settled(row, event, outcome, hour)]
            if event in _CAPTURES:
                host = self._hosts.row(row.host) if row.crawl_count else None
                changes.append(self._revisits.scheduled(row, visit, host))
            if event is Event.SOFT_404:
                # An error page is a capture, too, but comes back by a rule of its own.
                changes.reverse()
        if event in _CAPTURES:
            changes.append(keep_found(self._partition, row, known, outcome))
        row = self._partition.put(number, row, *changes, was=was)
        if row.next_due and (self._recrawls or row.status == _SCHEDULED):
            self._wheel.add(number, row.next_due)
