"""`scrapy crawl queue`: real crawls of a queue in a real Redis, killed and cut off in the middle."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
import warm_processes
from loopback import PROJECT, RawServer, _spider, environment, page
from redis_server import RedisServer, end, started_server

from amicrawl.errors import ExitCode, UsageError
from amicrawl.fleet.jobs.crawl.queued import QueueArguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KEY = "queue:start_urls"


def respond(_: bytes) -> bytes:
    return page(b"<p>a page</p>", "Content-Type: text/html")


def start(
    redis_server: RedisServer, out: Path, *arguments: str, **settings: str
) -> subprocess.Popen[str]:
    given = {"REDIS_URL": redis_server.url, "AMICRAWL_DURABILITY": "full", **settings}
    return warm_processes.Popen(
        _spider("queue", [f"out={out}", *arguments], given),
        cwd=PROJECT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def requested(server: RawServer) -> list[str]:
    return [head.split(b" ", 2)[1].decode() for head in server.requests]


@pytest.fixture
def children() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def test_a_killed_crawl_goes_on_and_requests_nothing_twice_that_is_acknowledged(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """Then, in the same life: what comes later is fetched, what is no seed is told, and idle ends it."""
    out = tmp_path / "out"
    with RawServer(respond, pause=0.1) as server, redis_server.client() as client:
        paths = [f"/{n}" for n in range(60)]
        client.rpush(KEY, *(server.url + path for path in paths))
        child = start(redis_server, out, "batch=40", AMICRAWL_PER_HOST="4")
        try:

            def outstanding() -> set[str]:
                (key,) = client.keys("amicrawl:taken:*") or [""]
                held = client.hvals(key) if key else []
                return {str(text).partition(":")[2] for text in [*held]} | set(client.lrange(KEY, 0, -1))

            wait_until(lambda: len(server.requests) > 3 and len(outstanding()) < 50)
        finally:
            child.kill()
            child.communicate()
        before = len(server.requests)
        acknowledged = {server.url + path for path in paths} - outstanding()
        assert 0 < len(acknowledged) < 60
        assert len(acknowledged) <= before

        client.rpush(KEY, "no seed", f'{{"url": "{server.url}/later"}}')
        child = start(redis_server, out, "idle=1", AMICRAWL_PER_HOST="8")
        _, said = child.communicate(timeout=120)
        assert child.returncode == ExitCode.DONE, said
        again = {server.url + path for path in requested(server)[before:]}
        assert not again & acknowledged
        assert set(requested(server)) == {*paths, "/later"}
        assert client.keys("amicrawl:taken:*") == []
        assert client.llen(KEY) == 0
        assert client.zcard("amicrawl:dead") == 1
    rows = pq.read_table(out / "captures.parquet", columns=["url"]).column("url").to_pylist()
    assert sorted(map(str, rows)) == sorted(server.url + path for path in [*paths, "/later"])


def test_another_crawl_takes_over_from_one_that_never_comes_back(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    with RawServer(respond, pause=0.1) as server, redis_server.client() as client:
        urls = [f"{server.url}/{n}" for n in range(20)]
        client.zadd("mine", {url: n for n, url in enumerate(urls)})
        dead = start(redis_server, tmp_path / "one", "redis_key=mine", AMICRAWL_PER_HOST="2")
        wait_until(lambda: len(server.requests) > 4)
        dead.kill()
        dead.communicate()
        child = start(
            redis_server,
            tmp_path / "two",
            "redis_key=mine",
            "takeover=1",
            "idle=2",
            AMICRAWL_PER_HOST="8",
        )
        _, said = child.communicate(timeout=120)
        assert child.returncode == ExitCode.DONE, said
        assert {server.url + path for path in requested(server)} == set(urls)
        assert client.keys("amicrawl:taken:*") == []


def test_a_crawl_outlives_a_redis_that_is_away_and_stops_on_a_signal(tmp_path: Path) -> None:
    own = started_server()
    try:
        with RawServer(respond, pause=0.02) as server, own.client() as client:
            client.xadd(KEY, {"url": f"{server.url}/first"})
            child = start(own, tmp_path / "out", "batch=5", REDIS_PARAMS='{"socket_timeout": 0.3}')
            wait_until(lambda: server.requests)
            os.kill(own.pid, signal.SIGSTOP)
            time.sleep(1.5)
            assert child.poll() is None
            os.kill(own.pid, signal.SIGCONT)
            for n in range(20):
                client.xadd(KEY, {"data": f'{{"url": "{server.url}/{n}"}}'})
            wait_until(lambda: len(set(requested(server))) == 21)
            wait_until(lambda: client.xpending(KEY, "amicrawl")["pending"] == 0)
            child.send_signal(signal.SIGINT)
            assert child.wait(90) == ExitCode.STOPPED
            assert len(requested(server)) == 21, "nothing twice"
            assert child.stderr is not None
            child.stderr.close()
    finally:
        with contextlib.suppress(OSError):
            os.kill(own.pid, signal.SIGCONT)
        end(own)


def test_arguments_are_checked_before_anything_begins() -> None:
    parsed = QueueArguments.parse({"redis_key": "%(name)s:mine", "idle": "5"}, name="queue")
    assert (parsed.redis_key, parsed.idle) == ("queue:mine", 5.0)
    assert QueueArguments.parse({}, name="queue").redis_key == KEY
    assert QueueArguments.parse({}, name="queue", default_key="%(name)s:x").redis_key == "queue:x"
    for bad in (
        {"idle": "soon"},
        {"redis_key": "a\n"},
        {"consumer": "a:b"},
        {"no_such": "1"},
        {"batch": "-1"},
    ):
        with pytest.raises(UsageError):
            QueueArguments.parse(bad, name="queue")
