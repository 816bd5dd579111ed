"""Stopping: the first signal drains and seals, the second seals at once."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
import warm_processes
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
        requested = len(server.requests)
    out = tmp_path / "out"
    assert child.returncode == ExitCode.STOPPED, stderr
    assert "URLs not fetched" in stderr
    assert "Traceback" not in stderr
    assert len(rows(out)) == requested, "what had been requested was waited for and kept"
    assert not list(out.glob("*.open"))
    assert json.loads((out / "crawl.json").read_text())["finish_reason"] == "shutdown"


def test_two_signals_seal_at_once(tmp_path: Path) -> None:
    def respond(_: bytes) -> bytes:
        return page(b"x" * 1000)

    out = tmp_path / "out"
    with RawServer(respond, pause=0.05) as server, RawServer(respond, pause=600) as tarpit:
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


_SIGNALLED = """
import os, runpy, sys

number, moment, starts = int(sys.argv[1]), sys.argv[2], sys.argv[3]
def signal_at(event, arguments):
    if event == "import" and arguments[0] == moment:
        os.kill(os.getpid(), number)

sys.addaudithook(signal_at)
if moment == "the end":
    import atexit
    atexit.register(os.kill, os.getpid(), number)
if starts == "command":
    from amicrawl.cli import main
    sys.argv[1:] = ["crawl", *sys.argv[4:]]
    main()
elif starts == "scrapy":
    from scrapy.cmdline import execute
    execute(["scrapy", "crawl", *sys.argv[4:]])
else:
    sys.argv[1:] = sys.argv[4:]
    runpy.run_module("amicrawl.crawl.start", run_name="__main__")
"""


def signalled(
    directory: Path, number: signal.Signals, moment: str, starts: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run a crawl to which *number* is sent at that *moment*: an import, or `the end`."""
    line = [sys.executable, "-c", _SIGNALLED, str(int(number)), moment, starts, *arguments]
    return subprocess.run(
        line,
        cwd=directory,
        env={**environment(), "PYTHONPATH": str(PROJECT), "SCRAPY_SETTINGS_MODULE": "amicrawl.settings"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(
    ("number", "moment", "starts"),
    [
        (signal.SIGINT, "scrapy.crawler", "command"),
        (signal.SIGTERM, "amicrawl.crawl.credentials", "command"),
        (signal.SIGTERM, "scrapy.cmdline", "module"),
        (signal.SIGINT, "amicrawl.crawl.middlewares", "scrapy"),
        # By then the event loop runs; what is being opened is sealed, with nothing in it.
        (signal.SIGINT, "amicrawl.crawl.dispatcher", "command"),
    ],
)
def test_a_signal_before_a_crawl_begins_ends_it_with_a_sentence_and_nothing_half_written(
    tmp_path: Path, number: signal.Signals, moment: str, starts: str
) -> None:
    seeds = write_lines(tmp_path / "seeds.txt", ["http://127.0.0.1:9/"])
    given = [str(seeds), "-o", "out"]
    if starts != "command":
        given = ["seeds", "-a", f"file={seeds}", "-a", "out=out"]
    done = signalled(tmp_path, number, moment, starts, *given)
    assert done.returncode == ExitCode.STOPPED, done.stderr
    assert "Traceback" not in done.stderr
    listing = tmp_path / "out" / "crawl.json"
    if listing.exists():
        assert json.loads(listing.read_text())["finish_reason"] == "stopped at once"
        assert "to resume, run the same command again" in done.stderr, "it says what was left"
    else:
        assert "Stopped before the crawl began" in done.stderr
    assert not list((tmp_path / "out").glob("*.open"))


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_a_crawl_that_has_ended_changes_nothing(
    tmp_path: Path, number: signal.Signals, processes: str
) -> None:
    with RawServer(lambda _: page(b"x")) as server:
        write_lines(tmp_path / "seeds.txt", [f"{server.url}/{n}" for n in range(2)])
        given = ["seeds.txt", "-o", "out", "--processes", processes, "--delay", "0"]
        permitted = ["-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8"]
        done = signalled(tmp_path, number, "the end", "command", *given, *permitted)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "Traceback" not in done.stderr
    assert len(rows(tmp_path / "out")) >= 2
