"""The pace of a whole crawl, as the servers' log has it: fourteen hosts on nine loopback addresses.

Eight hosts have an address each; six names share one. The log is written by the server when a request
arrives, so a request that is read late makes the gap behind it look short. How late the server can be is
measured by requests of the test's own, which carry the moment they were sent at; what the log may be
wrong by is that, and 20 ms for the crawl's own loop, which sends a little after the moment it notes.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from archive_reading import rows
from loopback import RawServer, crawl, page, write_lines

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

DELAY, ADDRESS_DELAY, TOLERANCE = 0.25, 0.1, 0.02
ALONE = [f"127.0.0.{number}" for number in range(2, 10)]
TOGETHER = [f"{letter}.localhost" for letter in "abcdef"]
PAGES = 5
PROBE = "probe.test"


@dataclass
class Log:
    """When each host was asked, and how late the log was at the worst."""

    arrivals: list[tuple[float, str]] = field(default_factory=list)
    lateness: float = 0.0
    returncode: int = 0
    rows: int = 0

    def answer(self, head: bytes) -> bytes:
        now = time.monotonic()
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
        host = lines["Host"].partition(":")[0]
        if host == PROBE:
            self.lateness = max(self.lateness, now - float(lines["Sent"]))
        else:
            self.arrivals.append((now, host))
        return page(b"User-agent: *\n")

    def of(self, *hosts: str) -> list[float]:
        return [moment for moment, host in self.arrivals if host in hosts]

    def least_gap(self, *hosts: str) -> float:
        return min(later - earlier for earlier, later in pairwise(self.of(*hosts)))


def measure_lateness(port: int, ended: threading.Event) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while not ended.wait(0.02):
            connection.sendall(
                f"GET / HTTP/1.1\r\nHost: {PROBE}\r\nSent: {time.monotonic()}\r\n\r\n".encode()
            )
            connection.recv(1000)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    tmp_path: Path = tmp_path_factory.mktemp("pace")
    log, ended = Log(), threading.Event()
    with RawServer(log.answer, keep_open=True) as server:
        probe = threading.Thread(target=measure_lateness, args=(server.port, ended))
        probe.start()
        seeds = write_lines(
            tmp_path / "s.txt",
            [f"http://{host}:{server.port}/{n}" for n in range(PAGES) for host in ALONE + TOGETHER],
        )
        settings = {
            "AMICRAWL_DELAY": str(DELAY),
            "AMICRAWL_ADDRESS_DELAY": str(ADDRESS_DELAY),
            "AMICRAWL_PER_HOST": "1",
            "AMICRAWL_ROBOTS": "obey",
        }
        log.returncode = crawl(seeds, tmp_path / "out", settings=settings).returncode
        ended.set()
        probe.join()
    log.rows = sum(row["status"] == 200 for row in rows(tmp_path / "out"))
    return log


def test_every_host_gets_its_turns_and_all_of_its_pages(log: Log) -> None:
    assert log.returncode == ExitCode.DONE
    asked = Counter(host for _, host in log.arrivals)
    # One for robots.txt.
    assert asked == dict.fromkeys(ALONE + TOGETHER, PAGES + 1)
    assert log.rows == len(ALONE + TOGETHER) * (PAGES + 1)


def test_no_host_is_asked_sooner_than_its_delay_allows(log: Log) -> None:
    allowed = DELAY - TOLERANCE - log.lateness
    gaps = {host: log.least_gap(host) for host in ALONE + TOGETHER}
    assert all(gap >= allowed for gap in gaps.values()), (gaps, log.lateness)


def test_no_address_is_asked_sooner_than_its_delay_allows_whatever_the_hosts(log: Log) -> None:
    assert log.least_gap(*TOGETHER) >= ADDRESS_DELAY - TOLERANCE - log.lateness


def test_hosts_on_one_address_take_turns(log: Log) -> None:
    """Between two requests to a host, each of its neighbours had at most one turn more than it."""
    order = [host for _, host in log.arrivals if host in TOGETHER]
    for host in TOGETHER:
        places = [place for place, other in enumerate(order) if other == host]
        for earlier, later in pairwise(places):
            assert max(Counter(order[earlier + 1 : later]).values(), default=0) <= 2
