"""Pipelines and real crawls of a loopback server: killed, drained, moved to another machine."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import warm_processes
from archive_reading import check_sealed, rows
from crawl_processes import started_by
from loopback import PROJECT, QUICK, RawServer, environment, page
from rsync_daemon import RsyncDaemon

from amicrawl.fleet.database.connection import JobStore, connect
from amicrawl.fleet.database.ident import ident_of, normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from redis_server import RedisServer

PAGES = 80
AT_ONCE = 2
SETTINGS = {**QUICK, "AMICRAWL_PER_HOST": str(AT_ONCE)}


def raw(store: JobStore) -> Any:
    """The client itself; redis-py's own types allow for more responses than there can be."""
    return store.client


class Site:
    """Hosts of so many *pages*, each of which leads to two others.

    The first *quickly* of them get a response at once, the others in a second each until `hurry`: what
    is to happen before a crawl is over has time, however long processes take to start.
    """

    def __init__(self, pages: int, *, quickly: int) -> None:
        self.pages, self._quickly = pages, quickly
        self._requested: Counter[bytes] = Counter()
        self._hurries = threading.Event()

    def hurry(self) -> None:
        """Respond to everything at once from now on."""
        self._hurries.set()

    def respond(self, head: bytes) -> bytes:
        host = head.lower().partition(b"\r\nhost: ")[2].partition(b"\r\n")[0]
        self._requested[host] += 1
        if self._requested[host] > self._quickly:
            self._hurries.wait(1.0)
        number = int(head.split(b" ")[1][1:] or 0)
        children = [child for child in (2 * number + 1, 2 * number + 2) if child < self.pages]
        text = "".join(f'<a href="/{child}">x</a>' for child in children)
        text = text or f"<script>{'show(); ' * 40}</script>"
        return page(text.encode() + b" " * (number % 97), "Content-Type: text/html")


def submit(store: JobStore, url: str) -> str:
    """Queue a job as ArchiveBot's bot does, without the global ignores: they keep loopback out."""
    url = normalised(url)
    ident = ident_of(url)
    fields = {"url": url, "fetch_depth": "inf", "log_key": f"{ident}_log", "slug": "127.0.0.1-inf"}
    fields |= {"ignore_patterns_set_key": f"{ident}_ignores", "user_agent": "", "settings_age": "1"}
    fields |= {
        "delay_min": "0",
        "delay_max": "0",
        "concurrency": str(AT_ONCE),
        "queued_at": "1700000000",
    }
    fields |= {"started_by": "nick", "started_in": "#chan", "suppress_ignore_reports": "true"}
    raw(store).hset(ident, mapping=fields)
    raw(store).sadd(f"{ident}_ignores", "^never$")
    raw(store).lpush("pending", ident)
    return ident


@contextlib.contextmanager
def pipeline(
    server: RedisServer,
    data: Path,
    name: str,
    log: Path,
    *options: str,
    popen: type[subprocess.Popen[Any]] = warm_processes.Popen,
) -> Iterator[subprocess.Popen[bytes]]:
    """A real pipeline with what it starts, all of it gone at the end."""
    line = [sys.executable, "-m", "amicrawl", "pipeline", "--slots", "2", "--name", name]
    line += ["--data", str(data), "--redis", server.url, "--lease", "8", "--min-free", "0", *options]
    for setting, value in SETTINGS.items():
        line += ["-s", f"{setting}={value}"]
    with log.open("ab") as output:
        child = popen(line, cwd=PROJECT, env=environment(), stdout=output, stderr=output)
    try:
        yield child
    finally:
        kill(child)


def kill(child: subprocess.Popen[bytes]) -> int:
    """Kill a pipeline and all its crawls at once; return how many crawls there were."""
    crawls = started_by(child.pid)
    child.kill()
    for process in crawls:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    child.wait(30)
    return len(crawls)


def until(condition: Callable[[], object], *, seconds: float = 120.0, log: Path) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def test_a_killed_pipelines_jobs_are_finished_by_the_other_and_nothing_is_lost(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    store, data, log = connect({"REDIS_URL": redis_server.url}), tmp_path / "data", tmp_path / "log"
    site = Site(PAGES, quickly=PAGES // 4)
    with RawServer(site.respond) as web:
        hosts = [f"http://127.0.0.{n}:{web.port}" for n in range(1, 5)]
        idents = [submit(store, f"{host}/") for host in hosts]
        with (
            pipeline(redis_server, data, "first-one", log) as first,
            pipeline(redis_server, data, "second-one", log) as second,
        ):
            until(lambda: raw(store).llen("working") == 4, log=log)
            until(lambda: min(requested(web, host) for host in hosts) > PAGES // 8, log=log)
            killed = [ident for ident in idents if owner(store, ident) == pid_key(store, first.pid)]
            assert kill(first) >= 2
            site.hurry()
            finished = lambda: all(raw(store).hget(ident, "finished_at") for ident in idents)  # noqa: E731
            until(finished, log=log)
            second.send_signal(signal.SIGTERM)
            assert second.wait(90) == 0, log.read_text()
    assert raw(store).get("jobs_completed") == "4"
    assert raw(store).llen("finish_notifications") == 4
    assert raw(store).exists("working", "pending") == 0
    assert len(killed) == 2, log.read_text()
    for host, ident in zip(hosts, idents, strict=True):
        record = raw(store).hgetall(ident)
        assert (record["amicrawl_attempt"], record.get("amicrawl_resumed")) == (
            ("2", "resumed") if ident in killed else ("1", None)
        ), log.read_text()
        claim = raw(store).hgetall(store.keys.claim(ident))
        found = rows(data / claim["directory"])
        captured = Counter(row["url"] for row in found)
        assert set(captured) == {f"{host}/"} | {f"{host}/{n}" for n in range(1, PAGES)}
        assert sum(captured.values()) - len(captured) <= AT_ONCE, "requested twice: what was in flight"
        assert requested(web, host) - len(captured) <= AT_ONCE
        assert int(record["r2xx"]) == len(found)
        assert int(record["items_downloaded"]) == len(found)
        assert int(record["items_queued"]) == len(found)
        assert int(record["bytes_downloaded"]) == sum(row["body_length"] for row in found)
        assert {record[name] for name in ("r1xx", "r3xx", "r4xx", "r5xx", "runk", "error_count")} == {
            "0"
        }
        for path in (data / claim["directory"]).glob("*.warc.gz"):
            check_sealed(path)
        assert (data / f"{claim['directory']}.json").exists()
        entries = map(json.loads, raw(store).zrange(store.keys.log(ident), 0, -1))
        said = Counter(entry["message"] for entry in entries if entry["type"] == "stdout")
        # What a crawl says at its start is said by each attempt.
        at_end = [number for message, number in said.items() if message.startswith("made by scripts: ")]
        assert at_end == [1], said
    store.close()


@pytest.mark.timeout(400)
def test_a_job_goes_from_machine_to_machine_where_all_they_share_is_a_bucket(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """The first is killed, the second drained; under the third the whole database is lost."""
    store, log = connect({"REDIS_URL": redis_server.url}), tmp_path / "log"
    options = ["--bucket", (tmp_path / "bucket").as_uri(), "--checkpoint-every", "1"]
    options += ["-s", "AMICRAWL_WARC_SIZE=4000"]
    site = Site(300, quickly=60)
    with RawServer(site.respond) as web:
        host = f"http://127.0.0.1:{web.port}"
        ident = submit(store, f"{host}/")
        with pipeline(redis_server, tmp_path / "first", "first-one", log, *options) as first:
            until(lambda: b".warc.gz" in listed(tmp_path / "bucket"), log=log)
            for _ in range(2):
                before = checkpoint(store, ident)
                until(lambda: checkpoint(store, ident) != before, log=log)  # noqa: B023
            kill(first)
            requested_by_first = requested(web, host)
        (tmp_path / "first").rename(tmp_path / "out of reach")
        with pipeline(redis_server, tmp_path / "second", "second-one", log, *options) as second:
            until(lambda: requested(web, host) > requested_by_first + 3 * AT_ONCE, log=log)
            second.send_signal(signal.SIGTERM)
            assert second.wait(90) == 0, log.read_text()
        assert raw(store).lrange("pending", 0, -1) == [ident], log.read_text()
        assert raw(store).scard("pipelines") == 1, "the record of the one that was killed"
        requested_by_second = requested(web, host) - requested_by_first
        (tmp_path / "second").rename(tmp_path / "out of reach, too")
        with pipeline(redis_server, tmp_path / "third", "third-one", log, *options):
            before_third = requested_by_first + requested_by_second
            until(lambda: requested(web, host) > before_third + 3 * AT_ONCE, log=log)
            raw(store).flushall()
            site.hurry()
            until(lambda: raw(store).hget(ident, "finished_at"), log=log)
        repeated = requested(web, host) - site.pages
        assert repeated < requested_by_first, "what the first had copied is not requested"
    record = raw(store).hgetall(ident)
    assert record["url"] == f"{host}/"
    assert (record["amicrawl_attempt"], record["amicrawl_resumed"]) == ("3", "resumed")
    assert int(record["r2xx"]) == site.pages
    assert raw(store).smembers(f"{ident}_ignores") == {"^never$"}
    [third] = (tmp_path / "third").glob("127*/captures.parquet")
    found = rows(third.parent)
    assert len({row["url"] for row in found}) == len(found) == site.pages
    assert int(record["bytes_downloaded"]) == sum(row["body_length"] for row in found)
    in_bucket = {path.name for path in (tmp_path / "bucket" / third.parent.name).iterdir()}
    assert {row["warc_file"] for row in found} <= in_bucket
    store.close()


def checkpoint(store: JobStore, ident: str) -> object:
    return raw(store).hget(store.keys.claim(ident), "checkpoint")


def listed(bucket: Path) -> bytes:
    """What the lists of the jobs in *bucket* say."""
    return b"".join(path.read_bytes() for path in bucket.glob("*/uploaded.json"))


def requested(web: RawServer, host: str) -> int:
    """How often pages of *host* were requested."""
    field = f"Host: {host.removeprefix('http://')}\r\n".lower().encode()
    return sum(field in head.lower() for head in list(web.requests))


def owner(store: JobStore, ident: str) -> str:
    return raw(store).hget(store.keys.claim(ident), "owner") or ""


def pid_key(store: JobStore, pid: int) -> str:
    for key in raw(store).smembers("pipelines"):
        if raw(store).hget(key, "pid") == str(pid):
            return str(key)
    raise AssertionError(pid)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("is_by_rsync", [False, True])
def test_a_job_whose_machine_dies_before_it_reports_the_end_is_completed_by_the_next(
    redis_server: RedisServer, tmp_path: Path, *, is_by_rsync: bool
) -> None:
    """The pipeline is frozen while its crawl ends and uploads, then dies; nothing is crawled again."""
    store, log = connect({"REDIS_URL": redis_server.url}), tmp_path / "log"
    daemon = RsyncDaemon(tmp_path / "far")
    bucket = daemon.root / "jobs"
    options = ["--bucket", daemon.url("jobs") if is_by_rsync else bucket.as_uri()]
    options += ["--checkpoint-every", "3600"]
    site = Site(20, quickly=5)
    with RawServer(site.respond) as web, daemon:
        host = f"http://127.0.0.1:{web.port}"
        ident = submit(store, f"{host}/")
        with pipeline(redis_server, tmp_path / "first", "first-one", log, *options) as first:
            until(lambda: requested(web, host) > 5, log=log)
            first.send_signal(signal.SIGSTOP)
            site.hurry()
            until(lambda: b'"state": "finished"' in crawl_json(bucket), log=log)
            kill(first)
        once = requested(web, host)
        (tmp_path / "first").rename(tmp_path / "out of reach")
        with pipeline(redis_server, tmp_path / "second", "second-one", log, *options):
            until(lambda: raw(store).hget(ident, "finished_at"), log=log)
        assert requested(web, host) == once
    record = raw(store).hgetall(ident)
    assert record["amicrawl_attempt"] == "2"
    assert not record.get("aborted")
    assert raw(store).lrange("pending", 0, -1) == []
    store.close()


def crawl_json(bucket: Path) -> bytes:
    return b"".join(path.read_bytes() for path in bucket.glob("*/crawl.json"))


def test_a_poisoned_crawl_file_ends_its_own_job_with_the_reason_and_no_other(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """What came past the checks of a submission is read by the crawl's own process only."""
    store, log = connect({"REDIS_URL": redis_server.url}), tmp_path / "log"
    site = Site(3, quickly=9)
    with RawServer(site.respond) as web:
        host = f"http://127.0.0.1:{web.port}"
        poisoned = submit(store, f"{host}/1")
        raw(store).set(store.keys.config(poisoned), b"[" * 200_000)
        sound = submit(store, f"{host}/")
        # Not a fork: in this test, the crawls are the interpreters that a pipeline starts.
        with pipeline(redis_server, tmp_path / "data", "one", log, popen=subprocess.Popen) as child:
            until(lambda: raw(store).hget(sound, "finished_at"), log=log)
            until(lambda: raw(store).hget(poisoned, "failed"), log=log)
            assert child.poll() is None
    assert int(raw(store).hget(sound, "r2xx")) == site.pages
    lines = " ".join(str(line) for line in raw(store).zrange(f"{poisoned}_log", 0, -1))
    assert "is not TOML" in lines, lines
    assert "Traceback" not in lines
    store.close()
