"""Sites made by scripts, on a loopback server, and crawls of them in a browser."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from loopback import crawl_site

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
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


def answer(body: bytes, type_: str = "text/html", *fields: str, status: str = "200 OK") -> bytes:
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
    """Return the path that a request asks for."""
    return head.split(b" ", 2)[1].decode()
