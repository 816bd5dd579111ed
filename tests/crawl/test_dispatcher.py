"""The dispatcher: requests leave evenly, and each visit gets its turn."""

from __future__ import annotations

import asyncio
from itertools import groupby
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.signalmanager import SignalManager

from amicrawl.capture import Capture, Failure
from amicrawl.config import CrawlConfig
from amicrawl.crawl.decision import STOPPED, Ticket
from amicrawl.crawl.direct import EngineSide
from amicrawl.crawl.dispatcher import Dispatcher
from amicrawl.crawl.host_overrides import HostOverrides
from amicrawl.crawl.pacing import Pacing
from amicrawl.crawl.visit import Exchanges, Visit
from amicrawl.errors import AmicrawlError, OutputError
from amicrawl.fetch import WireRequest
from amicrawl.frontier import Dispatch, Offer, Source
from amicrawl.politeness import HostBreaker, InflightLimit
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 1000
BURST = 32


def pacing_without_delays() -> Pacing:
    overrides = HostOverrides({}, key_of=lambda _: UrlKey(0, 0))
    return Pacing(CrawlConfig(delay=0), HostBreaker(1, max_retries=0), overrides)


class Rows:
    """A frontier of which every host may be contacted at once."""

    def __init__(self, events: list[str]) -> None:
        self._events = events
        self.left = ROWS

    def next(self, _: float) -> Any:
        if not self.left:
            return None
        self.left -= 1
        self._events.append("taken")
        return SimpleNamespace(offer=SimpleNamespace(key=SimpleNamespace(host=self.left)))

    def next_moment(self, _: float) -> None:
        return None

    def has_pending(self) -> bool:
        return self.left > 0


class Visits:
    """Visits that note when they get their first turn."""

    def __init__(self, events: list[str]) -> None:
        self._events = events

    async def visit(self, _: Any) -> Any:
        self._events.append("visited")
        await asyncio.sleep(0)


async def events_of_a_crawl() -> list[str]:
    events: list[str] = []
    over = asyncio.Event()
    rows: Any = Rows(events)
    visits: Any = Visits(events)
    dispatcher = Dispatcher(
        rows,
        pacing_without_delays(),
        visits,
        clock=asyncio.get_running_loop().time,
        on_idle=over.set,
        overseer=SimpleNamespace(may_start=lambda: True, is_heard=True, visited=lambda *_: None),
    )
    dispatcher.start()
    await over.wait()
    await dispatcher.drain()
    return events


def test_requests_do_not_leave_in_waves_however_many_may_start_at_once() -> None:
    """A thousand at once would all be sent late, and their lateness be taken for the servers'."""
    events = asyncio.run(events_of_a_crawl())
    assert events.count("visited") == ROWS
    longest = max(len(list(run)) for event, run in groupby(events) if event == "taken")
    assert longest <= BURST


class FailingRows(Rows):
    """A frontier that cannot hand out a row."""

    def __init__(self, error: Exception) -> None:
        super().__init__([])
        self._error = error

    def next(self, _: float) -> Any:
        raise self._error


async def fault_of_a_crawl(rows: Any, **visits: Any) -> AmicrawlError:
    """Return what a crawl of *rows*, whose visits do what *visits* says, ends for."""
    failed: asyncio.Future[AmicrawlError] = asyncio.get_running_loop().create_future()
    visit: Any = SimpleNamespace(fail=failed.set_result, **visits)
    dispatcher = Dispatcher(
        rows,
        pacing_without_delays(),
        visit,
        clock=asyncio.get_running_loop().time,
        on_idle=lambda: None,
        overseer=SimpleNamespace(may_start=lambda: True, is_heard=True, visited=lambda *_: None),
    )
    dispatcher.start()
    return await asyncio.wait_for(failed, 60)


@pytest.mark.parametrize("error", [OutputError("the disk is full"), RuntimeError("a fault")])
def test_a_frontier_that_cannot_hand_out_a_row_ends_the_crawl(error: Exception) -> None:
    """A dispatcher that died in silence left a crawl that stood still."""
    assert str(error) in str(asyncio.run(fault_of_a_crawl(FailingRows(error))))


@pytest.mark.parametrize("error", [OutputError("the disk is full"), RuntimeError("a fault")])
def test_a_visit_that_cannot_settle_its_row_ends_the_crawl(error: Exception) -> None:
    """Its row stayed in flight, and a crawl that waited for its end stood still."""

    async def visit(_: Ticket) -> None:
        raise error

    rows = Rows([])
    rows.left = 1
    assert str(error) in str(asyncio.run(fault_of_a_crawl(rows, visit=visit)))


class ClosedWire:
    """A wire that was closed while a request was on it."""

    is_closing = True

    async def fetch(self, request: WireRequest, *, departs: Callable[[], None]) -> Capture:
        departs()
        return Capture(url=request.url, started_ms=0, duration_ms=0, failure=Failure.ENDED_HERE)


def test_what_ends_with_the_wire_is_not_taken_for_a_machine_that_has_nothing_left() -> None:
    limit = InflightLimit(8, 1, 8)
    crawler: Any = SimpleNamespace(signals=SignalManager(), spider=None)
    rows: Any = SimpleNamespace(release=lambda *_: None)
    nothing: Any = None
    visit = Visit(
        rows,
        pacing_without_delays(),
        EngineSide(crawler, nothing, ClosedWire()),
        keep=nothing,
        count=nothing,
        record_skipped=nothing,
        fail=nothing,
        breaker=HostBreaker(3, max_retries=1),
        limit=limit,
        exchanges=Exchanges(),
        clock=lambda: 0.0,
        request_of=lambda seed: WireRequest(seed.url),
    )
    offer = Offer(Seed("http://a.example/"), UrlKey(1, 1), Source.SEED)
    assert asyncio.run(visit.visit(Ticket(1, Dispatch(offer), 0.0))) is STOPPED
    assert limit.limit == 8
