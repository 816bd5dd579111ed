"""The states of a row, and the one table of what leads from which to which.

  offered
     |
DISCOVERED --dispatched--> IN_FLIGHT --answered--> CAPTURED
                            |    ^   --failed----> FAILED
                   postponed|    |   --refused---> EXCLUDED
                    released|    |dispatched
                            v    |
                          SCHEDULED
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Status(IntEnum):
    """Where a row stands; the numbers are those of a frontier file, which has more of them."""

    DISCOVERED = 0
    """Known, and never handed out."""
    SCHEDULED = 1
    """Handed out before, and to be handed out again."""
    IN_FLIGHT = 3
    """Handed out, and not settled."""
    CAPTURED = 4
    """A response was recorded."""
    FAILED = 6
    """No response, and no further attempt."""
    EXCLUDED = 7
    """The crawl decided against it: robots.txt, or a component of its own."""


class Event(IntEnum):
    """What happens to a row."""

    DISPATCHED = 0
    RELEASED = 1
    """Handed out and brought back unfetched."""
    POSTPONED = 2
    """Failed, and to be tried again."""
    ANSWERED = 3
    FAILED = 4
    REFUSED = 5


TRANSITIONS: Mapping[tuple[Status, Event], Status] = {
    (Status.DISCOVERED, Event.DISPATCHED): Status.IN_FLIGHT,
    (Status.SCHEDULED, Event.DISPATCHED): Status.IN_FLIGHT,
    (Status.IN_FLIGHT, Event.RELEASED): Status.SCHEDULED,
    (Status.IN_FLIGHT, Event.POSTPONED): Status.SCHEDULED,
    (Status.IN_FLIGHT, Event.ANSWERED): Status.CAPTURED,
    (Status.IN_FLIGHT, Event.FAILED): Status.FAILED,
    (Status.IN_FLIGHT, Event.REFUSED): Status.EXCLUDED,
}


def after(status: Status, event: Event) -> Status:
    """Return the status that *event* leads to; raises AmicrawlError where it cannot happen."""
    following = TRANSITIONS.get((status, event))
    if following is None:
        raise AmicrawlError(f"A row that is {status.name} cannot be {event.name}: no such transition.")
    return following
