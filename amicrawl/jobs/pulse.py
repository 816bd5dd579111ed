"""Pulse: whether a crawl lives, judged by its lease in Redis. Pure; time is handed in.

A crawl renews its lease once a second, as long as its event loop turns; a process that hangs does not.
The pipeline looks at how long the lease is good yet, and so sees the renewals. Until the first one,
while the crawl starts, the pipeline renews in its place.

Moments are of one monotonic clock, in seconds. The lease runs by the clock of Redis, which is read at a
moment between a question and its answer: a renewal is seen where the lease lasts longer than it could
if the last answer had been given at the last moment, and this one at the first.
"""

from __future__ import annotations

STARTUP = 60.0
"""Seconds that a crawl may take from its start to its first renewal."""
PATIENCE = 0.75
"""How much of a lease may pass without a renewal: the rest is for killing the crawl before it ends."""

_TOLERANCE = 0.3
_OWN_TURN = 0.25


class Pulse:
    """The renewals of one crawl."""

    def __init__(self, ttl: float, now: float, *, startup: float = STARTUP) -> None:
        """Begin *now*, when the lease was taken for *ttl* seconds."""
        self._ttl = ttl
        self._startup = startup
        self._started = now
        self._left: float | None = ttl
        self._at = now
        self._own = now
        self.has_begun = False
        """Whether the crawl has renewed its lease itself."""
        self.heard = now
        """When it was last known to have done so."""

    def looked(self, left: float, asked: float, answered: float) -> None:
        """Take in that the lease was good for *left* seconds more, or that there was none (0).

        That was so at a moment from *asked* to *answered*.

        After a time without a look, because Redis was away or this process stood still, the wait for a
        renewal begins anew: the crawl may have been cut off, too, and tries again with pauses.
        """
        if self._left is None or asked - self._at > self._ttl * PATIENCE:
            self.begin_anew(answered)
        elif left > max(self._left - (asked - self._at), 0.0) + _TOLERANCE:
            self.has_begun = True
            self.heard = answered
        self._left, self._at = left, answered

    def could_not_look(self, now: float) -> None:
        """Take in that Redis did not answer: so the crawl may not have reached it either."""
        self._left = None
        self.begin_anew(now)

    def begin_anew(self, now: float) -> None:
        """Count the time until the next renewal from *now*: the crawl starts, or was cut off."""
        self.heard = max(self.heard, now)
        if not self.has_begun:
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
