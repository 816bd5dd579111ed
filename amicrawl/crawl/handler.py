"""The download handler: a Scrapy request becomes an exchange on the wire, and a capture on disk.

The order here is the promise of the crawl: the exchange first, then its record and row on disk, then
the response for the callback. A callback may crash; what it was to read is already kept.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import TYPE_CHECKING

from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
)
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from amicrawl.capture import Failure, Truncation
from amicrawl.crawl.run import reads_responses, run_of
from amicrawl.crawl.ticket import Stopped, Ticket, TryAgainLater, ticket_of
from amicrawl.crawl.wiring import make_wire
from amicrawl.errors import AmicrawlError
from amicrawl.fetch import WireRequest
from amicrawl.frontier import Outcome
from amicrawl.record import CaptureItem
from amicrawl.seed import Seed
from amicrawl.urls import Refused, fetchable, resolve

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from amicrawl.capture import Capture
    from amicrawl.fetch import Wire

REDIRECTS = frozenset({301, 302, 303, 307, 308})

_CODINGS = "gzip, deflate, br"
"""The content codings that replay tools can undo."""

_EXCEPTIONS: dict[Failure, type[Exception]] = {
    Failure.NAME_NOT_FOUND: CannotResolveHostError,
    Failure.NAME_LOOKUP_FAILED: CannotResolveHostError,
    Failure.CONNECTION_REFUSED: DownloadConnectionRefusedError,
    Failure.CONNECT_TIMEOUT: DownloadTimeoutError,
    Failure.RESPONSE_TIMEOUT: DownloadTimeoutError,
    Failure.ADDRESS_REFUSED: IgnoreRequest,
    Failure.UNFETCHABLE_URL: IgnoreRequest,
}


class WireHandler(BaseDownloadHandler):
    """Fetches http and https over libcurl and has every exchange recorded."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._run = run_of(crawler)
        self._wire: Wire = make_wire(self._run.config)
        self._max_size = crawler.settings.getint("DOWNLOAD_MAXSIZE")
        # A spider that reads no response spares each page the parsing of its headers and body.
        self._bare = not reads_responses(crawler)
        self._own_fields = _own_fields(crawler.settings) if self._bare else []

    async def download_request(self, request: Request) -> Response:
        """Fetch, record, and only then answer.

        Raises Scrapy's download exceptions for a fetch without a response, and OutputError where it
        could not be recorded.
        """
        ticket = ticket_of(request)
        wire_request = self._wire_request(request, ticket)
        if isinstance(wire_request, Refused):
            return await self._refused(request, ticket, wire_request)
        task = asyncio.current_task()
        assert task is not None
        self._run.tasks.add(task)
        try:
            capture = await self._wire.fetch(wire_request)
        except asyncio.CancelledError:
            if self._run.stopping:
                raise Stopped("the crawl was stopped") from None
            raise
        finally:
            self._run.tasks.discard(task)
        try:
            return await self._keep(request, ticket, capture)
        finally:
            capture.body.close()

    async def close(self) -> None:
        """End what is still under way."""
        await self._wire.close()

    def _wire_request(self, request: Request, ticket: Ticket | None) -> WireRequest | Refused:
        target = fetchable(request.url)
        if isinstance(target, Refused):
            return target
        is_row = ticket is not None and ticket.dispatch is not None
        fields = [(b"Host", _authority(target))]
        # Whatever is no row (robots.txt, a sitemap) is read by somebody, and not decoded before.
        fields += self._own_fields if is_row else self._own_fields[:-1]
        if request.headers:
            fields += [
                (name, value) for name, values in request.headers.items() for value in values or ()
            ]
        if ticket is not None and ticket.dispatch is not None:
            fields += _conditions(ticket.dispatch.offer.seed)
        if request.body:
            fields.append((b"Content-Length", b"%d" % len(request.body)))
        timeout = float(request.meta.get("download_timeout") or self._run.config.timeout)
        return WireRequest(
            url=target.url,
            wire_url=target.wire_url,
            method=request.method,
            fields=fields,
            body=request.body,
            timeout=min(timeout, self._run.config.timeout),
            proxy=request.meta.get("proxy") or "",
        )

    async def _refused(self, request: Request, ticket: Ticket | None, refused: Refused) -> Response:
        """Record that *request* has no URL that could be asked for."""
        seed = ticket.dispatch.offer.seed if ticket and ticket.dispatch else Seed(request.url)
        await self._run.record_unasked(seed, Failure.UNFETCHABLE_URL, refused.reason)
        if ticket is not None:
            ticket.outcome = Outcome(status=0, failure=Failure.UNFETCHABLE_URL)
        raise IgnoreRequest(f"{request.url!r} cannot be fetched: {refused.reason}")

    async def _keep(self, request: Request, ticket: Ticket | None, capture: Capture) -> Response:
        # A host that sent one byte, be it of a handshake, is alive, whatever became of the exchange.
        answered = capture.ttfb_ms is not None or capture.tls is not None
        outcome = Outcome(status=capture.status, failure=capture.failure, answered=answered)
        dispatch = ticket.dispatch if ticket is not None else None
        if dispatch is not None and self._run.frontier.will_retry(dispatch, outcome):
            assert ticket is not None
            ticket.outcome = outcome
            raise TryAgainLater(f"{request.url}: {capture.failure}")
        item = CaptureItem(
            capture=capture,
            seed=dispatch.offer.seed if dispatch is not None else Seed(request.url),
            attempts=dispatch.attempt if dispatch is not None else _attempt(request),
            final_url=_final_url(capture),
        )
        response = None
        if capture.failure is None:
            bare = self._bare and dispatch is not None
            response = self._response(request, capture, bare=bare)
        try:
            await self._run.record(item)
        except AmicrawlError:
            # It is the crawl's fault by now, said once at its end, and not this request's.
            raise Stopped("the output failed") from None
        if ticket is not None:
            ticket.outcome = outcome
            if capture.status in REDIRECTS:
                ticket.redirect_to = item.final_url
        if response is None:
            request.meta["dont_retry"] = dispatch is not None or request.meta.get("dont_retry", False)
            error = _EXCEPTIONS.get(capture.failure or Failure.OTHER, DownloadFailedError)
            raise error(f"{capture.failure}: {capture.failure_detail}")
        return response

    def _response(self, request: Request, capture: Capture, *, bare: bool) -> Response:
        """Return what a callback gets: transfer coding removed, content coding as sent."""
        request.meta["download_latency"] = (capture.ttfb_ms or 0) / 1000
        if bare:
            return Response(request.url, status=capture.status)
        body, flags = _body_up_to(self._max_size, capture)
        headers = Headers()
        for name, value in capture.fields:
            headers.appendlist(name, value)
        # The transfer coding is gone from the body; a header that still names it would mislead.
        headers.pop(b"Transfer-Encoding", None)
        respcls = responsetypes.from_args(headers=headers, url=request.url, body=body)
        return respcls(
            url=request.url,
            status=capture.status,
            headers=headers,
            body=body,
            flags=flags,
            ip_address=ip_address(capture.ip_address) if capture.ip_address else None,
            protocol=capture.protocol,
        )


def _own_fields(settings: BaseSettings) -> list[tuple[bytes, bytes]]:
    """Return what Scrapy's middlewares would put on each request anew; last what codings are welcome."""
    headers = {"User-Agent": settings["USER_AGENT"], **settings.getdict("DEFAULT_REQUEST_HEADERS")}
    codings = headers.pop("Accept-Encoding", _CODINGS)
    return [
        (name.encode("ascii"), str(value).encode("utf-8"))
        for name, value in [*headers.items(), ("Accept-Encoding", codings)]
        if value is not None
    ]


def _authority(target: object) -> bytes:
    host, port = target.host, target.port  # type: ignore[attr-defined]
    return (host if port is None else f"{host}:{port}").encode("ascii")


def _conditions(seed: Seed) -> list[tuple[bytes, bytes]]:
    """Return the fields that ask for the page only if it differs from the earlier capture."""
    fields = []
    for name, value in ((b"If-None-Match", seed.etag), (b"If-Modified-Since", seed.last_modified)):
        # What a seed list says goes into a request: only what a field value may hold (RFC 9110, 5.5).
        if value and value.isascii() and value.isprintable():
            fields.append((name, value.encode("ascii")))
    return fields


def _attempt(request: Request) -> int:
    return int(request.meta.get("retry_times", 0)) + 1


def _final_url(capture: Capture) -> str:
    """Return where the exchange led: the target of a redirect, else the URL itself."""
    if capture.failure is not None:
        return ""
    location = capture.header(b"location") if capture.status in REDIRECTS else None
    return resolve(capture.url, location) if location else capture.url


def _body_up_to(limit: int, capture: Capture) -> tuple[bytes, list[str]]:
    """Return the payload, cut at *limit* bytes (0: none), and the flags that say how it was cut."""
    blocks: list[bytes] = []
    size = 0
    flags = ["dataloss"] if capture.truncated is Truncation.DISCONNECT else []
    if capture.truncated not in {None, Truncation.DISCONNECT}:
        flags.append("partial")
    for block in capture.payload():
        size += len(block)
        blocks.append(block)
        if limit and size > limit:
            flags.append("partial")
            return b"".join(blocks)[:limit], flags
    return b"".join(blocks), flags
