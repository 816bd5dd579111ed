"""Crawls killed at random moments keep the pace of every host, by the clock of the server.

Hosts set a delay in robots.txt, or a pause by Retry-After. `AMICRAWL_CRASH_ROUNDS` sets how
many kills there are, 50 at most; the short form in the suite is 2.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import warm_processes
from loopback import PROJECT, RawServer, command, environment, page, write_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ROUNDS = min(int(os.environ.get("AMICRAWL_CRASH_ROUNDS", "2")), 50)
SEED = int(os.environ.get("AMICRAWL_CRASH_SEED", "1"))
DELAY, CRAWL_DELAY, RETRY_AFTER = 0.5, 3.0, 4
HOSTS = {1: DELAY, 2: DELAY, 3: CRAWL_DELAY, 4: CRAWL_DELAY, 5: DELAY}
"""The pace of each host; the last also sends Retry-After with every fourth response."""
PAGES = 400
NOTED = 2.0
"""Seconds from which on a pause is noted at once: a crawl takes about as long to be started again."""
SOON = 0.1
"""Seconds by which a request may be on its way for longer than the one after it."""


class Clock:
    """What hosts responded, and from which moments on they may be contacted again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requested: dict[int, list[tuple[float, bool]]] = {host: [] for host in HOSTS}
        """Seconds that the response names besides, whether it is a robots.txt."""
        self.kills: list[float] = []

    def respond(self, head: bytes) -> bytes:
        host, is_robots = _host_of(head), b"/robots.txt " in head
        with self._lock:
            requested = self.requested[host]
            waits = host == 5 and len(requested) % 4 == 3 and not is_robots
            requested.append((RETRY_AFTER if waits else 0.0, is_robots))
        if is_robots:
            lines = f"Crawl-delay: {HOSTS[host]:g}\n" if HOSTS[host] > DELAY else ""
            return page(f"User-agent: *\n{lines}Allow: /\n".encode())
        if waits:
            return page(b"later", f"Retry-After: {RETRY_AFTER}", status="429 Too Many Requests")
        return page(b"a page")

    def too_early(self, arrivals: Sequence[tuple[float, bytes]]) -> list[str]:
        """Return what of *arrivals* came too early; pauses under `NOTED` may not be noted at a kill."""
        found = []
        for host, requested in self.requested.items():
            moments = [moment for moment, head in arrivals if _host_of(head) == host]
            contacts = zip(moments, requested, strict=False)  # the last may have no response yet
            for (before, (waits, _)), (after, (_, is_robots)) in pairwise(contacts):
                # Where robots.txt is requested once more, its response had not come before the kill.
                least = max(DELAY if is_robots else HOSTS[host], waits)
                if least < NOTED and any(before < kill < after for kill in self.kills):
                    continue
                if after - before < least - SOON:
                    found.append(f"host {host}: {after - before:.2f} s, and {least:g} s were due")
        return found


def _host_of(head: bytes) -> int:
    named = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"host:"))
    return int(named.rpartition(b":")[0].rpartition(b".")[2])


def test_no_host_is_contacted_sooner_than_its_pace_however_often_the_crawl_is_killed(
    tmp_path: Path,
) -> None:
    dice, clock = random.Random(SEED), Clock()
    settings = {
        "AMICRAWL_ROBOTS": "obey",
        "AMICRAWL_DELAY": str(DELAY),
        "AMICRAWL_PER_HOST": "1",
        "AMICRAWL_RETRY_AFTER_MAX": "60",
        "AMICRAWL_BACKOFF_MAX": "2",
    }
    with RawServer(clock.respond, keep_open=True) as server:
        urls = [f"http://127.0.0.{host}:{server.port}/{n}" for n in range(PAGES) for host in HOSTS]
        seeds = write_lines(tmp_path / "seeds.txt", urls)
        for _ in range(ROUNDS):
            processes = dice.choice(["processes=1", "processes=1", "processes=2"])
            requested = len(server.requests)
            crawl = warm_processes.Popen(
                command(seeds, tmp_path / "out", arguments=[processes], settings=settings),
                cwd=PROJECT,
                env=environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            while len(server.requests) == requested:
                assert crawl.poll() is None
                time.sleep(0.01)
            time.sleep(dice.uniform(0.0, 4.0))
            clock.kills.append(time.time())
            os.killpg(crawl.pid, 9)
            crawl.wait(30)
    assert sum(map(len, clock.requested.values())) > 3 * ROUNDS
    assert clock.too_early(server.arrivals) == []
