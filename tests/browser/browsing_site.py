"""Sites made by scripts, on a loopback server, and crawls of them in a browser."""

from __future__ import annotations

import contextlib
import shutil
import ssl
from typing import TYPE_CHECKING

import pytest
import trustme
from loopback import RawServer, crawl_site

if TYPE_CHECKING:
    import socket
    import subprocess
    from collections.abc import Callable, Mapping
    from pathlib import Path

SETTINGS = {
    "AMICRAWL_BROWSER": "always",
    # Tests run as root in containers.
    "AMICRAWL_BROWSER_SANDBOX": "false",
    "AMICRAWL_BROWSER_PAGE_TIME": "20",
    "AMICRAWL_PER_HOST": "1",
}

needs_chromium = pytest.mark.skipif(
    not shutil.which("chromium"), reason="Chromium is not installed; make test installs it"
)


def crawl_pages(
    url: str, out: Path, settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Crawl the site at *url* in a browser into *out*."""
    return crawl_site(url, out, settings={**SETTINGS, **(settings or {})})


class SecuredServer(RawServer):
    """Does so over TLS, by a certificate of its own authority, which is written to *ca_file*."""

    def __init__(self, respond: Callable[[bytes], bytes], ca_file: Path) -> None:
        super().__init__(respond)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(ca_file))
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(self._tls)

    @property
    def url(self) -> str:
        """The address, without a slash at the end."""
        return f"https://127.0.0.1:{self.port}"

    def _serve(self, connection: socket.socket) -> None:
        with (
            contextlib.suppress(ssl.SSLError),
            self._tls.wrap_socket(connection, server_side=True) as secured,
        ):
            head = b""
            while b"\r\n\r\n" not in head:
                if not (block := secured.recv(65536)):
                    return
                head += block
            self.requests.append(head)
            secured.sendall(self._respond(head))
            with contextlib.suppress(OSError):
                secured.unwrap()


def response(body: bytes, type_: str = "text/html", *fields: str, status: str = "200 OK") -> bytes:
    """Return a response of *type_*, whose framing and case no library would write."""
    lines = "".join(f"{field}\r\n" for field in fields)
    return (
        f"HTTP/1.1 {status}\r\ncontent-TYPE: {type_}\r\nX-oDD-Case: 1\r\n{lines}"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def chunked(body: bytes, type_: str, *fields: str) -> bytes:
    """Return a response in chunks with an extension and a trailer."""
    lines = "".join(f"{field}\r\n" for field in fields)
    middle = len(body) // 2
    return (
        f"HTTP/1.1 200 Fine\r\nContent-type:{type_}\r\nX-A: 1\r\n".encode()
        + f"Transfer-Encoding: chunked\r\n{lines}\r\n".encode()
        + b"%x;odd=1\r\n%b\r\n%X\r\n%b\r\n0\r\nX-Trailer: t\r\n\r\n"
        % (middle, body[:middle], len(body) - middle, body[middle:])
    )


def path_of(head: bytes) -> str:
    """Return the path that a request names."""
    return head.split(b" ", 2)[1].decode()
