"""Control files and signals: a crawl that runs is slowed, paused, narrowed and stopped from outside."""

from __future__ import annotations

import json
import os
import shutil
import signal
from typing import TYPE_CHECKING, Any

import pytest
from crawl.stand_in_engine import StandInEngine
from crawl_watching import RunningCrawl
from loopback import RawServer, page

from amicrawl.config import CrawlConfig, Identity
from amicrawl.crawl.following import Following
from amicrawl.crawl.run import Run
from amicrawl.crawl.watching.control import StatusFile, Steering, moment_of
from amicrawl.discovery.selection import make_selection
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ended() -> list[str]:
    """Reasons for which the crawl was to end."""
    return []


@pytest.fixture
def run(tmp_path: Path, ended: list[str]) -> Run:
    config = CrawlConfig(out=tmp_path, delay=2.0, per_host=1, inflight_max=500, ignores=("/mine",))
    made = Run(config, Identity.CANONICAL, engine=StandInEngine(ended.append))
    starts = ["http://a.example/"]
    selection = make_selection(config, starts, depth="inf")
    made.following = Following(selection, key_of=made.key_of, starts=starts, widens=True)
    (tmp_path / "control").mkdir()
    return made


class Steered:
    """A run, and somebody who writes control files."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._steering = Steering(run, disk=Disk())
        self._directory = self._steering.directory
        self._writes = 0

    def write(self, name: str, content: str | bytes) -> None:
        path = self._directory / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        # Two writes within one tick of the file system's clock are two writes all the same.
        self._writes += 1
        os.utime(path, ns=(self._writes, self._writes))
        self.look()

    def remove(self, name: str) -> None:
        (self._directory / name).unlink()
        self.look()

    def look(self) -> None:
        self._steering.look()
        self._steering.look_for_stop()

    def status(self) -> dict[str, Any]:
        return self._steering.status()

    def in_force(self) -> tuple[float, int, int]:
        status = self.status()
        told = status["delay"], status["per_host"], status["concurrency"]
        delay, per_host, concurrency = told
        assert self.run.gates.delay == delay
        assert self.run.pace.interval(1) == delay
        assert self.run.limit.limit <= concurrency
        return delay, per_host, concurrency

    def opens_after(self, host: int) -> float:
        """Return after how long *host* may be contacted again."""
        self.run.gates.start(host, 100.0)
        self.run.gates.end(host, 100.0)
        return self.run.gates.opens_at(host) - 100.0


@pytest.fixture
def steered(run: Run) -> Steered:
    return Steered(run)


def test_numbers_are_followed_and_forgotten_with_their_file(steered: Steered) -> None:
    steered.look()
    assert steered.in_force() == (2.0, 1, 500)
    steered.write("delay", "# slow\n\n 7.5 \n")
    steered.write("per_host", "3")
    steered.write("concurrency", "40\n")
    assert steered.in_force() == (7.5, 3, 40)
    assert steered.opens_after(1) == 7.5
    steered.remove("delay")
    steered.remove("per_host")
    steered.remove("concurrency")
    assert steered.in_force() == (2.0, 1, 500)


def test_free_space_that_is_not_known_is_no_zero(steered: Steered, tmp_path: Path) -> None:
    assert steered.status()["free"] > 0
    shutil.rmtree(tmp_path)
    status = steered.status()
    assert status["free"] is None
    assert moment_of(status)["free"] == 0


def test_a_shorter_delay_never_undercuts_what_robots_txt_sets(steered: Steered) -> None:
    steered.run.gates.set_delay(1, 1.5)
    steered.run.gates.set_delay(2, 5.0)
    assert (steered.opens_after(1), steered.opens_after(2), steered.opens_after(3)) == (2.0, 5.0, 2.0)
    steered.write("delay", "0.5")
    assert (steered.opens_after(11), steered.run.gates.delay_of(1)) == (0.5, 1.5)
    steered.write("delay", "8")
    assert [steered.run.gates.delay_of(host) for host in (1, 2, 3)] == [8.0, 8.0, 8.0]


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("delay", "1-5", "line 1: '1-5' is not a number of seconds"),
        ("delay", "\n-1", "line 2: '-1' is"),
        ("delay", "nan", "line 1: 'nan' is"),
        ("delay", "1e9", "line 1"),
        ("delay", "", "there is no number"),
        ("delay", "1\n2", "line 2: one number is enough"),
        ("delay", "\x1b[2J\u202e", r"line 1: '\x1b[2J\u202e' is"),
        ("per_host", "0", "line 1: '0' is not a whole number from 1 to 1000000"),
        ("per_host", "2.5", "line 1: '2.5' is"),
        ("per_host", "²", "line 1: '²' is"),
        ("concurrency", "501", "line 1: '501' is not a whole number from 1 to 500"),
        ("concurrency", b"\n\n\xff", "line 3: this is not UTF-8 text"),
        ("concurrency", "#" * 1_100_000, "is larger than"),
        ("ignores", "fine\n\n(unclosed\n", "line 3: "),
        ("ignores", "x\n" * 1001, "line 1001: more than 1000 patterns"),
    ],
)
def test_what_cannot_be_followed_is_said_once_and_changes_nothing(
    steered: Steered, caplog: pytest.LogCaptureFixture, name: str, content: str | bytes, where: str
) -> None:
    before = steered.in_force(), list(_ignores(steered))
    steered.write(name, content)
    steered.look()
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert f"control/{name}" in said
    assert where in said
    assert said.endswith("What was in force stays so.")
    assert (steered.in_force(), list(_ignores(steered))) == before


def _ignores(steered: Steered) -> list[str]:
    assert steered.run.following is not None
    return list(steered.run.following.selection.ignores)


def test_patterns_come_and_go_with_their_lines_and_leave_the_crawls_own_alone(steered: Steered) -> None:
    own = _ignores(steered)
    assert "/mine" in own
    steered.write("ignores", "# traps\n/calendar/\n/mine\n/calendar/\n")
    assert _ignores(steered) == [*own, "/calendar/"]
    steered.write("ignores", "/print\\b\n")
    assert _ignores(steered) == [*own, "/print\\b"]
    assert steered.run.following is not None
    assert steered.run.following.selection.ignores.match("http://a.example/x/print?1")
    steered.remove("ignores")
    assert _ignores(steered) == own


def test_a_crawl_of_a_list_says_that_it_has_no_use_for_patterns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "control").mkdir()
    steered = Steered(Run(CrawlConfig(out=tmp_path), Identity.EXACT, engine=StandInEngine()))
    steered.write("ignores", "/x")
    assert "it follows no links" in caplog.text


def test_a_file_by_a_name_that_means_nothing_is_told_once(
    steered: Steered, caplog: pytest.LogCaptureFixture
) -> None:
    steered.write("ignore", "/calendar/")
    steered.write("ignore", "/agenda/")
    for name in ("notes", "status.json", ".delay.swp", "delay~"):
        steered.write(name, "")
    (typo, other) = (record.getMessage() for record in caplog.records)
    assert typo.endswith("control/ignore is not a control file and has no effect. Did you mean ignores?")
    assert other.endswith("There are concurrency, delay, ignores, pause, per_host, stop.")


def test_what_is_no_file_is_not_waited_for(steered: Steered, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(steered.run.config.directory / "control" / "delay")
    steered.look()
    assert "control/delay is not a file" in caplog.text


def test_a_pause_lasts_until_every_reason_is_gone(steered: Steered) -> None:
    steered.write("pause", "whatever it holds")
    steered.run.pause("signal")
    assert steered.run.paused == {"file", "signal"}
    steered.remove("pause")
    assert steered.run.state == "paused"
    steered.run.resume("signal")
    assert steered.run.state == "running"


def test_stop_ends_the_crawl_once_and_is_taken_away(steered: Steered, ended: list[str]) -> None:
    steered.write("stop", "")
    steered.look()
    assert ended == ["stop-file"]
    assert not (steered.run.config.directory / "control" / "stop").exists()


def test_a_status_file_that_cannot_be_written_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    status = StatusFile(tmp_path / "nowhere" / "status.json", disk=Disk())
    status.write({"state": "running"})
    status.write({"state": "running"})
    assert len(caplog.records) == 1


def test_the_last_status_is_the_last(tmp_path: Path) -> None:
    status = StatusFile(tmp_path / "status.json", disk=Disk())
    status.write({"state": "finished"}, is_last=True)
    status.write({"state": "running"})
    assert json.loads((tmp_path / "status.json").read_text())["state"] == "finished"
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_a_running_crawl_is_steered_by_files_and_signals(tmp_path: Path) -> None:
    """Paused before the first page; on; steered; paused by a signal and on again; paused, stopped."""
    control = tmp_path / "out" / "control"
    control.mkdir(parents=True)
    (control / "pause").touch()
    with (
        RawServer(lambda _: page(b"ok")) as server,
        RunningCrawl(server, tmp_path, urls=300, settings={}) as crawling,
    ):
        crawling.wait_until(lambda: crawling.status().get("state") == "paused")
        assert crawling.status()["paused_by"] == ["file"]
        assert not server.requests
        (control / "pause").unlink()
        crawling.wait_until(lambda: len(server.requests) >= 3)

        crawling.control("delay", "x")
        crawling.control("per_host", "5")
        crawling.wait_until(lambda: crawling.status()["per_host"] == 5)
        assert crawling.status()["delay"] == 0.1
        assert "control/delay, line 1: 'x' is not a number of seconds" in crawling.stderr

        crawling.process.send_signal(signal.SIGUSR1)
        crawling.wait_until(lambda: crawling.status()["paused_by"] == ["signal"])
        crawling.wait_until(lambda: crawling.status()["counts"]["rows"] == len(server.requests))
        requested = len(server.requests)
        crawling.wait_until(lambda: '"paused_by": ["signal"]' in crawling.stderr)
        assert len(server.requests) == requested
        crawling.process.send_signal(signal.SIGUSR2)
        crawling.wait_until(lambda: len(server.requests) > requested)

        crawling.process.send_signal(signal.SIGUSR1)
        crawling.wait_until(lambda: crawling.status()["state"] == "paused")
        crawling.control("stop")
        assert crawling.ended() == ExitCode.STOPPED, crawling.stderr
        assert len(server.requests) < 300
    status = crawling.status()
    assert (status["state"], status["finish_reason"]) == ("finished", "stop-file")
    assert status["waiting"] == 300 - len(server.requests)
    assert sum(status["urls"].values()) == 300
    assert not (control / "stop").exists()
    assert not list((tmp_path / "out").glob("*.open"))
    assert "Traceback" not in crawling.stderr
