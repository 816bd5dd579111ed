"""From a capture to what Scrapy's semantics demand: a response, or one of Scrapy's exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import (
    DownloadCancelledError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)

from amicrawl.capture import Failure, Truncation
from amicrawl.crawl.responses import EXCEPTIONS, make_response

if TYPE_CHECKING:
    from scrapy.http import Headers, Response

    from amicrawl.capture import Capture

_EXCEPTIONS = EXCEPTIONS | {
    Failure.ADDRESS_REFUSED: DownloadFailedError,
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


def response_of(capture: Capture, *, headers: Headers, body: bytes, flags: list[str]) -> Response:
    """Return the response that *capture* is, with *body*, whose content coding is as sent."""
    return make_response(
        capture,
        url=capture.url,
        headers=headers,
        body=body,
        flags=flags,
        protocol=capture.protocol.upper() if capture.protocol else None,
        certificate=_certificate_of(capture),
    )


def _certificate_of(capture: Capture) -> Any:
    if capture.tls is None or not capture.tls.certificate:
        return None
    from twisted.internet.ssl import Certificate  # noqa: PLC0415  # plain http has no use for it

    return Certificate.load(capture.tls.certificate)
