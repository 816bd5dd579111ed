"""The pace of a whole crawl, as the servers' log has it: fourteen hosts on nine loopback addresses.

Eight hosts have an address each; six names share one. The moments are the kernel's, which notes them
while a request is sent. 20 ms are for the crawl's own loop: it sends a little after the moment it notes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
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


def host_of(head: bytes) -> str:
    return head.partition(b"Host: ")[2].partition(b":")[0].decode()


@dataclass
class Log:
    """What the server was contacted, and how the crawl ended."""

    server: RawServer
    returncode: int
    rows: int

    def least_gap(self, *hosts: str) -> float:
        moments = [moment for moment, head in self.server.arrivals if host_of(head) in hosts]
        return min(later - earlier for earlier, later in pairwise(moments))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    tmp_path: Path = tmp_path_factory.mktemp("pace")
    with RawServer(lambda _: page(b"User-agent: *\n"), keep_open=True) as server:
        seeds = write_lines(
            tmp_path / "s.txt",
            [f"http://{host}:{server.port}/{n}" for n in range(PAGES) for host in ALONE + TOGETHER],
        )
        settings = {
            "AMICRAWL_DELAY": str(DELAY),
            "AMICRAWL_ADDRESS_DELAY": str(ADDRESS_DELAY),
            "AMICRAWL_PER_HOST": "1",
            "AMICRAWL_ROBOTS": "obey",
            # One address for each name: c-ares gives ::1 as well, where nothing listens.
        }
        ended = crawl(seeds, tmp_path / "out", settings=settings)
    return Log(server, ended.returncode, sum(row["status"] == 200 for row in rows(tmp_path / "out")))


def test_every_host_gets_its_turns_and_all_of_its_pages(log: Log) -> None:
    assert log.returncode == ExitCode.DONE
    requested = Counter(map(host_of, log.server.requests))
    # One for robots.txt.
    assert requested == dict.fromkeys(ALONE + TOGETHER, PAGES + 1)
    assert log.rows == len(ALONE + TOGETHER) * (PAGES + 1)


def test_no_host_is_contacted_sooner_than_its_delay_allows(log: Log) -> None:
    gaps = {host: log.least_gap(host) for host in ALONE + TOGETHER}
    assert min(gaps.values()) >= DELAY - TOLERANCE, gaps


def test_no_address_is_contacted_sooner_than_its_delay_allows_whatever_the_hosts(log: Log) -> None:
    assert log.least_gap(*TOGETHER) >= ADDRESS_DELAY - TOLERANCE


def test_hosts_on_one_address_take_turns(log: Log) -> None:
    """Between two requests to a host, each of its neighbours had at most one turn more than it."""
    order = [host for _, head in log.server.arrivals if (host := host_of(head)) in TOGETHER]
    for host in TOGETHER:
        places = [place for place, other in enumerate(order) if other == host]
        for earlier, later in pairwise(places):
            assert max(Counter(order[earlier + 1 : later]).values(), default=0) <= 2
