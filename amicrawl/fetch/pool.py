"""Pool: connections that have served a request and may serve another one of the same route."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amicrawl.fetch.connection import Connection
    from amicrawl.fetch.request import Route

_PATIENCE = 0.05
"""Seconds that a request waits for a connection in use before another one is dialled."""

Waiting = asyncio.Future["Connection | None"]


class Pool:
    """Keeps idle connections, the most recently used first to be taken and last to be given up.

    A connection on which anything happens while it is idle (its end, or bytes that nobody asked for) is
    closed at once. Where a route's connections are all in use or being made, a request waits a moment
    for one of them: that is cheaper than another handshake, for both sides.
    """

    def __init__(self, *, size: int, max_idle: float, clock: Callable[[], float]) -> None:
        self._loop = asyncio.get_running_loop()
        self._size = size
        self._max_idle = max_idle
        self._clock = clock
        self._by_route: dict[Route, list[Connection]] = {}
        self._idle_since: dict[Connection, float] = {}
        self._in_use: dict[Route, int] = {}
        self._dialling: dict[Route, int] = {}
        self._waiting: dict[Route, deque[Waiting]] = {}

    def take(self, route: Route) -> Connection | None:
        """Return a connection of *route* that is alive and silent, or None."""
        while connections := self._by_route.get(route):
            connection = connections[-1]
            idle = self._clock() - self._idle_since[connection]
            self._forget(connection)
            if idle <= self._max_idle and connection.is_silent():
                self._in_use[route] = self._in_use.get(route, 0) + 1
                return connection
            connection.close()
        return None

    async def wait(self, route: Route) -> Connection | None:
        """Return a connection of *route* that came free within a moment, or None at once if none may."""
        if not (self._in_use.get(route) or self._dialling.get(route)):
            return None
        waiting: Waiting = self._loop.create_future()
        self._waiting.setdefault(route, deque()).append(waiting)
        if not self._dialling.get(route):
            self._loop.call_later(_PATIENCE, _give_up, (waiting,))
        try:
            connection = await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and (connection := waiting.result()):
                self.put(connection)
            raise
        if connection is not None and not connection.open:
            self.drop(connection)
            return None
        return connection

    def dials(self, route: Route) -> None:
        """Take note that a connection for *route* is being made."""
        self._dialling[route] = self._dialling.get(route, 0) + 1

    def dialled(self, route: Route, *, made: bool) -> None:
        """Take note of the outcome; a connection that was made is in use."""
        _count_down(self._dialling, route)
        waiting = self._waiting.get(route, ())
        if made:
            self._in_use[route] = self._in_use.get(route, 0) + 1
            if waiting:
                self._loop.call_later(_PATIENCE, _give_up, tuple(waiting))
        elif waiting:
            _give_up(waiting)
            del self._waiting[route]

    def put(self, connection: Connection) -> None:
        """Hand *connection* to a request that waits for it, or keep it for another one.

        The one idle longest goes where there are too many.
        """
        route = connection.route
        if not connection.open or (route in self._waiting and not connection.is_silent()):
            self.drop(connection)
            return
        while waiting := self._waiting.get(route):
            first = waiting.popleft()
            if not waiting:
                del self._waiting[route]
            if not first.done():
                connection.receiver = _Handed(connection)
                first.set_result(connection)
                return
        _count_down(self._in_use, route)
        self._by_route.setdefault(route, []).append(connection)
        self._idle_since[connection] = self._clock()
        connection.receiver = _Idle(self, connection)
        if len(self._idle_since) > self._size:
            self.discard(next(iter(self._idle_since)))

    def drop(self, connection: Connection) -> None:
        """Close *connection*, which was in use: nothing else can be asked for on it."""
        route = connection.route
        _count_down(self._in_use, route)
        connection.close()
        # Its server may close every connection; who waits for one would wait in vain.
        if waiting := self._waiting.pop(route, None):
            _give_up(waiting)

    def discard(self, connection: Connection) -> None:
        """Close *connection*, which is idle."""
        self._forget(connection)
        connection.close()

    def close(self) -> None:
        """Close them all."""
        for connection in list(self._idle_since):
            self.discard(connection)

    def _forget(self, connection: Connection) -> None:
        del self._idle_since[connection]
        siblings = self._by_route[connection.route]
        siblings.remove(connection)
        if not siblings:
            del self._by_route[connection.route]


class _Idle:
    """The receiver of an idle connection: whatever happens to it ends its use."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Pool, connection: Connection) -> None:
        self._pool = pool
        self._connection = connection

    def received(self, _data: bytes) -> None:
        self._pool.discard(self._connection)

    def closed(self, _detail: str | None) -> None:
        self._pool.discard(self._connection)

    def writable(self) -> None:
        """Do nothing: nothing is sent on an idle connection."""


class _Handed:
    """The receiver of a connection on its way to a request: what comes now belongs to no request."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def received(self, _data: bytes) -> None:
        self._connection.close()

    def closed(self, _detail: str | None) -> None:
        """Do nothing: the connection is seen to be closed."""

    def writable(self) -> None:
        """Do nothing: nothing is sent on it yet."""


def _give_up(waiting: Iterable[Waiting]) -> None:
    for each in tuple(waiting):
        if not each.done():
            each.set_result(None)


def _count_down(counts: dict[Route, int], route: Route) -> None:
    count = counts.get(route, 0) - 1
    if count > 0:
        counts[route] = count
    else:
        counts.pop(route, None)
