"""An ordinary spider killed at random moments: every page is read in the end, with its arguments.

`AMICRAWL_CRASH_ROUNDS` sets how many runs there are; the short form in the suite is 5, of a
smaller tree.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
from collections import Counter
from typing import TYPE_CHECKING

import warm_processes
from archive_reading import check_sealed, rows
from crash.killing import is_killed
from loopback import PROJECT, QUICK, RawServer, environment, page

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = min(int(os.environ.get("AMICRAWL_CRASH_ROUNDS", "5")), 60)
PAGES = 1500 if ROUNDS > 5 else 500
INFLIGHT = 8
A_MOMENT = 300
"""Pages settled, at the most, between two writes of the frontier, which are some 50 ms apart."""


def respond(head: bytes) -> bytes:
    """Each page leads to two others, to the second through a redirect."""
    kind, name = head.split(b" ")[1].decode()[1:].split("/")
    number = int(name)
    if kind == "r":
        return page(b"", f"Location: /p/{number}", status="302 Found")
    children = [child for child in (2 * number + 1, 2 * number + 2) if child < PAGES]
    text = "".join(f'<a href="/{"rp"[child % 2]}/{child}">x</a>' for child in children)
    return page((text + hashlib.sha256(name.encode()).hexdigest()).encode(), "Content-Type: text/html")


def command(site: str, tmp_path: Path) -> list[str]:
    settings = {
        **QUICK,
        "AMICRAWL_INFLIGHT_MAX": str(INFLIGHT),
        "AMICRAWL_OUT": str(tmp_path / "out"),
        "JOBDIR": str(tmp_path / "job"),
        "LOG_LEVEL": "WARNING",
    }
    line = [sys.executable, "-m", "scrapy", "runspider", "tests/crash/tree_spider.py"]
    line += ["-a", f"site={site}", "-a", f"notes={tmp_path / 'notes'}"]
    for name, value in settings.items():
        line += ["-s", f"{name}={value}"]
    return line


def way_to(number: int) -> list[int]:
    way: list[int] = []
    while number:
        number = (number - 1) // 2
        way.insert(0, number)
    return way


def test_a_tree_that_is_read_with_kills_was_read_whole_in_the_end(tmp_path: Path) -> None:
    dice, kills = random.Random(20261122), 0
    with RawServer(respond, keep_open=True) as server:
        line = command(server.url, tmp_path)
        for _ in range(ROUNDS):
            if not is_killed(line, server, after=dice.uniform(0.0, 0.5)):
                break
            kills += 1
        last = warm_processes.run(
            line, cwd=PROJECT, env=environment(), capture_output=True, text=True, check=False
        )
    assert last.returncode == 0, last.stderr
    assert kills, "no run was killed: this says nothing"
    read = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
    assert {int(number) for number, *_ in read} == set(range(PAGES))
    for number, url, *way in read:
        assert url == f"{server.url}/p/{number}"
        assert [int(each) for each in way] == way_to(int(number))
    for path in (tmp_path / "out").glob("*.warc.gz"):
        check_sealed(path)
    # Again is fetched what was in flight, and what the frontier had not written down yet.
    times = Counter(row["url"] for row in rows(tmp_path / "out"))
    assert max(times.values()) <= kills + 1
    assert sum(times.values()) - len(times) <= kills * (INFLIGHT + A_MOMENT)
