"""The dispatcher: starts visits for rows, as many as may be in flight.

    while the crawl may start something:
        take the next row whose host may be contacted, and start its visit
        nothing may start now: sleep until the earliest moment that the gates name, or until a visit ends

It belongs to the scheduler, which owns the frontier. A spider that reads responses has no dispatcher.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from amicrawl.crawl.decision import DONE, Ticket
from amicrawl.crawl.state import fault_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.crawl.decision import Decision
    from amicrawl.crawl.pacing import Pacing
    from amicrawl.crawl.visit import Visit
    from amicrawl.frontier import DurableFrontier

_AT_ONCE = 32
"""Visits that are started before those under way get a turn of the event loop."""


class Overseer(Protocol):
    """What lets visits begin, and learns of them."""

    def may_start(self) -> bool:
        """Tell whether anything may be started now; `wake` is to be called when that has changed."""

    is_heard: bool
    """Whether anyone listens to what a visit that is done says."""

    def visited(self, ticket: Ticket, decision: Decision) -> None:
        """Announce that the row of *ticket* was visited, with *decision*."""


class Dispatcher:
    """Keeps as many rows of *frontier* under way as its in-flight limit and the gates allow."""

    def __init__(
        self,
        frontier: DurableFrontier,
        pacing: Pacing,
        visit: Visit,
        *,
        clock: Callable[[], float],
        on_idle: Callable[[], None],
        overseer: Overseer,
    ) -> None:
        """*on_idle* is called when nothing waits and nothing is under way."""
        self._frontier = frontier
        self._pacing = pacing
        self._visit = visit
        self._clock = clock
        self._on_idle = on_idle
        self._overseer = overseer
        self._visits: dict[asyncio.Task[Decision], Ticket] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_due = False
        """Whether the next turn of the loop looks for what may be started."""
        self._drains = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin, on the loop that runs; once is enough."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self.wake()

    def wake(self) -> None:
        """Look again for what may be started; something has changed."""
        if not self._is_due and self._loop is not None:
            self._is_due = True
            self._loop.call_soon(self._turn)

    async def drain(self) -> None:
        """Start nothing more, and wait until what is under way has come to its end."""
        self._drains = True
        while self._visits:
            await asyncio.wait(self._visits)

    def _turn(self) -> None:
        """Start what may be started now, and come again when more may be."""
        assert self._loop is not None
        self._is_due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._drains or not self._overseer.may_start():
            return
        now = self._clock()
        try:
            if self._start_some(now):
                self.wake()
                return
            moment = self._frontier.next_moment(now)
            if self._pacing.has_turns:
                moment = self._pacing.first_moment(moment)
        except Exception as error:  # noqa: BLE001  # it is logged, and ends the crawl
            self._visit.fail(fault_of("Handing out a URL", error))
            return
        if moment is not None:
            self._timer = self._loop.call_later(max(0.0, moment - now), self.wake)

    def _start_some(self, now: float) -> bool:
        """Start what may be started at *now*, up to a number; return whether there may be more."""
        assert self._loop is not None
        pacing, bandwidth = self._pacing, self._pacing.bandwidth
        if pacing.has_turns and not pacing.may_release(now):
            return False
        for _ in range(_AT_ONCE):
            dispatch = self._frontier.next(now)
            if dispatch is None:
                return False
            ticket = Ticket(dispatch.offer.key.host, dispatch, now)
            task = self._loop.create_task(self._visit.visit(ticket))
            self._visits[task] = ticket
            task.add_done_callback(self._ended)
            if bandwidth is not None and pacing.opens_at() > now:
                return False
        return True

    def _ended(self, task: asyncio.Task[Decision]) -> None:
        ticket = self._visits.pop(task)
        if not task.cancelled():
            if (error := task.exception()) is not None:
                # A row that is not settled halts it.
                self._visit.fail(fault_of("Settling a URL", error))
            else:
                decision, side = task.result(), self._overseer
                if decision is not DONE or side.is_heard:
                    side.visited(ticket, decision)
        self.wake()
        if not self._visits and not self._frontier.has_pending():
            self._on_idle()
