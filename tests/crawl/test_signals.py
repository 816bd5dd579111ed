"""Stopping: the first signal drains and seals, the second seals at once."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
import warm_processes
from archive_reading import check_sealed, record, rows
from loopback import PROJECT, RawServer, command, environment, page, write_lines

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def start(
    server: RawServer, directory: Path, *, urls: int, settings: dict[str, str]
) -> subprocess.Popen[str]:
    seeds = write_lines(directory / "seeds.txt", [f"{server.url}/{n}" for n in range(urls)])
    return warm_processes.Popen(
        command(seeds, directory / "out", settings=settings),
        cwd=PROJECT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def status(out: Path) -> dict[str, Any]:
    """Return what the crawl into *out* says of itself; empty while it has said nothing."""
    with contextlib.suppress(FileNotFoundError):
        told: dict[str, Any] = json.loads((out / "control" / "status.json").read_text())
        return told
    return {}


def test_one_signal_drains_what_is_in_flight_and_seals(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"x" * 1000), pause=0.5) as server:
        child = start(server, tmp_path, urls=500, settings={"AMICRAWL_PER_HOST": "2"})
        wait_until(lambda: len(server.requests) >= 3)
        child.send_signal(signal.SIGINT)
        _, stderr = child.communicate(timeout=100)
        asked = len(server.requests)
    out = tmp_path / "out"
    assert child.returncode == ExitCode.STOPPED, stderr
    assert "URLs not fetched" in stderr
    assert "Traceback" not in stderr
    assert len(rows(out)) == asked, "what had been asked for was waited for and kept"
    assert not list(out.glob("*.open"))
    assert json.loads((out / "crawl.json").read_text())["finish_reason"] == "shutdown"


def test_two_signals_seal_at_once(tmp_path: Path) -> None:
    def answer(_: bytes) -> bytes:
        return page(b"x" * 1000)

    out = tmp_path / "out"
    with RawServer(answer, pause=0.05) as server, RawServer(answer, pause=600) as tarpit:
        urls = [f"{server.url}/{n}" for n in range(5)]
        write_lines(tmp_path / "seeds.txt", [*urls, f"{tarpit.url}/slow"])
        child = warm_processes.Popen(
            command(tmp_path / "seeds.txt", out),
            cwd=PROJECT,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: status(out).get("counts", {}).get("rows") == 5 and bool(tarpit.requests))
        child.send_signal(signal.SIGINT)
        # Of two that come before it has looked, it would hear one.
        wait_until(lambda: status(out)["state"] == "stopping")
        child.send_signal(signal.SIGINT)
        _, stderr = child.communicate(timeout=100)
    assert child.returncode == ExitCode.STOPPED, stderr
    assert not list(out.glob("*.open"))
    for path in out.glob("*.warc.gz"):
        check_sealed(path)
    pointed = [row for row in rows(out) if row["status"]]
    assert len(pointed) == 5
    for row in pointed:
        record(out, row)


def test_a_drain_ends_after_its_time(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"late"), pause=600) as server:
        child = start(server, tmp_path, urls=3, settings={"AMICRAWL_DRAIN_TIME": "1"})
        wait_until(lambda: len(server.requests) >= 3)
        child.send_signal(signal.SIGTERM)
        _, stderr = child.communicate(timeout=100)
    assert child.returncode == ExitCode.STOPPED, stderr
    assert rows(tmp_path / "out") == []


def test_a_crawl_that_waits_for_standard_input_can_be_stopped(tmp_path: Path) -> None:
    child = warm_processes.Popen(
        command("-", tmp_path / "out"),
        cwd=PROJECT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: status(tmp_path / "out").get("state") == "running")
    child.send_signal(signal.SIGINT)
    assert child.wait(100) == ExitCode.STOPPED
    assert child.stdin is not None
    assert child.stderr is not None
    child.stdin.close()
    child.stderr.close()


@pytest.fixture
def hangup_counts() -> Iterator[None]:
    """Start children for which a closed terminal counts, also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangup_counts")
def test_a_terminal_that_is_closed_drains_and_seals_as_a_signal_does(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"x" * 1000), pause=0.5) as server:
        child = start(server, tmp_path, urls=500, settings={"AMICRAWL_PER_HOST": "2"})
        wait_until(lambda: len(server.requests) >= 3)
        child.send_signal(signal.SIGHUP)
        _, stderr = child.communicate(timeout=100)
    out = tmp_path / "out"
    assert child.returncode == ExitCode.STOPPED, stderr
    assert not list(out.glob("*.open"))
    assert len(rows(out)) >= 3


def test_a_crawl_under_nohup_goes_on_when_its_terminal_is_closed(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"x"), pause=0.5) as server:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            child = start(server, tmp_path, urls=6, settings={"AMICRAWL_PER_HOST": "2"})
        finally:
            signal.signal(signal.SIGHUP, before)
        wait_until(lambda: len(server.requests) >= 3)
        child.send_signal(signal.SIGHUP)
        _, stderr = child.communicate(timeout=100)
    assert child.returncode == ExitCode.DONE, stderr
    assert len([row for row in rows(tmp_path / "out") if row["status"]]) >= 6


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_keep_no_crawl_from_its_end(tmp_path: Path, closed: str) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/a"])
        line = shlex.join(command(seeds, tmp_path / "out"))
        done = warm_processes.run(
            ["bash", "-c", f"exec {line} {closed}"], cwd=PROJECT, env=environment(), check=False
        )
    assert done.returncode == ExitCode.DONE
    assert len(rows(tmp_path / "out")) == 1
    check_sealed(tmp_path / "out" / "ami-00000.warc.gz")
