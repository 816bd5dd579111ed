"""Transport: carries messages over connections, kept ones where there are any, on one asyncio loop."""

from __future__ import annotations

import asyncio
import time
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.capture import Failure
from amicrawl.fetch.exchange import Exchange, Lateness
from amicrawl.fetch.failures import NotConnected
from amicrawl.fetch.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.capture import Tls
    from amicrawl.fetch.connection import Connection
    from amicrawl.fetch.dialer import Dialer
    from amicrawl.fetch.exchange import Watcher
    from amicrawl.fetch.limits import Limits
    from amicrawl.fetch.pool import Lane, Pool
    from amicrawl.fetch.request import Message
    from amicrawl.politeness.timeouts import AdaptiveTimeout

# What shows that the server had already given up a connection that was kept.
_STALE = frozenset({Failure.EMPTY_RESPONSE, Failure.CONNECTION_RESET})

_SWEEP = 0.05
"""Seconds between two looks at the exchanges whose time may be up: one timer for all of them."""


class Job(NamedTuple):
    """A message, and how it is to be carried."""

    message: Message
    deadline: float
    """By when the response must be there, a moment of `time.monotonic`."""
    departs: Callable[[], None]
    """Called before a connection is dialled, and before the message goes out on one."""
    max_body: int
    watcher: Watcher | None


class Carried(NamedTuple):
    """An exchange that is over, and what it was carried by."""

    exchange: Exchange
    started: float
    """The Unix time at which the first byte was sent."""
    address: str
    tls: Tls | None


class Transport:
    """Everything of a wire that is bound to a loop."""

    def __init__(
        self, *, dialer: Dialer, pool: Pool, limits: Limits, clock: Callable[[], float],
        patience: AdaptiveTimeout | None = None, on_lag: Callable[[float], None] | None = None,
    ) -> None:  # fmt: skip
        self._loop = asyncio.get_running_loop()
        self._dialer = dialer
        self._pool = pool
        self._limits = limits
        self._clock = clock
        self._patience = patience
        self._on_lag = on_lag
        self._exchanges: set[Exchange] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.lateness = Lateness()
        self._active = 0
        self._closing: asyncio.Event | None = None

    async def carry(self, job: Job) -> Carried | NotConnected:
        """Send the message of *job* and receive the response."""
        self._active += 1
        try:
            lane = self._pool.lane(job.message.route)
            if job.message.repeatable:
                kept = self._pool.take(lane) or await self._pool.wait(lane)
                if kept is not None:
                    carried = await self._exchange(lane, kept, job)
                    exchange = carried.exchange
                    if exchange.failure not in _STALE or self._closing is not None:
                        return carried
                    exchange.body.close()
            job.departs()
            made = await self._dial(lane, job)
            return made if isinstance(made, NotConnected) else await self._exchange(lane, made, job)
        finally:
            self._active -= 1
            if self._closing is not None and not self._active:
                self._closing.set()

    async def close(self, why: str) -> None:
        """End what is under way as failures for the reason *why*, and give everything back."""
        self._closing = asyncio.Event()
        self._dialer.abort(why)
        for exchange in tuple(self._exchanges):
            exchange.abandon(why)
        if self._active:
            await self._closing.wait()
        self._pool.close()
        if self._timer is not None:
            self._timer.cancel()

    async def _dial(self, lane: Lane, job: Job) -> Connection | NotConnected:
        lane.dialling += 1
        made: Connection | NotConnected | None = None
        try:
            within = min(self._limits.connect_timeout, job.deadline - time.monotonic())
            made = await self._dialer.dial(lane.route, within=within)
        finally:
            self._pool.dialled(lane, made=made is not None and not isinstance(made, NotConnected))
        return made

    async def _exchange(self, lane: Lane, connection: Connection, job: Job) -> Carried:
        patience, limits = self._patience, self._limits
        body = Spool(limits.spool_dir, above=limits.spool_above)
        exchange = Exchange(
            connection, job.message, body=body, limits=limits, deadline=job.deadline,
            ended=self._loop.create_future(), max_body=job.max_body, lateness=self.lateness,
            watcher=job.watcher,
            answer_within=patience.seconds if patience is not None else None,
        )  # fmt: skip
        self._exchanges.add(exchange)
        if self._timer is None:
            self._sweep_later()
        try:
            job.departs()
            started = self._clock()
            exchange.start()
            await exchange.ended
        except BaseException:
            body.close()
            raise
        finally:
            self._exchanges.discard(exchange)
            exchange.release()
            if exchange.reusable and job.message.keep and self._closing is None:
                self._pool.put(lane, connection)
            else:
                self._pool.drop(lane, connection)
        if patience is not None and exchange.sent_at is not None and exchange.first_byte is not None:
            patience.answered(max(0.0, exchange.first_byte - exchange.sent_at))
        return Carried(exchange, started, connection.address, connection.tls)

    def _sweep(self) -> None:
        """Wake the exchanges whose time may be up, and come again as long as there are any."""
        now = time.monotonic()
        self.lateness.seconds = now - self.lateness.due
        if self._on_lag is not None:
            self._on_lag(self.lateness.seconds)
        for exchange in [each for each in self._exchanges if each.wake_at <= now]:
            exchange.wake(now)
        more = bool(self._exchanges) and self._closing is None
        self._timer = None
        if more:
            self._sweep_later()
        else:
            self.lateness.due = inf

    def _sweep_later(self) -> None:
        self.lateness.due = time.monotonic() + _SWEEP
        self._timer = self._loop.call_later(_SWEEP, self._sweep)
