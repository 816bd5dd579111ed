"""The hosts that a crawl is busy with: those in flight, then those with the longest queues.

A terminal shows some of them, and the figures of a job name them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amicrawl.crawl.run import Run

HOSTS = 4
"""Hosts that a terminal shows."""
_QUEUES_EVERY = 10.0
_LONGEST_QUEUES = 20


class BusyHost(NamedTuple):
    """One host, as it is now."""

    name: str
    """As it came from the web."""
    in_flight: int
    waiting: int | None
    """URLs that are due; None where the process that has them did not count them."""
    pages: int
    """Responses so far, those of earlier runs included."""
    delay: float
    """Seconds from one request to the next."""
    reason: str = ""
    """Why it may not be contacted now: `delay`, `Crawl-delay`, `latency`, `back-off`, `Retry-After`,
    `robots.txt`, `address`, `bandwidth`; empty where it may be, or as many requests as are allowed are
    in flight."""
    opens_in: float | None = None
    """Seconds until then; None where that is not known."""


class BusyHosts:
    """The busy hosts of one crawl; costs little however many hosts there are."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._queues: Sequence[tuple[int, int]] = ()
        self._count_at = 0.0

    def found(self, *, most: int, recount: bool = False) -> list[BusyHost]:
        """Return at most *most* hosts, as they are now.

        Which queues are the longest is found out every ten seconds, or with *recount*.
        """
        run = self._run
        if not run.has_frontier:
            return []
        frontier, now = run.frontier, run.clock()
        if recount or now >= self._count_at:
            began = time.perf_counter()
            self._queues = frontier.longest_queues(_LONGEST_QUEUES)
            # It looks at every host: the more there are, the less often. None is queued at the start.
            least = _QUEUES_EVERY if self._queues else 0.0
            self._count_at = now + max(least, 200 * (time.perf_counter() - began))
        flying = frontier.hosts_in_flight()
        keys = dict.fromkeys([key for key, _ in (*flying.most_common(most), *self._queues)])
        # Of the same moment as what is in flight: with both, a host has as many as the line above says.
        return [
            self._host(key, flying.get(key, 0), frontier.waiting_of(key), now)
            for key in list(keys)[:most]
        ]

    def _host(self, key: int, in_flight: int, waiting: int | None, now: float) -> BusyHost:
        name, pages = self._run.frontier.hosts.known(key)
        reason, opens_in = self._run.pacing.held_back(key, now)
        delay = max(self._run.gates.delay_of(key), self._run.pace.interval(key))
        return BusyHost(name, in_flight, waiting, pages, delay, reason, opens_in)


def shown_hosts(busy: BusyHosts) -> list[BusyHost]:
    """Return those of *busy* that a terminal shows."""
    return longest_waiting(busy.found(most=5 * _LONGEST_QUEUES))


def longest_waiting(hosts: Iterable[BusyHost]) -> list[BusyHost]:
    """Return `HOSTS` of *hosts*: first those held back for longer than usual, then by queue."""

    def rank(host: BusyHost) -> tuple[bool, int]:
        return (host.opens_in or 0.0) > 2 * host.delay, host.waiting or 0

    return sorted(hosts, key=rank, reverse=True)[:HOSTS]


def first_reason(hosts: Iterable[BusyHost]) -> str:
    """Return why the one of *hosts* that may be contacted first has to wait; empty if not known."""
    known = [(host.opens_in, host.reason) for host in hosts if host.opens_in is not None]
    return min(known, default=(0.0, ""))[1]
