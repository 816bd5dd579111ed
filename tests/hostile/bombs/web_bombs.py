"""What a server may send that is small and stands for much: pages, style sheets, robots.txt."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import brotli
import zstandard
from hostile.bombs.archive_bombs import GIB, zeros
from hostile.bombs.yard import MIB, packed
from hostile.scripts_of_servers import page

if TYPE_CHECKING:
    from collections.abc import Callable

HTML = b"Content-Type: text/html; charset=utf-8"
CSS = b"Content-Type: text/css"
TEXT = b"Content-Type: text/plain"
GZIP = b"Content-Encoding: gzip"


def _page(markup: bytes, times: int, *, behind: bytes = b"") -> Callable[[], bytes]:
    """Return what makes a page of *markup* so many times, packed."""
    return lambda: page(gzip.compress(markup * times + behind, 1), HTML, GZIP)


def _sheet(rule: bytes, times: int) -> Callable[[], bytes]:
    return lambda: page(gzip.compress(rule * times, 1), CSS, GZIP)


def _robots(line: bytes, times: int) -> Callable[[], bytes]:
    return lambda: page(gzip.compress(line * times, 1), TEXT, GZIP)


WEB: dict[str, dict[str, Callable[[], bytes]]] = {
    "HTML": {
        "deep": _page(b"<div>", 2_000_000),
        "links": _page(b"<a href=/?%%>x", 700_000),
        "bases": _page(b"<base href=//x/><a href=a>", 400_000),
        "attributes": _page(b"<a ", 1, behind=b"b=c " * 2_500_000),
        "a-srcset": _page(b"<img srcset='", 1, behind=b"a 1x," * 2_000_000),
        "styles": _page(b"<p style='background:url(a)'>", 300_000),
        "comments": _page(b"<!--", 2_500_000),
        "entities": _page(b"<a href='&#x26;&amp;", 500_000),
        "metas": _page(b"<meta http-equiv=refresh content='0;url=a'>", 200_000),
        "scripts": _page(b"<script>x</script", 600_000),
        "a-bomb": lambda: page(packed(b"<a href=/x>" * 90_000, 512), HTML, GZIP),
    },
    "CSS": {
        "urls": _sheet(b"a{b:url(c)}", 900_000),
        "open": _sheet(b"url(", 2_500_000),
        "escapes": _sheet(b"\\75\\72\\6c(", 1_000_000),
        "imports": _sheet(b'@import "a";', 800_000),
        "comments": _sheet(b"/*", 5_000_000),
        "quotes": _sheet(b"a{b:'", 2_000_000),
        "blocks": _sheet(b"{", 9_000_000),
    },
    "robots.txt": {
        "rules": _robots(b"Disallow: /a\n", 700_000),
        "stars": _robots(b"User-agent: *\nDisallow: /" + b"*a" * 20_000 + b"$\n", 20),
        "agents": _robots(b"User-agent: a\n", 700_000),
        "sitemaps": _robots(b"Sitemap: http://127.0.0.1/\n", 300_000),
        "a-line": _robots(b"Disallow: /" + b"a" * MIB, 9),
        "delays": _robots(b"User-agent: *\nCrawl-delay: " + b"9" * 1000 + b"\n", 9000),
        "a-bomb": lambda: page(packed(b"Disallow: /x\n" * 80_000, 512), TEXT, GZIP),
    },
    "HTTP": {
        "fields": lambda: b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 400_000,
        "a-field": lambda: b"HTTP/1.1 200 OK\r\nA: " + b"b" * (4 * MIB) + b"\r\n\r\n",
        "interim": lambda: b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100_000,
        "chunks": lambda: (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"1\r\nx\r\n" * 400_000
            + b"0\r\n\r\n"
        ),
        "extensions": lambda: (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"a" * (4 * MIB) + b"\r\nx\r\n"
        ),
        "trailers": lambda: (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 400_000
        ),
        "carriage-returns": lambda: b"HTTP/1.1 200 OK\r\n" + b"\r" * (4 * MIB),
        "a-length": lambda: b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 100_000 + b"\r\n\r\nx",
        "gzip": lambda: page(packed(bytes(MIB), 1024), HTML, GZIP),
        "gzip-twice": lambda: page(gzip.compress(packed(bytes(MIB), 2048)), HTML, GZIP + b", gzip"),
        "br": lambda: page(brotli.compress(bytes(64 * MIB), quality=1), HTML, b"Content-Encoding: br"),
        "zstd": lambda: page(zeros(2 * GIB, says_size=False), HTML, b"Content-Encoding: zstd"),
        "zstd-window": lambda: page(
            zstandard.compress(b"x")[:4] + b"\x00\xf8" + bytes(40), HTML, b"Content-Encoding: zstd"
        ),
        "members": lambda: page(gzip.compress(b"") * 100_000, HTML, GZIP),
    },
}
"""Bombs by format and name, each a whole response."""
