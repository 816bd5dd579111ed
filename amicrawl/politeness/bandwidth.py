"""Caps on bandwidth: token buckets in bytes per second, one over all hosts and one for each.

    |---- burst ----|
    --------------- now ----- paid ------>    what was spent is paid for at `paid`; until then the
                     '-- shut --'             bucket is shut. `paid` lies at most a burst in the past.

A body has come before its size is known, so `spend` is never refused: it may overdraw a bucket, and
nothing more should be asked for until what was spent is paid off. Over any time t after a start that was
allowed, what is spent is at most rate x (t + burst), and what came last.

What comes last is little from one host. Over all hosts it is the bodies of everything that is in flight,
and a crawl would swing between far too much and nothing at all. So a request may be charged when it
starts with what answers have on average (`expect`), and with the rest when its size is known.
"""

from __future__ import annotations

from math import inf

from amicrawl.errors import AmicrawlError

_WEIGHT = 0.1
"""What one answer weighs in the average of sizes."""
_SWEEP_FROM = 1024
"""Buckets that may be held before the first look for some to forget."""


class Bandwidth:
    """What may be fetched, over all hosts and from each.

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
        """Charge a request that starts with the average answer, and return that for `spend`."""
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
                self._mean += _WEIGHT * (nbytes - self._mean)
            self._paid = max(self._paid, full) + (nbytes - expected) / self._total
        if self._per_host is not None:
            paid = self._host_paid.get(host)
            if paid is None:
                if len(self._host_paid) >= self._sweep_at:
                    self._sweep(full)
                paid = full
            self._host_paid[host] = max(paid, full) + nbytes / self._per_host

    def opens_at(self, host: int, now: float) -> float:
        """Return the moment from which more may be asked of *host*; *now* if it may be at once."""
        return max(now, self._paid, self._host_paid.get(host, -inf))

    def total_opens_at(self) -> float:
        """Return the moment from which more may be asked of anybody; it may be long past."""
        return self._paid

    def host_opens_at(self, host: int) -> float:
        """Return the moment from which *host* alone may send more; it may be long past."""
        return self._host_paid.get(host, -inf)

    def _sweep(self, full: float) -> None:
        """Forget the buckets that are full; each sweep waits for as many new ones as the last left."""
        self._host_paid = {host: paid for host, paid in self._host_paid.items() if paid > full}
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._host_paid))
