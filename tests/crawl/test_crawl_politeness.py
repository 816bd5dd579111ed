"""Whole crawls under the rules of politeness: overrides, requisites, bandwidth, a disk without room."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import warm_processes
from archive_reading import rows
from crawl.stand_in_engine import StandInEngine
from loopback import PROJECT, QUICK, RawServer, command, crawl, environment, page, write_lines
from scrapy.exceptions import NotConfigured
from scrapy.signalmanager import SignalManager
from scrapy.statscollectors import MemoryStatsCollector

from amicrawl.config import CrawlConfig, Identity
from amicrawl.crawl.run import Run
from amicrawl.crawl.watching.stopping import DiskRoom
from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

ROBOTS = b"""User-agent: *
Disallow: /page
Disallow: /look.css
Sitemap: http://127.0.0.2/a.xml
Sitemap: http://127.0.0.2/b.xml
"""


def host_of(head: bytes) -> str:
    return head.partition(b"Host: ")[2].partition(b":")[0].decode()


def path_of(head: bytes) -> str:
    return head.split(b" ")[1].decode()


def respond(head: bytes) -> bytes:
    return page(ROBOTS if path_of(head) == "/robots.txt" else b"ok")


@dataclass
class Done:
    """A crawl by `polite_spider.py`."""

    server: RawServer
    sitemaps: list[str]
    out: Path

    def requested_of(self, host: str) -> list[str]:
        return sorted(path_of(head) for head in self.server.requests if host_of(head) == host)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    tmp_path: Path = tmp_path_factory.mktemp("polite")
    told = tmp_path / "told"
    settings = {**QUICK, "AMICRAWL_OUT": str(tmp_path / "out")}
    del settings["AMICRAWL_ROBOTS"]
    with RawServer(respond) as server:
        line = [
            sys.executable,
            "-m",
            "scrapy",
            "runspider",
            str(Path(__file__).with_name("polite_spider.py")),
        ]
        line += ["-a", f"port={server.port}", "-a", f"told={told}"]
        line += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        ended = warm_processes.run(
            line,
            cwd=PROJECT,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    assert told.exists(), ended.stderr
    return Done(server, told.read_text().splitlines(), tmp_path / "out")


def test_what_a_page_needs_is_fetched_where_robots_txt_forbids_it_if_the_policy_says_so(
    done: Done,
) -> None:
    assert done.requested_of("127.0.0.2") == ["/look.css", "/robots.txt"]


def test_an_override_can_have_robots_txt_ignored_or_obeyed_at_a_host(done: Done) -> None:
    assert done.requested_of("127.0.0.3") == ["/look.css", "/page"]
    assert done.requested_of("127.0.0.4") == ["/robots.txt"]


def test_the_delay_of_an_override_holds_for_its_host(done: Done) -> None:
    moments = [moment for moment, head in done.server.arrivals if host_of(head) == "127.0.0.5"]
    assert len(moments) == 5
    assert all(later - earlier > 0.35 for earlier, later in pairwise(moments))


def test_sitemaps_are_told_of_once_for_each_origin(done: Done) -> None:
    assert done.sitemaps == ["http://127.0.0.2/a.xml http://127.0.0.2/b.xml"] * 3


@pytest.mark.parametrize("cap", ["AMICRAWL_BANDWIDTH", "AMICRAWL_HOST_BANDWIDTH"])
def test_no_more_is_requested_until_what_came_is_paid(tmp_path: Path, cap: str) -> None:
    with RawServer(lambda _: page(bytes(50_000))) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(6)])
        settings = {cap: "100000", "AMICRAWL_PER_HOST": "1"}
        assert crawl(seeds, tmp_path / "out", settings=settings).returncode == ExitCode.DONE
    moments = [moment for moment, _ in server.arrivals]
    assert len(rows(tmp_path / "out")) == len(moments) == 6
    # The last is requested when five are paid, less a second's worth.
    assert moments[-1] - moments[0] > 1.4


def test_a_crawl_without_room_on_the_disk_requests_nothing_and_can_be_stopped(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"x")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(5)])
        child = warm_processes.Popen(
            command(seeds, tmp_path / "out", settings={"AMICRAWL_PAUSE_FREE": str(2**53)}),
            cwd=PROJECT,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stderr is not None
        said = next(line for line in child.stderr if "AMICRAWL_PAUSE_FREE" in line)
        assert "no new request is started until" in said
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=100)
        assert child.returncode == ExitCode.STOPPED
        assert server.requests == []


def room(
    tmp_path: Path, measured: list[int | None], woken: list[bool], *, pause_free: int
) -> tuple[Run, DiskRoom, SimpleNamespace]:
    config = CrawlConfig(out=tmp_path, pause_free=pause_free)
    run = Run(config, Identity.EXACT, engine=StandInEngine(woken=woken))
    crawler = SimpleNamespace(signals=SignalManager(), settings={"STATS_DUMP": False})
    crawler.stats = MemoryStatsCollector(_with_settings())  # type: ignore[arg-type]
    free: Callable[[Run], int | None] = lambda _: measured.pop(0)  # noqa: E731
    return run, DiskRoom(crawler, run, free=free), crawler  # type: ignore[arg-type]


def _with_settings() -> SimpleNamespace:
    return SimpleNamespace(settings=SimpleNamespace(getbool=lambda _: False))


def test_the_crawl_pauses_below_the_threshold_and_goes_on_a_tenth_above_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "amicrawl.crawl.watching.stopping")
    woken: list[bool] = []
    measured: list[int | None] = [1000, 999, None, 1050, 1100, 5000, 999]
    run, guard, crawler = room(tmp_path, measured, woken, pause_free=1000)
    paused = []
    for _ in range(7):
        guard.look()
        paused.append(run.paused == {"disk"})
    assert paused == [False, True, True, True, False, False, True]
    assert woken == [True]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING"]
    assert crawler.stats.get_value("amicrawl/disk/pauses") == 2


def test_a_crawl_that_is_paused_for_two_reasons_goes_on_when_both_are_gone(tmp_path: Path) -> None:
    run, guard, _ = room(tmp_path, [10, 5000], [], pause_free=1000)
    run.pause("file")
    guard.look()
    assert run.paused == {"file", "disk"}
    run.resume("file")
    assert run.paused == {"disk"}
    guard.look()
    assert not run.paused


def test_without_a_threshold_nobody_looks(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured):
        room(tmp_path, [], [], pause_free=0)
