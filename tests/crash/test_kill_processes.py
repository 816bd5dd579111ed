"""Crawls on several cores killed at random moments: the parent, one process of it, or all at once.

Every page of the site lies on another host than those that lead to it, so that its link goes through the
parent. `AMICRAWL_CRASH_ROUNDS` sets how many crawls there are; the short form in the suite is 3.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import warm_processes
from archive_reading import check_sealed, record, rows
from loopback import PROJECT, RawServer, crawl_site, environment, page, site_command

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

ROUNDS = min(int(os.environ.get("AMICRAWL_CRASH_ROUNDS", "3")), 100)
PAGES = 1500 if ROUNDS > 3 else 240
HOSTS = 6
INFLIGHT = 8
SETTINGS = {
    "AMICRAWL_INCLUDE": r"^http://127\.0\.0\.[1-6]:",
    "AMICRAWL_INFLIGHT_MAX": str(INFLIGHT),
    "AMICRAWL_PER_HOST": str(INFLIGHT),
    "AMICRAWL_WARC_SIZE": "100000",
}


class Site:
    """A tree of pages, dealt to the hosts in turn; every third link is a redirect."""

    def __init__(self) -> None:
        self.server = RawServer(self._respond, keep_open=True, pause=0.005)

    def url(self, number: int, kind: str = "p") -> str:
        return f"http://127.0.0.{1 + number % HOSTS}:{self.server.port}/{kind}/{number}"

    def everything(self) -> set[str]:
        moved = {self.url(number, "r") for number in range(3, PAGES, 3)}
        return moved | {self.url(number) for number in range(PAGES)}

    def _respond(self, head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        kind, _, name = path[1:].partition("/")
        number = int(name)
        if kind == "r":
            return page(b"", f"Location: {self.url(number)}", status="302 Found")
        children = [child for child in (2 * number + 1, 2 * number + 2) if child < PAGES]
        links = [self.url(child, "r" if child % 3 == 0 else "p") for child in children]
        text = "".join(f'<a href="{link}">x</a>' for link in links)
        return page(text.encode(), "Content-Type: text/html")


def test_a_site_on_several_cores_that_is_crawled_with_kills_is_there_whole_in_the_end(
    tmp_path: Path,
) -> None:
    out, dice, kills = tmp_path / "out", random.Random(20261122), 0
    site = Site()
    with site.server as server:
        for _ in range(ROUNDS):
            durability = {"AMICRAWL_DURABILITY": dice.choice(["none", "normal", "full"])}
            line = site_command(
                site.url(0), out,
                arguments=[f"processes={dice.choice([2, 2, 3])}"], settings={**SETTINGS, **durability},
            )  # fmt: skip
            is_killed, ended = crawl_and_kill(line, server, dice)
            kills += is_killed
            if ended is ExitCode.DONE:
                break
        last = crawl_site(site.url(0), out, arguments=["processes=2"], settings=SETTINGS)
    assert last.returncode == ExitCode.DONE, last.stderr
    assert kills, "nothing was killed: this says nothing"
    found = [row["url"] for row in rows(out)]
    assert set(found) == site.everything()
    assert len(found) - len(set(found)) <= kills * 3 * INFLIGHT
    assert not (out / "processes").exists()
    assert not list(out.glob("**/*.open"))
    for path in out.glob("*.warc.gz"):
        check_sealed(path)
    for row in rows(out):
        record(out, row)


def crawl_and_kill(
    line: list[str], server: RawServer, dice: random.Random
) -> tuple[bool, ExitCode | None]:
    """Run *line* and kill some of it; return whether anything was, and how it ended where it was not."""
    requested = len(server.requests)
    parent = warm_processes.Popen(
        line, cwd=PROJECT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: len(server.requests) > requested or parent.poll() is not None)
    with suppress(subprocess.TimeoutExpired):
        return False, ExitCode(parent.wait(dice.uniform(0.0, 1.0)))
    children = children_of(parent.pid)
    victims = dice.choice([[parent.pid], children[:1], children[-1:], [parent.pid, *children]])
    for victim in victims:
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    if parent.pid not in victims:
        # A process that was killed is started again; a crawl is seldom killed only once.
        return bool(victims), ExitCode(parent.wait(120))
    parent.wait(30)
    wait_until(lambda: not alive(children))
    return True, None


def children_of(parent: int) -> list[int]:
    text = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


def alive(processes: Collection[int]) -> list[int]:
    return [each for each in processes if is_alive(each)]


def is_alive(process: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    except OSError:
        return False


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 100
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
