"""From a capture to what Scrapy's semantics demand: a response, or one of Scrapy's exceptions."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from amicrawl.capture import Failure, Truncation

if TYPE_CHECKING:
    from amicrawl.capture import Capture

_EXCEPTIONS: dict[Failure, type[Exception]] = {
    Failure.NAME_NOT_FOUND: CannotResolveHostError,
    Failure.NAME_LOOKUP_FAILED: CannotResolveHostError,
    Failure.CONNECTION_REFUSED: DownloadConnectionRefusedError,
    Failure.CONNECT_TIMEOUT: DownloadTimeoutError,
    Failure.RESPONSE_TIMEOUT: DownloadTimeoutError,
    Failure.UNFETCHABLE_URL: UnsupportedURLSchemeError,
}
_CUT: dict[Truncation | None, type[Exception]] = {
    Truncation.DISCONNECT: ResponseDataLossError,
    Truncation.TIME: DownloadTimeoutError,
    Truncation.LENGTH: DownloadCancelledError,
    Truncation.UNSPECIFIED: DownloadFailedError,
}


def failure_of(capture: Capture) -> Exception | None:
    """Return Scrapy's exception for a *capture* that is not a whole response; None for one that is."""
    if capture.failure is not None:
        kind = _EXCEPTIONS.get(capture.failure, DownloadFailedError)
        return kind(f"{capture.url}: {capture.failure}: {capture.failure_detail}")
    cut = _CUT.get(capture.truncated)
    return None if cut is None else cut(f"{capture.url}: the response was cut ({capture.truncated})")


def headers_of(fields: list[tuple[bytes, bytes]]) -> Headers:
    """Return *fields* as Scrapy's headers, without the transfer coding, which the body has no more."""
    headers = Headers()
    for name, value in fields:
        headers.appendlist(name, value)
    headers.pop(b"Transfer-Encoding", None)
    return headers


def response_of(capture: Capture, *, headers: Headers, body: bytes, flags: list[str]) -> Response:
    """Return the response that *capture* is, with *body*, whose content coding is as sent."""
    kind = responsetypes.from_args(headers=headers, url=capture.url, body=body)
    return kind(
        url=capture.url,
        status=capture.status,
        headers=headers,
        body=body,
        flags=flags,
        ip_address=ip_address(capture.ip_address) if capture.ip_address else None,
        protocol=capture.protocol.upper() if capture.protocol else None,
        certificate=_certificate_of(capture),
    )


def _certificate_of(capture: Capture) -> Any:
    if capture.tls is None or not capture.tls.certificate:
        return None
    from twisted.internet.ssl import Certificate  # noqa: PLC0415  # plain http has no use for it

    return Certificate.load(capture.tls.certificate)
