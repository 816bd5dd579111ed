"""Crawls stopped by one signal or two, at random moments: each ends in order, and the next is complete.

`AMICRAWL_CRASH_ROUNDS` sets how many crawls there are, 500 at most; the short form in the suite is 3.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING

import warm_processes
from archive_reading import check_sealed, rows
from loopback import PROJECT, RawServer, command, environment, page, site_command, write_lines

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = min(int(os.environ.get("AMICRAWL_CRASH_ROUNDS", "3")), 500)
SEED = int(os.environ.get("AMICRAWL_CRASH_SEED", "20261123"))
PAGES, HOSTS = 120, 4
SETTINGS = {"AMICRAWL_INCLUDE": r"^http://127\.0\.0\.[1-4]:", "AMICRAWL_PER_HOST": "4"}


def url(server: RawServer, number: int) -> str:
    return f"http://127.0.0.{1 + number % HOSTS}:{server.port}/p/{number}"


def test_signals_at_any_moment_end_a_crawl_in_order_and_the_next_one_is_complete(tmp_path: Path) -> None:
    dice, stopped = random.Random(SEED), 0

    def respond(head: bytes) -> bytes:
        number = int(head.split(b" ")[1].rpartition(b"/")[2])
        links = [url(server, child) for child in (2 * number + 1, 2 * number + 2) if child < PAGES]
        body = "".join(f'<a href="{link}">x</a>' for link in links)
        return page(f"<html>{number}{body}</html>".encode(), "Content-Type: text/html")

    with RawServer(respond, keep_open=True, pause=0.02) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [url(server, number) for number in range(PAGES)])
        for number in range(ROUNDS):
            out, processes = tmp_path / f"out-{number}", [f"processes={dice.choice([1, 1, 2])}"]
            line = dice.choice(
                [
                    command(seeds, out, arguments=processes, settings=SETTINGS),
                    site_command(url(server, 0), out, arguments=processes, settings=SETTINGS),
                ]
            )
            said = f"round {number}: {line}"
            stopped += ended_by_signals(line, server, dice, said)
            again = warm_processes.run(
                line,
                cwd=PROJECT,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert again.returncode == ExitCode.DONE, (said, again.stderr)
            found = rows(out)
            assert {row["error"] for row in found} == {""}, said
            captured = Counter(row["url"] for row in found)
            assert captured.keys() == {url(server, page) for page in range(PAGES)}, said
            for path in out.glob("*.warc.gz"):
                check_sealed(path)
    assert stopped, "nothing was stopped: this says nothing"


def ended_by_signals(line: list[str], server: RawServer, dice: random.Random, said: str) -> bool:
    """Run *line*, send it one signal or two, and return whether it was stopped by them."""
    requested, number = len(server.requests), dice.choice([signal.SIGINT, signal.SIGTERM])
    child = warm_processes.Popen(
        line,
        cwd=PROJECT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while child.poll() is None and len(server.requests) == requested:
        time.sleep(0.005)
    time.sleep(dice.uniform(0.0, 0.8))
    child.send_signal(number)
    if dice.random() < 0.7:
        time.sleep(dice.uniform(0.001, 0.5))
        child.send_signal(number)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode in {ExitCode.STOPPED, ExitCode.DONE}, (said, stderr)
    assert "Traceback" not in stderr, (said, stderr)
    assert "fault of amicrawl" not in stderr, (said, stderr)
    return child.returncode == ExitCode.STOPPED
