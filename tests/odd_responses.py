"""Thirty-nine responses as servers really send them, and a server that sends them.

Every case is the bytes that go over the wire, all of which an archive must keep, and what a capture of
them must say. HTTP clients that parse before they keep lose or refuse a quarter of these or more.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import threading
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

OK = b"HTTP/1.1 200 OK\r\n"
FIVE = b"Content-Length: 5\r\n\r\nhello"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
TWO_CHUNKS = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
PAGE = b"<!doctype html><title>A page</title><p>Some words, many of them the same words.</p>" * 20


class Then(Enum):
    """What the server does once it has sent the bytes."""

    CLOSE = "close"
    KEEP = "keep the connection and respond to the next request on it"


@dataclass(frozen=True, slots=True, kw_only=True)
class OddResponse:
    """One case: what is sent, and what must be found in its capture."""

    number: int
    name: str
    sent: bytes
    then: Then
    status: int = 200
    head_length: int | None = None
    """Bytes up to the end of the final header section; None: found by the first CRLF CRLF."""
    truncated: str | None = None
    failure: str | None = None
    reusable: bool = False
    """Whether the connection may serve another request."""

    @property
    def head(self) -> bytes:
        """The bytes a capture must hold as the head."""
        length = self.head_length
        return self.sent[: self.sent.index(b"\r\n\r\n") + 4 if length is None else length]

    @property
    def body(self) -> bytes:
        """The bytes a capture must hold as the body."""
        return self.sent[len(self.head) :]


def _case(name: str, sent: bytes, then: Then = Then.CLOSE, **found: object) -> OddResponse:
    return OddResponse(number=0, name=name, sent=sent, then=then, **found)  # type: ignore[arg-type]


_LF_ONLY = b"HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 5\n\n"
_INTERIM = (
    b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
)
_GZIP = gzip.compress(PAGE, mtime=0)
_CORRUPT_GZIP = _GZIP[:40] + b"\xff\xff\xff\xff" + _GZIP[44:]
_MANY = b"".join(b"X-Field-%d: value\r\n" % number for number in range(2000))


def _gzipped(body: bytes) -> bytes:
    return OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body


_UNNUMBERED = [
    _case("lines-end-in-lf-only", _LF_ONLY + b"hello", Then.KEEP, head_length=len(_LF_ONLY)),
    _case("no-reason-phrase", b"HTTP/1.1 200\r\n" + FIVE, Then.KEEP, reusable=True),
    _case("odd-version", b"HTTP/1.7 200 OK\r\n" + FIVE, Then.KEEP),
    _case("status-999", b"HTTP/1.1 999 Denied\r\n" + FIVE, Then.KEEP, status=999, reusable=True),
    _case(
        "interim-responses-first",
        _INTERIM + OK + FIVE,
        Then.KEEP,
        head_length=len(_INTERIM + OK) + 21,
        reusable=True,
    ),
    _case("obs-fold", OK + b"X-Long: one\r\n  two\r\n\tthree\r\n" + FIVE, Then.KEEP),
    _case("header-without-a-colon", OK + b"this is no field\r\n" + FIVE, Then.KEEP),
    _case(
        "8-bit-bytes-in-a-header",
        OK + b"Content-Disposition: attachment; filename=\xe9t\xe9.txt\r\n" + FIVE,
        Then.KEEP,
        reusable=True,
    ),
    _case("nul-in-a-header", OK + b"X-Nul: a\0b\r\n" + FIVE, Then.KEEP),
    _case("two-thousand-headers", OK + _MANY + FIVE, Then.KEEP, reusable=True),
    _case("equal-repeated-content-length", OK + b"Content-Length: 5\r\n" + FIVE, Then.KEEP),
    _case(
        "both-content-length-and-chunked",
        OK + b"Content-Length: 5\r\n" + CHUNKED + TWO_CHUNKS,
        Then.KEEP,
    ),
    _case("bytes-after-the-body", OK + FIVE + b"and some more", Then.KEEP),
    _case("body-on-a-204", b"HTTP/1.1 204 No Content\r\n\r\nhello", Then.KEEP, status=204),
    _case("lower-case-http", b"http/1.1 200 ok\r\n" + FIVE, Then.KEEP),
    _case("chunks-with-lf-only", OK + CHUNKED + TWO_CHUNKS.replace(b"\r\n", b"\n"), Then.KEEP),
    _case("bad-chunk-size", OK + CHUNKED + b"5\r\nhello\r\nxyz\r\nworld\r\n0\r\n\r\n"),
    _case(
        "transfer-encoding-identity-chunked",
        OK + b"Transfer-Encoding: identity, chunked\r\n\r\n" + TWO_CHUNKS,
        Then.KEEP,
        reusable=True,
    ),
    _case("space-before-the-colon", OK + b"Content-Length : 5\r\nX-A : b\r\n\r\nhello", Then.KEEP),
    _case("two-different-content-length", OK + b"Content-Length: 9\r\n" + FIVE),
    _case("negative-content-length", OK + b"Content-Length: -5\r\n\r\nhello"),
    _case("content-length-with-a-plus-sign", OK + b"Content-Length: +5\r\n\r\nhello"),
    _case("content-length-that-is-no-number", OK + b"Content-Length: five\r\n\r\nhello"),
    _case("http-0-9", b"<html>no head at all</html>\n", head_length=0),
    _case("icy", b"ICY 200 OK\r\nicy-name: radio\r\n\r\naudio audio audio"),
    _case(
        "header-line-of-20-kb",
        OK + b"X-Long: " + b"a" * 20_000 + b"\r\n" + FIVE,
        Then.KEEP,
        reusable=True,
    ),
    _case(
        "header-line-of-100-kb",
        OK + b"X-Long: " + b"a" * 100_000 + b"\r\n" + FIVE,
        Then.KEEP,
        reusable=True,
    ),
    _case("crlf-before-the-status-line", b"\r\n" + OK + FIVE, Then.KEEP, head_length=2 + len(OK) + 21),
    _case("status-line-only", OK, head_length=len(OK), truncated="disconnect"),
    _case("empty-reply", b"", status=0, head_length=0, failure="empty-response"),
    _case("truncated-body", OK + b"Content-Length: 50\r\n\r\nhello", truncated="disconnect"),
    _case("truncated-chunk", OK + CHUNKED + b"5\r\nhello\r\n32\r\nworld", truncated="disconnect"),
    _case("corrupt-gzip-body", _gzipped(_CORRUPT_GZIP), Then.KEEP, reusable=True),
    _case("gzip-that-is-none", _gzipped(b"not packed at all"), Then.KEEP, reusable=True),
    _case("ordinary", OK + FIVE, Then.KEEP, reusable=True),
    _case(
        "chunked-with-extension-and-trailer",
        OK + CHUNKED + b"5;name=value\r\nhello\r\n0\r\nX-Checksum: 1\r\n\r\n",
        Then.KEEP,
        reusable=True,
    ),
    _case("no-content-length-to-the-close", OK + b"Content-Type: text/plain\r\n\r\nhello"),
    _case(
        "304-that-speaks-of-a-length",
        b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 5\r\n\r\n',
        Then.KEEP,
        status=304,
        reusable=True,
    ),
    _case("http-1-0", b"HTTP/1.0 200 OK\r\n" + FIVE),
]

CASES: tuple[OddResponse, ...] = tuple(
    replace(case, number=number) for number, case in enumerate(_UNNUMBERED, start=1)
)


class LoopbackServer:
    """Hands every connection on a loopback address to *serve*, each in a thread of its own.

    `connections` counts them. Leaving the context shuts down what is open and waits for the threads.
    """

    def __init__(self, serve: Callable[[socket.socket], None], *, host: str = "127.0.0.1") -> None:
        self._serve = serve
        self._host = host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=4096)
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0

    @property
    def url(self) -> str:
        """The address, without a slash at the end."""
        return f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{self.port}"

    @property
    def open_connections(self) -> int:
        """How many connections are still being served."""
        return len(self._open)

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing alone does not wake a thread that waits in accept().
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            thread = threading.Thread(target=self._run, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _run(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self._serve(connection)
        self._open.discard(connection)


class OddServer(LoopbackServer):
    """Responds to every request with the bytes of one case; `received` holds each request as it came."""

    def __init__(self, case: OddResponse) -> None:
        super().__init__(self._respond)
        self._case = case
        self.received: list[bytes] = []

    def _respond(self, connection: socket.socket) -> None:
        while request := read_request(connection):
            self.received.append(request)
            connection.sendall(self._case.sent)
            if self._case.then is Then.CLOSE:
                break


def read_request(connection: socket.socket) -> bytes:
    """Return the next request on *connection* as it came, or what there was of it at the end."""
    request = b""
    wanted = -1
    while wanted < 0 or len(request) < wanted:
        data = connection.recv(65536)
        if not data:
            break
        request += data
        head, blank, _ = request.partition(b"\r\n\r\n")
        if blank and wanted < 0:
            length = head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
            wanted = len(head) + 4 + int(length or 0)
    return request
