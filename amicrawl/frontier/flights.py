"""Rows in flight, and the rows counted by status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError
from amicrawl.frontier.row import Dispatch
from amicrawl.frontier.states import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.row import Offer
    from amicrawl.frontier.url_row import UrlRow
    from amicrawl.urls import UrlKey


_IN_FLIGHT = int(Status.IN_FLIGHT)


class Flight(Dispatch):
    """A row that is handed out, and what only the frontier knows of it."""

    __slots__ = ("again", "evidence", "landed", "number", "row")

    def __init__(self, offer: Offer, attempt: int, *, skip: bool, number: int, row: UrlRow) -> None:
        self.offer = offer
        self.attempt = attempt
        self.skip = skip
        self.number = number
        self.row = row
        """The row as it was before it was handed out: all of it but the status is as it is now."""
        self.evidence: tuple[object, ...] = ()
        """The part of the outcome that `again` was decided for; empty before."""
        self.again = False
        self.landed = False
        """Whether its request is over; it is settled later."""


class Flights(dict["UrlKey", Flight]):
    """All of them, by key."""

    landed = 0
    """How many of them have landed."""

    def land(self, flight: Flight) -> None:
        """Note that the request of *flight* is over."""
        flight.landed = True
        self.landed += 1

    def leave(self, flight: Flight) -> None:
        """Forget *flight*."""
        del self[flight.offer.key]
        self.landed -= flight.landed

    def at(self, key: UrlKey) -> Flight:
        """Return the flight of *key*; raises AmicrawlError where it is not in flight."""
        flight = self.get(key)
        if flight is None:
            raise AmicrawlError(
                f"URL key {key[0]:016x}:{key[1]:016x} is not in flight: settle or release a row once, "
                "after it was handed out."
            )
        return flight


class StatusCounts:
    """Write rows of *partition* and keep *counts*, the number of rows by status."""

    __slots__ = ("_counts", "_partition")

    def __init__(self, partition: LivePartition, counts: Mapping[Status, int]) -> None:
        self._partition = partition
        self._counts = [counts[status] for status in Status]

    @property
    def counts(self) -> dict[Status, int]:
        """The number of rows by status; a copy, with every status."""
        return dict(zip(Status, self._counts, strict=True))

    def added(self, status: int) -> None:
        """Count a new row of *status*."""
        self._counts[status] += 1

    def put_in_flight(self, number: int, *, was: int) -> None:
        """Set row *number*, whose status was *was*, to IN_FLIGHT."""
        self._counts[was] -= 1
        self._counts[_IN_FLIGHT] += 1
        self._partition.put_in_flight(number)

    def put(self, number: int, row: UrlRow, *, was: int) -> None:
        """Put *row* in the place of row *number*, which stood at the status *was*."""
        self._counts[was] -= 1
        self._counts[row.status] += 1
        self._partition.put(number, row)
