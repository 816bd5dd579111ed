"""Connection: one socket of the event loop, with the TLS layers on top of it, as plain bytes.

The receiver of a connection changes over its life: a `Conversation` until it is set up, through a proxy
and TLS where they are requested, then an exchange for each request, and the pool while it is idle.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

from amicrawl.fetch.failures import TlsError, sentence_of
from amicrawl.message import end_of_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amicrawl.capture import Failure, Tls
    from amicrawl.fetch.tls import TlsLayer

_READ = 64 * 1024
_CLOSED = "The connection was closed."
_NO_CLOSURE_ALERT = "The connection was ended without the closing message of TLS."
# Linux's struct tcp_info: milliseconds since data was last received, at this offset.
_LAST_RECEIVED = struct.Struct("=52xI")
_TCP_INFO: int | None = getattr(socket, "TCP_INFO", None)


class Receiver(Protocol):
    """What the bytes of a connection go to."""

    def received(self, data: bytes) -> None:
        """Take the next bytes."""

    def closed(self, detail: str | None) -> None:
        """Take note of the end: None where the peer ended in order, otherwise what was wrong."""

    def writable(self) -> None:
        """Take note that everything written so far was taken by the system."""


class DiscardReceiver:
    """The receiver of a connection that is closed."""

    def received(self, data: bytes | memoryview) -> None:
        """Drop *data*."""

    def closed(self, detail: str | None) -> None:
        """Do nothing."""

    def writable(self) -> None:
        """Do nothing."""


_IGNORE = DiscardReceiver()
_DROP = _IGNORE.received


class Connection(asyncio.Protocol):
    """A connection to one address; `receiver` is called from the loop, in the order of events."""

    __slots__ = (
        "_ended", "_layers", "_transport", "address", "blocked", "descriptor", "fault", "kept", "open",
        "receiver", "tls", "write",
    )  # fmt: skip

    def __init__(self) -> None:
        self.address = ""
        """The address that was dialled."""
        self.tls: Tls | None = None
        """What was negotiated with the server, where the scheme is https."""
        self.receiver: Receiver = Conversation()
        self.open = False
        self.write: Callable[[bytes | memoryview], None] = _DROP
        """Sends what it is given; `backlog` says what the system has not taken."""
        self._layers: list[TlsLayer] = []
        self._transport: asyncio.Transport
        self.blocked = 0
        """What `backlog` was when the system last took less than it was given; 0: it took all."""
        self.kept: Receiver | None = None
        """Its receiver between two requests, once the pool has kept it."""
        self._ended = ""
        """Why it is not open any more."""
        # Not the error: its traceback leads here, which would be a cycle.
        self.fault: tuple[str, Failure] | None = None
        """What was wrong with the TLS that has ended it, if that did."""

    def _encrypt(self, data: bytes | memoryview) -> None:
        """Send *data* through all layers of TLS."""
        for layer in reversed(self._layers):
            data = layer.encrypt(data)
        if self.open:
            self._transport.write(data)

    @property
    def backlog(self) -> int:
        """Bytes that were written and not taken by the system, TLS overhead included."""
        if self.blocked and self.open:
            return self._transport.get_write_buffer_size()
        return self.blocked

    def waited(self) -> float:
        """Return for how many seconds the bytes just received were waiting for the loop.

        The system knows when data came, to some milliseconds; where it does not say, the result is 0.
        """
        if _TCP_INFO is None or not self.open:
            return 0.0
        with suppress(OSError):
            sock = self._transport.get_extra_info("socket")
            info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _LAST_RECEIVED.size)
            if len(info) == _LAST_RECEIVED.size:
                return cast("int", _LAST_RECEIVED.unpack(info)[0]) / 1000
        return 0.0

    def take_early(self) -> bytes:
        """Return what came before the connection had a use: a server may speak first."""
        return self.receiver.take() if isinstance(self.receiver, Conversation) else b""

    def converse(self) -> Conversation:
        """Return what reads from now on; where the connection has ended, it says so at once.

        A peer may close before this program gets to the next step.
        """
        talk = Conversation()
        if self.open:
            self.receiver = talk
        else:
            talk.closed(self._ended)
        return talk

    def spoke_first(self) -> bool:
        """Return whether the system holds bytes that came before the first request.

        Under TLS they may be messages of TLS, so the result is False.
        """
        fresh = isinstance(self.receiver, Conversation) and not self._layers
        return fresh and bool(speaking([self]))

    @property
    def top(self) -> TlsLayer:
        """The uppermost TLS layer."""
        return self._layers[-1]

    async def start_tls(self, layer: TlsLayer) -> None:
        """Put *layer* on top and shake hands; raises TlsError."""
        below = tuple(self._layers)
        early = self.take_early()
        conversation = self.converse()
        if not self.open:
            raise TlsError(self._ended)

        def send(data: bytes) -> None:
            for under in reversed(below):
                data = under.encrypt(data)
            if self.open:
                self._transport.write(data)

        self._layers.append(layer)
        self.write = self._encrypt
        layer.start(send)
        try:
            if early:
                conversation.received(layer.decrypt(early))
            while not layer.established:
                await conversation.more()
        except ConnectionResetError as error:
            raise TlsError(*(self.fault or (str(error),))) from None

    def close(self) -> None:
        """Close it; a second call does nothing."""
        if not self.open:
            return
        for layer in reversed(self._layers):
            layer.close()
        self._end(None, receiver=_IGNORE)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, which reports whatever the system does not take at once."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(0)
        self.write = self._transport.write
        self.descriptor: int = transport.get_extra_info("socket").fileno()
        self.open = True

    def data_received(self, data: bytes) -> None:
        """Hand on what came, decrypted."""
        if not self._layers:
            self.receiver.received(data)
            return
        try:
            ended, fault = False, ""
            for layer in self._layers:
                data = layer.decrypt(data)
                ended, fault = ended or layer.ended, fault or layer.fault
        except TlsError as error:
            self.fault = str(error), error.failure
            self._end(str(error))
            return
        if data:
            self.receiver.received(data)
        elif not self._layers[-1].established or isinstance(self.receiver, Conversation):
            self.receiver.received(b"")  # a step of the handshake
        if ended or fault:
            self._end(fault or None)

    def eof_received(self) -> None:
        """Take note that the peer sends nothing more; the transport closes itself."""
        self._end(_NO_CLOSURE_ALERT if self._layers else None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note of the end; what the system still holds of a response is read first."""
        if not self.open:
            return
        detail = sentence_of(exc) if isinstance(exc, OSError) else str(exc or "The connection was lost.")
        with suppress(OSError):
            while self.open and (data := os.read(self.descriptor, _READ)):
                self.data_received(data)
        self._end(detail)

    def pause_writing(self) -> None:
        """Note what the system has not taken."""
        self.blocked = self._transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        """Pass on that everything was taken."""
        self.blocked = 0
        self.receiver.writable()

    def _end(self, detail: str | None, *, receiver: Receiver | None = None) -> None:
        if not self.open:
            return
        self.open, self._ended = False, detail or _CLOSED
        receiver, self.receiver, self.kept = receiver or self.receiver, _IGNORE, None
        self._layers = []  # each knows how to send, that is, this connection
        self.write = _DROP
        # Nothing is worth waiting for the peer to read it.
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()
        receiver.closed(detail)


def speaking(connections: Iterable[Connection]) -> list[Connection]:
    """Return those of *connections* that have ended, or hold bytes that the loop has not read yet."""
    poll, by_descriptor = select.poll(), {}
    for connection in connections:
        if connection.open:
            descriptor = connection.descriptor
            by_descriptor[descriptor] = connection
            poll.register(descriptor, select.POLLIN)
    heard = poll.poll(0) if by_descriptor else []
    return [by_descriptor[descriptor] for descriptor, _ in heard] if heard else []


class Conversation:
    """Reads what a proxy says, or waits for the steps of a handshake, while a connection is set up."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wake: asyncio.Future[None] | None = None
        self._ended: str | None = None

    async def more(self) -> None:
        """Wait for something to come. Raises ConnectionResetError at the end of the connection."""
        if self._ended is not None:
            raise ConnectionResetError(self._ended)
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    async def exactly(self, count: int) -> bytes:
        """Return the next *count* bytes."""
        while len(self._buffer) < count:
            await self.more()
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    async def head(self, limit: int) -> bytes:
        """Return the bytes up to the next blank line. Raises ValueError beyond *limit*."""
        while (end := end_of_head(self._buffer)) is None:
            if len(self._buffer) > limit:
                raise ValueError("Its response is too long.")
            await self.more()
        return await self.exactly(end)

    def take(self) -> bytes:
        """Return what came and was not read."""
        taken = bytes(self._buffer)
        self._buffer.clear()
        return taken

    def received(self, data: bytes) -> None:
        """Keep *data*."""
        self._buffer += data
        self._go_on()

    def closed(self, detail: str | None) -> None:
        """Keep why it ended."""
        self._ended = detail or _CLOSED
        self._go_on()

    def writable(self) -> None:
        """Do nothing."""

    def _go_on(self) -> None:
        if self._wake is None or self._wake.done():
            return
        if self._ended is not None:
            self._wake.set_exception(ConnectionResetError(self._ended))
        else:
            self._wake.set_result(None)
