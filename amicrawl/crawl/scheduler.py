"""The scheduler: hands out only requests that may start now.

GETs that are no more than their URLs live in the frontier. What it cannot hold (other methods, bodies,
fields, callbacks, objects in `meta`) goes to Scrapy's own scheduler beside it, with its queues and
its duplicate filter, and waits for the same gates. When nothing may start, one timer is armed for the
earliest moment at which something may: Scrapy by itself would look again only every 5 s.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Self

from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.utils.misc import build_from_crawler

from amicrawl.crawl import internals
from amicrawl.crawl.decision import Ticket
from amicrawl.crawl.direct import EngineSide, direct_visit, obstacle
from amicrawl.crawl.dispatcher import Dispatcher
from amicrawl.crawl.links import META_JSON
from amicrawl.crawl.requests import (
    NOTHING_MORE,
    TICKET,
    provenance_of_request,
    request_of,
    row_meta,
    ticket_of,
)
from amicrawl.crawl.run import Run, run_of
from amicrawl.errors import UsageError
from amicrawl.frontier import Offer, Source
from amicrawl.seed import Seed
from amicrawl.urls import Refused, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.spiders import Spider
    from twisted.internet.defer import Deferred

    from amicrawl.crawl.decision import Decision
    from amicrawl.frontier import Dispatch
    from amicrawl.politeness import Gates
    from amicrawl.urls import UrlKey

logger = logging.getLogger(__name__)

_SKIPS_PER_PASS = 200


class FrontierScheduler(BaseScheduler):
    """The frontier, seen from Scrapy's engine."""

    def __init__(self, crawler: Crawler, run: Run, beside: Scheduler) -> None:
        self._crawler = crawler
        self._run = run
        self._beside = beside
        self._parking = DelayedRequests(run.gates)
        self._beside_first = False
        self._beside_may_hold = True
        self._spider: Spider | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._passing_over: set[asyncio.Task[Decision]] = set()
        self._has_begun = False
        """Whether the engine has come for a request: all of Scrapy's components are there by then."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*, with Scrapy's own scheduler beside it."""
        return cls(crawler, run_of(crawler), build_from_crawler(Scheduler, crawler))

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Open the queue beside the frontier."""
        self._spider = spider
        return self._beside.open(spider)

    def close(self, reason: str) -> Deferred[None] | None:
        """Put what is parked back into the queue beside, which may be kept on disk, and close it."""
        self._disarm()
        self._run.reading.end()
        for request in self._parking.drain():
            del request.meta[TICKET]
            # It has passed the duplicate filter once, which would take it for a duplicate now.
            self._beside.enqueue_request(request.replace(dont_filter=True))
        return self._beside.close(reason)

    def has_pending_requests(self) -> bool:
        """Tell whether anything is queued, waiting for a gate, or in flight.

        In flight is also what has left the downloader and is still on its way to the engine: it may be
        a redirect, whose target is not here yet.
        """
        return (
            self._run.frontier.has_pending()
            or len(self._parking) > 0
            or self._beside.has_pending_requests()
            or bool(internals.requests_in_progress(self._crawler))
        )

    def enqueue_request(self, request: Request) -> bool:
        """Take *request*; False where it is known already."""
        if request is NOTHING_MORE:
            return True
        request.meta.pop(TICKET, None)
        if (url := without_userinfo(request.url)) != request.url:
            request = request.replace(url=url)
        key = self._run.key_of(request.url)
        # The handler refuses what cannot be fetched, and gives it its row; nothing can be recorded here.
        words = None if isinstance(key, Refused) else row_meta(request, self._spider)
        if isinstance(key, Refused) or words is None:
            return self._enqueue_beside(request)
        return self._enqueue_row(request, key, words)

    def _enqueue_row(self, request: Request, key: UrlKey, words: Mapping[str, object]) -> bool:
        """Offer *request*, which *words* hold; False where it is known or another shard's."""
        if "redirect_times" in request.meta and not self._run.is_ours(key.host):
            if self._run.elsewhere is None:
                self._crawler.stats.inc_value("amicrawl/redirects/other_shard")
            else:
                self._run.elsewhere.keep_at_once([self._offer_of(request, key, words)])
            return False
        if self._run.frontier.offer(self._offer_of(request, key, words)):
            self._count("enqueued")
            return True
        if request.dont_filter:
            return self._enqueue_beside(request)
        self._count("known")
        return False

    def _enqueue_beside(self, request: Request) -> bool:
        self._beside_may_hold = True
        return self._beside.enqueue_request(request)

    def next_request(self) -> Request | None:
        """Return a request whose host may be contacted now, or None and have the engine woken in time.

        None, too, while the run is paused, or may not write: its `resume` wakes the engine. And once it
        is to end: Scrapy takes a moment to hear of that.
        """
        self._settle_what_was_read()
        if not self._has_begun:
            self._has_begun = True
            self._begin_direct()
        has_failed = self._run.recorder.fault is not None
        if has_failed or self._run.stopping or self._run.paused or not self._run.may_write():
            self._disarm()
            return None
        now = self._run.clock()
        if not self._run.pacing.may_release(now):
            self._arm(now)
            return None
        # Taking turns keeps a long frontier from starving the queue beside it.
        self._beside_first = not self._beside_first
        request = self._from_beside(now) if self._beside_first else self._from_frontier(now)
        if request is None:
            request = self._from_frontier(now) if self._beside_first else self._from_beside(now)
        if request is None:
            self._arm(now)
        return request

    def _settle_what_was_read(self) -> None:
        """Settle the rows whose callbacks are through, with all that they yielded.

        Scrapy sends no signal for that. It looks for the next request right after, and by then the
        request is not among those in progress; there is no public way to those.
        """
        self._run.reading.end(internals.requests_in_progress(self._crawler))

    def _offer_of(self, request: Request, key: UrlKey, words: Mapping[str, object]) -> Offer:
        meta = request.meta
        # What the producer knew of a seed belongs to every hop that it leads to; its digest does not.
        found = provenance_of_request(request)
        return Offer(
            seed=Seed(request.url, meta_json=str(meta.get(META_JSON, ""))),
            key=key,
            source=Source.REDIRECT if "redirect_times" in meta else Source.LINK,
            priority=request.priority,
            hops=int(meta.get("redirect_times", 0)) + int(meta.get("depth", 0)),
            extra=words or None,
            via=found.via,
        )

    def _begin_direct(self) -> None:
        """Have rows visited directly from now on, where nothing is in the way."""
        run, crawler = self._run, self._crawler
        if against := obstacle(crawler, run):
            logger.debug("Every URL goes by Scrapy's engine: %s.", against)
            if run.visits_by is not None:
                run.fail(
                    UsageError(
                        "AMICRAWL_BROWSER opens no page whose URL goes by Scrapy's engine, as all do "
                        f"here: {against}. Change that, or crawl without a browser."
                    )
                )
            return
        engine_side = EngineSide(crawler, run, run.wire)
        run.dispatcher = Dispatcher(
            run.frontier,
            run.pacing,
            direct_visit(crawler, run, engine_side),
            clock=run.clock,
            on_idle=lambda: internals.wake(crawler),
            overseer=engine_side,
        )
        run.dispatcher.start()

    def _from_frontier(self, now: float) -> Request | None:
        if self._run.dispatcher is not None:
            return None
        for _ in range(_SKIPS_PER_PASS):
            dispatch = self._run.frontier.next(now)
            if dispatch is None:
                return None
            request = self._admitted(dispatch, now)
            if request is not None:
                return request
        return None

    def _admitted(self, dispatch: Dispatch, now: float) -> Request | None:
        """Return the request for a row that may start at *now*; None for one that does not."""
        ticket, following = Ticket(dispatch.key[0], dispatch, now), self._run.following
        if dispatch.skip or (following is not None and following.refusal_of(dispatch.offer)):
            task = asyncio.ensure_future(self._run.visit.visit(ticket))
            self._passing_over.add(task)
            task.add_done_callback(self._passed_over)
        elif self._run.pacing.admit(ticket, dispatch.offer.seed.url, now):
            return request_of(dispatch, ticket)
        else:
            self._wait_for_turn(ticket)
        return None

    def _passed_over(self, task: asyncio.Task[Decision]) -> None:
        self._passing_over.discard(task)
        self._run.fail_if_raised(task, "Settling a URL")
        self._run.wake()

    def _wait_for_turn(self, ticket: Ticket) -> None:
        """Take back what was let go of for a host that has to wait for its address."""
        self._crawler.stats.inc_value("amicrawl/addresses/waits")
        self._run.leave(ticket)

    def _from_beside(self, now: float) -> Request | None:
        """Return a request of the queue beside whose gate is open, parking those whose is not."""
        while (request := self._parking.next(now)) is not None:
            if self._admit_beside(request, now):
                return request
        # Looking into an empty queue costs more than a turn of the frontier; it is filled through us
        # alone.
        while self._beside_may_hold and not self._parking.full:
            request = self._beside.next_request()
            if request is None:
                self._beside_may_hold = False
                return None
            key = self._run.key_of(request.url)
            if isinstance(key, Refused):
                return request
            request.meta[TICKET] = Ticket(key.host)
            if self._run.pacing.may_start(key.host, now):
                if self._admit_beside(request, now):
                    return request
            else:
                self._parking.add(key.host, request)
        return None

    def _admit_beside(self, request: Request, now: float) -> bool:
        """Let *request*, whose host's gate is open, go; or have it wait for its address."""
        ticket = self._ticket_of(request)
        self._run.pacing.enter(ticket, now)
        if self._run.pacing.admit(ticket, request.url, now):
            return True
        assert ticket.host is not None
        self._parking.put_back(ticket.host, request)
        self._wait_for_turn(ticket)
        return False

    def _arm(self, now: float) -> None:
        """Have the engine look again at the earliest moment at which something may start."""
        run = self._run
        row = None if run.dispatcher is not None else run.frontier.next_moment(now)
        moment = run.pacing.first_moment(row, self._parking.next_moment())
        self._disarm()
        if moment is not None:
            delay = max(0.0, moment - now)
            self._timer = asyncio.get_running_loop().call_later(delay, run.wake)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @staticmethod
    def _ticket_of(request: Request) -> Ticket:
        ticket = ticket_of(request)
        assert ticket is not None
        return ticket

    def _count(self, what: str) -> None:
        self._crawler.stats.inc_value(f"amicrawl/frontier/{what}")


_PLACES = 1000


class DelayedRequests:
    """Per host key a queue in order of arrival; `next` returns what may start.

    It is bounded: when full, Scrapy's own queue behind it simply stays as long as it is.
    """

    def __init__(self, gates: Gates, *, places: int = _PLACES) -> None:
        self._gates = gates
        self._places = places
        self._queues: dict[int, deque[Request]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def full(self) -> bool:
        """Whether no place is left."""
        return self._count >= self._places

    def add(self, host: int, request: Request) -> None:
        """Let *request* wait for the gate of *host*."""
        self._queues.setdefault(host, deque()).append(request)
        self._count += 1

    def put_back(self, host: int, request: Request) -> None:
        """Let *request*, which `next` returned for *host*, wait again, before all others of its host."""
        self._queues.setdefault(host, deque()).appendleft(request)
        self._count += 1

    def next(self, now: float) -> Request | None:
        """Return the first in the queue of a host whose gate is open at *now* (monotonic seconds)."""
        # A scan over at most as many hosts as there are places: a heap would hold moments that the
        # gates have moved since.
        host = next((host for host in self._queues if self._gates.may_start(host, now)), None)
        if host is None:
            return None
        queue = self._queues.pop(host)
        request = queue.popleft()
        self._count -= 1
        if queue:
            # Back at the end, so that hosts take turns.
            self._queues[host] = queue
        return request

    def next_moment(self) -> float | None:
        """Return the earliest moment for `next` to return any; None where an end has to open a gate."""
        moments = [self._gates.opens_at(host) for host in self._queues]
        earliest = min(moments, default=float("inf"))
        return None if earliest == float("inf") else earliest

    def drain(self) -> Iterator[Request]:
        """Take everything out, in no particular order of hosts."""
        for queue in self._queues.values():
            yield from queue
        self._queues.clear()
        self._count = 0
