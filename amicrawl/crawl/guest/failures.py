"""What Scrapy's handler raises where a capture is not a whole response."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)

from amicrawl.capture import Failure, Truncation
from amicrawl.crawl.responses import EXCEPTIONS
from amicrawl.fetch import NO_TUNNEL, NOT_IN_TIME, Ends
from amicrawl.message import chunks_in

if TYPE_CHECKING:
    from amicrawl.capture import Capture
    from amicrawl.fetch import Framing

_EXCEPTIONS = EXCEPTIONS | {
    Failure.ADDRESS_REFUSED: DownloadFailedError,
    Failure.UNFETCHABLE_URL: UnsupportedURLSchemeError,
}
_CUT: dict[Truncation, type[Exception]] = {
    Truncation.DISCONNECT: ResponseDataLossError,
    Truncation.TIME: DownloadTimeoutError,
    Truncation.LENGTH: DownloadCancelledError,
    Truncation.UNSPECIFIED: DownloadFailedError,
}
_OF_PROXY: dict[str, type[Exception]] = {
    f"{os.strerror(errno.ECONNREFUSED)}.": DownloadConnectionRefusedError,
    NOT_IN_TIME: DownloadTimeoutError,
}
"""By what the archive says of a proxy that was not reached: Scrapy has no word for proxies."""
_PERMIT = " If it is yours, permit it with AMICRAWL_ALLOW_PRIVATE, such as 127.0.0.0/8."


def failure_of(capture: Capture, *, framing: Framing | None, proxy: str) -> Exception | None:
    """Return the exception for *capture*, whose body has *framing*; None for a whole response.

    It was requested through *proxy*, empty for none.
    """
    if capture.failure is not None:
        is_of_proxy = capture.failure is Failure.PROXY
        kind = _kind_of_proxy(capture, proxy) if is_of_proxy else _EXCEPTIONS.get(capture.failure)
        remedy = _PERMIT if capture.failure is Failure.ADDRESS_REFUSED else ""
        return (kind or DownloadFailedError)(
            f"{capture.url}: {capture.failure}: {capture.failure_detail}{remedy}"
        )
    if capture.truncated is None or (framing is not None and _is_whole(capture, framing)):
        return None
    lost = framing is not None and _contradicts_itself(capture, framing)
    kind = ResponseDataLossError if lost else _CUT[capture.truncated]
    return kind(f"{capture.url}: the response was cut ({capture.truncated})")


def _kind_of_proxy(capture: Capture, proxy: str) -> type[Exception] | None:
    """Return what Scrapy raises where *proxy* made no connection."""
    if proxy.startswith("socks"):
        # As Scrapy's handlers that take such a proxy say it.
        return DownloadConnectionRefusedError
    if capture.failure_detail.startswith(NO_TUNNEL):
        from scrapy.core.downloader.handlers.http11 import TunnelError  # noqa: PLC0415  # as Scrapy does

        return TunnelError
    if not capture.ip_address:
        # No address of it was tried, as there is none: each resolver has its own words for that.
        return CannotResolveHostError
    return _OF_PROXY.get(capture.failure_detail)


def _is_whole(capture: Capture, framing: Framing) -> bool:
    """Tell whether *capture* was cut behind the end of the response alone."""
    if capture.truncated is not Truncation.LENGTH:
        return False
    if framing.ends is Ends.BY_CHUNKS:
        return chunks_in(capture.body.blocks()).surplus > 0
    return framing.ends in {Ends.AT_ONCE, Ends.BY_LENGTH} and len(capture.body) > framing.length


def _contradicts_itself(capture: Capture, framing: Framing) -> bool:
    """Tell whether time has cut *capture*, whose end could not be found by its own rules."""
    if capture.truncated is not Truncation.TIME:
        return False
    broken = framing.ends is Ends.BY_CHUNKS and chunks_in(capture.body.blocks()).broken
    return broken or framing.ends is Ends.UNSURE
