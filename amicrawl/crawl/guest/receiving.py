"""A response while it is received: Scrapy's signals and size limits, which may end it.

What ended it is on the `Receipt`: a signal handler that raised StopDownload, or a limit.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import DownloadCancelledError, StopDownload
from twisted.python.failure import Failure

from amicrawl.crawl.internals import Signaller
from amicrawl.crawl.responses import headers_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers

    from amicrawl.fetch.response import Head

logger = logging.getLogger(__name__)


class Receipt:
    """The part of a response that has arrived; the watcher of a fetch."""

    __slots__ = ("_began", "_crawler", "_most", "_received", "_request", "_warn_above", "body_pieces",
                 "cancelled", "headers", "latency", "stopped")  # fmt: skip

    def __init__(self, crawler: Crawler, request: Request, *, max_size: int, warn_size: int) -> None:
        """Hold the response to sizes in bytes, 0 for none, unless `meta` has others."""
        self._crawler = crawler
        self._request = request
        self._most: int = request.meta.get("download_maxsize", max_size)
        self._warn_above: int = request.meta.get("download_warnsize", warn_size)
        self._received = 0
        self._began = time.monotonic()
        self.latency: float | None = None
        """Seconds until the header section was there, the connection included."""
        self.headers: Headers | None = None
        self.body_pieces: list[bytes] = []
        """The payload, chunked coding removed."""
        self.stopped: StopDownload | None = None
        """What a signal handler ended it with."""
        self.cancelled: DownloadCancelledError | None = None
        """Why it was ended as too large."""

    def head(self, head: Head) -> bool:
        """Take the header section; return whether that ends the response."""
        self.latency = time.monotonic() - self._began
        self.headers = headers_of(head.fields)
        announced = self.headers.get(b"Content-Length")
        size = int(announced) if announced is not None and announced.isdigit() else None
        if size and self._is_too_large(size, "Expected to receive"):
            return True
        self._send(signals.headers_received, headers=self.headers, body_length=size)
        return self.stopped is not None

    def body(self, data: bytes) -> bool:
        """Take bytes of the payload; return whether that ends the response."""
        self.body_pieces.append(data)
        self._received += len(data)
        self._send(signals.bytes_received, data=data)
        return self.stopped is not None or self._is_too_large(self._received, "Received")

    def _is_too_large(self, size: int, verb: str) -> bool:
        """Return whether *size* exceeds the limit; warn once where it exceeds the size to warn at."""
        if self._most and size > self._most:
            message = self._said(verb, size, "max", self._most)
            logger.warning("%s", message)
            self.cancelled = DownloadCancelledError(message)
            return True
        if self._warn_above and size > self._warn_above:
            logger.warning("%s", self._said(verb, size, "warn", self._warn_above))
            self._warn_above = 0
        return False

    def _said(self, verb: str, size: int, which: str, limit: int) -> str:
        return (
            f"{verb} {size} bytes which is larger than download {which} size ({limit}) in request "
            f"{self._request}."
        )

    def _send(self, signal: object, **said: Any) -> None:
        """Send *signal*, and note where a handler of it ends the download."""
        if not Signaller(self._crawler).is_heard(frozenset({signal})):
            return
        results = self._crawler.signals.send_catch_log(
            signal, request=self._request, spider=self._crawler.spider, **said
        )
        for handler, result in results:
            if isinstance(result, Failure) and isinstance(result.value, StopDownload):
                name = handler.__qualname__
                logger.debug("Download stopped for %s from signal handler %s", self._request, name)
                self.stopped = result.value
