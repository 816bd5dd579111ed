"""Pipelines: jobs run as children, their ends told, with a stand-in for the crawl and a real Redis."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from redis_server import end, started_server

from amicrawl.capture import Capture
from amicrawl.clock import unix_ms
from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import Disk
from amicrawl.fleet.checkpoints.checkpoint import path_of
from amicrawl.fleet.checkpoints.data_directory import JobCopy, opened_store
from amicrawl.fleet.checkpoints.job_bucket import ship
from amicrawl.fleet.database.connection import JobStore, RedisSettings, connect
from amicrawl.fleet.database.redis_values import dead_letters
from amicrawl.fleet.jobs.accounting import Account, Figures, account_of, settle
from amicrawl.fleet.jobs.attempt import Workshop
from amicrawl.fleet.jobs.pipeline import Pipeline, PipelineOptions
from amicrawl.fleet.jobs.pipeline_record import PipelineIdentity, pipelines, tell_to_drain
from amicrawl.fleet.jobs.queues import queue_order
from amicrawl.fleet.jobs.restoring import begin_epoch
from amicrawl.fleet.jobs.supervisor import Mode
from amicrawl.fleet.leases.lease import Claims
from amicrawl.fleet.leases.leased import fenced
from amicrawl.fleet.logs import job_log
from amicrawl.fleet.logs.job_log import Download, Stdout, encoded
from amicrawl.record import CAPTURES, CaptureItem
from amicrawl.record.captures import row_of
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from redis_server import RedisServer

    from amicrawl.fleet.jobs.child import Child

STAND_IN = Path(__file__).parent / "stand_in_crawl.py"
IDENTS = [f"{'abcdefgh'[n]}123456789012345678901{n}x" for n in range(6)]


def raw(store: JobStore) -> Any:
    """The client itself; redis-py's own types allow for more responses than there can be."""
    return store.client


def stand_in(ident: str, directory: Path) -> Sequence[str]:
    return [sys.executable, str(STAND_IN), ident, str(directory)]


class Pipelines:
    """Pipelines in this process, turned by the test; all they started is killed at its end."""

    def __init__(self, url: str, directory: Path) -> None:
        self.settings = RedisSettings.from_mapping({"REDIS_URL": url})
        self.store = connect(self.settings, socket_timeout=1.0)
        self.directory = directory
        self.all: list[Pipeline] = []

    def start(
        self,
        name: str = "one",
        *,
        data: str = "data",
        options: PipelineOptions | None = None,
        command: Callable[[str, Path], Sequence[str]] = stand_in,
        wait: Callable[[float], object] = time.sleep,
        bucket: str = "",
        disk: Disk | None = None,
    ) -> Pipeline:
        path = self.directory / data
        workshop = Workshop(
            data=path,
            store_id=opened_store(path, disk=Disk()),
            command=command,
            environment={**os.environ, **self.settings.environment()},
            lease_seconds=4,
            disk=disk or Disk(),
            bucket=bucket,
        )
        options = replace(
            options or PipelineOptions(),
            queues=tuple(queue_order(name)),
            lease=timedelta(seconds=4),
            min_free=options.min_free if options is not None else 0,
            grace=0.5,
        )
        identity = PipelineIdentity(socket.gethostname(), "fq.example", 1000 + len(self.all), name)
        self.all.append(Pipeline(self.store, workshop, options, identity=identity, wait=wait))
        return self.all[-1]

    def turn(self, until: Callable[[], object], *, seconds: float = 90.0) -> None:
        deadline = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < deadline, "waited in vain"
            for supervisor in self.all:
                supervisor.turn()
            time.sleep(0.03)

    def end(self) -> None:
        for supervisor in self.all:
            for attempt in supervisor.attempts:
                attempt.kill("the test is over")
        self.store.close()


@pytest.fixture
def run(redis_server: RedisServer, tmp_path: Path) -> Iterator[Pipelines]:
    pipelines = Pipelines(redis_server.url, tmp_path)
    yield pipelines
    pipelines.end()


def submit(run: Pipelines, ident: str, note: str = "", queue: str = "pending", **fields: str) -> None:
    record = {"url": f"http://{ident}.example/", "slug": "a.example-inf", "note": note, "log_key": ident}
    record |= {
        "started_by": "nick",
        "started_in": "#chan",
        "queued_at": "1700000000",
        "fetch_depth": "inf",
    }
    raw(run.store).hset(ident, mapping={**record, **fields})
    raw(run.store).sadd(f"{ident}_ignores", "x")
    raw(run.store).lpush(queue, ident)


class SlowBucketDisk(Disk):
    """A disk over which nothing is copied from or to a bucket until the test permits it."""

    def __init__(self) -> None:
        self.permitted = threading.Event()
        self.is_copying = threading.Event()

    def create(self, path: Path) -> int:
        if threading.current_thread().name == "copying":
            self.is_copying.set()
            assert self.permitted.wait(120)
        return super().create(path)


def shipped_elsewhere(run: Pipelines, tmp_path: Path) -> str:
    """Ship the first job to the bucket as another machine does; return the name of its directory."""
    base, bucket = f"a.example-inf-20260101-000000-{IDENTS[0][:5]}", tmp_path / "bucket"
    crawled = tmp_path / "elsewhere" / base
    (crawled / "frontier").mkdir(parents=True)
    (crawled / "frontier" / "super").write_bytes(b"a super block")
    (crawled / "crawl.json").write_text('{"format": 1, "files": []}')
    bucket.mkdir()
    ship(crawled, path_of(bucket.as_uri(), base), disk=Disk())
    claim = {"token": "1", "attempt": "1", "state": "queued", "queued_at": "1700000000"}
    claim |= {"directory": base, "store": "elsewhere", "shipped": "1"}
    raw(run.store).hset(run.store.keys.claim(IDENTS[0]), mapping=claim)
    return base


def let_leases_pass(run: Pipelines, ident: str, *, leases: int = 2) -> None:
    """Turn the pipelines for as long as *leases* leases last by the clock of Redis; it may not lapse."""
    client = raw(run.store)
    token, until = client.hget(run.store.keys.claim(ident), "token"), client.time()[0] + leases * 4 + 1

    def is_over() -> bool:
        claim = client.hmget(run.store.keys.claim(ident), "token", "state")
        assert claim == [token, "held"]
        return bool(client.time()[0] > until)

    run.turn(is_over)


def misses_redis(supervisor: Pipeline) -> bool:
    return supervisor._outage.failures > 0


def ended(run: Pipelines, *idents: str) -> Callable[[], bool]:
    return lambda: all(any(raw(run.store).hmget(ident, "finished_at", "failed")) for ident in idents)


def said(run: Pipelines, ident: str) -> str:
    entries = [json.loads(text) for text in raw(run.store).zrange(f"{ident}_log", 0, -1)]
    assert {entry["type"] for entry in entries} == {"stdout"}
    assert all(entry["message"].endswith("\n") for entry in entries), "whole lines"
    return "".join(entry["message"] for entry in entries)


def test_jobs_are_run_and_their_ends_told(run: Pipelines) -> None:
    submit(run, IDENTS[0])
    submit(run, IDENTS[1], "limit", slug="../../../etc/passwd")
    supervisor = run.start()
    run.turn(ended(run, *IDENTS[:2]))
    client = raw(run.store)
    assert client.get("jobs_completed") == "2"
    assert client.exists("working", "pending") == 0
    info = json.loads(client.lrange("finish_notifications", 0, 0)[0])
    eight = {
        "aborted",
        "fetch_depth",
        "pipeline_id",
        "queued_at",
        "started_by",
        "started_in",
        "url",
        "url_file",
    }
    assert eight <= info.keys()
    assert (info["aborted"], info["url_file"], info["started_in"]) == (False, None, "#chan")
    written = sorted((run.directory / "data").glob("*.json"))
    assert len(written) == 2
    assert all(json.loads(path.read_text())["ident"] in IDENTS for path in written)
    directories = sorted(path.name for path in (run.directory / "data").iterdir() if path.is_dir())
    assert directories[0].startswith("a.example-inf-20")
    assert directories[0].endswith(f"-{IDENTS[0][:5]}")
    assert directories[1].startswith("etc-passwd-20")
    text = said(run, IDENTS[0])
    assert text.startswith(f"Received item {IDENTS[0]} (attempt 1)")
    assert f"crawling {IDENTS[0]}\n" in text
    assert f"Finished RsyncUpload for Item {IDENTS[0]}" in text.splitlines()[-1]
    assert int(client.hget(IDENTS[0], "heartbeat")) >= 5
    [record] = pipelines(run.store)
    assert record["status"] == "Running"
    assert record["id"] in client.smembers("pipelines")
    assert client.hget(IDENTS[0], "pipeline_id") == record["id"]
    run.turn(lambda: not supervisor.attempts)


def test_a_pipeline_that_turns_touches_a_file_for_those_who_watch_it(run: Pipelines) -> None:
    supervisor = run.start()
    supervisor.turn()
    alive = run.directory / "data" / "alive"
    os.utime(alive, (0, 0))
    looked = run.directory / "looked"
    looked.touch()
    run.turn(lambda: alive.stat().st_mtime > 0)
    assert alive.stat().st_mtime >= looked.stat().st_mtime


def test_a_pipelines_record_has_every_field_of_archivebot(run: Pipelines) -> None:
    supervisor = run.start("some-name")
    listener = raw(run.store).pubsub(ignore_subscribe_messages=True)
    listener.subscribe("archivebot:pipeline_updates")
    listener.get_message(timeout=5)
    run.turn(lambda: pipelines(run.store))
    [record] = pipelines(run.store)
    assert listener.get_message(timeout=5)["data"] == record["id"]
    assert record["id"].startswith("pipeline:")
    assert len(record["id"]) == 41
    fields = {"hostname", "fqdn", "pid", "nickname", "version", "python", "status", "id"}
    numbers = {"mem_usage", "mem_available", "disk_usage", "disk_available", "ts", "load_average_1m"}
    numbers |= {"load_average_5m", "load_average_15m"}
    assert fields | numbers <= record.keys()
    assert all(float(record[name]) >= 0 for name in numbers)
    assert record["ts"].isdigit()
    supervisor.signalled()
    supervisor.run()
    assert pipelines(run.store) == []
    assert raw(run.store).exists("pipelines") == 0
    listener.close()


def test_a_job_whose_crawl_keeps_crashing_ends_as_failed_with_a_dead_letter(run: Pipelines) -> None:
    submit(run, IDENTS[0], "crash")
    run.start(options=PipelineOptions(failures_borne=2, min_free=0))
    run.turn(ended(run, IDENTS[0]))
    client = raw(run.store)
    assert client.hget(IDENTS[0], "failed") == "true"
    assert client.get("jobs_failed") == "1"
    assert client.exists("working", "pending") == 0
    assert client.ttl(IDENTS[0]) > 100_000
    [letter] = dead_letters(run.store)
    assert IDENTS[0] in letter.where
    assert "exit code 1" in letter.why
    assert "it fell over" in letter.excerpt
    assert client.hget(IDENTS[0], "amicrawl_resumed") == "resumed"
    assert len(list((run.directory / "data").glob("a.example*/done"))) == 1


def test_a_crawl_that_hangs_is_killed_and_its_job_resumed(run: Pipelines) -> None:
    submit(run, IDENTS[0], "hang")
    supervisor = run.start()
    run.turn(lambda: supervisor.attempts)
    child = supervisor.attempts[0].child
    assert child is not None
    pid = child.pid
    run.turn(ended(run, IDENTS[0]))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert raw(run.store).get("jobs_completed") == "1"
    assert raw(run.store).hget(IDENTS[0], "amicrawl_attempt") == "2"
    [done] = (run.directory / "data").glob("*/done")
    assert [line.split()[0] for line in done.read_text().splitlines()] == ["1", "2", "3", "4", "5", "6"]


def test_a_drain_gives_the_jobs_back_and_another_pipeline_goes_on_with_them(run: Pipelines) -> None:
    submit(run, IDENTS[0], "long")
    first = run.start("one")
    run.turn(lambda: raw(run.store).hget(IDENTS[0], "items_downloaded"))
    first.signalled()
    first.run()
    client = raw(run.store)
    assert client.lrange("pending", 0, -1) == [IDENTS[0]]
    assert client.hget(IDENTS[0], "started_at") is None
    before = int(client.hget(IDENTS[0], "items_downloaded"))
    client.hset(IDENTS[0], "note", "")
    run.all.clear()
    run.start("two")
    run.turn(ended(run, IDENTS[0]))
    assert client.hget(IDENTS[0], "amicrawl_resumed") == "resumed"
    assert int(client.hget(IDENTS[0], "items_downloaded")) > before
    claim = client.hgetall(run.store.keys.claim(IDENTS[0]))
    assert claim["failures"] == "0"


def test_on_another_disk_a_job_begins_again_and_the_record_says_so(run: Pipelines) -> None:
    submit(run, IDENTS[0], "long")
    first = run.start("one")
    run.turn(lambda: raw(run.store).hget(IDENTS[0], "items_downloaded"))
    first.signalled()
    first.run()
    raw(run.store).hset(IDENTS[0], "note", "")
    run.all.clear()
    run.start("two", data="elsewhere")
    run.turn(ended(run, IDENTS[0]))
    assert raw(run.store).hget(IDENTS[0], "amicrawl_resumed") == "restarted"
    assert "begun again from its start" in said(run, IDENTS[0])


def test_a_crawl_that_does_not_stop_is_killed_by_the_third_signal(run: Pipelines) -> None:
    submit(run, IDENTS[0], "stubborn")
    supervisor = run.start()
    run.turn(lambda: int(raw(run.store).hget(IDENTS[0], "items_downloaded") or 0) > 1)
    for _ in range(3):
        supervisor.signalled()
    supervisor.run()
    assert raw(run.store).lrange("pending", 0, -1) == [IDENTS[0]]
    assert raw(run.store).hget(run.store.keys.claim(IDENTS[0]), "failures") == "0"


def test_a_pipeline_ends_by_the_third_signal_although_redis_is_away(
    redis_server: RedisServer, run: Pipelines
) -> None:
    submit(run, IDENTS[0], "stubborn")
    supervisor = run.start()
    run.turn(lambda: raw(run.store).hget(IDENTS[0], "items_downloaded"))
    [attempt] = supervisor.attempts
    os.kill(redis_server.pid, signal.SIGSTOP)
    try:
        run.turn(lambda: misses_redis(supervisor))
        for _ in range(3):
            supervisor.signalled()
        run.turn(lambda: supervisor.is_over)
    finally:
        os.kill(redis_server.pid, signal.SIGCONT)
    assert attempt.exit_code == -signal.SIGKILL
    assert raw(run.store).hget(run.store.keys.claim(IDENTS[0]), "state") == "held", "its lease runs out"


def test_a_job_waits_until_its_last_owner_has_let_go_of_the_directory(run: Pipelines) -> None:
    submit(run, IDENTS[0], "long")
    first = run.start("one")
    run.turn(lambda: raw(run.store).hget(IDENTS[0], "items_downloaded"))
    first.signalled()
    first.run()
    raw(run.store).hset(IDENTS[0], "note", "")
    run.all.clear()
    [directory] = (path for path in (run.directory / "data").iterdir() if path.is_dir())
    with DirectoryLock(directory):
        run.start("two", options=PipelineOptions(failures_borne=1))
        claim = run.store.keys.claim(IDENTS[0])
        run.turn(lambda: raw(run.store).hget(claim, "unable") == "1")
        token = int(raw(run.store).hget(claim, "token"))
        assert fenced(directory) == token, "so that its last owner knows"
        assert "Another crawl is writing" in raw(run.store).hget(claim, "why")
    run.turn(ended(run, IDENTS[0]))
    assert raw(run.store).get("jobs_completed") == "1"


def test_a_job_that_cannot_begin_does_not_hold_up_the_others(run: Pipelines) -> None:
    """Its last owner stands still, with the directory; the pipeline beside it has a slot to spare."""
    submit(run, IDENTS[0], "long")
    first = run.start("one")
    run.turn(lambda: raw(run.store).hget(IDENTS[0], "items_downloaded"))
    first.signalled()
    first.run()
    run.all.clear()
    [directory] = (path for path in (run.directory / "data").iterdir() if path.is_dir())
    with DirectoryLock(directory):
        for ident in IDENTS[1:4]:
            submit(run, ident)
        run.start("two", options=PipelineOptions(slots=1))
        run.turn(ended(run, *IDENTS[1:4]))
        claim = raw(run.store).hgetall(run.store.keys.claim(IDENTS[0]))
        assert 1 <= int(claim["unable"]) < 10, "it is tried again, with longer and longer pauses"
    raw(run.store).hset(IDENTS[0], "note", "")
    run.turn(ended(run, IDENTS[0]))


def test_a_pipeline_does_not_rest_since_a_frozen_one_has_the_directories_of_its_jobs(
    run: Pipelines,
) -> None:
    for ident in IDENTS[:4]:
        submit(run, ident, "long")
    first = run.start("one", options=PipelineOptions(slots=4))
    run.turn(lambda: all(raw(run.store).hget(ident, "items_downloaded") for ident in IDENTS[:4]))
    first.signalled()
    first.run()
    run.all.clear()
    with contextlib.ExitStack() as locks:
        for path in (run.directory / "data").iterdir():
            if path.is_dir():
                locks.enter_context(DirectoryLock(path))
        submit(run, IDENTS[4])
        second = run.start("two", options=PipelineOptions(slots=1))
        run.turn(ended(run, IDENTS[4]))
        assert second._takes_from == float("-inf"), "it is not this machine that cannot begin any"


def test_a_bucket_that_fails_puts_a_job_off_and_does_not_begin_it_anew(
    run: Pipelines, tmp_path: Path
) -> None:
    base, bucket = f"a.example-inf-20260101-000000-{IDENTS[0][:5]}", tmp_path / "bucket"
    (bucket / base / "uploaded.json").mkdir(parents=True)
    (bucket / f"{base}.checkpoint-0" / "checkpoint.json").mkdir(parents=True)
    submit(run, IDENTS[0])
    claim = {"token": "1", "attempt": "1", "state": "queued", "queued_at": "1700000000"}
    claim |= {"directory": base, "store": "elsewhere", "checkpoint": "0"}
    raw(run.store).hset(run.store.keys.claim(IDENTS[0]), mapping=claim)
    run.start(options=PipelineOptions(slots=1), bucket=bucket.as_uri())
    run.turn(lambda: raw(run.store).hget(run.store.keys.claim(IDENTS[0]), "unable") == "1")
    found = raw(run.store).hgetall(run.store.keys.claim(IDENTS[0]))
    assert (found["directory"], found["checkpoint"]) == (base, "0"), "what is there is not given up"
    for path in (bucket / base, bucket / f"{base}.checkpoint-0"):
        shutil.rmtree(path)
        path.mkdir()
    run.turn(ended(run, IDENTS[0]))
    assert raw(run.store).hget(IDENTS[0], "amicrawl_resumed") == "restarted", "nothing is there"


def test_whatever_goes_wrong_while_one_job_begins_is_the_fault_of_that_job(run: Pipelines) -> None:
    """Of the command line here: nothing that is raised on purpose, and nothing of Redis or the disk."""
    submit(run, IDENTS[0], "long")
    submit(run, IDENTS[1])

    def poisoned(ident: str, directory: Path) -> Sequence[str]:
        if ident == IDENTS[0]:
            raise KeyError("files")
        return stand_in(ident, directory)

    run.start(options=PipelineOptions(failures_borne=2, min_free=0), command=poisoned)
    run.turn(ended(run, IDENTS[1]))
    claim = raw(run.store).hgetall(run.store.keys.claim(IDENTS[0]))
    assert int(claim["unable"]) >= 1
    assert "KeyError" in said(run, IDENTS[0])


def test_a_pipeline_that_falls_over_leaves_no_crawl_behind(run: Pipelines) -> None:
    submit(run, IDENTS[0], "long")

    class FallsOverError(Exception):
        pass

    def wait(_: float) -> None:
        if supervisor.attempts and supervisor.attempts[0].child is not None:
            children.append(supervisor.attempts[0].child)
            raise FallsOverError

    children: list[Child] = []
    supervisor = run.start(wait=wait)
    with pytest.raises(FallsOverError):
        supervisor.run()
    [child] = children
    assert child.poll() == -signal.SIGKILL


def test_a_machine_without_room_fails_no_job(run: Pipelines) -> None:
    submit(run, IDENTS[0], "no room")
    run.start(options=PipelineOptions(failures_borne=1, min_free=0))
    run.turn(lambda: raw(run.store).hget(run.store.keys.claim(IDENTS[0]), "unable") == "1")
    raw(run.store).hset(IDENTS[0], "note", "")
    run.turn(ended(run, IDENTS[0]))
    assert raw(run.store).get("jobs_completed") == "1"
    assert raw(run.store).exists("jobs_failed") == 0


@pytest.mark.parametrize("how", ["finish", "stop-file"])
def test_a_pipeline_that_is_told_to_finish_takes_no_more_jobs(run: Pipelines, how: str) -> None:
    submit(run, IDENTS[0])
    (run.directory / "data").mkdir()
    (run.directory / "data" / "STOP").touch()
    supervisor = run.start("one", options=PipelineOptions(slots=2, min_free=0))
    run.turn(lambda: raw(run.store).hget(IDENTS[0], "items_downloaded"))
    assert supervisor.mode is Mode.RUNS, "an old STOP means nothing"
    if how == "finish":
        tell_to_drain(run.store, "one", how="finish")
    else:
        (run.directory / "data" / "STOP").touch()
    run.turn(lambda: supervisor.mode is Mode.FINISHES)
    submit(run, IDENTS[1])
    supervisor.run()
    assert raw(run.store).hget(IDENTS[0], "finished_at")
    assert raw(run.store).lrange("pending", 0, -1) == [IDENTS[1]]


def test_jobs_of_foreign_pipelines_are_left_alone_and_those_of_dead_ones_taken_over(
    run: Pipelines,
) -> None:
    client = raw(run.store)
    submit(run, IDENTS[0])
    client.rpoplpush("pending", "working")
    client.lpush("working", "no ident")
    submit(run, IDENTS[1])
    claims = Claims(run.store)
    assert claims.reserve(["pending"], "pipeline:dead", timedelta(seconds=1)) is not None
    run.start()
    run.turn(ended(run, IDENTS[1]))
    assert client.lrange("working", 0, -1) == ["no ident", IDENTS[0]]
    assert client.hget(IDENTS[1], "amicrawl_attempt") == "2"


def test_a_job_whose_end_was_requested_is_aborted_running_or_not(run: Pipelines) -> None:
    submit(run, IDENTS[0], abort_requested="true")
    run.start()
    run.turn(lambda: raw(run.store).get("jobs_aborted") == "1")
    assert 0 < raw(run.store).ttl(IDENTS[0]) <= 5
    assert json.loads(raw(run.store).lrange("finish_notifications", 0, 0)[0])["aborted"] is True


def test_output_is_bounded_in_the_log_and_whole_in_the_console_file(run: Pipelines) -> None:
    submit(run, IDENTS[0], "noise")
    run.start()
    run.turn(ended(run, IDENTS[0]))
    lines = said(run, IDENTS[0]).splitlines()
    assert len(lines) < 5000, "so many a second, however many seconds it takes"
    assert any("more lines are in console.log only" in line for line in lines)
    [console] = (run.directory / "data").glob("*/console.log")
    assert console.read_text().count("\n") == 6 * 5000 + 1


def test_keys_of_wrong_types_stop_no_pipeline(run: Pipelines) -> None:
    client = raw(run.store)
    client.set("working", "no list")
    client.rpush("pipelines", "no set")
    client.hset("finish_notifications", "no", "list")
    client.sadd("jobs_completed", "no count")
    submit(run, IDENTS[0])
    supervisor = run.start()
    run.turn(lambda: misses_redis(supervisor))
    client.delete("working")
    run.turn(lambda: client.hget(IDENTS[0], "items_downloaded"))
    client.delete(f"{IDENTS[0]}_log")
    client.set(f"{IDENTS[0]}_log", "no sorted set")
    run.turn(ended(run, IDENTS[0]))
    run.turn(lambda: not supervisor.attempts)
    assert client.get("jobs_completed") == "1"
    assert client.llen("finish_notifications") == 1


def test_no_job_is_taken_while_the_disk_is_nearly_full(run: Pipelines) -> None:
    submit(run, IDENTS[0])
    supervisor = run.start(options=PipelineOptions(min_free=1 << 60))
    run.turn(lambda: pipelines(run.store))
    supervisor.turn()
    assert raw(run.store).llen("pending") == 1


def test_while_redis_is_away_crawls_go_on_and_what_there_is_to_tell_waits(
    redis_server: RedisServer, run: Pipelines
) -> None:
    submit(run, IDENTS[0])
    supervisor = run.start()
    run.turn(lambda: raw(run.store).hget(IDENTS[0], "items_downloaded"))
    os.kill(redis_server.pid, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + 60
        while not misses_redis(supervisor):
            assert time.monotonic() < deadline
            supervisor.turn()
            time.sleep(0.05)
        assert supervisor.attempts[0].exit_code is None
    finally:
        os.kill(redis_server.pid, signal.SIGCONT)
    run.turn(ended(run, IDENTS[0]))
    assert raw(run.store).get("jobs_completed") == "1"


def test_an_outage_longer_than_the_lease_counts_as_no_crash(
    redis_server: RedisServer, run: Pipelines
) -> None:
    submit(run, IDENTS[0], "long")
    options = PipelineOptions(failures_borne=1, slots=1)
    first = run.start("one", options=options)
    run.turn(lambda: first.attempts and first.attempts[0].pulse.has_begun)
    [attempt] = first.attempts
    os.kill(redis_server.pid, signal.SIGSTOP)
    try:
        # By then it waits for longer between two tries than a crawl may go without a renewal.
        deadline = time.monotonic() + 60
        while first._outage.failures < 3:
            assert time.monotonic() < deadline
            first.turn()
            time.sleep(0.05)
    finally:
        os.kill(redis_server.pid, signal.SIGCONT)
    pages = int(raw(run.store).hget(IDENTS[0], "items_downloaded"))
    run.turn(lambda: not misses_redis(first))
    run.turn(lambda: int(raw(run.store).hget(IDENTS[0], "items_downloaded")) > pages + 3)
    assert first.attempts == [attempt]
    assert attempt.is_running
    claim = raw(run.store).hgetall(run.store.keys.claim(IDENTS[0]))
    assert (claim["attempt"], claim.get("failures", "0")) == ("1", "0")


@pytest.mark.parametrize("earlier", [{}, {"token": "17", "state": "queued", "attempt": "3"}])
def test_a_job_is_kept_when_redis_starts_from_a_snapshot_of_before_it_was_taken(
    tmp_path: Path, earlier: dict[str, str]
) -> None:
    """With the claim of an earlier attempt in it, or none."""
    server = started_server()
    run = Pipelines(server.url, tmp_path)
    try:
        submit(run, IDENTS[0])
        if earlier:
            claim = {**earlier, "queued_at": "1700000000"}
            raw(run.store).hset(run.store.keys.claim(IDENTS[0]), mapping=claim)
        begin_epoch(run.store)
        server.client().save()
        pipeline = run.start(options=PipelineOptions(slots=1))
        run.turn(lambda: raw(run.store).hget(IDENTS[0], "items_downloaded"))
        [attempt] = pipeline.attempts
        server.kill()
        run.turn(lambda: misses_redis(pipeline))
        server.start()
        run.turn(ended(run, IDENTS[0]))
        claim = raw(run.store).hgetall(run.store.keys.claim(IDENTS[0]))
        assert (claim["token"], claim["state"]) == (str(attempt.claim.token), "done")
        assert raw(run.store).get("jobs_completed") == "1"
        assert not raw(run.store).exists("pending", "working")
    finally:
        run.end()
        end(server)


def test_a_job_is_kept_while_its_files_are_fetched_for_longer_than_a_lease(
    run: Pipelines, tmp_path: Path
) -> None:
    """Until a slow bucket has given the files, the pipeline renews the lease for the crawl."""
    submit(run, IDENTS[0])
    bucket, base = (tmp_path / "bucket").as_uri(), shipped_elsewhere(run, tmp_path)
    disk = SlowBucketDisk()
    options = PipelineOptions(failures_borne=1, slots=1)
    slow = run.start("one", options=options, bucket=bucket, disk=disk)
    run.turn(disk.is_copying.is_set)
    idle = run.start("two", data="other", options=options, bucket=bucket)
    let_leases_pass(run, IDENTS[0])
    assert [attempt.ident for attempt in slow.attempts] == [IDENTS[0]]
    assert idle.attempts == []

    disk.permitted.set()
    run.turn(ended(run, IDENTS[0]))
    found = raw(run.store).hgetall(run.store.keys.claim(IDENTS[0]))
    assert (found["attempt"], found["resumed"], found.get("failures", "0")) == ("2", "resumed", "0")
    assert (tmp_path / "data" / base / "frontier" / "super").read_bytes() == b"a super block"
    assert not (tmp_path / "other" / base).exists()


@pytest.mark.parametrize("sent", [False, True])
def test_a_pipeline_ends_by_the_third_signal_although_a_bucket_does_not_go_on(
    run: Pipelines, tmp_path: Path, *, sent: bool
) -> None:
    """While files are fetched before a crawl, or sent after it."""
    submit(run, IDENTS[0], "long")
    if sent:
        (tmp_path / "bucket").mkdir()
    else:
        shipped_elsewhere(run, tmp_path)
    disk = SlowBucketDisk()
    pipeline = run.start(bucket=(tmp_path / "bucket").as_uri(), disk=disk)
    try:
        if sent:
            run.turn(lambda: raw(run.store).hget(IDENTS[0], "items_downloaded"))
            pipeline.signalled()
        run.turn(disk.is_copying.is_set)
        for _ in range(3):
            pipeline.signalled()
        run.turn(lambda: pipeline.is_over, seconds=30)
        assert not disk.permitted.is_set()
    finally:
        disk.permitted.set()
    claim = raw(run.store).hgetall(run.store.keys.claim(IDENTS[0]))
    assert (claim["state"], claim.get("shipped")) == ("queued", None if sent else "1")
    assert raw(run.store).lrange("pending", 0, -1) == [IDENTS[0]]


def test_a_job_that_redis_loses_before_its_crawl_has_begun_is_written_back(
    run: Pipelines, tmp_path: Path
) -> None:
    """Twice: while its files are fetched, and while its process starts."""
    base, bucket = f"a.example-inf-20260101-000000-{IDENTS[0][:5]}", (tmp_path / "bucket").as_uri()
    (tmp_path / "bucket").mkdir()
    submit(run, IDENTS[0], note="kept")
    claim = {"token": "1", "attempt": "1", "state": "queued", "queued_at": "1700000000"}
    claim |= {"directory": base, "store": "elsewhere", "checkpoint": "0"}
    raw(run.store).hset(run.store.keys.claim(IDENTS[0]), mapping=claim)
    disk, seen = SlowBucketDisk(), []

    def command(ident: str, directory: Path) -> Sequence[str]:
        seen.append(raw(run.store).hgetall(ident))
        raw(run.store).flushall()
        return stand_in(ident, directory)

    pipeline = run.start(options=PipelineOptions(slots=1), bucket=bucket, disk=disk, command=command)
    run.turn(lambda: pipeline.attempts)
    raw(run.store).flushall()
    disk.permitted.set()
    run.turn(lambda: not pipeline.attempts)
    assert seen[0]["note"] == "kept"
    assert raw(run.store).hget(IDENTS[0], "url") == f"http://{IDENTS[0]}.example/"
    assert raw(run.store).smembers(f"{IDENTS[0]}_ignores") == {"x"}
    assert raw(run.store).get("jobs_completed") == "1"


def test_the_end_of_a_job_settles_what_its_crawl_could_not_report(
    run: Pipelines, tmp_path: Path
) -> None:
    """The index and what the crawl has left in `job.json` are all that is known of it."""
    submit(run, IDENTS[0])
    unsent = encoded(Stdout(5.0, "The crawl has ended: finished\n"))

    def command(ident: str, directory: Path) -> Sequence[str]:
        write_index(directory, 3)
        copy = JobCopy.read(directory)
        assert copy is not None
        copy.unsent = [encoded(Download(4.0, "http://a.example/2", 200)), unsent]
        copy.write(directory, disk=Disk())
        job_log.say(run.store, ident, copy.token, [encoded(Download(2.0, "http://a.example/0", 200))])
        # It has ended before the pipeline has reported its first lines.
        return [sys.executable, "-c", "print('crawling')"]

    run.start(command=command)
    run.turn(ended(run, IDENTS[0]))
    record = raw(run.store).hgetall(IDENTS[0])
    assert (record["items_downloaded"], record["items_queued"], record["r2xx"]) == ("3", "3", "3")
    assert record["last_analyzed_log_entry"] == record["log_score"], "an analyzer would count them again"
    entries = [logged.entry for logged in job_log.entries_after(run.store, IDENTS[0]).entries]
    pages = sorted(entry.url for entry in entries if isinstance(entry, Download))
    assert pages == [f"http://a.example/{number}" for number in range(3)]
    said = [entry.message for entry in entries if isinstance(entry, Stdout)]
    assert [message.partition(" ")[0] for message in said] == [
        "Received",
        "crawling\n",
        "The",
        "Finished",
    ]
    before = len(entries)
    account = account_of(next((tmp_path / "data").glob("a.example*/")))
    assert account is not None
    token = int(raw(run.store).hget(run.store.keys.claim(IDENTS[0]), "token"))
    assert settle(run.store, IDENTS[0], token, account) == 0
    assert settle(run.store, IDENTS[0], token - 1, Account(Figures(r2xx=9))) == 0
    assert len(job_log.entries_after(run.store, IDENTS[0]).entries) == before
    assert raw(run.store).hget(IDENTS[0], "r2xx") == "3", "another claim changes nothing"


def write_index(directory: Path, rows: int) -> None:
    """Write the `captures.parquet` of a crawl of so many pages into *directory*."""
    urls = [f"http://a.example/{number}" for number in range(rows)]
    started_ms = unix_ms(datetime(2026, 5, 4, 12, tzinfo=UTC))
    items = [
        CaptureItem(
            Capture(url=url, started_ms=started_ms, duration_ms=1, status=200), Seed(url), body_length=7
        )
        for url in urls
    ]
    pq.write_table(
        pa.Table.from_pylist([row_of(item) for item in items], CAPTURES), directory / "captures.parquet"
    )


def test_a_job_is_kept_while_its_files_are_sent_for_longer_than_a_lease(
    run: Pipelines, tmp_path: Path
) -> None:
    """A pipeline that drains gives the job back when its files are in the bucket, and not before."""
    submit(run, IDENTS[0], "long")
    disk, bucket = SlowBucketDisk(), (tmp_path / "bucket").as_uri()
    options = PipelineOptions(failures_borne=1, slots=1)
    (tmp_path / "bucket").mkdir()
    slow = run.start("one", options=options, bucket=bucket, disk=disk)
    run.turn(lambda: slow.attempts and slow.attempts[0].pulse.has_begun)
    [crawled] = (tmp_path / "data").glob("a.example-inf-*")
    (crawled / "frontier").mkdir()
    (crawled / "frontier" / "super").write_bytes(b"a super block")
    (crawled / "crawl.json").write_text('{"format": 1, "files": []}')
    slow.signalled()
    run.turn(disk.is_copying.is_set)
    run.start("two", data="other", options=options, bucket=bucket)
    let_leases_pass(run, IDENTS[0])

    disk.permitted.set()
    raw(run.store).hset(IDENTS[0], "note", "")
    run.turn(ended(run, IDENTS[0]))
    found = raw(run.store).hgetall(run.store.keys.claim(IDENTS[0]))
    assert (found["attempt"], found["resumed"], found.get("failures", "0")) == ("2", "resumed", "0")
    assert (tmp_path / "other" / crawled.name / "frontier" / "super").read_bytes() == b"a super block"


def test_a_pipeline_that_stood_still_while_it_sent_a_jobs_files_sends_no_more_of_them(
    run: Pipelines, tmp_path: Path
) -> None:
    submit(run, IDENTS[0], "long")
    disk, bucket = SlowBucketDisk(), tmp_path / "bucket"
    options = PipelineOptions(slots=1)
    bucket.mkdir()
    frozen = run.start("one", options=options, bucket=bucket.as_uri(), disk=disk)
    run.turn(lambda: frozen.attempts and frozen.attempts[0].pulse.has_begun)
    [crawled] = (tmp_path / "data").glob("a.example-inf-*")
    (crawled / "frontier").mkdir()
    (crawled / "crawl.json").write_text('{"format": 1, "files": []}')
    frozen.signalled()
    run.turn(disk.is_copying.is_set)
    run.all.remove(frozen)
    other = run.start("two", data="other", options=options, bucket=bucket.as_uri())
    run.turn(lambda: other.attempts and other.attempts[0].is_running)

    disk.permitted.set()
    run.all.insert(0, frozen)
    run.turn(lambda: not frozen.attempts)
    assert not list(bucket.rglob("crawl.json"))
