"""From a capture or a decision to what Scrapy gets: a response, or an exception."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

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
from amicrawl.crawl.decision import OUTPUT_FAILED, STOPPED, Decision, Disposition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy import Request

    from amicrawl.capture import Capture

EXCEPTIONS: dict[Failure, type[Exception]] = {
    Failure.NAME_NOT_FOUND: CannotResolveHostError,
    Failure.NAME_LOOKUP_FAILED: CannotResolveHostError,
    Failure.CONNECTION_REFUSED: DownloadConnectionRefusedError,
    Failure.CONNECT_TIMEOUT: DownloadTimeoutError,
    Failure.RESPONSE_TIMEOUT: DownloadTimeoutError,
    Failure.ADDRESS_REFUSED: IgnoreRequest,
    Failure.UNFETCHABLE_URL: IgnoreRequest,
}
"""What Scrapy calls a failure; any other is a DownloadFailedError."""


class Fetched(NamedTuple):
    """A response that the crawl reads itself, and no callback."""

    status: int
    payload: bytes = b""
    """The body without transfer coding."""
    cache_control: str = ""


def failure_of(capture: Capture) -> Exception:
    """Return Scrapy's exception for a *capture* without a response."""
    kind = EXCEPTIONS.get(capture.failure or Failure.OTHER, DownloadFailedError)
    return kind(f"{capture.failure}: {capture.failure_detail}")


class TryAgainLater(IgnoreRequest):
    """The fetch failed, and the frontier will hand the URL out again: nothing else need retry it."""


class NotYet(IgnoreRequest):
    """It is too early for this row: it goes back to the frontier, and the attempt does not count."""


class RefusedByRobots(IgnoreRequest):
    """robots.txt says no, or cannot be had."""


class Stopped(IgnoreRequest):
    """The crawl ended before the fetch did: the URL is as good as not requested."""


def exception_of(decision: Decision) -> IgnoreRequest:
    """Return the exception by which Scrapy learns of a *decision* against a request."""
    if decision.failure is Failure.ROBOTS_DENIED:
        return RefusedByRobots(decision.reason)
    if decision is STOPPED or decision is OUTPUT_FAILED:
        return Stopped(decision.reason)
    if decision.disposition is Disposition.AGAIN_LATER:
        return TryAgainLater(decision.reason)
    return (
        NotYet(decision.reason)
        if decision.disposition is Disposition.AGAIN_NOW
        else IgnoreRequest(decision.reason)
    )


def bare_response(request: Request, capture: Capture) -> Response:
    """Return a response that only says its status, for a spider that reads none."""
    return Response(request.url, status=capture.status)


def response_of(request: Request, capture: Capture, *, max_size: int) -> Response:
    """Return what a callback gets: transfer coding removed, content coding as sent.

    The body is cut at *max_size* bytes (0: not at all). Flags tell of it: `dataloss`, `partial`.
    """
    body, flags = _body_up_to(max_size, capture)
    return make_response(
        capture,
        url=request.url,
        headers=headers_of(capture.fields),
        body=body,
        flags=flags,
        protocol=capture.protocol,
    )


_OF_THE_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"transfer-encoding", b"upgrade")
)
"""Fields that are for the connection alone (RFC 9110, 7.6.1): Scrapy's handler shows none to spiders."""


def headers_of(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return *fields* as Scrapy's headers, without what is for the connection, as the body is."""
    headers = Headers()
    for name, value in fields:
        if name.lower() not in _OF_THE_CONNECTION:
            headers.appendlist(name, value)
    return headers


def make_response(
    capture: Capture, *, url: str, headers: Headers, body: bytes, flags: list[str], **more: Any
) -> Response:
    """Return the response of the type that *headers* and *body* suggest; *more* is for its class."""
    kind = responsetypes.from_args(headers=headers, url=url, body=body)
    return kind(
        url=url,
        status=capture.status,
        headers=headers,
        body=body,
        flags=flags,
        ip_address=ip_address(capture.ip_address) if capture.ip_address else None,
        **more,
    )


def _body_up_to(limit: int, capture: Capture) -> tuple[bytes, list[str]]:
    """Return the payload, cut at *limit* bytes, and the flags that say how it was cut."""
    flags = ["dataloss"] if capture.truncated is Truncation.DISCONNECT else []
    if capture.truncated not in {None, Truncation.DISCONNECT}:
        flags.append("partial")
    blocks: list[bytes] = []
    size = 0
    for block in capture.payload():
        size += len(block)
        blocks.append(block)
        if limit and size > limit:
            return b"".join(blocks)[:limit], [*flags, "partial"]
    return b"".join(blocks), flags


_DELIVERED: ContextVar[list[Response | None]] = ContextVar("_DELIVERED")


@contextmanager
def deliveries() -> Iterator[list[Response | None]]:
    """Give what our handler delivers, and has recorded, meanwhile; None where it raised instead.

    Another handler may have it fetch, which it found in the settings.
    """
    delivered: list[Response | None] = []
    token = _DELIVERED.set(delivered)
    try:
        yield delivered
    finally:
        _DELIVERED.reset(token)


def note_delivery(response: Response | None) -> None:
    """Note that our handler has recorded what it delivers as *response*; None where it raises."""
    _DELIVERED.get([]).append(response)


def is_among(response: Response, delivered: Iterable[Response | None]) -> bool:
    """Tell whether *response* is one of *delivered*, or says the same: a page may be had once more."""
    return any(
        each is not None
        and (each.url, each.status, each.body) == (response.url, response.status, response.body)
        for each in delivered
    )
