"""The states of a row, and the one table of what leads from which to which, and when it is due again.

    offered -> SCHEDULED -- dispatched -> IN_FLIGHT -- captured, unchanged, redirected -> CRAWLED
                   ^                          |   |--- missing, withdrawn, exhausted,
                   |                          |   |    soft 404 ------------------------> GONE
                   |-- released, lapsed, -----|   |--- refused by robots ---------------> EXCLUDED
                       postponed, busy,           |--- refused -------------------------> WITHHELD
                       failed

    CRAWLED, GONE, EXCLUDED -- fell due -> DUE -- dispatched -> IN_FLIGHT         TRAPPED

A WITHHELD row is due again when the configuration that kept it out changes (`again`). `RETURNS` says
after how long any other settled row is due again. Nothing else in this program decides where a
row stands; what a response or failure counts as is `outcomes.event_of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Status(IntEnum):
    """Where a row stands; the numbers are those of a frontier file."""

    # Members are looked up in tables for every row; that of `Enum` is a function of Python.
    __hash__ = int.__hash__

    DISCOVERED = 0
    """Known, and not yet scheduled; only in files of other software, and taken for SCHEDULED."""
    SCHEDULED = 1
    """To be handed out, once its `next_due` has come."""
    READY = 2
    """As DISCOVERED."""
    IN_FLIGHT = 3
    """Handed out, and not settled."""
    CRAWLED = 4
    """Fetched with a response, and that is recorded; due again at its `next_due`."""
    DUE = 5
    """Settled before, and to be handed out again."""
    GONE = 6
    """Not there, or out of reach for good as it seems; looked for again at its `next_due`."""
    EXCLUDED = 7
    """robots.txt forbids it."""
    TRAPPED = 8
    """Taken for one of endlessly many, or one too many; never handed out."""
    WITHHELD = 9
    """Kept out by the configuration of the crawl: `http_status` is a `Cause`. Other software of the
    format does not hand it out either."""


class Cause(IntEnum):
    """Why no server was contacted, in the column `http_status` of a row; below every HTTP status."""

    ADDRESS = 1
    """WITHHELD: the address is private or otherwise special, and no setting permits it."""
    RULE = 2
    """WITHHELD: an ignore pattern, or another rule of the crawl."""
    UNFETCHABLE = 3
    """WITHHELD: it is not an HTTP URL; no configuration changes that."""
    NETWORK = 4
    """SCHEDULED: the name look-up failed, there was no route, or the proxy failed."""


WAITING = frozenset({Status.DISCOVERED, Status.SCHEDULED, Status.READY, Status.DUE})
"""Rows that are handed out once they are due."""
RESTING = frozenset({Status.CRAWLED, Status.GONE, Status.EXCLUDED})
"""Settled rows that a recrawl hands out again, once due."""


class Event(IntEnum):
    """What happens to a row."""

    __hash__ = int.__hash__  # as for `Status`

    DISPATCHED = 0
    RELEASED = 1
    """Handed out and brought back unfetched."""
    LAPSED = 2
    """In flight when the process ended: it will not be settled."""
    POSTPONED = 3
    """Failed, and to be tried again by this crawl."""
    FELL_DUE = 4
    CAPTURED = 5
    UNCHANGED = 6
    """304, or the payload that was there before."""
    REDIRECTED = 7
    MISSING = 8
    """401, 403, 404 and other responses that say no."""
    WITHDRAWN = 9
    """410."""
    BUSY = 10
    """429, 503 and other responses that say not now."""
    FAILED = 11
    """No response, and no further attempt by this crawl."""
    EXHAUSTED = 12
    """Busy or failed too often in a row."""
    REFUSED_BY_ROBOTS = 13
    REFUSED = 14
    """Kept out by the configuration of the crawl."""
    SOFT_404 = 15
    """Captured, and the capture is the page that its host shows for what is not there."""


_FROM_FLIGHT: Mapping[Event, Status] = {
    Event.RELEASED: Status.SCHEDULED,
    Event.LAPSED: Status.SCHEDULED,
    Event.POSTPONED: Status.SCHEDULED,
    Event.CAPTURED: Status.CRAWLED,
    Event.UNCHANGED: Status.CRAWLED,
    Event.REDIRECTED: Status.CRAWLED,
    Event.MISSING: Status.GONE,
    Event.WITHDRAWN: Status.GONE,
    Event.BUSY: Status.SCHEDULED,
    Event.FAILED: Status.SCHEDULED,
    Event.EXHAUSTED: Status.GONE,
    Event.REFUSED_BY_ROBOTS: Status.EXCLUDED,
    Event.REFUSED: Status.WITHHELD,
    Event.SOFT_404: Status.GONE,
}

TRANSITIONS: Mapping[tuple[int, Event], Status] = {
    **{(status, Event.DISPATCHED): Status.IN_FLIGHT for status in WAITING},
    **{(status, Event.FELL_DUE): Status.DUE for status in RESTING},
    **{(Status.IN_FLIGHT, event): status for event, status in _FROM_FLIGHT.items()},
}

MANY = 5
"""Times in a row that a URL may be busy or fail, each after its pause, until it is exhausted."""
_DAY = 24
_WEEK = 7 * _DAY
_YEAR = 365 * _DAY


@dataclass(frozen=True, slots=True)
class Return:
    """When a settled row is due again: after `first` hours, twice as long each time in a row."""

    first: int
    longest: int

    def hours(self, in_a_row: int) -> int:
        """Return the pause after the event has come *in_a_row* times, from 1, with none between."""
        return min(self.first << min(in_a_row - 1, 30), self.longest)


RETURNS: Mapping[Event, Return] = {
    # What was captured comes back by its own rate of change; this is for what has none yet.
    Event.CAPTURED: Return(_WEEK, _WEEK),
    Event.UNCHANGED: Return(_WEEK, _WEEK),
    Event.REDIRECTED: Return(_WEEK, _WEEK),
    Event.MISSING: Return(2 * _WEEK, _YEAR),
    Event.WITHDRAWN: Return(_YEAR, _YEAR),
    Event.BUSY: Return(1, _WEEK),
    Event.FAILED: Return(1, _WEEK),
    Event.EXHAUSTED: Return(2 * _WEEK, _YEAR),
    Event.REFUSED_BY_ROBOTS: Return(_WEEK, _YEAR),
    Event.SOFT_404: Return(2 * _WEEK, _YEAR),
}
"""Events that are not here leave a row that is never due again."""


def after(status: int, event: Event) -> Status:
    """Return the status that *event* leads to; raises AmicrawlError where it cannot happen."""
    following = TRANSITIONS.get((status, event))
    if following is None:
        raise AmicrawlError(
            f"A row that is {Status(status).name} cannot be {event.name}: no such transition."
        )
    return following
