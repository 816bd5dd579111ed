"""What every frontier promises, wherever it keeps its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.row import Dispatch, Offer, Outcome, Settled
    from amicrawl.frontier.states import Status
    from amicrawl.urls import UrlKey


class Frontier(Protocol):
    """Every URL of a crawl, once; it names the next one whose host may be asked now.

    **Order.** Within a host, greater priority first, then the order of the offers; a row that comes
    back (released, or to be tried again) keeps its place. Among the hosts that may be asked, the one
    with the greatest priority at its head, then the one that has been in line longest: a host goes to
    the end of the line with each request, so one with a million rows gets turns like any other.
    Priority is strict: between hosts, nothing but its gate holds a greater one back.

    **Gates.** `next` starts the gate of the host it names, `settle` and `release` end it; the crawl
    does so only for requests that the frontier does not hold. At most as many rows are in flight as the
    in-flight limit says.

    **Hosts given up.** Their rows leave through `next` as all others, with `Dispatch.skip` set, so
    that each gets its row in the index. They pass no gate, but take turns, and count as in flight until
    settled with `Failure.HOST_SKIPPED`.

    **Time.** `now` is monotonic seconds and must not go back. One thread uses a frontier.
    """

    def offer(self, offer: Offer) -> bool:
        """Take *offer* as a new row; return False, and change nothing, if its key is known."""

    def next(self, now: float) -> Dispatch | None:
        """Hand out the row that comes next, or None where nothing may start at *now*."""

    def decide(self, dispatch: Dispatch, outcome: Outcome) -> Settled:
        """Decide whether *dispatch*, which is in flight, is handed out again after *outcome*.

        The evidence for its host counts here, once. `settle` with an outcome of the same status, failure
        and `answered` keeps to the decision, whatever happens between: the crawl leaves an attempt that
        is not the last out of the index.
        """

    def settle(self, key: UrlKey, outcome: Outcome, now: float) -> Settled:
        """Note what came of the row in flight at *key*.

        Raises AmicrawlError where it is not in flight.
        """

    def land(self, key: UrlKey, now: float) -> None:
        """Note that the request of the row in flight at *key* is over: its host may be asked again.

        The row is settled later, by whoever reads what came, and counts as in flight until then, but
        not against the in-flight limit. Should the process die before, the row is found in flight.
        Raises AmicrawlError where it is not in flight, or has landed.
        """

    def release(self, key: UrlKey, now: float) -> None:
        """Take back the row in flight at *key* that was never fetched; it may be handed out again.

        The attempt does not count. The delay of its host's gate does: somebody may have been asked on
        its behalf (robots.txt). Raises AmicrawlError where it is not in flight.
        """

    def next_moment(self, now: float) -> float | None:
        """Return the earliest moment at which `next` may answer, *now* included; for one timer.

        None while nothing waits, or only the end of something in flight can help. It may be too early,
        but is after *now* when `next(now)` has just answered None.
        """

    def has_pending(self) -> bool:
        """Tell whether a row is waiting or in flight; takes constant time."""

    @property
    def queued(self) -> int:
        """How many rows are still to be handed out, later attempts included."""

    @property
    def in_flight(self) -> int:
        """How many rows are handed out and not settled."""

    @property
    def counts(self) -> Mapping[Status, int]:
        """How many rows stand where; a copy, with every status."""

    def __len__(self) -> int:
        """Return how many rows are known, settled ones included."""
