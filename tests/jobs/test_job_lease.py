"""A crawl and its lease: frozen, cut off, and with a newer owner in its place."""

from __future__ import annotations

import os
import signal
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from job_crawling import JobCrawl, path_of, site, store_of, submitted
from loopback import RawServer, page
from redis_server import end, started_server

from amicrawl.disk import Disk
from amicrawl.fleet.jobs.restoring import begin_epoch
from amicrawl.fleet.leases.lease import Claims
from amicrawl.fleet.leases.leased import raise_fence

if TYPE_CHECKING:
    from pathlib import Path

    from redis_server import RedisServer

LEASE = timedelta(seconds=2)


def held(server: RedisServer, directory: Path) -> dict[str, str]:
    """Reserve the next job as a pipeline does; return the environment of its crawl."""
    claim = Claims(store_of(server)).reserve(["pending"], "pipeline:test", LEASE)
    assert claim is not None
    return {
        "AMICRAWL_JOB_UNIT": claim.unit,
        "AMICRAWL_JOB_TOKEN": str(claim.token),
        "AMICRAWL_JOB_LEASE": str(LEASE.total_seconds()),
    }


def everything_in(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return size, time and content of every file in *directory*."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            stat = path.stat()
            found[str(path)] = (stat.st_size, stat.st_mtime_ns, path.read_bytes())
    return found


def is_quiet(server: RawServer, directory: Path) -> bool:
    """Look for a while; return whether nothing was requested and nothing written."""
    requested, files = len(server.requests), everything_in(directory)
    time.sleep(0.6)
    return (len(server.requests), everything_in(directory)) == (requested, files)


def test_a_crawl_that_was_frozen_past_its_lease_writes_nothing_more(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """Somebody else has taken the job over meanwhile, as Redis knows."""
    claims = Claims(store_of(redis_server))
    with RawServer(site(300)) as server:
        ident = submitted(
            redis_server, server.url, settings={"delay_min": 20, "delay_max": 20, "concurrency": 4}
        )
        variables = held(redis_server, tmp_path)
        with JobCrawl(redis_server, ident, tmp_path / "out", variables=variables) as crawl:
            crawl.wait_until(lambda: crawl.downloaded() > 10)
            os.kill(crawl.process.pid, signal.SIGSTOP)
            taken = None
            while taken is None:
                time.sleep(0.1)
                taken = claims.take(ident, "pipeline:other", timedelta(seconds=60))
            # What it had sent before it froze may still be on its way to Redis.
            time.sleep(0.2)
            files, record, entries = everything_in(tmp_path / "out"), crawl.record(), crawl.entries()
            os.kill(crawl.process.pid, signal.SIGCONT)
            assert crawl.ended() == 1
        assert everything_in(tmp_path / "out") == files
        assert crawl.record() == record
        assert crawl.entries() == entries
        assert "is lost: the job is another owner's now" in crawl.stderr
        assert redis_server.client().hget(f"amicrawl:claim:{ident}", "token") == str(taken.token)


def test_a_newer_fence_stops_a_crawl_that_redis_cannot_tell(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    with RawServer(site(300)) as server:
        ident = submitted(
            redis_server, server.url, settings={"delay_min": 20, "delay_max": 20, "concurrency": 4}
        )
        variables = held(redis_server, tmp_path)
        with JobCrawl(redis_server, ident, tmp_path / "out", variables=variables) as crawl:
            crawl.wait_until(lambda: crawl.downloaded() > 5)
            os.kill(crawl.process.pid, signal.SIGSTOP)
            raise_fence(tmp_path / "out", ident, int(variables["AMICRAWL_JOB_TOKEN"]) + 1, disk=Disk())
            files = everything_in(tmp_path / "out")
            os.kill(crawl.process.pid, signal.SIGCONT)
            assert crawl.ended() == 1
        assert everything_in(tmp_path / "out") == files
        assert "fence.json says that a newer owner has this directory" in crawl.stderr


def test_a_crawl_that_cannot_reach_redis_pauses_when_its_lease_ends_and_goes_on_after(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    with RawServer(site(120)) as server:
        ident = submitted(
            redis_server, server.url, settings={"delay_min": 50, "delay_max": 50, "concurrency": 2}
        )
        variables = held(redis_server, tmp_path)
        with JobCrawl(redis_server, ident, tmp_path / "out", variables=variables) as crawl:
            crawl.wait_until(lambda: crawl.downloaded() > 5)
            os.kill(redis_server.pid, signal.SIGSTOP)
            crawl.wait_until(lambda: "The lease of the job cannot be renewed" in crawl.stderr)
            # What was in flight comes to its end.
            crawl.wait_until(lambda: is_quiet(server, tmp_path / "out"))
            assert is_quiet(server, tmp_path / "out")
            assert len(server.requests) < 121, "it was over before its lease was: this says nothing"
            os.kill(redis_server.pid, signal.SIGCONT)
            assert crawl.ended() == 0, crawl.stderr
        record = crawl.record()
    assert int(record["items_downloaded"]) == int(record["r2xx"]) == 121
    assert sum(entry["type"] == "download" for entry in crawl.entries()) == 121
    assert "The lease could not be renewed for a while; the crawl continues." in crawl.said()


def test_a_crawl_goes_on_when_redis_starts_from_a_snapshot_of_before_its_job_was_taken(
    tmp_path: Path,
) -> None:
    """As a replica that takes over before all has reached it: the job waits in its queue there."""
    redis_server = started_server()
    try:
        with RawServer(site(60)) as server:
            ident = submitted(
                redis_server, server.url, settings={"delay_min": 50, "delay_max": 50, "concurrency": 2}
            )
            begin_epoch(store_of(redis_server))
            redis_server.client().save()
            variables = held(redis_server, tmp_path)
            with JobCrawl(redis_server, ident, tmp_path / "out", variables=variables) as crawl:
                crawl.wait_until(lambda: crawl.downloaded() > 5)
                redis_server.kill()
                redis_server.start()
                assert redis_server.client().lrange("pending", 0, -1) == [ident]
                assert crawl.ended() == 0, crawl.stderr
            record, said = crawl.record(), crawl.said()
        client = redis_server.client()
        assert int(record["items_downloaded"]) == int(record["r2xx"]) == 61
        assert "Redis had lost this job; its crawl has written it again." in said
        assert client.lrange("working", 0, -1) == [ident]
        assert client.llen("pending") == 0
    finally:
        end(redis_server)


def test_the_lease_is_kept_while_the_list_of_a_job_is_fetched_for_longer_than_it_lasts(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    permitted = threading.Event()

    def respond(request: bytes) -> bytes:
        if path_of(request) != "/list":
            return page(b"a page", "Content-Type: text/html")
        assert permitted.wait(120)
        return page(f"{server.url}/one\n".encode(), "Content-Type: text/plain")

    client = redis_server.client()
    with RawServer(respond) as server:
        ident = submitted(redis_server, f"{server.url}/list", is_list=True)
        variables = held(redis_server, tmp_path)
        with JobCrawl(redis_server, ident, tmp_path / "out", variables=variables) as crawl:
            crawl.wait_until(lambda: any(b"/list" in request for request in server.requests))
            until = client.time()[0] + LEASE.total_seconds() + 2
            while client.time()[0] < until:
                assert client.pttl(f"amicrawl:lease:{ident}") > 0
                time.sleep(0.05)
            permitted.set()
            assert crawl.ended() == 0, crawl.stderr
        assert crawl.record()["r2xx"] == "1"
