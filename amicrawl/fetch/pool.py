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


class Lane:
    """The connections of one route."""

    __slots__ = ("dialling", "idle", "in_use", "route", "waiting")

    def __init__(self, route: Route) -> None:
        self.route = route
        self.idle: list[Connection] = []
        self.in_use = 0
        self.dialling = 0
        self.waiting: deque[Waiting] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to be remembered of it."""
        return not (self.in_use or self.dialling or self.idle or self.waiting)


class _Lanes(dict["Route", Lane]):
    """The lane of each route that is in use; made when it is first looked up."""

    def __missing__(self, route: Route) -> Lane:
        lane = self[route] = Lane(route)
        return lane


class Pool:
    """Keeps idle connections, the most recently used first to be taken and last to be given up.

    A connection on which anything happens while it is idle (its end, or unrequested bytes) is
    closed at once. Where a route's connections are all in use or being made, a request waits a moment
    for one of them: that is cheaper than another handshake, for both sides.
    """

    def __init__(self, *, size: int, max_idle: float, clock: Callable[[], float]) -> None:
        self._loop = asyncio.get_running_loop()
        self._size = size
        self._max_idle = max_idle
        self._clock = clock
        self._lanes = _Lanes()
        self.lane: Callable[[Route], Lane] = self._lanes.__getitem__
        """Returns the connections of a route, to be given to the other methods."""
        self._idle: dict[Connection, _Kept] = {}

    def take(self, lane: Lane) -> Connection | None:
        """Return a connection that is open as far as the loop knows, or None."""
        idle = lane.idle
        while idle:
            connection = idle.pop()
            kept = self._idle.pop(connection)
            if connection.open and self._clock() - kept.since <= self._max_idle:
                lane.in_use += 1
                return connection
            connection.close()
        return None

    async def wait(self, lane: Lane) -> Connection | None:
        """Return a connection that came free within a moment, or None at once if none may."""
        if not (lane.in_use or lane.dialling):
            return None
        waiting: Waiting = self._loop.create_future()
        lane.waiting.append(waiting)
        if not lane.dialling:
            self._loop.call_later(_PATIENCE, _give_up, (waiting,))
        try:
            connection = await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and (connection := waiting.result()):
                self.put(lane, connection)
            raise
        if connection is not None and not connection.open:
            self.drop(lane, connection)
            return None
        return connection

    def dialled(self, lane: Lane, *, made: bool) -> None:
        """Take note of the outcome of a dial; a connection that was made is in use."""
        lane.dialling -= 1
        if made:
            lane.in_use += 1
            if lane.waiting:
                self._loop.call_later(_PATIENCE, _give_up, tuple(lane.waiting))
        else:
            self._end_waiting(lane)

    def put(self, lane: Lane, connection: Connection) -> None:
        """Hand *connection* to a request that waits for it, or keep it for another one.

        The one idle longest is closed where there are too many.
        """
        waiting = lane.waiting
        if not connection.open:
            self.drop(lane, connection)
            return
        kept = connection.kept
        if not isinstance(kept, _Kept):
            kept = connection.kept = _Kept(self, connection, lane)
        kept.since = self._clock()
        connection.receiver = kept
        while waiting:
            first = waiting.popleft()
            if not first.done():
                first.set_result(connection)
                return
        lane.in_use -= 1
        lane.idle.append(connection)
        self._idle[connection] = kept
        if len(self._idle) > self._size:
            self.discard(next(iter(self._idle)))

    def drop(self, lane: Lane, connection: Connection) -> None:
        """Close *connection*, which was in use: nothing else can be requested on it."""
        lane.in_use -= 1
        connection.close()
        # Its server may close every connection: waiting for another one is useless.
        self._end_waiting(lane)

    def discard(self, connection: Connection) -> None:
        """Close *connection*, which is idle, or on its way to a request."""
        connection.close()
        kept = self._idle.pop(connection, None)
        if kept is not None:
            kept.lane.idle.remove(connection)
            self._forget(kept.lane)

    def close(self) -> None:
        """Close them all."""
        for connection in list(self._idle):
            self.discard(connection)

    def _end_waiting(self, lane: Lane) -> None:
        if not lane.waiting:
            self._forget(lane)
        _give_up(lane.waiting)
        lane.waiting.clear()

    def _forget(self, lane: Lane) -> None:
        if lane.is_empty and self._lanes.get(lane.route) is lane:
            del self._lanes[lane.route]


class _Kept:
    """The receiver of a connection between two requests: whatever happens to it ends its use."""

    __slots__ = ("_connection", "_pool", "lane", "since")

    def __init__(self, pool: Pool, connection: Connection, lane: Lane) -> None:
        self._pool = pool
        self._connection = connection
        self.lane = lane
        self.since = 0.0

    def received(self, _data: bytes) -> None:
        self._pool.discard(self._connection)

    def closed(self, _detail: str | None) -> None:
        self._pool.discard(self._connection)

    def writable(self) -> None:
        """Do nothing: nothing is sent between requests."""


def _give_up(waiting: Iterable[Waiting]) -> None:
    for each in tuple(waiting):
        if not each.done():
            each.set_result(None)
