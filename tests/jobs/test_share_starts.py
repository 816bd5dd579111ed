"""The start URLs of a shared crawl whose scope they make, and what becomes of a crawl without them."""

from __future__ import annotations

import contextlib
import gzip
import sys
import time
from typing import TYPE_CHECKING

import pytest
import warm_processes
from crawl_processes import end
from loopback import PROJECT, environment, write_lines

from amicrawl.errors import ExitCode
from amicrawl.fleet.database.connection import RedisSettings, connect
from amicrawl.fleet.sharing.creation import begin, keep_starts, seeds_given
from amicrawl.fleet.sharing.record import ShareRecord
from amicrawl.fleet.sharing.share import Ended, Share, TakenPartition

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[JobStore]:
    store = connect(RedisSettings(url=redis_server.url))
    yield store
    store.close()


def share(server: RedisServer, *words: str) -> subprocess.CompletedProcess[str]:
    return warm_processes.run(
        [sys.executable, "-m", "amicrawl", "share", *words],
        cwd=PROJECT,
        env=environment() | {"REDIS_URL": server.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def create(server: RedisServer, path: Path, *lines: str, add: bool = False) -> tuple[int, str]:
    seeds = write_lines(path / "seeds.txt", list(lines))
    further = ["--add"] if add else []
    done = share(server, "create", "a", "--seeds", str(seeds), "--partitions", "1", *further)
    return done.returncode, done.stderr


def taken(store: JobStore) -> tuple[Share, TakenPartition]:
    found = Share.open(store, "a")
    partition = found.take("me", data="")
    assert isinstance(partition, TakenPartition)
    return found, partition


def test_start_urls_are_added_to_no_crawl_that_runs_within_the_scope_of_the_earlier_ones(
    redis_server: RedisServer, store: JobStore, tmp_path: Path
) -> None:
    assert create(redis_server, tmp_path, "http://a.example/")[0] == ExitCode.DONE
    found, partition = taken(store)
    code, said = create(redis_server, tmp_path, "http://b.example/", add=True)
    assert code == ExitCode.USAGE
    assert "amicrawl share stop a" in said
    assert not Share.open(store, "a").record.seeding, "the crawl can end"
    assert found.release(partition.number, partition.token, Ended.ENDED) == "ready"
    assert create(redis_server, tmp_path, "http://b.example/", add=True) == (ExitCode.DONE, "")


def test_a_crawl_that_begins_has_the_start_urls_that_were_added_since_its_worker_began(
    redis_server: RedisServer, store: JobStore, tmp_path: Path
) -> None:
    found, token = begin(store, ShareRecord("a", 1))
    keep_starts(found, ["http://a.example/"])
    assert found.send(-1, token, [(0, "noise")]) == ["taken"]
    seeds_given(found)
    _, partition = taken(store)
    starts = tmp_path / "a" / "starts.txt"
    line = [sys.executable, "-m", "amicrawl", "share", "work", "a", "--data", str(tmp_path)]
    with contextlib.ExitStack() as started, (tmp_path / "log").open("wb") as log:
        env = environment() | {"REDIS_URL": redis_server.url}
        started.callback(end, warm_processes.Popen(line, cwd=PROJECT, env=env, stdout=log, stderr=log))
        wait_for(starts, "http://a.example/\n")
        keep_starts(found, ["http://b.example/", "http://a.example/"])
        assert found.release(partition.number, partition.token, Ended.ENDED) == "ready"
        wait_for(starts, "http://a.example/\nhttp://b.example/\n")


def wait_for(path: Path, content: str) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() or path.read_text() != content:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_no_worker_begins_before_the_start_urls_are_there(
    redis_server: RedisServer, store: JobStore, tmp_path: Path
) -> None:
    begin(store, ShareRecord("a", 1))
    worked = share(redis_server, "work", "a", "--data", str(tmp_path))
    assert worked.returncode == ExitCode.INPUT
    assert "are not in Redis yet" in worked.stderr


def test_a_crawl_without_a_start_url_is_not_begun(redis_server: RedisServer, tmp_path: Path) -> None:
    code, said = create(redis_server, tmp_path, "mailto:a@b.example")
    assert code == ExitCode.INPUT, said
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"http://a.example/\n" * 9)[:-4])
    cut = share(redis_server, "create", "a", "--seeds", str(tmp_path / "cut.gz"), "--partitions", "1")
    assert (cut.returncode, "Get a complete copy" in cut.stderr) == (ExitCode.INPUT, True)
    assert share(redis_server, "status", "a").returncode == ExitCode.INPUT
    assert create(redis_server, tmp_path, "http://a.example/")[0] == ExitCode.DONE


@pytest.mark.parametrize("kind", ["garbage", "list"])
def test_a_crawl_whose_record_is_invalid_can_be_removed_and_made_again(
    redis_server: RedisServer, store: JobStore, tmp_path: Path, kind: str
) -> None:
    assert create(redis_server, tmp_path, "http://a.example/")[0] == ExitCode.DONE
    record = Share.open(store, "a").keys.record
    if kind == "garbage":
        store.client.hset(record, "partitions", "many")
    else:
        store.client.delete(record)
        store.client.rpush(record, "x")
    assert "amicrawl share remove" in share(redis_server, "status", "a").stderr
    removed = share(redis_server, "remove", "a")
    assert removed.returncode == ExitCode.DONE, removed.stderr
    assert share(redis_server, "remove", "a").returncode == ExitCode.INPUT
    assert create(redis_server, tmp_path, "http://a.example/")[0] == ExitCode.DONE


def test_figures_of_any_size_are_shown_or_left_out(
    redis_server: RedisServer, store: JobStore, tmp_path: Path
) -> None:
    create(redis_server, tmp_path, "http://a.example/")
    claim = Share.open(store, "a").keys.claim(0)
    store.client.hset(claim, "facts", '{"rows": 1e999, "queued": 1, "urls": 1}')
    assert share(redis_server, "status", "a").returncode == ExitCode.DONE
