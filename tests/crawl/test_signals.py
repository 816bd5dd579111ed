"""Stopping: the first signal drains and seals, the second seals at once."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from archive_reading import check_sealed, record, rows
from loopback import PROJECT, RawServer, command, environment, page, write_lines

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def start(
    server: RawServer, directory: Path, *, urls: int, settings: dict[str, str]
) -> subprocess.Popen[str]:
    seeds = write_lines(directory / "seeds.txt", [f"{server.url}/{n}" for n in range(urls)])
    return subprocess.Popen(
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

    with RawServer(answer, pause=0.05) as server, RawServer(answer, pause=60) as tarpit:
        urls = [f"{server.url}/{n}" for n in range(5)]
        write_lines(tmp_path / "seeds.txt", [*urls, f"{tarpit.url}/slow"])
        child = subprocess.Popen(
            command(tmp_path / "seeds.txt", tmp_path / "out"),
            cwd=PROJECT,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: len(server.requests) == 5 and len(tarpit.requests) >= 1)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        _, stderr = child.communicate(timeout=45)
    out = tmp_path / "out"
    assert child.returncode == ExitCode.STOPPED, stderr
    assert not list(out.glob("*.open"))
    for path in out.glob("*.warc.gz"):
        check_sealed(path)
    pointed = [row for row in rows(out) if row["status"]]
    assert len(pointed) == 5
    for row in pointed:
        record(out, row)


def test_a_drain_ends_after_its_time(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"late"), pause=60) as server:
        child = start(server, tmp_path, urls=3, settings={"AMICRAWL_DRAIN_TIME": "1"})
        wait_until(lambda: len(server.requests) >= 3)
        child.send_signal(signal.SIGTERM)
        _, stderr = child.communicate(timeout=45)
    assert child.returncode == ExitCode.STOPPED, stderr
    assert rows(tmp_path / "out") == []


def test_a_crawl_that_waits_for_standard_input_can_be_stopped(tmp_path: Path) -> None:
    child = subprocess.Popen(
        command("-", tmp_path / "out"),
        cwd=PROJECT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until((tmp_path / "out" / "crawl.json").exists)
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == ExitCode.STOPPED
    assert child.stdin is not None
    assert child.stderr is not None
    child.stdin.close()
    child.stderr.close()
