"""Connections: how long one may take to say what it wants, and how many may do so at once.

A connection waits until it has sent a whole request, its TLS handshake included. One that is too many
costs the one that waits longest.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

_LEAST_READ = 64 * 1024
"""Bytes that a client takes in its time at least: who takes one at a time would stay for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What the connections of one server may take."""

    head_seconds: float = 10.0
    """For a TLS handshake, and for the head of a request, from there or from its first byte on."""
    most_waiting: int = 256
    """Connections that have sent no whole request, or none since the last response."""
    read_seconds: float = 60.0
    """For which a client may take next to nothing of a response that waits for it."""


def connection_factory(
    limits: ConnectionLimits, *, tls: ssl.SSLContext | None = None
) -> Callable[..., asyncio.Protocol]:
    """Return what makes the connections of one server, with *tls* if given."""
    waiting = _WaitingConnections(limits.most_waiting)

    def plain(**keywords: Any) -> asyncio.Protocol:
        return _LimitedConnection(limits, waiting, **keywords)

    def secured(**keywords: Any) -> asyncio.Protocol:
        return _Handshake(limits, waiting, tls, plain(**keywords))

    return plain if tls is None else secured


class _Waits(Protocol):
    transport: asyncio.Transport

    def wait_no_longer(self) -> None:
        """Count no longer."""


class _WaitingConnections:
    """The connections that wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._connections: dict[_Waits, None] = {}
        """The one that waits longest first."""

    def add(self, connection: _Waits) -> None:
        """Have *connection* wait from now on."""
        self.remove(connection)
        self._connections[connection] = None
        if len(self._connections) > self._most:
            oldest = next(iter(self._connections))
            oldest.wait_no_longer()
            oldest.transport.abort()

    def remove(self, connection: _Waits) -> None:
        """Count *connection* no longer."""
        self._connections.pop(connection, None)


class _Handshake(asyncio.Protocol):
    """A connection that is to shake hands first, and *connection* takes over then."""

    transport: asyncio.Transport

    def __init__(
        self,
        limits: ConnectionLimits,
        waiting: _WaitingConnections,
        tls: ssl.SSLContext | None,
        connection: asyncio.Protocol,
    ) -> None:
        self._limits, self._waiting, self._tls, self._connection = limits, waiting, tls, connection
        self._received = b""
        self._is_lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        self.transport = transport
        # Until TLS reads: what came before would be taken for a request.
        transport.pause_reading()
        self._waiting.add(self)
        self._task = asyncio.get_running_loop().create_task(self._shake_hands())

    async def _shake_hands(self) -> None:
        limits = self._limits
        try:
            secured = await asyncio.get_running_loop().start_tls(
                self.transport,
                self,
                self._tls,  # type: ignore[arg-type]
                server_side=True,
                ssl_handshake_timeout=limits.head_seconds,
                # In this time the client takes what is left of the last response, too.
                ssl_shutdown_timeout=limits.read_seconds,
            )
        except OSError:  # of OpenSSL, of the network, or too late
            return
        finally:
            self.wait_no_longer()
        if secured is not None and not self._is_lost:
            secured.set_protocol(self._connection)
            self._connection.connection_made(secured)
            if self._received:
                self._connection.data_received(self._received)

    def data_received(self, data: bytes) -> None:
        """Keep what came together with the end of the handshake."""
        self._received += data

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Leave."""
        self._is_lost = True
        self.wait_no_longer()

    def wait_no_longer(self) -> None:
        """Count no longer among those that wait."""
        self._waiting.remove(self)


class _LimitedConnection(H11Protocol):
    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def __init__(self, limits: ConnectionLimits, waiting: _WaitingConnections, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._limits, self._waiting = limits, waiting

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a head."""
        super().connection_made(transport)
        self._waiting.add(self)
        self._time_head()

    def data_received(self, data: bytes) -> None:
        """Take *data*; once they end a request, the connection waits no longer."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            # The timer for idle connections ends with their first byte.
            self._time_head()
        elif self.conn.their_state is h11.SEND_BODY:
            # The application has a time for what comes now (`app`).
            self._time_no_longer()
        else:
            self.wait_no_longer()

    def on_response_complete(self) -> None:
        """Wait for another request."""
        super().on_response_complete()
        self._wait_for_request()

    def _wait_for_request(self) -> None:
        """Wait for another request, unless that is here, or the last response is still being taken."""
        is_here = self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}
        if not (is_here or self.flow.write_paused or self.transport.is_closing()):
            self._waiting.add(self)

    def pause_writing(self) -> None:
        """Wait for the client to take what it is sent."""
        super().pause_writing()
        self._time_reading()

    def _time_reading(self) -> None:
        left = self.transport.get_write_buffer_size() - _LEAST_READ
        self._read_timer = self.loop.call_later(self._limits.read_seconds, self._look_at_reading, left)

    def _look_at_reading(self, left: int) -> None:
        """Go on waiting where no more than *left* bytes are left; else leave."""
        if self.transport.get_write_buffer_size() <= left:
            self._time_reading()
        else:
            # Closed and not aborted, it would stay as long as its client likes: to send what is left.
            self.transport.abort()

    def resume_writing(self) -> None:
        """Go on: the client has taken nearly all."""
        self._read_no_longer()
        super().resume_writing()
        self._wait_for_request()

    def _read_no_longer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave."""
        self.wait_no_longer()
        self._read_no_longer()
        super().connection_lost(exc)

    def wait_no_longer(self) -> None:
        """Count no longer among those that wait."""
        self._waiting.remove(self)
        self._time_no_longer()

    def _time_no_longer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _time_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._limits.head_seconds, self.transport.abort)
