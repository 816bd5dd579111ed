"""Caps on bandwidth: token buckets in bytes per second, one over all hosts and one for each.

    |---- burst ----|
    --------------- now ----- paid ------>    what was spent is paid for at `paid`; until then the
                     '-- shut --'             bucket is shut. `paid` lies at most a burst in the past.

A body has come before its size is known, so `spend` is never refused: it may overdraw a bucket, and
nothing more should be asked for until what was spent is paid off. Over any time t after a start that was
allowed, what is spent is at most rate x (t + burst), and what came last.
"""

from __future__ import annotations

from math import inf

from amicrawl.errors import AmicrawlError

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
        self._host_paid: dict[int, float] = {}
        self._sweep_at = _SWEEP_FROM

    def __len__(self) -> int:
        """Return how many buckets of hosts are held in memory."""
        return len(self._host_paid)

    def spend(self, host: int, nbytes: int, now: float) -> None:
        """Note that *nbytes* came from *host*; to be told as they come, or all at the end."""
        full = now - self._burst
        if self._total is not None:
            self._paid = max(self._paid, full) + nbytes / self._total
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

    def _sweep(self, full: float) -> None:
        """Forget the buckets that are full; each sweep waits for as many new ones as the last left."""
        self._host_paid = {host: paid for host, paid in self._host_paid.items() if paid > full}
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._host_paid))
