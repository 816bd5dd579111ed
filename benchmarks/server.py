"""The server that the crawlers are measured against: a process of its own, too cheap to be the limit.

    python -m benchmarks.server [PARAGRAPHS [https]]

listens on every address of 127.0.0.0/8 with one port, prints that port on a line, and responds until its
standard input ends. Each address is a host of its own to a crawler, so that limits per host do not make
it wait. Connections are kept open, as most servers on the web do. Over https it shows a certificate
that no crawler trusts.

    /page/N         page N, of so many paragraphs
    /empty/N        no body
    /zeros/N        N bytes
    /moved/N        a redirect to page N
    /silent/N       nothing, ever
    /connections    how many connections were accepted (over https: shook hands), this one included
"""

from __future__ import annotations

import asyncio
import re
import resource
import ssl
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from typing import cast

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from benchmarks.pages import Pages

_REQUEST = re.compile(
    rb"GET /(page|empty|zeros|moved|silent|connections)/?([0-9]{0,11})(?:/[0-9]+)? HTTP/1\.[01]\r\n"
)
_HEAD_LIMIT = 16_384
_PIECE = bytes(1 << 20)
_BACKLOG = 65_535


def addresses(hosts: int) -> list[str]:
    """Return the loopback addresses that stand for *hosts* hosts."""
    return [
        f"127.{number // 50_000}.{1 + number // 250 % 200}.{1 + number % 250}" for number in range(hosts)
    ]


class Responding(asyncio.Protocol):
    """One connection."""

    accepted = 0
    """Connections so far."""

    def __init__(self, pages: Pages, date: str) -> None:
        self._pages = pages
        self._date = date
        self._pending = b""
        self._zeros = 0
        """Bytes of a body that are still to be sent."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # uvloop's transports do what asyncio's do and are none of them.
        self._transport = cast("asyncio.Transport", transport)
        Responding.accepted += 1

    def data_received(self, data: bytes) -> None:
        """Respond to every request that is complete."""
        self._pending += data
        while (end := self._pending.find(b"\r\n\r\n")) >= 0:
            head, self._pending = self._pending[: end + 2], self._pending[end + 4 :]
            self._transport.write(self._respond(head))
            self.resume_writing()
            if b"\r\nconnection: close\r\n" in head.lower():
                self._transport.close()
                return
        if len(self._pending) > _HEAD_LIMIT:
            self._transport.abort()

    def pause_writing(self) -> None:
        """Wait for a client that does not keep up with a long body."""
        self._writes = False

    def resume_writing(self) -> None:
        """Send of a long body what the connection takes."""
        self._writes = True
        while self._zeros and self._writes and not self._transport.is_closing():
            piece = _PIECE[: self._zeros]
            self._zeros -= len(piece)
            self._transport.write(piece)

    def _respond(self, head: bytes) -> bytes:
        match = _REQUEST.match(head)
        if match is None:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        kind, number = match[1], int(match[2] or b"0")
        if kind == b"silent":
            return b""
        if kind == b"moved":
            return b"HTTP/1.1 302 Found\r\nLocation: /page/%d\r\nContent-Length: 0\r\n\r\n" % number
        if kind == b"zeros":
            self._zeros = number
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % number
        page = b"%d" % Responding.accepted if kind == b"connections" else b""
        if kind == b"page":
            page = self._pages.page(number)
        fields = (
            "HTTP/1.1 200 OK\r\n"
            f"Date: {self._date}\r\n"
            "Server: benchmark\r\n"
            "Content-Type: text/html; charset=utf-8\r\n"
            f"Content-Length: {len(page)}\r\n"
            "Last-Modified: Sun, 30 Jun 2024 20:48:00 GMT\r\n"
            f'ETag: "page-{number}"\r\n'
            "Cache-Control: max-age=600\r\n"
            "Vary: Accept-Encoding\r\n"
            "X-Content-Type-Options: nosniff\r\n"
            "\r\n"
        )
        return fields.encode() + page


async def serve(paragraphs: int, *, https: bool) -> None:
    """Listen on loopback until standard input ends."""
    loop = asyncio.get_running_loop()
    pages, date = Pages(paragraphs), formatdate(usegmt=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65_536)), hard))
    # One socket for all of 127.0.0.0/8: a hundred thousand would be more than a process may open.
    server = await loop.create_server(
        lambda: Responding(pages, date),
        "0.0.0.0",
        0,
        backlog=_BACKLOG,
        ssl=make_tls() if https else None,
    )
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


def make_tls() -> ssl.SSLContext:
    """Return a context with a new certificate of an ECDSA key, as most servers have one."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "benchmark")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.NamedTemporaryFile() as file:
        file.write(secret + certificate.public_bytes(serialization.Encoding.PEM))
        file.flush()
        context.load_cert_chain(file.name)
    return context


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    uvloop.run(serve(int(given.get(1, "33")), https=given.get(2) == "https"))
