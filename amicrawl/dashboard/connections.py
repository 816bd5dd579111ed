"""Connections: how long the head of a request may take, and how many may wait for a whole request.

A connection that has sent no whole request occupies a place and nothing else. When there are too many of
those, the one that has waited longest is closed, so that idle or dripping clients keep none out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

HEAD_SECONDS = 10.0
"""From the connection, or the first byte of a further request, to the end of the head."""
MOST_WAITING = 256
"""Connections that have sent no whole request, or none since the last answer."""


def protocol(
    *, head_seconds: float = HEAD_SECONDS, most_waiting: int = MOST_WAITING
) -> type[H11Protocol]:
    """Return the class of the connections of one server."""
    waiting: dict[_Connection, None] = {}

    class Connection(_Connection):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            self.waiting, self.head_seconds, self.most_waiting = waiting, head_seconds, most_waiting

    return Connection


class _Connection(H11Protocol):
    waiting: dict[_Connection, None]
    """Those that have sent no whole request, the one that waits longest first."""
    head_seconds: float
    most_waiting: int
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a head."""
        super().connection_made(transport)
        self._wait()
        self._time_head()

    def data_received(self, data: bytes) -> None:
        """Take *data*; once they end a request, the connection waits no longer."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            # The timer for idle connections ends with their first byte.
            self._time_head()
        elif self.conn.their_state is h11.SEND_BODY:
            # The application has a time for what comes now (`guard`).
            self._time_no_longer()
        else:
            self.wait_no_longer()

    def on_response_complete(self) -> None:
        """Wait for another request."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave."""
        self.wait_no_longer()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self.waiting.pop(self, None)
        self.waiting[self] = None
        if len(self.waiting) > self.most_waiting:
            oldest = next(iter(self.waiting))
            oldest.wait_no_longer()
            oldest.transport.abort()

    def wait_no_longer(self) -> None:
        """Count no longer among those that wait."""
        self.waiting.pop(self, None)
        self._time_no_longer()

    def _time_no_longer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _time_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self.transport.abort)
