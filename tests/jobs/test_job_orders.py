"""Live settings done to a run, without Redis and without an event loop."""

from __future__ import annotations

from random import Random

import pytest
from crawl.stand_in_engine import StandInEngine

from amicrawl.config import CrawlConfig, Identity
from amicrawl.crawl.following import Following
from amicrawl.crawl.run import Run
from amicrawl.discovery import IgnoreSet, Scope, Selection
from amicrawl.fleet.jobs.crawl.live_job_settings import BY_OPERATOR, LiveJobSettings
from amicrawl.fleet.jobs.live_settings import LiveSettings


@pytest.fixture
def run() -> Run:
    made = Run(CrawlConfig(), Identity.CANONICAL, engine=StandInEngine())
    ignores = IgnoreSet()
    ignores.add("configured", source="AMICRAWL_IGNORES")
    selection = Selection(scope=Scope(), ignores=ignores)
    made.following = Following(selection, key_of=made.key_of, starts=(), widens=False)
    return made


def ignores_of(run: Run) -> set[str]:
    assert run.following is not None
    return set(run.following.selection.ignores)


def test_each_request_draws_its_own_delay_between_the_least_and_the_greatest(run: Run) -> None:
    orders = LiveJobSettings(run, random=Random(7))
    assert orders.follow(
        LiveSettings(values={"delay_min": 250, "delay_max": 375, "concurrency": 3})
    ) == ["concurrency 3, delay 250 to 375 ms"]
    waits = []
    for host in range(200):
        run.gates.start(host, 0.0)
        run.gates.end(host, 0.0)
        waits.append(run.gates.opens_at(host))
    assert 0.25 <= min(waits) < 0.26
    assert 0.365 < max(waits) <= 0.375
    orders.follow(LiveSettings(values={"delay_min": 100, "delay_max": 100}))
    run.gates.start(999, 0.0)
    run.gates.end(999, 0.0)
    assert run.gates.opens_at(999) == 0.1


def test_concurrency_bounds_the_crawl_and_each_host_and_the_machine_bounds_it(run: Run) -> None:
    orders = LiveJobSettings(run)
    orders.follow(LiveSettings(values={"concurrency": 2, "delay_min": 0}))
    assert run.limit.limit == 2
    run.gates.start(1, 0.0)
    assert run.gates.may_start(1, 1.0)
    run.gates.start(1, 1.0)
    assert not run.gates.may_start(1, 2.0)
    orders.follow(LiveSettings(values={"concurrency": 9999}))
    assert orders.concurrency == run.config.inflight_max


def test_ignores_come_and_go_and_those_of_the_configuration_stay(run: Run) -> None:
    orders = LiveJobSettings(run)
    orders.follow(LiveSettings(ignores=frozenset({"a$", "configured", "(broken"})))
    assert ignores_of(run) == {"a$", "configured"}
    assert len(orders.faults) == 1
    assert "(broken" in orders.faults[0]
    assert orders.follow(LiveSettings(ignores=frozenset({"a$", "configured", "(broken"}))) == []
    orders.follow(LiveSettings(ignores=frozenset()))
    assert ignores_of(run) == {"configured"}
    assert not orders.faults


def test_what_says_nothing_changes_nothing(run: Run) -> None:
    orders = LiveJobSettings(run)
    orders.follow(
        LiveSettings(
            values={"delay_min": 500, "delay_max": 500, "concurrency": 1}, ignores=frozenset({"a$"})
        )
    )
    assert orders.follow(LiveSettings(paused=None, ignores=None)) == []
    assert ignores_of(run) == {"a$", "configured"}
    assert orders.delay == 0.5


def test_a_pause_of_the_operator_is_one_reason_among_others(run: Run) -> None:
    orders = LiveJobSettings(run)
    run.pause("disk")
    assert orders.follow(LiveSettings(paused=True)) == ["paused"]
    assert run.paused == {"disk", BY_OPERATOR}
    assert orders.follow(LiveSettings(paused=False)) == ["resumed"]
    assert run.paused == {"disk"}
