"""What follows the network: how many requests are under way, and how long an answer is waited for.

The in-flight limit grows by one with every completed response and shrinks when requests to hosts that
are known to answer are lost: additive increase, multiplicative decrease, as in congestion control (RFC
5681), with an average of losses in place of a single one. Slow answers never shrink it: a slow server is
not a full uplink. While the event loop is late it does not grow, and shrinks towards where it began:
what is asked for beyond that waits here, and not at a server.

The time for the first byte follows the latencies seen so far, counted in a histogram of nine ranges.
After every 64 of them it becomes twice their 95th percentile, read as the upper edge of its range,
between a floor and a ceiling; before, it is the ceiling, so that no host is cut off before anything is
known. Requests that were cut off have no latency and are not reported; the floor bounds the effect.

Pure: events are reported, and no clock is read.
"""

from __future__ import annotations

from bisect import bisect_right

_WEIGHT = 0.02
"""What one outcome weighs in the average of losses."""
_SHRINK_ABOVE = 0.25
"""Average of losses above which a further loss shrinks the limit."""
_CONGESTED_ABOVE = 0.10
"""Average of losses above which a failure may be ours."""
_SHRINK_TO = 0.85
"""What a shrink leaves of the limit."""
_LATE = 0.25
"""Seconds by which the event loop may be late."""
_SHRINK_LATE = 0.95
"""What a look at a loop that is later leaves of the limit."""


class InflightLimit:
    """A limit between *minimum* and *maximum* that follows what the network bears.

    A shrink halves the average of losses. The losses that led to it have been answered, and the
    requests already under way at that moment will bring more of the same: were the average kept,
    a single burst would take the limit to its minimum. Were it cleared, `congested` would turn
    false in the middle of the congestion, and hosts be blamed for it; half of 0.25 is still above
    the mark, until fourteen answers without a loss say otherwise.
    """

    __slots__ = ("_average", "_given_minimum", "_late", "_maximum", "_minimum", "_start", "limit")

    limit: int
    """How many requests may be in flight now."""

    def __init__(self, start: int, minimum: int, maximum: int) -> None:
        self.limit = self._start = start
        self._late = False
        self._minimum = self._given_minimum = minimum
        self._maximum = maximum
        self._average = 0.0

    def change_maximum(self, maximum: int) -> None:
        """Grow to *maximum* at most from now on; shrink to it at once where more were allowed."""
        self._maximum = maximum
        self._minimum = min(self._given_minimum, maximum)
        self.limit = min(self.limit, maximum)

    @property
    def congested(self) -> bool:
        """Whether so much is lost that a failure may be our own doing."""
        return self._average > _CONGESTED_ABOVE

    def answered(self) -> None:
        """Note a completed response."""
        self._average -= self._average * _WEIGHT
        if self.limit < self._maximum and not self._late:
            self.limit += 1

    def lagged(self, seconds: float) -> None:
        """Note that the event loop is late by *seconds*; to be reported repeatedly."""
        self._late = seconds > _LATE
        if self._late and self.limit > self._start:
            self.limit = max(self._start, int(self.limit * _SHRINK_LATE))

    def lost(self) -> None:
        """Note a timeout of a host that has answered before.

        Other failures say nothing of the network between us and the hosts, and are not reported here.
        """
        self._average += (1.0 - self._average) * _WEIGHT
        if self._average > _SHRINK_ABOVE:
            self.limit = max(self._minimum, int(self.limit * _SHRINK_TO))
            self._average /= 2


_EDGES = (0.1, 0.25, 0.5, 1.0, 2.0, 3.5, 5.0, 10.0)
"""Upper ends of the ranges in seconds; one that is met belongs to the next range."""
_EVERY = 64
_MULTIPLE = 2


class AdaptiveTimeout:
    """A timeout between *floor* and *ceiling* seconds that follows the latencies of all hosts."""

    __slots__ = ("_ceiling", "_count", "_counts", "_floor", "seconds")

    seconds: float
    """How long the begin of an answer is waited for now."""

    def __init__(self, floor: float, ceiling: float) -> None:
        self.seconds = ceiling
        self._floor = floor
        self._ceiling = ceiling
        self._count = 0
        self._counts = [0] * (len(_EDGES) + 1)

    def answered(self, latency: float) -> None:
        """Note an answer that came *latency* seconds after its request."""
        self._counts[bisect_right(_EDGES, latency)] += 1
        self._count += 1
        if self._count % _EVERY == 0:
            self.seconds = max(self._floor, min(_MULTIPLE * self._p95(), self._ceiling))

    def _p95(self) -> float:
        """Return the upper edge of the range that the 95th of 100 latencies falls into."""
        wanted = -(-self._count * 19 // 20)
        below = 0
        for edge, count in zip(_EDGES, self._counts, strict=False):
            below += count
            if below >= wanted:
                return edge
        # The last range has no upper edge: the ceiling is all that can be said.
        return self._ceiling
