"""One crawl, several workers: each page fetched, each host by one process, also when one dies."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import warm_processes
from archive_reading import rows
from crawl_processes import end, started_by
from loopback import PROJECT, QUICK, RawServer, environment, page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redis_server import RedisServer

HOSTS = 300
PAGES = 3
WORKERS = 3
IN_FLIGHT = 8
STARTS = range(0, HOSTS, 10)
"""Hosts from which the crawl begins; each worker has some."""
LONGEST_WAIT = 50.0
"""Seconds that a page keeps a worker waiting for the others: less than a worker waits for a page."""
CRAWL_FILE = """
spider = "site"
public = false
[scope]
include = ["^http://127[.]"]
"""


class Web:
    """A web of 300 hosts: each leads to its own pages and, as in a tree, to two other hosts.

    Whoever is there first shall not be done before the last has started: until all workers have
    requested a page, none gets a response.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all_are_here = threading.Event()
        self._active: dict[str, Counter[str]] = defaultdict(Counter)
        self.requested: list[tuple[str, str, str]] = []
        """Host, path and agent of each request, in the order in which they came."""
        self.clashes: list[tuple[str, str, str]] = []
        """Hosts that two agents requested from at once."""
        self.pause = 0.0
        """Seconds that a page takes."""

    @property
    def agents(self) -> set[str]:
        """The clients."""
        return {agent for _, _, agent in self.requested}

    def respond(self, head: bytes) -> bytes:
        """Return the page that *head* requests, noting the client."""
        path = head.split(b" ")[1].decode()
        authority = re.search(rb"\r\nhost: *([^\r]*)", head, re.IGNORECASE)[1].decode()  # type: ignore[index]
        agent = re.search(rb"\r\nuser-agent: *([^\r]*)", head, re.IGNORECASE)[1].decode()  # type: ignore[index]
        host, _, port = authority.partition(":")
        with self._lock:
            self.requested.append((host, path, agent))
            self.clashes += [(host, other, agent) for other in self._active[host] if other != agent]
            self._active[host][agent] += 1
            if len(self.agents) == WORKERS:
                self._all_are_here.set()
        self._all_are_here.wait(LONGEST_WAIT)
        time.sleep(self.pause)
        with self._lock:
            self._active[host][agent] -= 1
            self._active[host] += Counter()
        return page(self._links(number_of(host), path, host, port).encode(), "Content-Type: text/html")

    def _links(self, number: int, path: str, host: str, port: str) -> str:
        links = []
        if path == "/":
            links = [f"http://{host}:{port}/{below}" for below in range(1, PAGES)]
            others = {(2 * number + 1) % HOSTS, (2 * number + 2) % HOSTS, number * 7 % HOSTS}
            links += [f"http://{address(other)}:{port}/" for other in others]
        return "".join(f'<a href="{link}">x</a>' for link in links)


def address(number: int) -> str:
    return f"127.{1 + number // 100}.0.{1 + number % 100}"


def number_of(host: str) -> int:
    _, above, _, below = map(int, host.split("."))
    return (above - 1) * 100 + below - 1


def everything() -> set[tuple[str, str]]:
    return {(address(host), f"/{path or ''}") for host in range(HOSTS) for path in range(PAGES)}


def amicrawl(redis_server: RedisServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = warm_processes.run(
        [sys.executable, "-m", "amicrawl", *arguments],
        cwd=PROJECT,
        env=environment() | {"REDIS_URL": redis_server.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def work(
    redis_server: RedisServer, data: Path, name: str, *, lease: float = 30.0
) -> subprocess.Popen[str]:
    """Start a worker with the agent *name*, in a session of its own."""
    own = {"USER_AGENT": name, "AMICRAWL_PER_HOST": "1", "AMICRAWL_INFLIGHT_MAX": str(IN_FLIGHT)}
    settings = QUICK | own
    further = [part for pair in settings.items() for part in ("-s", "=".join(pair))]
    return warm_processes.Popen(
        [
            *(sys.executable, "-m", "amicrawl", "share", "work", "web", "--data", str(data)),
            *("--lease", str(lease), *further),
        ],
        cwd=PROJECT,
        env=environment() | {"REDIS_URL": redis_server.url},
        stderr=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def working(
    redis_server: RedisServer, data: Path, *, lease: float = 30.0
) -> Iterator[list[subprocess.Popen[str]]]:
    """Start all workers; none is left at the end."""
    workers = [work(redis_server, data, f"worker-{n}", lease=lease) for n in range(WORKERS)]
    try:
        yield workers
    finally:
        for worker in workers:
            end(worker)


@contextlib.contextmanager
def begun(tmp_path: Path, redis_server: RedisServer, web: Web, *, partitions: int) -> Iterator[None]:
    """Serve *web*, and make the shared crawl of it."""
    with RawServer(web.respond, keep_open=True) as server:
        starts = [f"http://{address(host)}:{server.port}/\n" for host in STARTS]
        (tmp_path / "starts.txt").write_text("".join(starts))
        (tmp_path / "crawl.toml").write_text(CRAWL_FILE)
        amicrawl(
            redis_server,
            *("share", "create", "web", "--seeds", str(tmp_path / "starts.txt")),
            *("--config", str(tmp_path / "crawl.toml"), "--partitions", str(partitions)),
        )
        yield


def captured(data: Path, partition: str = "part-*") -> list[tuple[str, str]]:
    found = []
    for directory in sorted((data / "web").glob(partition)):
        if (directory / "captures.parquet").exists():
            urls = [urlsplit(row["url"]) for row in rows(directory)]
            found += [(url.hostname or "", url.path) for url in urls]
    return found


def ended(workers: list[subprocess.Popen[str]]) -> list[int]:
    codes = []
    for worker in workers:
        _, told = worker.communicate(timeout=300)
        sys.stderr.write(told)
        codes.append(worker.returncode)
    return codes


@pytest.mark.timeout(400)
def test_each_host_is_contacted_by_one_worker_and_each_page_once(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    web = Web()
    with (
        begun(tmp_path, redis_server, web, partitions=WORKERS),
        working(redis_server, tmp_path / "data") as workers,
    ):
        assert ended(workers) == [0] * WORKERS
    requested = Counter((host, path) for host, path, _ in web.requested)
    assert set(requested) == everything()
    assert set(requested.values()) == {1}
    assert Counter(captured(tmp_path / "data")) == requested
    agents = defaultdict(set)
    for host, _, agent in web.requested:
        agents[host].add(agent)
    assert {len(names) for names in agents.values()} == {1}
    assert len(web.agents) == WORKERS
    assert web.clashes == []
    told = amicrawl(redis_server, "share", "status", "web").stdout
    assert told.startswith("web: ended")
    with redis_server.client() as client:
        assert [client.xlen(key) for key in client.scan_iter("amicrawl:links:*")].count(0) == len(
            list(client.scan_iter("amicrawl:links:*"))
        )


@pytest.mark.timeout(400)
def test_what_a_killed_worker_had_is_finished_by_another(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    web = Web()
    web.pause = 0.02
    with (
        begun(tmp_path, redis_server, web, partitions=WORKERS),
        working(redis_server, tmp_path / "data", lease=5.0) as workers,
    ):
        while len(web.agents) < WORKERS or len(web.requested) < 200:
            assert [worker.poll() for worker in workers] == [None] * WORKERS, "one has ended too soon"
            time.sleep(0.02)
        killed = kill(redis_server, workers[0])
        before = len(web.requested)
        assert ended(workers) == [-signal.SIGKILL, *[0] * (WORKERS - 1)]
    assert killed is not None
    requested = Counter((host, path) for host, path, _ in web.requested)
    assert set(requested) == everything()
    found = captured(tmp_path / "data")
    assert set(found) == everything()
    assert len(found) - len(set(found)) <= IN_FLIGHT
    assert sum(requested.values()) - len(requested) <= IN_FLIGHT
    assert web.clashes == []
    # What it had sent when it was killed, the server may read later.
    assert [agent for _, _, agent in web.requested[before:]].count("worker-0") <= IN_FLIGHT
    # Of the hosts of its partition, others requested from those that it had not begun, or not done with.
    partition = f"part-{int(killed.rpartition('.p')[2]):03d}"
    hosts = {host for host, _ in captured(tmp_path / "data", partition)}
    requested_later = {host for host, _, agent in web.requested[before:] if agent != "worker-0"}
    assert hosts & requested_later


def kill(redis_server: RedisServer, worker: subprocess.Popen[str]) -> str | None:
    """Kill *worker* and the crawl that it started, both at once; return the unit that it had."""
    with redis_server.client() as client:
        for key in client.scan_iter("amicrawl:claim:web.p*"):
            claim = client.hgetall(key)
            if claim.get("owner", "").split(":")[1:2] == [str(worker.pid)]:
                crawls = started_by(worker.pid)
                worker.kill()
                for crawl in crawls:
                    crawl.kill()
                return str(key)
    return None
