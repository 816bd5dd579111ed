"""Rows that are handed out, until they are settled or released."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError

if TYPE_CHECKING:
    from amicrawl.frontier.row import Dispatch
    from amicrawl.frontier.url_row import UrlRow
    from amicrawl.urls import UrlKey


class Flight:
    """A row that is handed out."""

    __slots__ = ("again", "dispatch", "evidence", "key", "landed", "number", "row")

    def __init__(self, dispatch: Dispatch, number: int, row: UrlRow) -> None:
        self.dispatch = dispatch
        self.key = dispatch.offer.key
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
        del self[flight.key]
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
