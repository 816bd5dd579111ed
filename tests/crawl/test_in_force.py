"""What is in force: orders in Redis and control files do not overwrite each other."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from crawl.stand_in_engine import StandInEngine

from amicrawl.config import CrawlConfig, Identity
from amicrawl.crawl.following import Following
from amicrawl.crawl.internals import ScrapyEngine
from amicrawl.crawl.run import Run
from amicrawl.crawl.spec import CrawlSpec
from amicrawl.crawl.watching.control import Steering
from amicrawl.discovery.selection import make_selection
from amicrawl.disk import Disk
from amicrawl.fleet.jobs.crawl.live_job_settings import LiveJobSettings
from amicrawl.fleet.jobs.live_settings import LiveSettings

if TYPE_CHECKING:
    from pathlib import Path


class Crawl:
    """A run that is steered from both sides."""

    def __init__(self, out: Path) -> None:
        config = CrawlConfig(out=out, delay=1.0, inflight_max=500, ignores=("/mine",), ignore_sets=())
        self.run = Run(config, Identity.CANONICAL, engine=StandInEngine())
        selection = make_selection(config, ["http://a.example/"], depth="inf")
        self.run.following = Following(selection, key_of=self.run.key_of, starts=(), widens=True)
        self.ignores = selection.ignores
        (out / "control").mkdir()
        self._control = out / "control"
        self.orders = LiveJobSettings(self.run)
        self.steering = Steering(self.run, disk=Disk())
        self._writes = 0

    def write(self, name: str, content: str | None) -> None:
        path = self._control / name
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
            self._writes += 1
            os.utime(path, ns=(self._writes, self._writes))
        self.steering.look()

    def told(self) -> tuple[float, float, float]:
        """The delay as the gate, the status file and the dashboard have it."""
        return self.run.gates.delay, self.steering.status()["delay"], self.orders.delay


@pytest.fixture
def crawl(tmp_path: Path) -> Crawl:
    return Crawl(tmp_path)


def test_an_order_of_one_kind_leaves_what_a_file_says_of_another(crawl: Crawl) -> None:
    crawl.write("delay", "60")
    crawl.orders.follow(LiveSettings(values={"concurrency": 3}))
    assert crawl.told() == (60.0, 60.0, 60.0)
    assert (crawl.run.in_force.concurrency, crawl.run.in_force.per_host) == (3, 3)
    assert crawl.steering.status()["concurrency"] == 3


def test_a_file_counts_before_an_order_and_uncovers_it_when_it_is_removed(crawl: Crawl) -> None:
    crawl.orders.follow(LiveSettings(values={"delay_min": 2000, "delay_max": 4000, "concurrency": 5}))
    assert crawl.told() == (2.0, 2.0, 2.0)
    jitter = crawl.run.in_force.jitter
    assert jitter is not None
    drawn = [jitter() for _ in range(100)]
    assert 0 <= min(drawn) < 1.0 < max(drawn) <= 2.0
    crawl.write("delay", "60")
    crawl.orders.follow(LiveSettings(values={"delay_min": 3000, "delay_max": 4000}))
    assert crawl.told() == (60.0, 60.0, 60.0)
    assert crawl.orders.delay_max == 60.0
    crawl.write("delay", None)
    assert crawl.told() == (3.0, 3.0, 3.0)
    assert crawl.orders.delay_max == 4.0


def test_a_pattern_counts_as_long_as_one_side_wants_it(crawl: Crawl) -> None:
    crawl.write("ignores", "/print\n/mine\n")
    crawl.orders.follow(LiveSettings(ignores=frozenset({"/print", "/login"})))
    assert set(crawl.ignores) == {"/mine", "/print", "/login"}
    assert crawl.steering.status()["ignores"] == ["/print", "/login"]
    crawl.orders.follow(LiveSettings(ignores=frozenset()))
    assert set(crawl.ignores) == {"/mine", "/print"}
    crawl.orders.follow(LiveSettings(ignores=frozenset({"/print"})))
    crawl.write("ignores", None)
    assert set(crawl.ignores) == {"/mine", "/print"}
    crawl.orders.follow(LiveSettings(ignores=frozenset()))
    assert set(crawl.ignores) == {"/mine"}


class ScrapysEngine:
    """What a guest's engine has that a run uses."""

    _slot = None
    paused = False

    def pause(self) -> None:
        self.paused = True

    def unpause(self) -> None:
        self.paused = False


def test_a_change_of_pace_does_not_resume_a_paused_guest(tmp_path: Path) -> None:
    crawler: Any = SimpleNamespace(engine=ScrapysEngine())
    engine = ScrapyEngine(crawler, pauses=True)
    run = Run(CrawlConfig(out=tmp_path), Identity.EXACT, CrawlSpec(is_guest=True), engine=engine)
    run.pause("disk")
    run.in_force.of_files.delay = 3.0
    run.follow_in_force()
    assert crawler.engine.paused
    run.resume("disk")
    assert not crawler.engine.paused
