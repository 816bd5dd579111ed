"""Pool: connections that have served a request and may serve another one of the same route."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.fetch.connection import Connection
    from amicrawl.fetch.request import Route


class Pool:
    """Keeps idle connections, the most recently used first to be taken and last to be given up.

    A connection on which anything happens while it is idle (its end, or bytes that nobody asked for) is
    closed at once.
    """

    def __init__(self, *, size: int, max_idle: float, clock: Callable[[], float]) -> None:
        self._size = size
        self._max_idle = max_idle
        self._clock = clock
        self._by_route: dict[Route, list[Connection]] = {}
        self._idle_since: dict[Connection, float] = {}

    def take(self, route: Route) -> Connection | None:
        """Return a connection of *route* that is alive and silent, or None."""
        while connections := self._by_route.get(route):
            connection = connections[-1]
            idle = self._clock() - self._idle_since[connection]
            self._forget(connection)
            if idle <= self._max_idle and connection.is_silent():
                return connection
            connection.close()
        return None

    def put(self, connection: Connection) -> None:
        """Keep *connection* for another request; the one idle longest goes where there are too many."""
        self._by_route.setdefault(connection.route, []).append(connection)
        self._idle_since[connection] = self._clock()
        connection.readable = lambda: self._look_at(connection)
        if len(self._idle_since) > self._size:
            self._discard(next(iter(self._idle_since)))

    def close(self) -> None:
        """Close them all."""
        for connection in list(self._idle_since):
            self._discard(connection)

    def _look_at(self, connection: Connection) -> None:
        # What wakes us may also be a message of TLS itself, a session ticket for one.
        if not connection.is_silent():
            self._discard(connection)

    def _discard(self, connection: Connection) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: Connection) -> None:
        del self._idle_since[connection]
        siblings = self._by_route[connection.route]
        siblings.remove(connection)
        if not siblings:
            del self._by_route[connection.route]
