"""The download handler of guests: a request becomes an exchange on the wire, kept before it is read.

What Scrapy's own handler would have shown the spider, this one does: what was cut is data loss or a
timeout, what is too large is cancelled, and a whole response comes as it was sent. The archive has what
came in every case, marked where it was cut.
"""

from __future__ import annotations

import logging
import time
from base64 import b64decode
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from scrapy import signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import (
    DownloadCancelledError,
    DownloadFailedError,
    ResponseDataLossError,
    StopDownload,
    UnsupportedURLSchemeError,
)
from scrapy.utils.url import add_http_if_no_scheme
from twisted.python.failure import Failure as TwistedFailure

from amicrawl.capture import Truncation, final_url
from amicrawl.crawl.guest.connections import guest_resolver, policy_of, say_how, tls_settings_of
from amicrawl.crawl.guest.failures import failure_of
from amicrawl.crawl.internals import Signaller
from amicrawl.crawl.links import META_JSON
from amicrawl.crawl.reconstruct import max_size_of
from amicrawl.crawl.requests import provenance_of_request
from amicrawl.crawl.responses import headers_of, make_response, note_delivery
from amicrawl.crawl.run import run_of
from amicrawl.crawl.wiring import make_guest_wire
from amicrawl.errors import AmicrawlError
from amicrawl.fetch import Ends, WireRequest
from amicrawl.record import CaptureItem
from amicrawl.seed import Seed
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response

    from amicrawl.capture import Capture
    from amicrawl.crawl.run import Run
    from amicrawl.fetch import Framing, Head, Wire
    from amicrawl.urls import Fetchable

logger = logging.getLogger(__name__)

_SURPLUS = 1024**2
"""Bytes besides twice those of the payload that may come of one: chunks, and what is behind its end."""


def make_wire_of_guest(crawler: Crawler) -> Wire:
    """Return a fetcher for the guest *crawler*, by its own settings and ours."""
    settings, config = crawler.settings, run_of(crawler).config
    return make_guest_wire(
        config,
        at_once=settings.getint("CONCURRENT_REQUESTS"),
        tls=policy_of(settings),
        tls_settings=tls_settings_of(settings),
        resolver=guest_resolver(config),
    )


class GuestHandler(BaseDownloadHandler):
    """Fetches http and https as Scrapy's handler does, and has every exchange recorded."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        self._crawler = crawler
        self._run = run_of(crawler)
        self._wire = make_wire_of_guest(crawler)
        self._timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
        self._max_size = settings.getint("DOWNLOAD_MAXSIZE")
        self._warn_size = settings.getint("DOWNLOAD_WARNSIZE")
        self._bind = settings.get("DOWNLOAD_BIND_ADDRESS")
        self._proxy_encoding: str = settings.get("HTTPPROXY_AUTH_ENCODING")
        self._says_how = settings.getbool("DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING")
        self._fails_on_data_loss = settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        self._data_loss_was_said = False

    async def download_request(self, request: Request) -> Response:
        """Fetch, record, and only then respond; raises Scrapy's download exceptions."""
        target = fetchable(request.url)
        if isinstance(target, Refused):
            raise UnsupportedURLSchemeError(f"{request.url!r} cannot be fetched: {target.reason}")
        check_open(self._run, request)
        receipt = Receipt(self._crawler, request, max_size=self._max_size, warn_size=self._warn_size)
        try:
            capture = await self._wire.fetch(self._wire_request(request, target), watcher=receipt)
        except AmicrawlError as error:
            raise DownloadFailedError(str(error)) from error
        if receipt.cancelled is not None and capture.truncated is Truncation.UNSPECIFIED:
            # The wire knows that it was ended, and not that a size was why (`WARC-Truncated`).
            capture.truncated = Truncation.LENGTH
        if self._says_how and capture.tls is not None:
            say_how(target.host, capture.tls)
        response = None
        try:
            await record(self._run, request, capture)
            response = self._respond(request, capture, receipt)
            return response
        finally:
            note_delivery(response)
            capture.body.close()

    async def close(self) -> None:
        """End what is still under way."""
        await self._wire.close()

    def _wire_request(self, request: Request, target: Fetchable) -> WireRequest:
        """Return what goes over the wire for *request*."""
        meta, most = request.meta, max_size_of(request, self._max_size)
        fields: list[tuple[bytes, bytes]] = [(b"Host", _authority(target))]
        for name, values in request.headers.items():
            if name == b"Host" and values:
                fields[0] = (name, values[-1])
            elif name != b"Content-Length":
                fields += [(name, value) for value in values or ()]
        secret = [
            field
            for field in self._run.credentials.fields_for(target)
            if field[0] not in request.headers
        ]
        if request.body or request.method == "POST":
            fields.append((b"Content-Length", b"%d" % len(request.body)))
        return WireRequest(
            url=request.url.partition("#")[0],
            wire_url=target.wire_url,
            method=request.method,
            fields=fields + secret,
            body=request.body,
            timeout=float(meta.get("download_timeout") or self._timeout),
            proxy=_proxy_of(request, self._proxy_encoding) or self._run.credentials.proxy,
            keeps_407=True,
            bind=_host_of(meta.get("bindaddress") or self._bind),
            max_body=2 * most + _SURPLUS if most else 0,
            hidden=frozenset(name.lower() for name, _ in secret),
        )

    def _respond(self, request: Request, capture: Capture, receipt: Receipt) -> Response:
        """Return the response that the spider gets; raises what Scrapy has in place of one."""
        if receipt.latency is not None:
            request.meta["download_latency"] = receipt.latency
        if receipt.cancelled is not None:
            raise receipt.cancelled
        flags = ["download_stopped"] if receipt.stopped else self._flags(request, capture, receipt)
        headers = receipt.headers if receipt.headers is not None else headers_of(capture.fields)
        body = b"".join(receipt.body_pieces)
        response = _response_of(capture, headers=headers, body=body, flags=flags)
        if receipt.stopped is not None and receipt.stopped.fail:
            receipt.stopped.response = response
            raise receipt.stopped
        return response

    def _flags(self, request: Request, capture: Capture, receipt: Receipt) -> list[str]:
        """Return the flags of the response; raises for a capture that is not one by Scrapy's rules."""
        framing, proxy = receipt.framing, str(request.meta.get("proxy") or "")
        failure = failure_of(capture, framing=framing, proxy=proxy)
        if failure is None:
            return ["partial"] if framing is not None and framing.ends is Ends.BY_CLOSE else []
        if not isinstance(failure, ResponseDataLossError):
            raise failure
        if not request.meta.get("download_fail_on_dataloss", self._fails_on_data_loss):
            return ["dataloss"]
        if not self._data_loss_was_said:
            self._data_loss_was_said = True
            logger.warning(
                "Got data loss in %s. If you want to process broken responses set the setting "
                "DOWNLOAD_FAIL_ON_DATALOSS = False -- This message won't be shown in further requests",
                request.url,
            )
        raise failure


class Receipt:
    """The part of a response that has arrived; the watcher of a fetch."""

    __slots__ = ("_began", "_crawler", "_left", "_most", "_received", "_request", "_signals",
                 "_warn_above", "body_pieces", "cancelled", "framing", "headers", "latency",
                 "stopped")  # fmt: skip

    def __init__(self, crawler: Crawler, request: Request, *, max_size: int, warn_size: int) -> None:
        """Hold the response to sizes in bytes, 0 for none, unless `meta` has others."""
        self._crawler = crawler
        self._request = request
        self._signals = Signaller(crawler)
        self._most = max_size_of(request, max_size)
        self._warn_above: int = request.meta.get("download_warnsize", warn_size)
        self._received = 0
        self._began = time.monotonic()
        self.latency: float | None = None
        """Seconds until the header section was there, the connection included."""
        self.headers: Headers | None = None
        self.framing: Framing | None = None
        """How the end of the body is found, by the header section."""
        self._left: int | None = None
        """Bytes that are still to come, where the header section says so: what follows is surplus."""
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
        self.framing = head.framing
        if head.framing.ends in {Ends.AT_ONCE, Ends.BY_LENGTH}:
            self._left = head.framing.length
        announced = self.headers.get(b"Content-Length") or b""
        # Python reads at most 4,300 digits; the wire takes fewer than twenty for a length.
        size = int(announced) if announced.isdigit() and len(announced) < 20 else None
        if size and self._is_too_large(size, "Expected to receive"):
            return True
        self._send(signals.headers_received, headers=self.headers, body_length=size)
        return self.stopped is not None

    def body(self, data: bytes) -> bool:
        """Take bytes of the payload; return whether that ends the response."""
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
            if not data:
                return False
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
        if not self._signals.is_heard(frozenset({signal})):
            return
        results = self._crawler.signals.send_catch_log(
            signal, request=self._request, spider=self._crawler.spider, **said
        )
        for handler, result in results:
            if isinstance(result, TwistedFailure) and isinstance(result.value, StopDownload):
                name = handler.__qualname__
                logger.debug("Download stopped for %s from signal handler %s", self._request, name)
                self.stopped = result.value


def _proxy_of(request: Request, encoding: str) -> str:
    """Return the proxy of *request*, an HTTP one where it has no scheme.

    A SOCKS proxy gets the password that Scrapy has put into a field, in that *encoding*.
    """
    proxy = request.meta.get("proxy") or ""
    if proxy:
        # Scrapy's middleware leaves `//host:port` of one with a password and without a scheme.
        proxy = add_http_if_no_scheme(proxy)
    field = request.headers.get(b"Proxy-Authorization") if proxy.lower().startswith("socks") else None
    if field is None or not field.startswith(b"Basic "):
        return proxy
    user, _, password = b64decode(field[6:]).decode(encoding).partition(":")
    scheme, _, address = proxy.partition("://")
    return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{address}"


def _host_of(address: str | tuple[str, int] | None) -> str:
    """Return the host of a bind address as Scrapy takes them."""
    return (address if isinstance(address, str) else address[0]) if address else ""


def _authority(target: Fetchable) -> bytes:
    host = target.host if target.port is None else f"{target.host}:{target.port}"
    return host.encode("ascii")


def _response_of(capture: Capture, *, headers: Headers, body: bytes, flags: list[str]) -> Response:
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


def check_open(run: Run, request: Request) -> None:
    """Raise DownloadCancelledError where *request* comes too late, as from what closes a pipeline."""
    if run.recorder.is_closed:
        raise DownloadCancelledError(f"The archive is closed, so {request} cannot be archived.")


async def record(run: Run, request: Request, capture: Capture) -> None:
    """Record *capture*. Raises DownloadFailedError where the output fails, which ends the crawl."""
    check_open(run, request)
    item = CaptureItem(
        capture=capture,
        seed=Seed(capture.url, meta_json=str(request.meta.get(META_JSON, ""))),
        attempts=int(request.meta.get("retry_times", 0)) + 1,
        final_url=final_url(capture),
        provenance=provenance_of_request(request),
    )
    try:
        await run.record(item)
    except AmicrawlError:
        raise DownloadFailedError("the output of the crawl failed") from None
