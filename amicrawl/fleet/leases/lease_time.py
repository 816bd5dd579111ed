"""The time that is left of a lease, as its crawl sees it, and as the process around the crawl does.

The lease is good from the moment at which its last successful renewal was begun, for as long as it
lasts, less a margin, by a clock that only runs forward, also through a machine's sleep. So it is known
to be held only as long as no other owner can have been given the unit. Once the claim is another's,
`lost` says so for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.clock import steady_clock

if TYPE_CHECKING:
    from collections.abc import Callable

STARTUP = 60.0
"""Seconds that a crawl may take from its start to its first renewal."""
PATIENCE = 0.75
"""How much of a lease may pass without a renewal: the rest is for killing the crawl before it ends."""

_TOLERANCE = 0.3
_OWN_TURN = 0.25


UNIT_VARIABLE = "AMICRAWL_JOB_UNIT"
TOKEN_VARIABLE = "AMICRAWL_JOB_TOKEN"  # noqa: S105  # no password
LEASE_VARIABLE = "AMICRAWL_JOB_LEASE"
"""In a crawl's environment: what it holds, by which token, for how many seconds a renewal is good."""

LONGEST_MARGIN = 5.0
"""Seconds before its end from which a lease does not count any more, at most; a fifth of a short one."""


def moment_of(ttl: float) -> float:
    """Return for how long a lease of *ttl* seconds has to be good still where a change cannot wait."""
    return min(0.25, ttl / 20)


class HeldLease:
    """The lease of one crawl. Any thread may read; one renews."""

    def __init__(
        self, ttl: float, *, clock: Callable[[], float] = steady_clock, renewed: float | None = None
    ) -> None:
        """*ttl* in seconds; *renewed* is when, by *clock*, it was known to be good for that long."""
        self._ttl = ttl
        self._clock = clock
        self._deadline = float("-inf")
        self._granted_until = float("-inf")
        self.lost = ""
        """Why nothing may be written any more; empty while that is not so."""
        if renewed is not None:
            self._renewed(renewed)

    @property
    def is_held(self) -> bool:
        """Whether the crawl may write: the lease is known to be good, and not lost."""
        return not self.lost and self.seconds_left > 0

    @property
    def may_begin(self) -> bool:
        """Whether what cannot wait, as the event loop, may begin to write: it is held a moment more."""
        return not self.lost and self.seconds_left > moment_of(self._ttl)

    @property
    def seconds_left(self) -> float:
        """For how long it is."""
        return self._deadline - self._clock()

    @property
    def in_grace(self) -> bool:
        """Whether the lease is renewed although the event loop does not turn: see `grant`."""
        return self._clock() < self._granted_until

    def grant(self, seconds: float) -> None:
        """Renew the lease for *seconds* whether or not the event loop turns.

        For work that holds it up: opening a large frontier, and closing it.
        """
        self._granted_until = self._clock() + seconds

    def lose(self, why: str) -> None:
        """Let nothing be written any more, because of *why*, unless that is so already."""
        self.lost = self.lost or why

    def _renewed(self, started: float) -> None:
        """Take in a renewal that was begun at *started* and succeeded."""
        self._valid(self._ttl, since=started)

    def _valid(self, seconds: float, *, since: float) -> None:
        """Take in that the lease was good for *seconds* more at the moment *since*."""
        self._deadline = since + seconds - min(LONGEST_MARGIN, self._ttl / 5)


class HeartbeatMonitor(HeldLease):
    """The renewals of one crawl, and its lease as the process around it sees it."""

    def __init__(self, ttl: float, now: float, *, startup: float = STARTUP) -> None:
        """Begin *now*, when the lease was taken for *ttl* seconds."""
        super().__init__(ttl)
        self._startup = startup
        self._started = now
        self._left: float | None = ttl
        self._at = now
        self._own = now
        self.has_begun = False
        """Whether the crawl has renewed its lease itself."""
        self.heard = now
        """When it was last known to have done so."""

    def looked(self, left: float, sent: float, responded: float, *, has_begun: bool) -> None:
        """Take in that the lease was good for *left* seconds more, or that there was none (0).

        That was so at a moment from *sent* to *responded*. *has_begun*: the crawl has renewed it itself.

        After a time without a look, because Redis was away or this process stood still, the wait for a
        renewal restarts: the crawl may have been cut off, too, and tries again with pauses.
        """
        if self._left is None or sent - self._at > self._ttl * PATIENCE:
            self.begin_anew(responded)
        elif left > max(self._left - (sent - self._at), 0.0) + _TOLERANCE:
            self.heard = responded
        if has_begun and not self.has_begun:
            # Nothing is gained where the crawl renews right after we have.
            self.has_begun, self.heard = True, responded
        self._left, self._at = left, responded
        self._valid(left, since=self._clock() - (responded - sent))

    def could_not_look(self) -> None:
        """Take in that Redis did not respond: so the crawl may not have reached it either."""
        self._left = None

    def begin_anew(self, now: float) -> None:
        """Count the time until the next renewal from *now*: the crawl starts, or was cut off."""
        self.heard = max(self.heard, now)
        self._started = now

    def renewed(self, now: float) -> None:
        """Take in that the pipeline has renewed the lease in the place of the crawl, by *now*."""
        self._left, self._at, self._own = self._ttl, now, now

    def is_our_turn(self, now: float) -> bool:
        """Tell whether the pipeline is to renew the lease: the crawl is starting."""
        return not self.has_begun and now - self._own >= self._ttl * _OWN_TURN

    def is_hung(self, now: float) -> bool:
        """Tell whether the crawl has failed to renew its lease for too long."""
        if self.has_begun:
            return now - self.heard > self._ttl * PATIENCE
        return now - self._started > self._startup
