"""Responses of other download handlers, archived too, and marked for what they are.

A plug-in's handler (a browser's, say) hands on a parsed response: the bytes of the wire are gone. The
exchange is written down again from its parts, and the record says by whom it was reconstructed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from scrapy.utils.misc import load_object

from amicrawl.capture import BytesBody, Capture
from amicrawl.crawl.handler import WireHandler
from amicrawl.crawl.run import Run, run_of
from amicrawl.crawl.ticket import ticket_of
from amicrawl.frontier import Outcome
from amicrawl.record import CaptureItem
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response

# These describe the body on the wire; the body at hand has been decoded, and its length is known.
_OF_THE_WIRE = frozenset({b"transfer-encoding", b"content-encoding", b"content-length"})


class ForeignResponses:
    """Records what http(s) handlers other than ours deliver, before anybody reads it."""

    def __init__(self, run: Run, handlers: Mapping[str, str]) -> None:
        """*handlers* are the dotted names of the foreign handlers by URL scheme."""
        self._run = run
        self._handlers = handlers

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*, whose settings say which handlers are ours."""
        configured = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
        handlers = {
            scheme: handler if isinstance(handler, str) else _dotted(handler)
            for scheme in ("http", "https")
            if (handler := configured.get(scheme)) and load_object(handler) is not WireHandler
        }
        return cls(run_of(crawler), handlers)

    @property
    def expected(self) -> bool:
        """Whether there is a handler that is not ours."""
        return bool(self._handlers)

    async def keep(self, request: Request, response: Response) -> None:
        """Record *response* if another handler than ours delivered it for *request*.

        Raises OutputError where that fails.
        """
        handler = self._handlers.get(urlsplit(request.url).scheme.lower())
        if handler is None:
            return
        ticket = ticket_of(request)
        dispatch = ticket.dispatch if ticket is not None else None
        item = CaptureItem(
            capture=reconstruct(request, response, by=handler, now=datetime.now(UTC)),
            seed=dispatch.offer.seed if dispatch is not None else Seed(request.url),
            attempts=dispatch.attempt if dispatch is not None else 1,
            final_url=response.url,
        )
        await self._run.record(item)
        if ticket is not None:
            ticket.outcome = Outcome(status=response.status)


def reconstruct(request: Request, response: Response, *, by: str, now: datetime) -> Capture:
    """Return the capture that *request* and *response* come nearest to; *now* is its end, UTC."""
    latency = timedelta(seconds=float(request.meta.get("download_latency") or 0))
    started = now - latency
    started = started.replace(microsecond=started.microsecond // 1000 * 1000)
    target = urlsplit(request.url)
    path = (target.path or "/") + (f"?{target.query}" if target.query else "")
    request_line = f"{request.method} {path} HTTP/1.1\r\nHost: {target.netloc}\r\n"
    return Capture(
        url=request.url,
        started=started,
        duration_ms=(now - started) // timedelta(milliseconds=1),
        request=_ascii(request_line) + _field_lines(request.headers) + b"\r\n" + request.body,
        head=_ascii(f"HTTP/1.1 {response.status} {_phrase(response.status)}\r\n")
        + _field_lines(response.headers, leave_out=_OF_THE_WIRE)
        + b"Content-Length: %d\r\n\r\n" % len(response.body),
        body=BytesBody(response.body),
        status=response.status,
        ip_address=str(response.ip_address) if response.ip_address else None,
        reconstructed_by=by,
    )


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


def _dotted(handler: Any) -> str:
    return f"{handler.__module__}.{handler.__qualname__}"
