"""The dispatcher: starts visits for rows, as many as may be in flight.

    while the crawl may start something:
        take the next row whose host may be asked, and start its visit
        nothing may start now: sleep until the earliest moment that the gates name, or until a visit ends

It belongs to the scheduler, which owns the frontier. A spider that reads responses has no dispatcher.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from amicrawl.crawl.decision import Ticket

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.crawl.decision import Decision
    from amicrawl.crawl.pacing import Pacing
    from amicrawl.crawl.visit import Visit
    from amicrawl.frontier import Dispatch, DurableFrontier

logger = logging.getLogger(__name__)

_AT_ONCE = 32
"""Visits that are started before those under way get a turn of the event loop."""


class Dispatcher:
    """Keeps as many rows of *frontier* under way as its in-flight limit and the gates allow."""

    def __init__(
        self,
        frontier: DurableFrontier,
        pacing: Pacing,
        visit: Visit,
        *,
        clock: Callable[[], float],
        may_start: Callable[[], bool],
        on_idle: Callable[[], None],
        on_visited: Callable[[Ticket, Decision], None],
    ) -> None:
        """*may_start* says whether anything may be started at all; `wake` when that has changed.

        *on_idle* is called when nothing waits and nothing is under way, *on_visited* after each visit.
        """
        self._frontier = frontier
        self._pacing = pacing
        self._visit = visit
        self._clock = clock
        self._may_start = may_start
        self._on_idle = on_idle
        self._on_visited = on_visited
        self._visits: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Task[None] | None = None
        self._sleep: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Begin, on the loop that runs; once is enough."""
        if self._running is None:
            self._loop = asyncio.get_running_loop()
            self._running = self._loop.create_task(self._run())

    def wake(self) -> None:
        """Look again for what may be started; something has changed."""
        if self._sleep is not None and not self._sleep.done():
            self._sleep.set_result(None)

    async def drain(self) -> None:
        """Start nothing more, and wait until what is under way has come to its end."""
        if self._running is not None:
            self._running.cancel()
        while self._visits:
            await asyncio.wait(self._visits)

    async def _run(self) -> None:
        assert self._loop is not None
        while True:
            self._sleep = self._loop.create_future()
            if self._start_some():
                await asyncio.sleep(0)
                continue
            now = self._clock()
            moment = self._next_moment(now) if self._may_start() else None
            timer = None if moment is None else self._loop.call_later(max(0.0, moment - now), self.wake)
            await self._sleep
            if timer is not None:
                timer.cancel()

    def _start_some(self) -> bool:
        """Start what may be started now, up to a number; return whether there may be more."""
        now = self._clock()
        if not self._may_start() or self._pacing.opens_at() > now:
            return False
        if self._pacing.addresses is not None:
            self._pacing.addresses.call(now)
        for _ in range(_AT_ONCE):
            dispatch = self._frontier.next(now)
            if dispatch is None:
                return False
            self._begin(dispatch, now)
            if self._pacing.opens_at() > now:
                return False
        return True

    def _begin(self, dispatch: Dispatch, now: float) -> None:
        assert self._loop is not None
        task = self._loop.create_task(self._to_its_end(Ticket(dispatch.key[0], dispatch, now)))
        self._visits.add(task)
        task.add_done_callback(self._ended)

    async def _to_its_end(self, ticket: Ticket) -> None:
        decision = await self._visit.visit(ticket)
        self._on_visited(ticket, decision)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._visits.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("A visit failed, which is a fault of amicrawl.", exc_info=error)
        self.wake()
        if not self._visits and not self._frontier.has_pending():
            self._on_idle()

    def _next_moment(self, now: float) -> float | None:
        """Return the earliest moment at which something may start; None where only an end can help."""
        addresses = self._pacing.addresses
        moments = [
            moment
            for moment in (
                self._frontier.next_moment(now),
                None if addresses is None else addresses.next_moment(),
            )
            if moment is not None
        ]
        return max(min(moments), self._pacing.opens_at()) if moments else None
