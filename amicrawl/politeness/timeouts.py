"""The adaptive timeout: how long to wait for the first byte, from the latencies seen so far.

Latencies are counted in a histogram of nine ranges. After every 64 of them the timeout becomes twice the
95th percentile of the latencies, read as the upper edge of its range, between a floor and a
ceiling. Before, it is the ceiling, so that no host is cut off before anything is known.

Requests that were cut off have no latency and are not reported here; the floor bounds the effect of
leaving them out.
"""

from __future__ import annotations

from bisect import bisect_right

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
