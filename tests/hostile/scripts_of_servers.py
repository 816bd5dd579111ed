"""Small parts that behaviours are made of."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from hostile.hostile_server import Behaviour, Expected

if TYPE_CHECKING:
    from collections.abc import Callable

    from hostile.hostile_server import Peer

    Serve = Callable[[Peer], None]

OK = b"HTTP/1.1 200 OK\r\n"
FIVE = b"Content-Length: 5\r\n\r\nhello"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MIB = 1024**2


def says(data: bytes, *, then_holds: bool = False) -> Serve:
    """Respond to one request with *data*, and close, or keep the connection and fall silent."""

    def serve(peer: Peer) -> None:
        if peer.request():
            peer.send(data)
            if then_holds:
                peer.hold()

    return serve


def pours(begun: bytes, block: bytes) -> Serve:
    """Respond to one request with *begun* and then with *block* without end."""

    def serve(peer: Peer) -> None:
        peer.request()
        peer.send(begun)
        peer.pour(block)

    return serve


def drips(begun: bytes, dripped: bytes, *, every: float = 0.1, size: int = 1) -> Serve:
    """Respond to one request with *begun* and then with *dripped*, slowly."""

    def serve(peer: Peer) -> None:
        peer.request()
        peer.send(begun)
        peer.drip(dripped, every=every, size=size)

    return serve


def resets(begun: bytes) -> Serve:
    """Respond to one request with *begun* and break the connection off."""

    def serve(peer: Peer) -> None:
        peer.request()
        peer.send(begun)
        peer.reset()

    return serve


def page(body: bytes, *fields: bytes, status: bytes = b"200 OK") -> bytes:
    """Return an ordinary response."""
    lines = b"".join(field + b"\r\n" for field in fields)
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n" % (status, len(body), lines) + body


def found(status: int = 200, truncated: str = "") -> Expected:
    """Expect a response."""
    return Expected(status=status, truncated=truncated)


def failed(word: str) -> Expected:
    """Expect a failure."""
    return Expected(error=word)


def one(
    name: str, serve: Serve, expected: Expected | None = None, *more: Expected, scheme: str = "http"
) -> Behaviour:
    """Return a behaviour that one URL leads to."""
    return Behaviour(name=name, serve=serve, expected=(expected or found(), *more), scheme=scheme)


def gzip_bomb(mebibytes: int, *, start: bytes = b"", filling: bytes = b"\0") -> bytes:
    """Return a gzip file of *start* and so many MiB of *filling*, a thousandth of that in size.

    The same compressed MiB stands in it again and again, so that making it costs nothing. Its checksum
    is wrong, which nobody learns who does not unpack it to the end.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    begun = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(filling * (MIB // len(filling))) + packer.flush(zlib.Z_FULL_FLUSH)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    return head + begun + block * mebibytes + packer.flush() + bytes(8)
