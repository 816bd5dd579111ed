"""Responses: what the demo site sends for each path, as bytes, and how it sends them.

Most paths are files of `site/`, with validators, and get 304 where those still hold. The others
show one oddity of the web each:

| Path | Response |
|--|--|
| `/lamp-room`, `/lamp-house` | 301, then 302, to `/lamp.html` |
| `/lost-volume.html` | 404 |
| `/storm.html` | 500 |
| `/almanac.html` | gzip, in chunks |
| `/guest-book.html` | repeated fields (`Set-Cookie` twice) and odd letter case |
| `/fog.html` | a pause between head and body |
| `/logs/1879-visitor.html` | ISO-8859-1 |
| `/torn-page.html` | the connection is closed before the body is complete |
| `/wreck.html` | the connection is reset before a byte is sent |

No response has a `Date` or anything else that changes: the same request gives the same bytes, so that an
archive of the site can be compared with it. Nothing here opens a socket.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SITE = Path(__file__).parent / "site"
LAST_MODIFIED = datetime(2024, 6, 30, 20, 48, tzinfo=UTC)

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
    ".xml": "application/xml",
}
_LATIN_1 = "/logs/1879-visitor.html"
_NEEDS_BASE = {".txt", ".xml"}


class Ending(Enum):
    """What becomes of the connection after a response."""

    KEEP = auto()
    CLOSE = auto()
    RESET = auto()


@dataclass(frozen=True, slots=True)
class SiteResponse:
    """What is sent for one request."""

    pieces: tuple[bytes, ...]
    """Sent in order, with a pause between two."""
    ending: Ending = Ending.KEEP

    @property
    def wire(self) -> bytes:
        """Every byte of the response."""
        return b"".join(self.pieces)


class SiteResponses:
    """The responses of a site whose address is *base*, such as `http://127.0.0.1:8000/`."""

    def __init__(self, base: str) -> None:
        self._files = {target: _file(path, base) for target, path in _targets().items()}
        self._oddities: dict[str, Callable[[bytes], SiteResponse]] = {
            "/lamp-room": lambda _: _redirect("301 Moved Permanently", base + "lamp-house"),
            "/lamp-house": lambda _: _redirect("302 Found", "/lamp.html"),
            "/lost-volume.html": lambda page: _page("404 Not Found", page),
            "/storm.html": lambda page: _page("500 Internal Server Error", page),
            "/almanac.html": _chunked,
            "/guest-book.html": _repeated,
            "/fog.html": _slow,
            "/torn-page.html": _torn,
            "/wreck.html": lambda _: SiteResponse((), Ending.RESET),
        }

    @property
    def targets(self) -> set[str]:
        """Every path that has something other than the 404 for unknown ones."""
        return set(self._files) | set(self._oddities)

    def respond(self, target: str, headers: Mapping[str, str]) -> SiteResponse:
        """Return the response to a GET of *target*; names in *headers* may have any case."""
        path = target.partition("?")[0]
        if path in self._oddities:
            content = self._files[path][1] if path in self._files else b""
            return self._oddities[path](content)
        if path not in self._files:
            return _page("404 Not Found", b"<!DOCTYPE html><title>Nothing here</title>\n")
        return _static(*self._files[path], {name.lower(): value for name, value in headers.items()})


def _targets() -> dict[str, Path]:
    """Return every file of the site under the path that it responds to."""
    files = {f"/{path.relative_to(SITE).as_posix()}": path for path in SITE.rglob("*") if path.is_file()}
    return {target.removesuffix("index.html"): path for target, path in files.items()}


def _file(path: Path, base: str) -> tuple[str, bytes]:
    """Return the media type and the content of a file."""
    content = path.read_bytes()
    if path.suffix in _NEEDS_BASE:
        content = content.replace(b"{{base}}", base.encode())
    if path == SITE / _LATIN_1[1:]:
        return "text/html; charset=iso-8859-1", content.decode().encode("latin-1")
    return _TYPES[path.suffix], content


def _static(media_type: str, content: bytes, headers: Mapping[str, str]) -> SiteResponse:
    etag = f'"{hashlib.sha1(content, usedforsecurity=False).hexdigest()[:16]}"'
    validators = [f"ETag: {etag}", f"Last-Modified: {format_datetime(LAST_MODIFIED, usegmt=True)}"]
    if _unchanged(etag, headers):
        return SiteResponse((_head("304 Not Modified", *validators),))
    length = f"Content-Length: {len(content)}"
    return SiteResponse((_head("200 OK", f"Content-Type: {media_type}", length, *validators) + content,))


def _unchanged(etag: str, headers: Mapping[str, str]) -> bool:
    """Tell whether the requester's copy still holds (RFC 9110, 13.1)."""
    if (wanted := headers.get("if-none-match")) is not None:
        tags = [tag.strip().removeprefix("W/") for tag in wanted.split(",")]
        return etag in tags or "*" in tags
    try:
        return parsedate_to_datetime(headers["if-modified-since"]) >= LAST_MODIFIED
    except (KeyError, ValueError, TypeError):
        return False


def _head(status: str, *lines: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *lines, "")).encode()


def _page(status: str, page: bytes) -> SiteResponse:
    return SiteResponse(
        (_head(status, f"Content-Type: {_TYPES['.html']}", f"Content-Length: {len(page)}") + page,)
    )


def _redirect(status: str, location: str) -> SiteResponse:
    return SiteResponse((_head(status, f"Location: {location}", "Content-Length: 0"),))


def _chunked(page: bytes) -> SiteResponse:
    fields = ("Content-Encoding: gzip", "Vary: Accept-Encoding", "Transfer-Encoding: chunked")
    packed = gzip.compress(page, mtime=0)
    parts = [packed[start : start + 400] for start in range(0, len(packed), 400)]
    chunks = b"".join(b"%X\r\n%b\r\n" % (len(part), part) for part in parts)
    return SiteResponse(
        (_head("200 OK", f"Content-Type: {_TYPES['.html']}", *fields) + chunks + b"0\r\n\r\n",)
    )


def _repeated(page: bytes) -> SiteResponse:
    head = _head(
        "200 OK",
        "content-TYPE: text/html; charset=utf-8",
        "Set-Cookie: name=Ada; Path=/",
        "X-Signed-By: Ada",
        "SET-cookie: tea=strong; Path=/",
        "x-signed-by:   Bo",
        f"CONTENT-LENGTH: {len(page)}",
        "X-Empty:",
    )
    return SiteResponse((head + page,))


def _slow(page: bytes) -> SiteResponse:
    (whole,) = _page("200 OK", page).pieces
    return SiteResponse((whole[: -len(page)], page))


def _torn(page: bytes) -> SiteResponse:
    missing = 1879
    head = _head(
        "200 OK",
        f"Content-Type: {_TYPES['.html']}",
        f"Content-Length: {len(page) + missing}",
        "Connection: close",
    )
    return SiteResponse((head + page,), Ending.CLOSE)
