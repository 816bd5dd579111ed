"""What a clock that was ahead has left in a frontier keeps no host and no row from being requested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontier.live.crawls import HOUR, Clock, fetched, frontier_on, offer_of, opened, taken

from amicrawl.capture import Failure
from amicrawl.frontier import DurableFrontier, Found, Outcome
from amicrawl.politeness import Gates, HostBreaker, HostPace, InflightLimit, PaceRules
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from pathlib import Path

A_MONTH = 30 * 24
OK = Outcome(200, found=Found("ab" * 20, '"tag"'))


def frontier_with(
    directory: Path, clock: Clock, *, pace: HostPace | None = None, delay: float = 10.0
) -> DurableFrontier:
    """Open a frontier whose hosts are contacted every *delay* seconds."""
    return DurableFrontier(
        opened(directory, hour=clock.hour),
        Gates(delay, 1),
        HostBreaker(1000, max_retries=0),
        InflightLimit(100, 1, 1000),
        wall=clock,
        pace=pace,
        longest_wait=3600.0,
    )


def test_no_gate_is_shut_for_longer_than_any_setting_says(tmp_path: Path) -> None:
    clock = Clock(HOUR + A_MONTH)
    ahead = frontier_with(tmp_path / "f", clock)
    for path in range(2):
        ahead.offer(offer_of(1, path))
    dispatch = ahead.next(0.0)
    assert dispatch is not None
    ahead.settle(dispatch.key, OK, 0.0)
    ahead.flush()
    ahead.partition.abandon()
    right = frontier_with(tmp_path / "f", Clock())
    assert right.disbelieved == 1
    assert right.next(0.0) is None
    assert right.next(10.0) is not None
    right.partition.abandon()


def test_a_gate_that_a_setting_explains_stays_shut(tmp_path: Path) -> None:
    before = frontier_with(tmp_path / "f", Clock(), delay=1800.0)
    for path in range(2):
        before.offer(offer_of(1, path))
    dispatch = before.next(0.0)
    assert dispatch is not None
    before.settle(dispatch.key, OK, 0.0)
    before.flush()
    before.partition.abandon()
    after = frontier_with(tmp_path / "f", Clock())
    assert after.disbelieved == 0
    assert after.next(1000.0) is None
    assert after.next(1801.0) is not None
    after.partition.abandon()


def test_a_row_that_failed_under_a_clock_ahead_is_tried_again_now(tmp_path: Path) -> None:
    partition = opened(tmp_path / "f")
    frontier = frontier_on(partition, Clock(HOUR + A_MONTH))
    frontier.offer(offer_of(1, 1))
    assert fetched(frontier, Outcome(failure=Failure.CONNECT_TIMEOUT)) == [UrlKey(1, 1)]
    frontier.close()
    again = frontier_on(opened(tmp_path / "f"), Clock())
    assert set(taken(again)) == {UrlKey(1, 1)}
    again.partition.abandon()


def test_a_page_captured_under_a_clock_ahead_comes_back_after_its_week(tmp_path: Path) -> None:
    frontier = frontier_on(opened(tmp_path / "f"), Clock(HOUR + A_MONTH))
    frontier.offer(offer_of(1, 1))
    fetched(frontier, OK)
    frontier.close()
    week = 7 * 24
    early = frontier_on(opened(tmp_path / "f"), Clock(), recrawl_before=HOUR + week - 2)
    assert not taken(early)
    early.close()
    due = frontier_on(opened(tmp_path / "f"), Clock(), recrawl_before=HOUR + week)
    assert set(taken(due)) == {UrlKey(1, 1)}
    due.partition.abandon()


def test_back_off_and_latency_outlive_the_process(tmp_path: Path) -> None:
    rules = PaceRules(delay=1.0)
    pace = HostPace(rules)
    frontier = frontier_with(tmp_path / "f", Clock(), pace=pace, delay=1.0)
    for host in (1, 2, 3):
        frontier.offer(offer_of(host, 1))
    for dispatch in taken(frontier).values():
        host = dispatch.key.host
        outcome = {
            1: Outcome(503, latency_ms=20),
            2: Outcome(200, latency_ms=4000, found=Found()),
            3: Outcome(200, latency_ms=20, found=Found()),
        }[host]
        pace.responded(host, outcome.status, now=0.0, latency=outcome.latency_ms / 1000)
        frontier.settle(dispatch.key, outcome, 0.0)
    wanted = [pace.interval(host) for host in (1, 2, 3)]
    assert wanted == [2.0, 8.0, 1.0]
    frontier.flush()
    frontier.partition.abandon()
    recalled = HostPace(rules)
    frontier_with(tmp_path / "f", Clock(), pace=recalled, delay=1.0).partition.abandon()
    assert [recalled.interval(host) for host in (1, 2, 3)] == wanted
    assert recalled.state(1).back_off == 2.0
    assert recalled.state(2).back_off == 0.0
