"""Settling: the new state of a row after its last attempt.

    outcome -> event (outcomes; an error page, if that is looked for: soft404) -> state, and when again
            -> of a capture: validators and redirect in the arena, its visit, and its rate of change
            -> the partition, and the wheel for when it is due

The queue is not touched here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.frontier.outcomes import event_of, settled
from amicrawl.frontier.row_strings import keep_found
from amicrawl.frontier.states import Event, Status

if TYPE_CHECKING:
    from amicrawl.frontier.flights import StatusCounts
    from amicrawl.frontier.hosts import HostTally
    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.revisits import Revisits
    from amicrawl.frontier.row import Outcome
    from amicrawl.frontier.soft404 import Soft404Detector
    from amicrawl.frontier.url_row import UrlRow
    from amicrawl.frontier.wheel import DueWheel
    from amicrawl.seed import Seed

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
