"""Responses of other download handlers, archived too, and marked for what they are.

A plug-in's handler (a browser's, say) hands on a parsed response: the bytes of the wire are gone. The
exchange is written down again from its parts, and the record says which software reconstructed it.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import brotli
from scrapy.utils.misc import load_object

from amicrawl.capture import BytesBody, Capture, Truncation, final_url
from amicrawl.clock import unix_ms
from amicrawl.crawl.decision import provenance_of
from amicrawl.crawl.handler import WireHandler
from amicrawl.crawl.requests import provenance_of_request, ticket_of
from amicrawl.crawl.run import Run, run_of
from amicrawl.frontier import Outcome
from amicrawl.record import CaptureItem
from amicrawl.seed import Seed
from amicrawl.urls import without_userinfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response
    from scrapy.settings import BaseSettings

# These describe the body on the wire; the length of the body at hand is known, and mostly it is decoded.
_OF_THE_WIRE = frozenset({b"transfer-encoding", b"content-encoding", b"content-length"})
_MAGIC = {b"gzip": b"\x1f\x8b", b"x-gzip": b"\x1f\x8b", b"zstd": b"\x28\xb5\x2f\xfd"}
"""What a body begins with that has the coding."""
_LOOK = 1024
"""Bytes of a body that are tried for a coding without such a beginning."""


class ForeignResponses:
    """Records what http(s) handlers other than ours deliver, before anybody reads it."""

    def __init__(self, run: Run, handlers: Mapping[str, str], *, max_size: int) -> None:
        """*handlers* are the dotted names of the foreign handlers by URL scheme.

        *max_size* is DOWNLOAD_MAXSIZE: the most bytes of a body; 0 for any number.
        """
        self._run = run
        self._handlers = handlers
        self._max_size = max_size

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*, whose settings say which handlers are ours."""
        handlers = foreign_handlers(crawler.settings, ours=WireHandler)
        return cls(run_of(crawler), handlers, max_size=crawler.settings.getint("DOWNLOAD_MAXSIZE"))

    @property
    def expected(self) -> bool:
        """Whether there is a handler that is not ours."""
        return bool(self._handlers)

    async def keep(self, request: Request, response: Response) -> Response:
        """Record *response* if another handler than ours delivered it for *request*.

        Returns what a callback gets: a body above DOWNLOAD_MAXSIZE is cut, with the flag `partial`, in
        the record, too, which has no more than AMICRAWL_MAX_BODY. Raises OutputError where recording
        fails.
        """
        handler = self._handlers.get(urlsplit(request.url).scheme.lower())
        if handler is None:
            return response
        size, most = len(response.body), max_size_of(request, self._max_size) or len(response.body)
        capture = reconstruct(
            request,
            response,
            by=handler,
            now=datetime.now(UTC),
            max_size=min(most, self._run.config.max_body),
        )
        if size > most:
            response = response.replace(body=response.body[:most], flags=[*response.flags, "partial"])
        ticket = ticket_of(request)
        dispatch = ticket.dispatch if ticket is not None else None
        item = CaptureItem(
            capture=capture,
            seed=dispatch.offer.seed if dispatch is not None else Seed(request.url),
            attempts=dispatch.attempt if dispatch is not None else 1,
            final_url=final_url(capture),
            provenance=(
                provenance_of(dispatch.offer) if dispatch is not None else provenance_of_request(request)
            ),
        )
        await self._run.record(item)
        if ticket is not None:
            ticket.outcome = Outcome(status=response.status)
        return response


def foreign_handlers(settings: BaseSettings, *, ours: type) -> dict[str, str]:
    """Return the dotted names of the http(s) handlers in *settings* other than *ours*, by scheme."""
    configured = settings.getwithbase("DOWNLOAD_HANDLERS")
    return {
        scheme: handler if isinstance(handler, str) else f"{handler.__module__}.{handler.__qualname__}"
        for scheme in ("http", "https")
        if (handler := configured.get(scheme)) and load_object(handler) is not ours
    }


def max_size_of(request: Request, max_size: int) -> int:
    """Return the most bytes of a response to *request*: *max_size* unless its `meta` has a limit."""
    return int(request.meta.get("download_maxsize", max_size))


def reconstruct(
    request: Request,
    response: Response,
    *,
    by: str,
    now: datetime,
    max_size: int,
    began: datetime | None = None,
) -> Capture:
    """Return the capture that *request* and *response* come nearest to.

    It is kept under the URL of the response, which another one may have led the handler *by* to. Its end
    is *now*, UTC; it began at *began*, or as long before as Scrapy measured. Its body has
    *max_size* bytes at most.
    """
    if began is None:
        began = now - timedelta(seconds=float(request.meta.get("download_latency") or 0))
    started_ms = unix_ms(began)
    leave_out = _OF_THE_WIRE - ({b"content-encoding"} if _is_encoded(response) else set())
    url = response.url.partition("#")[0]
    return Capture(
        url=url,
        started_ms=started_ms,
        duration_ms=max(0, unix_ms(now) - started_ms),
        request=_request_head(request.method, url)
        + _field_lines(request.headers)
        + b"\r\n"
        + request.body,
        head=_ascii(f"HTTP/1.1 {response.status} {_phrase(response.status)}\r\n")
        + _field_lines(response.headers, leave_out=leave_out)
        + b"Content-Length: %d\r\n\r\n" % len(response.body),
        body=BytesBody(response.body[:max_size]),
        truncated=Truncation.LENGTH if len(response.body) > max_size else None,
        status=response.status,
        ip_address=str(response.ip_address) if response.ip_address else None,
        reconstructed_by=by,
    )


def reconstructed_hop(url: str, status: int, target: str, *, by: str, now: datetime) -> Capture:
    """Return the capture of a redirect from *url* to *target* that a handler followed by itself."""
    return Capture(
        url=url.partition("#")[0],
        started_ms=unix_ms(now),
        duration_ms=0,
        request=_request_head("GET", url) + b"\r\n",
        head=_ascii(
            f"HTTP/1.1 {status} {_phrase(status)}\r\n"
            f"Location: {without_userinfo(target)}\r\nContent-Length: 0\r\n\r\n"
        ),
        status=status,
        reconstructed_by=by,
    )


def _request_head(method: str, url: str) -> bytes:
    target = urlsplit(url)
    path = (target.path or "/") + (f"?{target.query}" if target.query else "")
    return _ascii(f"{method} {path} HTTP/1.1\r\nHost: {target.netloc.rpartition('@')[2]}\r\n")


def _is_encoded(response: Response) -> bool:
    """Tell whether the body of *response* still has the content coding that its header names."""
    coding = (response.headers.get(b"Content-Encoding") or b"").strip().lower()
    begins = _MAGIC.get(coding)
    if begins is not None:
        return response.body.startswith(begins)
    try:
        if coding == b"br":
            brotli.Decompressor().process(response.body[:_LOOK], output_buffer_limit=_LOOK)
        elif coding == b"deflate":
            zlib.decompressobj().decompress(response.body[:_LOOK], _LOOK)
        else:
            return False
    except (brotli.error, zlib.error):
        return False
    return True


def _field_lines(headers: Headers, *, leave_out: frozenset[bytes] = frozenset()) -> bytes:
    lines = [
        name + b": " + value.replace(b"\r", b" ").replace(b"\n", b" ") + b"\r\n"
        for name, values in headers.items()
        if name.lower() not in leave_out
        for value in values or ()
    ]
    return b"".join(lines)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _ascii(text: str) -> bytes:
    return text.encode("ascii", "backslashreplace")
