"""Servers whose bodies are bombs, or not what they are said to be. A list crawl keeps what came."""

from __future__ import annotations

import gzip
import zlib

from hostile.scripts_of_servers import found, gzip_bomb, one, page, says

_TEXT = b"<p>Some words, many of them the same words.</p>" * 50
_GZIP = gzip.compress(_TEXT, mtime=0)


def coded(coding: bytes, body: bytes) -> bytes:
    return page(body, b"Content-Type: text/html", b"Content-Encoding: " + coding)


def _nested(times: int) -> bytes:
    body = _TEXT
    for _ in range(times):
        body = gzip.compress(body, 1, mtime=0)
    return body


LIES_ABOUT_CONTENT = (
    one("a-gzip-bomb-of-10-gb", says(coded(b"gzip", gzip_bomb(10 * 1024))), found(truncated="length")),
    one("a-gzip-bomb-in-reach", says(coded(b"gzip", gzip_bomb(30)))),
    one("forty-two-codings", says(coded(b", ".join([b"gzip"] * 42), _nested(42)))),
    one("a-coding-named-10000-times", says(coded(b"gzip," * 10_000 + b"gzip", _GZIP))),
    one("corrupt-gzip", says(coded(b"gzip", _GZIP[:40] + b"\xff\xff" + _GZIP[42:]))),
    one("cut-gzip", says(coded(b"gzip", _GZIP[:-20]))),
    one("gzip-that-is-none", says(coded(b"gzip", _TEXT))),
    one("brotli-that-is-none", says(coded(b"br", _TEXT))),
    one("zstd-that-is-none", says(coded(b"zstd", _TEXT))),
    one("deflate-that-is-none", says(coded(b"deflate", _TEXT))),
    one("deflate-without-its-header", says(coded(b"deflate", zlib.compress(_TEXT)[2:-4]))),
    one("a-coding-nobody-knows", says(coded(b"\x1b[2J/rot13", _TEXT))),
    one("a-coding-that-is-no-text", says(coded(b"\xff\xfe", _TEXT))),
    one(
        "a-picture-called-a-page",
        says(page(b"\x89PNG\r\n\x1a\n" + bytes(99), b"Content-Type: text/html")),
    ),
    one("a-page-called-a-picture", says(page(_TEXT, b"Content-Type: image/png"))),
    one("a-type-of-100-kb", says(page(_TEXT, b"Content-Type: " + b"text/html;" * 10_000))),
    one("utf-7", says(page(b"+ADw-script+AD4-", b"Content-Type: text/html; charset=utf-7"))),
    one("a-character-set-nobody-knows", says(page(_TEXT, b"Content-Type: text/html; charset=\x1b\xff"))),
)
