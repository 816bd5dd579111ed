"""The proxy: the browser's only way out. Its requests come in here, replies of the wire go back.

    CONNECT host:443 --> TLS by our own certificate --+
                                                      +--> a request --> the page's handler --> a reply
    GET http://host/ ---------------------------------+

It listens on the loopback. Each live page has a name and a password, which Chromium sends as
`Proxy-Authorization` with each request outside a tunnel; a request without those of a live page gets
407 and nothing else. The browser's bytes are read by h11; those of servers are not changed but for
chunked transfer coding and fields that are about the connection.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import ssl
from typing import TYPE_CHECKING, NamedTuple

import h11

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from amicrawl.browser.authority import KeyOfProxy

Fields = list[tuple[bytes, bytes]]

_PIECE = 64 * 1024
_MOST_HEAD = 256 * 1024
MOST_BODY = 16 * 1024**2
"""Bytes of a request body that are taken; a page that sends more gets 413."""
MOST_BODIES = 4 * MOST_BODY
"""Bytes of all request bodies that are held at a moment; one that would be too much gets 413, too."""
_HANDSHAKE = 22
"""The first byte of a TLS record of that type."""
_OF_CONNECTION = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-connection", b"trailer"}
    | {b"transfer-encoding", b"upgrade", b"content-length", b"alt-svc"}
)
"""Fields of a response that are about the server's connection, and not about the browser's."""


class BrowserRequest(NamedTuple):
    """A request of the browser."""

    method: str
    url: str
    fields: Fields
    """As Chromium wrote them, without those that are for a proxy."""
    body: bytes = b""
    is_cut: bool = False
    """Whether there was more of a body than is taken, so that no server may get it: the reply is 413."""

    def field(self, name: bytes) -> bytes:
        """Return the value of the field *name* (lower case); empty for none."""
        return next((value for key, value in self.fields if key.lower() == name), b"")


class ProxyReply(NamedTuple):
    """What the browser gets."""

    status: int
    """0 ends the connection, as a server does that cannot be reached."""
    fields: Sequence[tuple[bytes, bytes]] = ()
    """Those that are about the connection are left out, and `Content-Length` is put in."""
    body: Iterable[bytes] = ()
    length: int = 0
    """Bytes of the body."""
    reason: bytes = b""


class Pass(NamedTuple):
    """What a live page signs in to the proxy with."""

    name: str
    password: str

    @property
    def value(self) -> bytes:
        """The value of `Proxy-Authorization`."""
        return b"Basic " + base64.b64encode(f"{self.name}:{self.password}".encode())


if TYPE_CHECKING:
    Handler = Callable[[BrowserRequest], Awaitable[ProxyReply]]


class BrowserProxy:
    """Serves the requests of live pages, each by its handler."""

    def __init__(self, authority: KeyOfProxy) -> None:
        self._context = authority.context
        self._handlers: dict[bytes, Handler] = {}
        self._connections: dict[bytes, set[asyncio.StreamWriter]] = {}
        self._server: asyncio.Server | None = None
        self._count = 0
        self._bodies = _Bodies()
        self.port = 0
        """The port on 127.0.0.1, once it is open."""

    async def open(self, listening: socket.socket | None = None) -> None:
        """Listen on the socket *listening*, or on a port that the system chooses."""
        if listening is None:
            self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        else:
            self._server = await asyncio.start_server(self._connected, sock=listening)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
        for value in tuple(self._handlers):
            self._end(value)

    def admit(self, handler: Handler) -> Pass:
        """Let a page in, whose requests *handler* responds to; return what it signs in with."""
        self._count += 1
        made = Pass(f"page{self._count}", secrets.token_urlsafe(18))
        self._handlers[made.value] = handler
        self._connections[made.value] = set()
        return made

    def dismiss(self, given: Pass) -> None:
        """Take no more requests of the page that was *given* this, and end its connections."""
        self._end(given.value)

    def _end(self, value: bytes) -> None:
        self._handlers.pop(value, None)
        for writer in self._connections.pop(value, ()):
            writer.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = _BrowserStream(reader, writer, _BodyRoom(self._bodies))
        try:
            with contextlib.suppress(ConnectionError, ssl.SSLError, h11.RemoteProtocolError):
                await self._serve(stream)
        except asyncio.CancelledError:
            # The loop ends, and with it the process.
            pass
        finally:
            stream.room.begin()
            for writers in self._connections.values():
                writers.discard(writer)
            writer.close()

    async def _serve(self, stream: _BrowserStream) -> None:
        """Read one request after the other; after CONNECT, those within its tunnel."""
        value, origin = b"", ""
        rest = b""
        while True:
            found = await _next_request(stream, rest)
            if found is None:
                return
            head, body, rest = found
            if not origin:
                value = _value_of(head, b"proxy-authorization")
                if value not in self._handlers:
                    await stream.write(_CHALLENGE)
                    continue
                self._connections[value].add(stream.writer)
            handler = self._handlers.get(value)
            if handler is None:
                return
            if head.method == b"CONNECT":
                await stream.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                rest = rest or await stream.read()
                is_secure = rest[:1] == bytes((_HANDSHAKE,))
                origin = _origin(head.target, is_secure=is_secure)
                if is_secure:
                    await stream.secure(self._context, rest)
                    rest = b""
                continue
            request = _browser_request(head, body, origin, is_cut=not stream.room.is_enough)
            reply = await handler(request)
            if request.is_cut:
                reply = ProxyReply(413)
            if not reply.status:
                return
            await _send(stream, reply, is_head=request.method == "HEAD")


_CHALLENGE = (
    b"HTTP/1.1 407 Proxy Authentication Required\r\n"
    b'Proxy-Authenticate: Basic realm="amicrawl"\r\nContent-Length: 0\r\n\r\n'
)


class _Bodies:
    """How many bytes of request bodies are held for all connections."""

    held = 0


class _BodyRoom:
    """What a connection may hold of the body of its request."""

    def __init__(self, of_all: _Bodies) -> None:
        self._of_all = of_all
        self._held = 0
        self.is_enough = True
        """Whether nothing was beyond the bounds."""

    def begin(self) -> None:
        """Give back what the request before had."""
        self._of_all.held -= self._held
        self._held = 0
        self.is_enough = True

    def take(self, size: int) -> bool:
        """Return whether *size* further bytes may be held."""
        fits = self._held + size <= MOST_BODY and self._of_all.held + size <= MOST_BODIES
        self.is_enough = self.is_enough and fits
        if self.is_enough:
            self._held += size
            self._of_all.held += size
        return self.is_enough


class _BrowserStream:
    """A connection of the browser; after `secure`, what is within its TLS."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, room: _BodyRoom
    ) -> None:
        self.writer = writer
        self.room = room
        self._reader = reader
        self._tls: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()

    async def secure(self, context: ssl.SSLContext, received: bytes) -> None:
        """Shake hands by *context*; *received* is what has come of it. Raises SSLError."""
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._incoming.write(received)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._receive():
                    raise ConnectionResetError from None
        await self._flush()

    async def read(self) -> bytes:
        """Return what comes next; empty at the end."""
        if self._tls is None:
            return await self._reader.read(_PIECE)
        while True:
            try:
                return self._tls.read(_PIECE)
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._receive():
                    return b""
            except ssl.SSLZeroReturnError:
                return b""

    async def write(self, data: bytes) -> None:
        """Send *data*. Raises ConnectionError when the browser or the page's end has closed."""
        if self._tls is None:
            await self._put(data)
            return
        for start in range(0, len(data), _PIECE):
            self._tls.write(data[start : start + _PIECE])
            await self._flush()

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            await self._put(data)

    async def _put(self, data: bytes) -> None:
        # A closed transport of uvloop's takes no data and raises RuntimeError; asyncio's drops it.
        if self.writer.is_closing():
            raise ConnectionResetError
        self.writer.write(data)
        await self.writer.drain()

    async def _receive(self) -> bool:
        data = await self._reader.read(_PIECE)
        self._incoming.write(data)
        return bool(data)


async def _next_request(stream: _BrowserStream, rest: bytes) -> tuple[h11.Request, bytes, bytes] | None:
    """Return the next request, its body, and what has come behind it; None at the end.

    A body that is too long is read to its end, and not kept. Raises h11.RemoteProtocolError.
    """
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_MOST_HEAD)
    if rest:
        parser.receive_data(rest)
    head: h11.Request | None = None
    body = bytearray()
    stream.room.begin()
    while True:
        event = parser.next_event()
        if isinstance(event, h11.Request):
            head = event
            if parser.they_are_waiting_for_100_continue:
                await stream.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        elif isinstance(event, h11.Data):
            if stream.room.take(len(event.data)):
                body += event.data
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            return head, bytes(body), parser.trailing_data[0]
        elif event is h11.NEED_DATA:
            data = await stream.read()
            if not data and parser.their_state is h11.IDLE:
                return None
            parser.receive_data(data)
        else:
            return None


def _value_of(head: h11.Request, name: bytes) -> bytes:
    return next((value for key, value in head.headers if key == name), b"")


def _origin(target: bytes, *, is_secure: bool) -> str:
    """Return scheme and authority for the *target* of a CONNECT, without the scheme's own port."""
    scheme, port = ("https", b":443") if is_secure else ("http", b":80")
    return f"{scheme}://{target.removesuffix(port).decode('latin-1')}"


def _browser_request(head: h11.Request, body: bytes, origin: str, *, is_cut: bool) -> BrowserRequest:
    fields = []
    for name, value in head.headers.raw_items():
        key = name.lower()
        if key == b"proxy-authorization":
            continue
        # To a server, Chromium sends the same word by the other name.
        fields.append((b"Connection" if key == b"proxy-connection" else name, value))
    return BrowserRequest(
        head.method.decode("latin-1"),
        origin + head.target.decode("latin-1"),
        fields,
        b"" if is_cut else body,
        is_cut,
    )


async def _send(stream: _BrowserStream, reply: ProxyReply, *, is_head: bool) -> None:
    lines = [b"HTTP/1.1 %d %b" % (reply.status, reply.reason or b"-")]
    for name, value in reply.fields:
        if name.lower() not in _OF_CONNECTION:
            lines.append(name + b": " + b" ".join(value.split(b"\r\n")).replace(b"\n", b" "))
    if is_head:
        # Its length is that of the body which a GET would bring: what the server says, or nothing.
        said = [value for name, value in reply.fields if name.lower() == b"content-length"]
        lines += [b"Content-Length: " + value for value in said[:1] if value.isdigit()]
    elif reply.status not in {204, 304}:
        lines.append(b"Content-Length: %d" % reply.length)
    await stream.write(b"\r\n".join(lines) + b"\r\n\r\n")
    if not is_head and reply.status not in {204, 304}:
        for piece in reply.body:
            await stream.write(piece)
