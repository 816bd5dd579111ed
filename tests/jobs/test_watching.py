"""Watching: many jobs in one round trip, and the mark of what was broadcast."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from amicrawl.fleet.database.connection import RedisUnavailable, connect
from amicrawl.fleet.database.redis_values import number_of, scored_at
from amicrawl.fleet.jobs.watching import LONGEST, Broadcasts, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore

IDENT = "1q2qydhkeh3gfnrcxuf6py70b"
OTHER = "43z7a11vo6of3a7i173441dtc"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[JobStore]:
    found = connect({"REDIS_URL": redis_server.url})
    yield found
    found.close()


def test_jobs_are_read_in_their_order_with_what_was_requested(store: JobStore) -> None:
    store.client.hset(IDENT, mapping={"url": "http://a.example/", "unknown": "x", "note": "n" * 100_000})
    store.client.hset(f"amicrawl:facts:{IDENT}", mapping={"now": "{}", "history": "[]"})
    store.client.hset(f"amicrawl:claim:{IDENT}", mapping={"attempt": "2", "resumed": "resumed"})
    store.client.set(OTHER, "no record")
    nobody = "0" * 25
    found = Watch(store).jobs([nobody, IDENT, OTHER])
    assert [job.record.get("url") for job in found] == [None, "http://a.example/", None]
    assert found[1].facts == {"now": "{}"}
    assert (found[1].attempt, found[1].resumed) == ("2", "resumed")
    assert len(found[1].record["note"]) >= LONGEST
    assert "unknown" not in found[1].record
    assert Watch(store).jobs([]) == []


def test_a_job_that_is_taken_from_one_of_many_queues_is_never_nowhere(store: JobStore) -> None:
    names = [f"tagged-{number}" for number in range(1000)]
    store.client.lpush(names[-1], IDENT)
    over = threading.Event()

    def move() -> None:
        while not over.is_set():
            store.client.lmove(names[-1], "working", "LEFT", "LEFT")
            store.client.lmove("working", names[-1], "LEFT", "LEFT")

    thread = threading.Thread(target=move)
    thread.start()
    try:
        looks = [Watch(store).live(names) for _ in range(100)]
    finally:
        over.set()
        thread.join()
    assert [len(look.working) + len(look.queues[names[-1]]) for look in looks] == [1] * 100


def test_the_newest_entries_of_a_log_are_read_behind_a_number(store: JobStore) -> None:
    store.client.zadd(f"{IDENT}_log", {f"entry {n}": n for n in range(1, 101)})
    watch = Watch(store)
    read = watch.logs({IDENT: 90, OTHER: 0}, most=5)
    assert read == {IDENT: [(float(n), f"entry {n}") for n in range(96, 101)], OTHER: []}
    key = store.keys.log(IDENT)
    assert scored_at(store, key, before=10, most=2, newest=True) == [(8.0, "entry 8"), (9.0, "entry 9")]
    assert scored_at(store, key, after=97, before=100) == [(98.0, "entry 98"), (99.0, "entry 99")]


def test_names_are_told_apart_below_a_prefix_with_odd_characters(redis_server: RedisServer) -> None:
    prefix = "a[b]*:"
    store = connect({"REDIS_URL": redis_server.url, "AMICRAWL_REDIS_PREFIX": prefix})
    try:
        for name in (IDENT, "pending:tag", "pipeline:" + "a" * 32, "pendingx"):
            store.client.set(prefix + name, "x")
            store.client.set(name, "x")
        names = Watch(store).names()
        assert names.jobs == [IDENT]
        assert names.queues == ["pending:tag"]
        assert names.pipelines == [f"{prefix}pipeline:" + "a" * 32]
    finally:
        store.close()


def test_a_server_that_is_away_is_told_as_such() -> None:
    store = connect({"REDIS_URL": "redis://127.0.0.1:1/0"})
    watch = Watch(store)
    for read in (
        watch.names,
        lambda: watch.live(["pending"]),
        lambda: watch.jobs([IDENT]),
        watch.updates,
    ):
        with pytest.raises(RedisUnavailable):
            read()


def look(store: JobStore, broadcasts: Broadcasts) -> str | None:
    seen = dict(zip([IDENT], Watch(store).jobs([IDENT], facts=()), strict=True))
    broadcasts.look(seen, now=1_700_000_000.5)
    mark = store.client.hget(IDENT, "last_broadcasted_log_entry")
    assert not isinstance(mark, bytes)
    return mark


def test_the_mark_follows_where_nobody_else_broadcasts(store: JobStore) -> None:
    clock = Clock()
    broadcasts = Broadcasts(store, clock=clock)
    store.client.hset(
        IDENT,
        mapping={"url": "http://a.example/", "log_score": "5000", "last_broadcasted_log_entry": "0"},
    )
    assert look(store, broadcasts) == "0"
    clock.now = 61
    assert look(store, broadcasts) == "4000"
    assert store.client.hget(IDENT, "ts") == "1700000000.5"
    clock.now = 62
    store.client.hset(IDENT, "log_score", "5600")
    assert look(store, broadcasts) == "4600"


def test_a_firehose_that_works_is_left_alone(store: JobStore) -> None:
    clock = Clock()
    broadcasts = Broadcasts(store, clock=clock)
    store.client.hset(IDENT, mapping={"url": "http://a.example/", "log_score": "5000"})
    for second in range(0, 300, 30):
        clock.now = float(second)
        store.client.hset(
            IDENT, mapping={"last_broadcasted_log_entry": str(second), "log_score": "90000"}
        )
        assert look(store, broadcasts) == str(second)


def test_a_mark_is_never_put_into_a_record_that_is_gone(store: JobStore) -> None:
    clock = Clock()
    broadcasts = Broadcasts(store, clock=clock)
    store.client.hset(IDENT, mapping={"url": "http://a.example/", "log_score": "5000"})
    seen = dict(zip([IDENT], Watch(store).jobs([IDENT], facts=()), strict=True))
    broadcasts.look(seen, now=1.0)
    clock.now = 100
    store.client.delete(IDENT)
    assert broadcasts.look(seen, now=1.0) == 0
    assert store.client.exists(IDENT) == 0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("12.7", 12),
        ("", 0),
        (None, 0),
        ("+inf", 0),
        ("x", 0),
        ("-3", 0),
        ("9" * 40, 0),
        ("٣", 0),
    ],
)
def test_a_number_that_is_none_is_zero(text: str | None, number: int) -> None:
    assert number_of(text) == number
