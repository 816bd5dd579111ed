"""A row that was made due before its hour is handed out once, whatever the wheel has of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from faulty_disks import QuickDisk

from amicrawl.config import Identity
from amicrawl.frontier import DurableFrontier, Offer, Outcome, Source
from amicrawl.meguri import IDENTITY, LivePartition
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.seed import Seed
from amicrawl.urls import url_key

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 3600.0
URL = "http://a.example/x"


def busy_twice(directory: Path, clock: list[float], *waits: int) -> DurableFrontier:
    """Return a frontier, opened the second time, whose URL was busy both times, for *waits* hours."""
    for renews, hours in zip((False, True), waits, strict=True):
        meta = {IDENTITY: Identity.EXACT.value.encode()}
        frontier = DurableFrontier(
            LivePartition(
                directory / "frontier", disk=QuickDisk(), hour=int(clock[0] // HOUR), meta=meta
            ),
            Gates(0.0, 8),
            HostBreaker(100, max_retries=0),
            InflightLimit(8, 1, 8),
            wall=lambda: clock[0],
            now=clock[0],
            renews=renews,
        )
        assert frontier.offer(Offer(Seed(URL), url_key(URL, Identity.EXACT), Source.SEED))
        dispatch = frontier.next(clock[0])
        assert dispatch is not None
        frontier.settle(dispatch.key, Outcome(status=503, retry_after=hours * HOUR), clock[0])
        if not renews:
            frontier.close()
    return frontier


@pytest.mark.parametrize(("wait", "again"), [(4, 4), (4, 2), (2, 4)])
def test_a_busy_url_that_is_offered_again_before_its_hour_is_handed_out_once_when_it_comes(
    tmp_path: Path, wait: int, again: int
) -> None:
    clock = [500_000 * HOUR]
    frontier = busy_twice(tmp_path, clock, wait, again)
    handed_out = []
    for _ in range(6):
        clock[0] += HOUR
        if frontier.next(clock[0]) is not None:
            handed_out.append(round(clock[0] / HOUR) - 500_000)
    assert handed_out == [again]
    assert not frontier.queued
    frontier.abandon()


@pytest.mark.parametrize("after", [3, 5])
def test_one_that_still_waits_is_not_queued_again_by_the_hour_that_it_had_before(
    tmp_path: Path, after: int
) -> None:
    clock = [500_000 * HOUR]
    frontier = busy_twice(tmp_path, clock, 4, 2)
    other = "http://b.example/"
    for _ in range(after):
        # The wheel is looked at, and its row stays where it is: another comes first.
        frontier.offer(Offer(Seed(other), url_key(other, Identity.EXACT), Source.SEED, 9.0))
        other += "x"
        clock[0] += HOUR
        assert frontier.next(clock[0]) is not None
    assert frontier.queued == 1
    frontier.abandon()
