"""The server that the crawlers are measured against: a process of its own, too cheap to be the limit.

    python -m benchmarks.server HOSTS [PARAGRAPHS [https]]

listens on HOSTS addresses of 127.0.0.0/8 with one port, prints that port on a line and answers
`GET /page/N` with page N, of so many paragraphs, until its standard input ends. Over https it shows a
certificate that no crawler trusts. Each address is a host of its own to a crawler,
so that limits per host do not make it wait. Connections are kept open, as most servers on the web do.
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

_REQUEST = re.compile(rb"GET /page/([0-9]{1,9}) HTTP/1\.[01]\r\n")
_HEAD_LIMIT = 16_384


def addresses(hosts: int) -> list[str]:
    """Return the loopback addresses that stand for *hosts* hosts."""
    return [
        f"127.{number // 50_000}.{1 + number // 250 % 200}.{1 + number % 250}" for number in range(hosts)
    ]


class Answering(asyncio.Protocol):
    """One connection."""

    def __init__(self, pages: Pages, date: str) -> None:
        self._pages = pages
        self._date = date
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way to answer."""
        # uvloop's transports do what asyncio's do and are none of them.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._pending += data
        while (end := self._pending.find(b"\r\n\r\n")) >= 0:
            head, self._pending = self._pending[: end + 2], self._pending[end + 4 :]
            self._transport.write(self._answer(head))
            if b"\r\nconnection: close\r\n" in head.lower():
                self._transport.close()
                return
        if len(self._pending) > _HEAD_LIMIT:
            self._transport.abort()

    def _answer(self, head: bytes) -> bytes:
        match = _REQUEST.match(head)
        if match is None:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        number = int(match[1])
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


async def serve(hosts: int, paragraphs: int, *, https: bool) -> None:
    """Listen on the addresses of *hosts* hosts until standard input ends."""
    loop = asyncio.get_running_loop()
    pages, date = Pages(paragraphs), formatdate(usegmt=True)
    context = _tls() if https else None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65_536)), hard))
    port = 0
    for address in addresses(hosts):
        server = await loop.create_server(
            lambda: Answering(pages, date), address, port, backlog=512, ssl=context
        )
        port = port or server.sockets[0].getsockname()[1]
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


def _tls() -> ssl.SSLContext:
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
    uvloop.run(serve(int(given[1]), int(given.get(2, "33")), https=given.get(3) == "https"))
