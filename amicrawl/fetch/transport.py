"""Transport: carries messages over connections, kept ones where there are any, on one asyncio loop."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from amicrawl.capture import Failure
from amicrawl.fetch.exchange import Exchange
from amicrawl.fetch.failures import NotConnected
from amicrawl.fetch.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.fetch.connection import Connection
    from amicrawl.fetch.dialer import Dialer
    from amicrawl.fetch.limits import Limits
    from amicrawl.fetch.pool import Pool
    from amicrawl.fetch.request import Message
    from amicrawl.politeness.timeouts import AdaptiveTimeout

# What shows that the server had already given up a connection that was kept.
_STALE = frozenset({Failure.EMPTY_RESPONSE, Failure.CONNECTION_RESET})


class Transport:
    """Everything of a wire that is bound to a loop."""

    def __init__(
        self, *, dialer: Dialer, pool: Pool, limits: Limits, patience: AdaptiveTimeout | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._dialer = dialer
        self._pool = pool
        self._limits = limits
        self._patience = patience
        self._exchanges: set[Exchange] = set()
        self._active = 0
        self._closing: asyncio.Event | None = None

    async def carry(
        self, message: Message, *, deadline: float, departs: Callable[[], None]
    ) -> Exchange | NotConnected:
        """Send *message* and receive the answer by *deadline*, a moment of `time.monotonic`.

        *departs* is called before a connection is dialled, and before the message goes out on one.
        """
        self._active += 1
        try:
            kept = self._pool.take(message.route) if message.repeatable else None
            if kept is not None:
                exchange = await self._exchange(kept, message, deadline=deadline, departs=departs)
                if exchange.failure not in _STALE or self._closing:
                    return exchange
                exchange.body.close()
            departs()
            within = min(self._limits.connect_timeout, deadline - time.monotonic())
            made = await self._dialer.dial(message.route, within=within)
            if isinstance(made, NotConnected):
                return made
            return await self._exchange(made, message, deadline=deadline, departs=departs)
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
        self._dialer.close()

    async def _exchange(
        self, connection: Connection, message: Message, *, deadline: float,
        departs: Callable[[], None],
    ) -> Exchange:  # fmt: skip
        patience = self._patience
        body = Spool(self._limits.spool_dir, above=self._limits.spool_above)
        exchange = Exchange(
            connection, message, body=body, limits=self._limits, deadline=deadline, loop=self._loop,
            clock=time.monotonic, answer_within=patience.seconds if patience is not None else None,
        )  # fmt: skip
        self._exchanges.add(exchange)
        try:
            departs()
            await exchange.start()
        except BaseException:
            body.close()
            raise
        finally:
            self._exchanges.discard(exchange)
            exchange.release()
            if exchange.reusable and message.keep and not self._closing:
                self._pool.put(connection)
            else:
                connection.close()
        if patience is not None and exchange.sent_at is not None and exchange.first_byte is not None:
            patience.answered(exchange.first_byte - exchange.sent_at)
        return exchange
