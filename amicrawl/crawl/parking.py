"""Parking: requests that the frontier does not hold, waiting for their host's gate."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request

    from amicrawl.politeness import Gates

_PLACES = 1000


class Parking:
    """Per host key a queue in order of arrival; `next` answers with what may start.

    It is bounded: when full, Scrapy's own queue behind it simply stays as long as it is.
    """

    def __init__(self, gates: Gates, *, places: int = _PLACES) -> None:
        self._gates = gates
        self._places = places
        self._queues: dict[int, deque[Request]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def full(self) -> bool:
        """Whether no place is left."""
        return self._count >= self._places

    def add(self, host: int, request: Request) -> None:
        """Let *request* wait for the gate of *host*."""
        self._queues.setdefault(host, deque()).append(request)
        self._count += 1

    def put_back(self, host: int, request: Request) -> None:
        """Let *request*, which `next` returned for *host*, wait again, before all others of its host."""
        self._queues.setdefault(host, deque()).appendleft(request)
        self._count += 1

    def next(self, now: float) -> Request | None:
        """Return the first in the queue of a host whose gate is open at *now* (monotonic seconds)."""
        # A scan over at most as many hosts as there are places: a heap would hold moments that the
        # gates have moved since.
        host = next((host for host in self._queues if self._gates.may_start(host, now)), None)
        if host is None:
            return None
        queue = self._queues.pop(host)
        request = queue.popleft()
        self._count -= 1
        if queue:
            # Back at the end, so that hosts take turns.
            self._queues[host] = queue
        return request

    def next_moment(self) -> float | None:
        """Return the earliest moment at which `next` may answer; None where only an end opens a gate."""
        moments = [self._gates.opens_at(host) for host in self._queues]
        earliest = min(moments, default=float("inf"))
        return None if earliest == float("inf") else earliest

    def drain(self) -> Iterator[Request]:
        """Take everything out, in no particular order of hosts."""
        for queue in self._queues.values():
            yield from queue
        self._queues.clear()
        self._count = 0
