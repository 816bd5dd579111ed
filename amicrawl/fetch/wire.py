"""Wire: one request, one `Capture`.

    async with Wire(Limits(), guard=Guard()) as wire:
        capture = await wire.fetch(WireRequest(url="https://example.org/"))

What a server or the network does wrong is in the capture and never raised. Redirects are not followed,
nothing is decoded, no cookie is kept: the bytes are the result.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from amicrawl.capture import Capture, Failure
from amicrawl.config import TlsPolicy
from amicrawl.errors import UsageError
from amicrawl.fetch.dialer import Dialer
from amicrawl.fetch.failures import NotConnected
from amicrawl.fetch.pool import Pool
from amicrawl.fetch.request import Unfetchable, compose
from amicrawl.fetch.resolver import Resolver, Threads, system_lookup
from amicrawl.fetch.transport import Job, Transport

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.fetch.exchange import Watcher
    from amicrawl.fetch.guard import Guard
    from amicrawl.fetch.limits import Limits
    from amicrawl.fetch.request import Message, WireRequest
    from amicrawl.fetch.resolver import Lookup
    from amicrawl.fetch.tls import TlsClient, TlsSettings
    from amicrawl.fetch.transport import Carried
    from amicrawl.politeness.timeouts import AdaptiveTimeout


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Wire:
    """Fetches over HTTP/1.1, many at once, on the loop it is first used on.

    *tls* is the policy of requests that name none, *ca_file* a PEM file of trusted certificates in place
    of the system's, *tls_settings* what is offered in handshakes. *resolve* answers for host names; it
    is called in threads, and what it says holds for *keep_names* seconds; a *resolver* that is shared
    with others takes the place of both. With *patience*, the first byte has to come as soon as it says,
    and it is given how long answers take. Up to *keep* idle connections are kept, each for *max_idle*
    seconds. *clock* gives the Unix time. *on_lag* is called many times a second while a request is in
    flight, with the seconds by which the event loop is late.
    """

    def __init__(
        self, limits: Limits, *, guard: Guard, tls: TlsPolicy = TlsPolicy.VERIFY,
        ca_file: Path | None = None, tls_settings: TlsSettings | None = None,
        resolve: Lookup = system_lookup, keep_names: float = 60.0, resolver: Resolver | None = None,
        patience: AdaptiveTimeout | None = None, keep: int = 512, max_idle: float = 90.0,
        clock: Callable[[], float] = time.time, on_lag: Callable[[float], None] | None = None,
    ) -> None:  # fmt: skip
        self._limits = limits
        self._guard = guard
        self._tls = tls
        self._ca_file = ca_file
        self._tls_settings = tls_settings
        self._resolve = resolve
        self._keep_names = keep_names
        self._resolver = resolver
        self._patience = patience
        self._keep = keep
        self._max_idle = max_idle
        self._clock = clock
        self._on_lag = on_lag
        self._transport: Transport | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def fetch(
        self, request: WireRequest, *, departs: Callable[[], None] = lambda: None,
        watcher: Watcher | None = None,
    ) -> Capture:  # fmt: skip
        """Carry out *request* and return what was sent and received; close its body when done with it.

        *departs* is called when a server is about to hear of it: before a connection is dialled, and
        before the request goes out on one, which it does twice where a kept one turns out to be dead.
        *watcher* sees the response while it is received and may end it, which is marked `unspecified`.
        Raises UsageError for a request that cannot be put on the wire as it is, or where the wire is
        closed, and OutputError where the body cannot be spooled.
        """
        if self._closed:
            raise UsageError("This wire is closed. Open another one.")
        began_at, began = self._clock(), time.monotonic()
        message = compose(request, policy=self._tls)
        carried: Carried | NotConnected
        if isinstance(message, Unfetchable):
            carried = NotConnected(Failure.UNFETCHABLE_URL, message.reason)
        else:
            limits = self._limits
            timeout = limits.timeout if request.timeout is None else request.timeout
            max_body = limits.max_body if request.max_body is None else request.max_body or sys.maxsize
            transport = self._transport or self._open()
            job = Job(message, began + timeout, departs, max_body, watcher)
            carried = await transport.carry(job)
            if not isinstance(carried, NotConnected):
                return _capture(request, message, carried)
        return Capture(
            url=request.url,
            started=_moment(began_at),
            duration_ms=_milliseconds(time.monotonic() - began),
            ip_address=carried.address,
            failure=carried.failure,
            failure_detail=carried.detail,
        )

    async def close(self) -> None:
        """End what is under way, whose captures are then failures, and give everything back."""
        if self._closed:
            return
        self._closed = True
        if self._transport is not None:
            await self._transport.close("The wire was closed.")

    def _open(self) -> Transport:
        if self._ca_file is not None and not self._ca_file.is_file():
            raise UsageError(f"{self._ca_file} is missing. Name a PEM file of trusted certificates.")
        resolver = self._resolver or Resolver(Threads(self._resolve, keep=self._keep_names))
        self._transport = Transport(
            dialer=Dialer(guard=self._guard, resolver=resolver, tls=self._tls_client),
            pool=Pool(size=self._keep, max_idle=self._max_idle, clock=time.monotonic),
            limits=self._limits,
            patience=self._patience,
            clock=self._clock,
            on_lag=self._on_lag,
        )
        return self._transport

    def _tls_client(self) -> TlsClient:
        # OpenSSL takes long to load, and plain crawls have no use for it.
        from amicrawl.fetch.tls import TlsClient, TlsSettings  # noqa: PLC0415

        return TlsClient(ca_file=self._ca_file, settings=self._tls_settings or TlsSettings())


def _capture(request: WireRequest, message: Message, carried: Carried) -> Capture:
    """Return what an exchange, which brought some response or none, has shown.

    Its time begins with the first byte that was sent: how long this program took to get there, or to
    connect, says nothing about the server's answer.
    """
    exchange = carried.exchange
    reader, began = exchange.reader, exchange.began
    last, first, section = exchange.last_byte, exchange.first_byte, reader.section
    capture = Capture(
        url=request.url,
        started=_moment(carried.started),
        duration_ms=_milliseconds((last or time.monotonic()) - began),
        ttfb_ms=None if first is None else _milliseconds(first - began),
        request=message.recorded(exchange.sent, request.hidden),
        ip_address=carried.address,
        tls=carried.tls,
        truncated=exchange.truncated,
        failure=exchange.failure,
        failure_detail=exchange.detail,
    )
    if first is None or section is None:
        exchange.body.close()
        return capture
    capture.head = reader.head
    capture.body = exchange.body
    capture.status = section.status
    capture.protocol = section.protocol
    capture.payload_digest = reader.payload_digest
    # The head has been read already; this is the value that the property would work out again.
    capture.fields = section.fields
    return capture


def _moment(unix_time: float) -> datetime:
    """Return *unix_time* in UTC, cut to whole milliseconds."""
    return _EPOCH + timedelta(milliseconds=int(unix_time * 1000))


def _milliseconds(seconds: float) -> int:
    return max(0, int(seconds * 1000))
