"""Wire: one request, one `Capture`.

    async with Wire(Limits(), guard=Guard()) as wire:
        capture = await wire.fetch(WireRequest(url="https://example.org/"))

What a server or the network does wrong is in the capture and never raised. Redirects are not followed,
nothing is decoded, no cookie is kept: the bytes are the result.
"""

from __future__ import annotations

import asyncio
import sys
import time
from math import inf
from typing import TYPE_CHECKING, Self

from amicrawl.capture import Capture, Failure
from amicrawl.config import TlsPolicy
from amicrawl.errors import UsageError
from amicrawl.fetch.connection import speaking
from amicrawl.fetch.dialer import Dialer
from amicrawl.fetch.exchange import Exchange, Lateness
from amicrawl.fetch.failures import NotConnectedError, one_line
from amicrawl.fetch.pool import Pool
from amicrawl.fetch.proxy import proxy_of
from amicrawl.fetch.request import compose
from amicrawl.fetch.resolver import Resolver, Threads, system_lookup
from amicrawl.fetch.response import Ends

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.fetch.connection import Connection
    from amicrawl.fetch.exchange import Limits, Watcher
    from amicrawl.fetch.guard import Guard
    from amicrawl.fetch.pool import Lane
    from amicrawl.fetch.request import Message, WireRequest
    from amicrawl.fetch.tls import TlsClient, TlsSettings
    from amicrawl.politeness import AdaptiveTimeout


_STALE = frozenset({Failure.EMPTY_RESPONSE, Failure.CONNECTION_RESET})
"""What shows that the server had already given up a connection that was kept."""
_CLOSED = "The wire was closed."
_OF_THE_PROXY = 407
_SWEEP = 0.05
"""Seconds between two looks at the exchanges and dials whose time may be up: one timer for all."""
_STOOD_STILL = 1.0
"""Seconds by which such a look may be late before the time until then counts for no limit."""


class Wire:
    """Fetches over HTTP/1.1, many at once, on the loop it is first used on.

    *tls* is the policy of requests that name none, *ca_file* a PEM file of trusted certificates in place
    of the system's, *tls_settings* what is offered in handshakes. *resolver* looks names up, by default
    with the system's in threads. With *patience*, the first byte has to come as soon as it says, and it
    is given how long responses take. Up to *keep* idle connections are kept, for *max_idle* seconds.
    *clock* gives the Unix time. *on_lag* is called many times a second while a request is in flight,
    with the seconds by which the event loop is late.
    """

    def __init__(
        self, limits: Limits, *, guard: Guard, tls: TlsPolicy = TlsPolicy.VERIFY,
        ca_file: Path | None = None, tls_settings: TlsSettings | None = None,
        resolver: Resolver | None = None, patience: AdaptiveTimeout | None = None,
        keep: int = 512, max_idle: float = 90.0,
        clock: Callable[[], float] = time.time, on_lag: Callable[[float], None] | None = None,
    ) -> None:  # fmt: skip
        self._limits = limits
        self._guard = guard
        self._tls = tls
        self._ca_file = ca_file
        self._tls_settings = tls_settings
        self._resolver = resolver
        self._patience = patience
        self._keep = keep
        self._max_idle = max_idle
        self._clock = clock
        self._on_lag = on_lag
        self._pool: Pool | None = None
        self._dialer: Dialer
        self._loop: asyncio.AbstractEventLoop
        self._exchanges: set[Exchange] = set()
        self._departing: dict[Connection, tuple[Exchange, Callable[[], None]]] = {}
        """What is begun with the next turn of the loop."""
        self._timer: asyncio.TimerHandle | None = None
        self._lateness = Lateness()
        self._stood = 0.0
        """Seconds in which nothing ran here, so far."""
        self._active = 0
        self._latencies: list[float] = []
        """How long responses took since the last look at the time."""
        self.is_closing = False
        """Whether it is closed, or about to be: what fails then has failed here."""
        self._all_ended: asyncio.Event | None = None
        """Set when nothing is under way any more; there where it closes."""

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
        if self.is_closing:
            raise UsageError("This wire is closed. Open another one.")
        began_at, began = self._clock(), time.monotonic()
        pool, limits = self._pool or self._open(), self._limits
        # Less what was lost so far: the deadline of an exchange that begins later has that added.
        deadline = began + (limits.timeout if request.timeout is None else request.timeout) - self._stood
        self._active += 1
        try:
            message = compose(request, policy=self._tls)
            lane = pool.lane(message.route)
            connection = (pool.take(lane) or await pool.wait(lane)) if message.repeatable else None
            while True:
                is_kept = connection is not None
                if connection is None:
                    departs()
                    connection = await self._dial(pool, lane, deadline + self._stood)
                exchange = self._exchange(connection, message, deadline + self._stood, request, watcher)
                try:
                    self._begin(exchange, departs, is_kept=is_kept)
                    await exchange.ended
                except BaseException:
                    exchange.reader.body().close()
                    raise
                finally:
                    self._end(pool, lane, exchange, keep=message.keep)
                if not is_kept or exchange.failure not in _STALE or self.is_closing:
                    return _capture(request, message, exchange)
                exchange.reader.body().close()
                connection = None
        except NotConnectedError as error:
            return _not_connected(request, error, began_at=began_at, took=time.monotonic() - began)
        finally:
            self._active -= 1
            if not self._active and self._all_ended is not None:
                self._all_ended.set()

    async def close(self) -> None:
        """End what is under way, whose captures are then failures, and give everything back."""
        if self.is_closing:
            return
        self.is_closing, self._all_ended = True, asyncio.Event()
        if self._pool is None:
            return
        self._dialer.abort(_CLOSED)
        for exchange in tuple(self._exchanges):
            exchange.abandon(_CLOSED)
        if self._active:
            await self._all_ended.wait()
        if self._patience is not None:
            self._patience.responded(*self._latencies)
        self._pool.close()
        if self._timer is not None:
            self._timer.cancel()

    def _open(self) -> Pool:
        """Make what is bound to the running loop."""
        if self._ca_file is not None and not self._ca_file.is_file():
            raise UsageError(f"{self._ca_file} is missing. Name a PEM file of trusted certificates.")
        self._loop = asyncio.get_running_loop()
        resolver = self._resolver or Resolver(Threads(system_lookup))
        self._dialer = Dialer(guard=self._guard, resolver=resolver, tls=self._tls_client)
        self._pool = Pool(size=self._keep, max_idle=self._max_idle, clock=time.monotonic)
        return self._pool

    def _tls_client(self) -> TlsClient:
        # OpenSSL takes long to load, and plain crawls have no use for it.
        from amicrawl.fetch.tls import TlsClient, TlsSettings  # noqa: PLC0415

        return TlsClient(ca_file=self._ca_file, settings=self._tls_settings or TlsSettings())

    def _exchange(
        self, connection: Connection, message: Message, deadline: float, request: WireRequest,
        watcher: Watcher | None,
    ) -> Exchange:  # fmt: skip
        """Return the exchange of *message* on *connection*, still to begin, and watch its time."""
        limits, patience = self._limits, self._patience
        exchange = Exchange(
            connection, message, limits=limits, deadline=deadline, watcher=watcher,
            max_body=limits.max_body if request.max_body is None else request.max_body or sys.maxsize,
            lateness=self._lateness, ended=self._loop.create_future(),
            first_byte_within=None if patience is None else patience.seconds,
        )  # fmt: skip
        self._exchanges.add(exchange)
        if self._timer is None:
            self._watch_time()
        return exchange

    def _begin(self, exchange: Exchange, departs: Callable[[], None], *, is_kept: bool) -> None:
        """Send the message of *exchange*.

        On a kept connection, together with all others of this turn of the loop: one look at all of their
        connections is enough, and servers nearby are woken once.
        """
        if self.is_closing:
            exchange.abandon(_CLOSED)
        elif not is_kept:
            departs()
            exchange.start(self._clock())
        else:
            if not self._departing:
                self._loop.call_soon(self._send)
            self._departing[exchange.connection] = exchange, departs

    def _send(self) -> None:
        departing, self._departing = self._departing, {}
        # Unrequested bytes belong to no request, and their server is about to close the connection.
        for connection in speaking(departing):
            connection.close()
        for exchange, departs in departing.values():
            if exchange.ended.done():
                continue
            try:
                if exchange.connection.open:
                    departs()
                exchange.start(self._clock())
            except Exception as error:  # noqa: BLE001 - the caller of `fetch` has to see it, not the loop
                exchange.break_off(error)

    async def _dial(self, pool: Pool, lane: Lane, deadline: float) -> Connection:
        lane.dialling += 1
        made = False
        if self._timer is None:
            self._watch_time()
        try:
            within = min(self._limits.connect_timeout, deadline - time.monotonic())
            connection = await self._dialer.dial(lane.route, within=within)
            made = True
            return connection
        finally:
            pool.dialled(lane, made=made)

    def _end(self, pool: Pool, lane: Lane, exchange: Exchange, *, keep: bool) -> None:
        """Give the connection of *exchange* back, and learn how long its response took."""
        self._exchanges.discard(exchange)
        if exchange.connection.blocked:
            exchange.sent = exchange.count_sent()
        if exchange.reusable and keep and not self.is_closing:
            pool.put(lane, exchange.connection)
        else:
            pool.drop(lane, exchange.connection)
        if self._patience is not None and exchange.first_byte is not None:
            sent_at = exchange.sent_at
            if sent_at is not None:
                self._latencies.append(max(0.0, exchange.first_byte - sent_at))

    def _sweep(self) -> None:
        """Wake exchanges and dials whose time may be up, and come again as long as there are any."""
        now = time.monotonic()
        self._lateness.seconds = now - self._lateness.due
        if self._on_lag is not None:
            self._on_lag(self._lateness.seconds)
        if self._patience is not None and self._latencies:
            self._patience.responded(*self._latencies)
            self._latencies.clear()
        if self._lateness.seconds > _STOOD_STILL:
            self._stood_still(self._lateness.seconds)
        else:
            for exchange in tuple(self._exchanges):
                if exchange.wake_at <= now:
                    exchange.wake(now)
            if self._dialer.dials:
                self._dialer.expire(now)
        self._timer = None
        self._lateness.due = inf
        if self._exchanges or self._dialer.dials:
            self._watch_time()

    def _stood_still(self, seconds: float) -> None:
        """Let no time limit count the *seconds* in which nothing ran here, until the next look.

        A process that was stopped, or a machine that paused, finds responses in its sockets that came in
        time: they are read first.
        """
        self._stood += seconds
        for exchange in self._exchanges:
            exchange.postpone(seconds)
        self._dialer.postpone(seconds)

    def _watch_time(self) -> None:
        """Have `_sweep` called soon."""
        self._lateness.due = time.monotonic() + _SWEEP
        self._timer = self._loop.call_later(_SWEEP, self._sweep)


def _not_connected(
    request: WireRequest, error: NotConnectedError, *, began_at: float, took: float
) -> Capture:
    """Return what is known of *request*, begun at *began_at* and given up *took* seconds later."""
    return Capture(
        url=request.url,
        started_ms=int(began_at * 1000),
        duration_ms=_milliseconds(took),
        ip_address=error.address,
        failure=error.failure,
        failure_detail=one_line(str(error)),
    )


def _capture(request: WireRequest, message: Message, exchange: Exchange) -> Capture:
    """Return what an exchange, which brought some response or none, has shown.

    Its time begins with the first byte that was sent: how long this program took to get there, or to
    connect, says nothing about the server's response.
    """
    reader, began, first, section = exchange.reader, exchange.began, exchange.first_byte, None
    body = reader.body()
    if exchange.failure is None:
        section = reader.section
    capture = Capture(
        url=request.url,
        started_ms=int(exchange.started * 1000),
        duration_ms=int(((exchange.last_byte or time.monotonic()) - began) * 1000),
        ttfb_ms=None if first is None else int((first - began) * 1000),
        request=message.recorded(exchange.sent, request.hidden),
        ip_address=exchange.connection.address,
        tls=exchange.connection.tls,
        truncated=exchange.truncated,
        failure=exchange.failure,
        failure_detail=exchange.detail,
    )
    if section is not None and section.status == _OF_THE_PROXY and _is_refused(request, message):
        capture.failure = Failure.PROXY
        capture.failure_detail = "The proxy wants a user name and password, or others: 407."
        section = None
    if section is None:
        body.close()
        return capture
    capture.head = reader.head
    capture.body = body
    capture.status = section.status
    capture.protocol = section.protocol
    # The head has been read already; these are the values that the properties would work out again.
    if section.framing.ends is Ends.BY_CHUNKS:
        capture.payload_digest, capture.is_chunked = reader.payload_digest, True
    elif section.framing.ends is Ends.BY_LENGTH:
        capture.is_chunked = False
    capture.noted, capture.content_type = section.noted, ""
    for name, value in section.noted:
        if name.lower() == b"content-type":
            capture.content_type = value.decode("utf-8", "surrogateescape")
            break
    capture.received = len(reader.head) + reader.body_length
    return capture


def _is_refused(request: WireRequest, message: Message) -> bool:
    """Return whether a 407 is the proxy's own: of a server it says nothing, so it is not a capture."""
    proxied = bool(request.proxy) and proxy_of(request.proxy).takes_plain(message.route.scheme)
    return proxied and not request.keeps_407


def _milliseconds(seconds: float) -> int:
    return max(0, int(seconds * 1000))
