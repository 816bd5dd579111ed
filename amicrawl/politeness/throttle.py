"""Throttle: how many requests are under way, how long a response is waited for, how many bytes come.

The in-flight limit grows by one with every completed response and shrinks when requests to hosts that
are known to respond are lost: additive increase, multiplicative decrease, as in congestion control (RFC
5681), with an average of losses in place of a single one. Slow responses never shrink it: a slow server
is not a full uplink. Where it holds rows back and hardly a response completes, hosts that say nothing
hold it: it grows by a quarter then, four times a second, so that they do not hold up others. A quarter
of it is kept for hosts that have sent something. While the event loop is late it does not grow, and
shrinks towards where it began: what is requested beyond that waits here, and not at a server.

The time for the first byte follows the latencies seen so far, counted in a histogram of nine ranges.
After every 64 of them it becomes twice their 95th percentile, read as the upper edge of its range,
between a floor and a ceiling; before, it is the ceiling, so that no host is cut off before anything is
known. Requests that were cut off have no latency and are not reported; the floor bounds the effect.

The bandwidth is capped by token buckets in bytes per second, one over all hosts and one for each.

Pure: events are reported, and no clock is read.
"""

from __future__ import annotations

from bisect import bisect_right
from math import inf
from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError

if TYPE_CHECKING:
    from collections.abc import Callable

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
_LOOKS = 5
"""Looks at the loop after which it is judged whether the requests in flight stand still."""
_STANDSTILL = 16
"""Where fewer than one in so many of the requests in flight complete between two judgements, they do."""


class InflightLimit:
    """A limit between *minimum* and *maximum* that follows what the network bears.

    A shrink halves the average of losses. The losses that led to it have had their effect, and the
    requests already under way at that moment will bring more of the same: were the average kept,
    a single burst would take the limit to its minimum. Were it cleared, `congested` would turn
    false in the middle of the congestion, and hosts be blamed for it; half of 0.25 is still above
    the mark, until fourteen responses without a loss say otherwise.
    """

    __slots__ = (
        *("_average", "_completed", "_given_maximum", "_given_minimum", "_late", "_looks"),
        *("_maximum", "_minimum"),
        *("_start", "holds_back", "limit", "on_growth"),
    )

    holds_back: bool
    """Whether a row could have been handed out since the last judgement but for the limit."""

    limit: int
    """How many requests may be in flight now."""

    def __init__(self, start: int, minimum: int, maximum: int) -> None:
        self.limit = self._start = start
        self._late = False
        self._minimum = self._given_minimum = minimum
        self._maximum = self._given_maximum = maximum
        self._average = 0.0
        self._completed = self._looks = 0
        self.holds_back = False
        self.on_growth: Callable[[], None] | None = None
        """Called when the limit has grown because the requests in flight stand still."""

    def change_maximum(self, maximum: int) -> None:
        """Grow to *maximum* at most from now on; shrink to it at once where more were allowed."""
        self._maximum = self._given_maximum = maximum
        self._minimum = min(self._given_minimum, maximum)
        self.limit = min(self.limit, maximum)

    @property
    def for_silent(self) -> int:
        """How many requests to hosts that have never sent anything may be in flight now.

        A quarter of the limit, rounded down, is kept for the others.
        """
        return self.limit - self.limit // 4

    @property
    def congested(self) -> bool:
        """Whether so much is lost that a failure may be our own doing."""
        return self._average > _CONGESTED_ABOVE

    def exhausted(self) -> bool:
        """Note that this machine has nothing left for one more request; return whether that is new.

        Fewer are in flight from then on, whatever the minimum: it is of no use to what cannot be had.
        """
        is_new = self._maximum == self._given_maximum
        self._maximum = max(1, min(self._maximum, self.limit) * 7 // 8)
        self._minimum = min(self._minimum, self._maximum)
        self.limit = min(self.limit, self._maximum)
        return is_new

    def responded(self) -> None:
        """Note a completed response."""
        self._completed += 1
        self._average -= self._average * _WEIGHT
        if self.limit < self._maximum and not self._late:
            self.limit += 1

    def lagged(self, seconds: float) -> None:
        """Note that the event loop is late by *seconds*; to be reported twenty times a second."""
        self._late = seconds > _LATE
        if self._late and self.limit > self._start:
            self.limit = max(self._start, int(self.limit * _SHRINK_LATE))
        self._looks += 1
        if self._looks < _LOOKS:
            return
        stands_still = self.holds_back and self._completed * _STANDSTILL < self.limit
        self._looks = self._completed = 0
        self.holds_back = False
        # Where hosts that have responded before are lost, too, the network is at fault: more is worse.
        if not stands_still or self._late or self.congested or self.limit >= self._maximum:
            return
        self.limit = min(self._maximum, self.limit + max(1, self.limit // 4))
        if self.on_growth is not None:
            self.on_growth()

    def lost(self) -> None:
        """Note a timeout of a host that has responded before.

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
    """The limit for the first byte of a response, in seconds, as it is now."""

    def __init__(self, floor: float, ceiling: float) -> None:
        self.seconds = ceiling
        self._floor = floor
        self._ceiling = ceiling
        self._count = 0
        self._counts = [0] * (len(_EDGES) + 1)

    def responded(self, *latencies: float) -> None:
        """Note responses that came so many seconds after their requests."""
        for latency in latencies:
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


_SIZE_WEIGHT = 0.1
"""What one response weighs in the average of sizes."""
_SWEEP_FROM = 1024
"""Buckets that may be held before the first look for some to forget."""


class Bandwidth:
    """What may be fetched, over all hosts and from each.

        |---- burst ----|
        --------------- now ----- paid ----->   what was spent is paid for at `paid`; until then the
                         '-- shut --'           bucket is shut. `paid` lies at most a burst in the past.

    A body has come before its size is known, so `spend` is never refused: it may overdraw a bucket, and
    nothing more should be requested until what was spent is paid off. Over any time t after a start that
    was allowed, what is spent is at most rate x (t + burst), and what came last.

    What comes last is little from one host. Over all hosts it is the bodies of everything that is in
    flight, and a crawl would swing between far too much and nothing at all. So a request may be charged
    when it starts with what responses have on average (`expect`), with the rest when its size is known.

    Every operation takes constant time; a bucket that is full again is forgotten in time.
    """

    def __init__(
        self, *, total: float | None = None, per_host: float | None = None, burst: float = 1.0
    ) -> None:
        """Cap bytes per second at *total* over all hosts and *per_host* for each; None for no cap.

        *burst* is the seconds' worth of bytes that may be spent at once after a pause. Raises
        AmicrawlError for a rate or burst that nothing could ever pass.
        """
        for rate in (total, per_host):
            if rate is not None and not rate > 0:
                raise AmicrawlError(
                    f"A bandwidth of {rate} bytes/s lets nothing through: give None for none."
                )
        if not 0 <= burst < inf:
            raise AmicrawlError(f"A burst of {burst} s is not a span of time.")
        self._total = total
        self._per_host = per_host
        self._burst = burst
        self._paid = -inf
        self._mean = 0.0
        self._host_paid: dict[int, float] = {}
        self._sweep_at = _SWEEP_FROM

    def __len__(self) -> int:
        """Return how many buckets of hosts are held in memory."""
        return len(self._host_paid)

    def expect(self, now: float) -> float:
        """Charge a request that starts with the average response, and return that for `spend`."""
        if self._total is None:
            return 0.0
        self._paid = max(self._paid, now - self._burst) + self._mean / self._total
        return self._mean

    def spend(self, host: int, nbytes: int, now: float, *, expected: float = 0.0) -> None:
        """Note that *nbytes* came from *host*, as they come or all at the end.

        What was *expected* of them has been charged over all hosts already.
        """
        full = now - self._burst
        if self._total is not None:
            if nbytes:
                self._mean += _SIZE_WEIGHT * (nbytes - self._mean)
            self._paid = max(self._paid, full) + (nbytes - expected) / self._total
        if self._per_host is not None:
            paid = self._host_paid.get(host)
            if paid is None:
                if len(self._host_paid) >= self._sweep_at:
                    self._sweep(full)
                paid = full
            self._host_paid[host] = max(paid, full) + nbytes / self._per_host

    def total_opens_at(self) -> float:
        """Return the moment from which anything may be requested; it may be long past."""
        return self._paid

    def host_opens_at(self, host: int) -> float:
        """Return the moment from which *host* alone may send more; it may be long past."""
        return self._host_paid.get(host, -inf)

    def _sweep(self, full: float) -> None:
        """Forget the buckets that are full; each sweep waits for as many new ones as the last left."""
        self._host_paid = {host: paid for host, paid in self._host_paid.items() if paid > full}
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._host_paid))
