"""A worker of a shared crawl and its children, which are small programs here: who has what, and when."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError, UsageError
from amicrawl.fleet.database.connection import RedisSettings, connect
from amicrawl.fleet.jobs.child import CONSOLE_SIZE
from amicrawl.fleet.leases.leased import fenced
from amicrawl.fleet.sharing.creation import SeedGiver, begin, keep_starts, seeds_given, starts_of
from amicrawl.fleet.sharing.record import ShareRecord, checked_name
from amicrawl.fleet.sharing.share import ATTEMPTS, NEXT, Share, TakenPartition
from amicrawl.fleet.sharing.worker import ShareWorker, written_once
from amicrawl.partition.batch import links_in
from amicrawl.seed import Seed
from amicrawl.urls import Refused, UrlKey, shard_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[JobStore]:
    store = connect(RedisSettings(url=redis_server.url))
    yield store
    store.close()


def shared(store: JobStore, *, place: str = "", partitions: int = 1) -> Share:
    share, token = begin(store, ShareRecord("work", partitions, place=place))
    share.send(-1, token, [(number, "a batch") for number in range(partitions)])
    seeds_given(share)
    return share


class Told:
    """What a worker tells; stops it when it tells of something."""

    def __init__(self, *, stop_at: str = "nothing like this") -> None:
        self.sentences: list[str] = []
        self.worker: ShareWorker | None = None
        self._stop_at = stop_at

    def __call__(self, sentence: str) -> None:
        self.sentences.append(sentence)
        if self._stop_at in sentence and self.worker is not None:
            self.worker.signalled()


def worked(
    share: Share, data: Path, program: str, *, told: Told | None = None, ttl: float = 30.0
) -> tuple[ExitCode, list[str]]:
    """Run a worker whose children are the shell *program*, in the directory of the partition."""
    told = told or Told()
    worker = told.worker = ShareWorker(
        share,
        data,
        command=lambda _, directory: ["sh", "-c", f"cd '{directory}' && {program}"],
        environment={},
        ttl=timedelta(seconds=ttl),
        tell=told,
    )
    worker.run()
    return worker.code, told.sentences


def test_a_partition_travels_to_another_machine_with_its_frontier_and_its_outbox(
    store: JobStore, tmp_path: Path
) -> None:
    (tmp_path / "place").mkdir()
    share = shared(store, place=f"file://{tmp_path / 'place'}")
    program = "mkdir -p frontier && echo rows > frontier/snap-1.meguri && echo links > outbox"
    program += " && touch a.warc.gz"
    code, _ = worked(share, tmp_path / "a", program, told=Told(stop_at="is ready"))
    assert code is ExitCode.STOPPED
    program = "test -e result || cat frontier/snap-1.meguri outbox > result"
    code, told = worked(share, tmp_path / "b", program, told=Told(stop_at="is ready"))
    assert code is ExitCode.STOPPED
    directory = tmp_path / "b" / "work" / "part-000"
    assert (directory / "result").read_text() == "rows\nlinks\n"
    assert not (directory / "a.warc.gz").exists()
    assert any("was fetched from" in sentence for sentence in told)
    # And back: what the first machine still has is not what counts.
    (directory / "frontier" / "snap-1.meguri").write_text("more rows\n")
    worked(share, tmp_path / "b", "true", told=Told(stop_at="is ready"))
    worked(share, tmp_path / "a", "cat frontier/snap-1.meguri > result", told=Told(stop_at="is ready"))
    assert (tmp_path / "a" / "work" / "part-000" / "result").read_text() == "more rows\n"


def test_a_bucket_that_is_away_for_a_while_costs_no_partition(store: JobStore, tmp_path: Path) -> None:
    """Five tries were over in five seconds, and the crawl ended without what was shipped."""
    place = tmp_path / "place"
    place.mkdir()
    share = shared(store, place=f"file://{place}")
    program = "mkdir -p frontier && echo rows > frontier/snap-1.meguri"
    worked(share, tmp_path / "a", program, told=Told(stop_at="is ready"))
    (shipped,) = place.iterdir()
    shipped.rename(tmp_path / "away")
    shipped.symlink_to(tmp_path / "nothing" / "there")

    class Back(Told):
        def __call__(self, sentence: str) -> None:
            super().__call__(sentence)
            if self.sentences.count("Partition 0 is ready.") == 2 and shipped.is_symlink():
                assert share.standings()[0]["failures"] == "0"
                shipped.unlink()
                (tmp_path / "away").rename(shipped)

    code, told = worked(share, tmp_path / "b", "touch result", told=Back(stop_at="was fetched from"))
    assert code is ExitCode.STOPPED
    assert sum("cannot begin" in sentence for sentence in told) == 2
    assert (tmp_path / "b" / "work" / "part-000" / "frontier" / "snap-1.meguri").exists()


@pytest.mark.parametrize("code", [ExitCode.OUTPUT, ExitCode.UNAVAILABLE])
def test_a_full_disk_is_not_a_crash_and_the_worker_rests(
    store: JobStore, tmp_path: Path, code: ExitCode
) -> None:
    share = shared(store)
    began = time.monotonic()

    class Twice(Told):
        def __call__(self, sentence: str) -> None:
            super().__call__(sentence)
            if self.sentences.count("Partition 0 is ready.") == 2 and self.worker is not None:
                self.worker.signalled()

    worked(share, tmp_path, f"exit {int(code)}", told=Twice())
    assert share.standings()[0]["failures"] == "0"
    assert time.monotonic() - began >= 1


def test_a_crawl_that_crashes_again_and_again_is_given_up(store: JobStore, tmp_path: Path) -> None:
    code, told = worked(shared(store), tmp_path, "exit 1")
    assert code is ExitCode.OUR_ERROR
    assert told.count("Partition 0 is ready.") == ATTEMPTS - 1
    assert told[-2:] == [
        "Partition 0 has failed.",
        "Partition 0 was given up: see `amicrawl share status`.",
    ]


def test_a_crawl_at_its_limit_is_not_begun_again(store: JobStore, tmp_path: Path) -> None:
    code, told = worked(shared(store), tmp_path, f"exit {int(ExitCode.LIMIT)}")
    assert code is ExitCode.OUR_ERROR
    assert "Partition 0 has reached a limit." in told


def test_a_child_is_told_what_it_holds(store: JobStore, tmp_path: Path) -> None:
    worked(shared(store), tmp_path, "env > said", told=Told(stop_at="is ready"))
    directory = tmp_path / "work" / "part-000"
    said = dict(
        line.split("=", 1) for line in (directory / "said").read_text().splitlines() if "=" in line
    )
    assert said["AMICRAWL_JOB_UNIT"] == "work.p0"
    assert fenced(directory) == int(said["AMICRAWL_JOB_TOKEN"])
    assert float(said["AMICRAWL_JOB_LEASE"]) == 30.0


def test_what_a_crawl_prints_is_bounded_while_it_runs(store: JobStore, tmp_path: Path) -> None:
    # Long lines: each costs as much as a short one.
    noise = f"yes {'x' * 4000} | head -c 40000000"
    worked(shared(store), tmp_path, noise, told=Told(stop_at="is ready"))
    kept = sorted((tmp_path / "work" / "part-000").glob("worker.log*"))
    assert [path.name for path in kept] == ["worker.log", "worker.log.1"]
    assert all(path.stat().st_size < CONSOLE_SIZE + 2**20 for path in kept)
    assert sum(path.stat().st_size for path in kept) > CONSOLE_SIZE


def test_a_directory_that_is_written_to_is_waited_for(store: JobStore, tmp_path: Path) -> None:
    directory = tmp_path / "work" / "part-000"
    directory.mkdir(parents=True)
    lock = DirectoryLock(directory)
    share = shared(store)
    free = threading.Event()

    def wait_for_the_fence() -> None:
        while not fenced(directory):
            free.wait(0.05)
        free.wait(0.5)
        (directory / "before").touch()
        lock.release()

    thread = threading.Thread(target=wait_for_the_fence)
    thread.start()
    worked(share, tmp_path, "test -e before && touch after", told=Told(stop_at="is ready"))
    thread.join()
    assert (directory / "after").exists()


def test_a_crawl_whose_partition_was_lost_is_killed(store: JobStore, tmp_path: Path) -> None:
    share = shared(store)
    told = Told(stop_at="was lost")

    def steal() -> None:
        while not (tmp_path / "work" / "part-000" / "begun").exists():
            threading.Event().wait(0.05)
        store.client.hset(share.keys.claim(0), "token", "99")

    thread = threading.Thread(target=steal)
    thread.start()
    code, sentences = worked(share, tmp_path, "touch begun && sleep 600", told=told, ttl=1.0)
    thread.join()
    assert code is ExitCode.STOPPED
    assert "Partition 0 was lost to another worker." in sentences


HANGS = """
import os, signal, sys, time, redis
client, token = redis.Redis.from_url(sys.argv[1]), os.environ["AMICRAWL_JOB_TOKEN"]
for _ in range(12):
    client.set("amicrawl:lease:work.p0", token, px=2000)
    client.hset("amicrawl:claim:work.p0", "begun", token)
    time.sleep(0.25)
os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_crawl_that_hangs_is_killed_though_the_worker_around_it_lives(
    store: JobStore, redis_server: RedisServer, tmp_path: Path
) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    program = f"exec '{sys.executable}' '{tmp_path / 'hangs.py'}' {redis_server.url}"
    told = Told(stop_at="Partition 0 is ready")
    _, sentences = worked(shared(store), tmp_path, program, told=told, ttl=2.0)
    assert any("ended with code -9" in sentence for sentence in sentences)


def test_a_crawl_that_was_removed_ends_its_workers(store: JobStore, tmp_path: Path) -> None:
    share = shared(store)
    share.remove()
    assert store.client.keys("amicrawl:share*") == []
    code, _ = worked(share, tmp_path, "true")
    assert code is ExitCode.INPUT


def test_a_worker_waits_while_redis_is_away(redis_server: RedisServer, tmp_path: Path) -> None:
    away = connect(RedisSettings(url="redis://127.0.0.1:1/0"))
    store = connect(RedisSettings(url=redis_server.url))
    record = shared(store).record
    told = Told(stop_at="Trying again")
    code, sentences = worked(Share(away, record), tmp_path, "true", told=told)
    assert code is ExitCode.STOPPED
    assert "does not respond" in sentences[0]
    store.close()


def host_of(url: str) -> UrlKey | Refused:
    return UrlKey(int(url.rsplit("/", 1)[1]) * 0x9E3779B97F4A7C15 % 2**64, 1)


def test_seeds_go_to_their_partitions_as_fast_as_inboxes_are_emptied(store: JobStore) -> None:
    share, token = begin(store, ShareRecord("work", 2, inbox=1))
    found: dict[int, list[str]] = {0: [], 1: []}
    held: dict[int, TakenPartition] = {}

    def empty(_pause: float = 0) -> None:
        while len(held) < 2 and isinstance(found_one := share.take("me", data="here"), TakenPartition):
            held[found_one.number] = found_one
        for number, one in held.items():
            read = share.receive(number, one.token, most=10, after=NEXT)
            assert read is not None
            for _, fields in read:
                found[number] += [link.seed.url for link in links_in(fields["b"])[0]]
            share.acknowledge(number, one.token, [name for name, _ in read])

    giver = SeedGiver(share, token, key_of=host_of, sleep=empty)
    urls = [f"http://example.org/{number}" for number in range(30_000)]
    giver.give(map(Seed, urls))
    empty()
    assert giver.given == len(urls)
    for number, theirs in found.items():
        expected = [url for url in urls if shard_of(host_of(url)[0], 2) == number]  # type: ignore[index]
        assert theirs == expected


@pytest.mark.parametrize("state", ["failed", "limit"])
def test_giving_ends_where_only_partitions_that_are_out_are_left(store: JobStore, state: str) -> None:
    """It waited for ever, without a word."""
    share, token = begin(store, ShareRecord("work", 2))
    numbers = {shard_of(host_of(f"http://a/{n}").host, 2): f"http://a/{n}" for n in range(20)}  # type: ignore[union-attr]
    raw: Any = store.client
    raw.hset(share.keys.claim(0), "state", state)
    giver = SeedGiver(share, token, key_of=host_of)
    with pytest.raises(UsageError, match=r"1 seed cannot be added: partitions \[0\].*share retry work"):
        giver.give([Seed(numbers[0]), Seed(numbers[1])])
    assert giver.given == 1
    assert share.retry() == 1
    SeedGiver(share, token, key_of=host_of).give([Seed(numbers[0]), Seed(numbers[1])])


def test_somebody_else_who_gives_seeds_ends_this_giving(store: JobStore) -> None:
    share, token = begin(store, ShareRecord("work", 1))
    begin(store, ShareRecord("work", 1), again=True)
    with pytest.raises(UsageError, match="Another process"):
        SeedGiver(share, token, key_of=host_of).give([Seed("http://example.org/1")])


def test_a_crawl_is_made_once_and_only_alike(store: JobStore) -> None:
    begin(store, ShareRecord("work", 2))
    with pytest.raises(UsageError, match="already"):
        begin(store, ShareRecord("work", 2))
    with pytest.raises(UsageError, match="other partitions"):
        begin(store, ShareRecord("work", 3), again=True)


def test_start_urls_come_back_as_they_were_kept(store: JobStore) -> None:
    share, _ = begin(store, ShareRecord("work", 1))
    urls = [f"http://example.org/{number}" for number in range(12_000)]
    keep_starts(share, urls)
    assert starts_of(share) == urls
    store.client.rpush(share.keys.starts, "noise")
    with pytest.raises(InputError):
        starts_of(share)


@pytest.mark.parametrize(
    "name", ["", "a b", "../x", "A", "a:b", "-a", "a-", "x" * 65, "a\n", "a.p0", "ä"]
)
def test_names_that_could_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        checked_name(name)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"partitions": "0"},
        {"partitions": "9999999"},
        {"partitions": "x"},
        {"depth": "deep"},
        {"inbox": "-1"},
    ],
)
def test_a_record_that_cannot_be_followed_is_said_in_a_sentence(fields: dict[str, str]) -> None:
    whole = ShareRecord("work", 2).fields()
    if not fields:
        whole.pop("partitions")
    with pytest.raises(InputError, match="is invalid"):
        ShareRecord.parse("work", whole | fields)


def test_workers_that_begin_at_once_write_the_same_file_and_none_fails(tmp_path: Path) -> None:
    path = tmp_path / "crawl.toml"
    all_here = threading.Barrier(2)

    class SlowDisk(Disk):
        """A disk on which two begin to write before either is done."""

        def sync(self, descriptor: int) -> None:
            all_here.wait(30)

    with ThreadPoolExecutor(2) as workers:
        begun = [workers.submit(written_once, path, b"[seeds]\n", disk=SlowDisk()) for _ in range(2)]
    assert [each.result() for each in begun] == [path, path]
    assert path.read_bytes() == b"[seeds]\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_worker_that_redis_turns_away_leaves_no_crawl_behind(
    store: JobStore, redis_server: RedisServer, tmp_path: Path
) -> None:
    record = shared(store).record
    store.client.acl_setuser(
        "worker", enabled=True, passwords=["+word"], commands=["+@all"], keys=["*"], channels=["*"]
    )
    mine = connect(RedisSettings(url=redis_server.url), username="worker", password="word")
    begun = tmp_path / "work" / "part-000" / "begun"

    def turn_away() -> None:
        while not begun.exists():
            threading.Event().wait(0.05)
        store.client.acl_setuser("worker", enabled=True, categories=["-@all"])

    thread = threading.Thread(target=turn_away)
    thread.start()
    with pytest.raises(UsageError):
        worked(
            Share(mine, record),
            tmp_path,
            "trap 'touch ended; exit' INT; touch begun; while :; do sleep 0.1; done",
            ttl=2.0,
        )
    thread.join()
    assert begun.with_name("ended").exists()
    store.client.acl_deluser("worker")
    mine.close()
