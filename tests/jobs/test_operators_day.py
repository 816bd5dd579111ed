"""An operator's day: two pipelines, several jobs, and everything that goes wrong at once.

With AMICRAWL_WHOLE_DAY=1, as `make operators-day` has it, leases are as shipped and there are six jobs;
otherwise all that is waited for is shorter in the same measure, and there are four.

Redis is away for longer than a lease, then it is emptied, then one pipeline is killed with its crawls
and the other stands still for a minute. At the end every page is there once, and what was no crash was
not counted as one.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING

import psutil
import pytest
from archive_reading import check_sealed, rows
from jobs.test_two_pipelines import Site, kill, owner, pid_key, pipeline, raw, requested, submit, until
from loopback import RawServer

from amicrawl.fleet.database.connection import connect

if TYPE_CHECKING:
    from pathlib import Path

    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore

WHOLE = bool(os.environ.get("AMICRAWL_WHOLE_DAY"))
JOBS = 6 if WHOLE else 4
PAGES = 130 if WHOLE else 60
LEASE = 30 if WHOLE else 10
OUTAGE = LEASE * 4 / 3
STANDS_STILL = LEASE * 2.0


def family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def stop(redis_server: RedisServer, seconds: float) -> None:
    """Have Redis respond to no client for so long; what it holds runs out meanwhile."""
    os.kill(redis_server.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(redis_server.pid, signal.SIGCONT)


def log_of(store: JobStore, ident: str) -> str:
    texts = raw(store).zrange(f"{ident}_log", 0, -1)
    return "".join(entry.get("message", "") for entry in map(json.loads, texts))


@pytest.mark.timeout(900)
def test_a_day_of_outages_counts_no_crash_and_has_every_page_once(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    store, data, log = connect({"REDIS_URL": redis_server.url}), tmp_path / "data", tmp_path / "log"
    site = Site(PAGES, quickly=0)
    with RawServer(site.respond) as web:
        hosts = [f"http://127.0.0.{n}:{web.port}" for n in range(1, JOBS + 1)]
        idents = [submit(store, f"{host}/") for host in hosts]

        def progress() -> list[int]:
            return [requested(web, host) for host in hosts]

        def all_go_on(by: int) -> None:
            before = progress()
            until(
                lambda: all(now > was + by for was, now in zip(before, progress(), strict=True)),
                log=log,
            )

        with (
            pipeline(
                redis_server, data, "first-one", log, "--lease", str(LEASE), "--slots", str(JOBS // 2)
            ) as first,
            pipeline(
                redis_server, data, "second-one", log, "--lease", str(LEASE), "--slots", str(JOBS // 2)
            ) as second,
        ):
            until(lambda: raw(store).llen("working") == JOBS, log=log)
            until(lambda: min(progress()) > 4, log=log)

            stop(redis_server, OUTAGE)
            all_go_on(3)
            attempts = [raw(store).hget(store.keys.claim(ident), "attempt") for ident in idents]
            assert attempts == ["1"] * JOBS, "no crawl was killed, none changed hands"

            raw(store).flushall()
            until(lambda: raw(store).llen("working") == JOBS, log=log)
            all_go_on(3)
            assert not any(raw(store).hget(ident, "finished_at") for ident in idents)

            of_first = [ident for ident in idents if owner(store, ident) == pid_key(store, first.pid)]
            assert len(of_first) == JOBS // 2
            kill(first)
            frozen = family(second.pid)
            for process in frozen:
                process.suspend()
            with pipeline(
                redis_server, data, "third-one", log, "--lease", str(LEASE), "--slots", str(JOBS)
            ) as third:
                time.sleep(STANDS_STILL)
                for process in frozen:
                    process.resume()
                site.hurry()
                done = lambda: all(raw(store).hget(ident, "finished_at") for ident in idents)  # noqa: E731
                until(done, seconds=300, log=log)
                for each in (second, third):
                    each.send_signal(signal.SIGTERM)
                assert [each.wait(90) for each in (second, third)] == [0, 0], log.read_text()
    assert raw(store).get("jobs_completed") == str(JOBS)
    assert raw(store).exists("jobs_failed", "jobs_aborted", "working", "pending") == 0
    for host, ident in zip(hosts, idents, strict=True):
        claim = raw(store).hgetall(store.keys.claim(ident))
        # The job of a pipeline that was gone has lapsed once; that is all that happened to any.
        assert int(claim.get("failures") or 0) <= 1, log.read_text()
        assert "failed:" not in log_of(store, ident)
        directory = data / claim["directory"]
        captured = Counter(row["url"] for row in rows(directory))
        assert captured == Counter([f"{host}/", *(f"{host}/{n}" for n in range(1, PAGES))])
        for path in directory.glob("*.warc.gz"):
            check_sealed(path)
    assert len({path.name.rsplit("-", 1)[-1] for path in data.glob("127*.json")}) == JOBS
    assert len([path for path in data.glob("127*") if path.is_dir()]) == JOBS, "none was begun again"
    store.close()
