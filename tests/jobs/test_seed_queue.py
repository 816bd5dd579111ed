"""Seeds from Redis: whatever holds them, each comes until it is acknowledged, and none is lost."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from amicrawl.errors import UsageError
from amicrawl.fleet.database import redis_values
from amicrawl.fleet.jobs.seedqueue import SeedQueue, TakenSeed

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.fleet.database.connection import JobStore

KEY = "queue:start_urls"
URLS = [f"http://a.example/{n}" for n in range(5)]


def stream(client: Any, texts: list[str | bytes]) -> None:
    for text in texts:
        client.xadd(KEY, {"url": text} if str(text).startswith("http") else {"data": text})


FILL: dict[str, Callable[[Any, list[Any]], object]] = {
    "list": lambda client, texts: client.rpush(KEY, *texts),
    "set": lambda client, texts: client.sadd(KEY, *texts),
    "zset": lambda client, texts: client.zadd(KEY, {text: -n for n, text in enumerate(texts)}),
    "stream": stream,
}


def urls(taken: list[TakenSeed]) -> list[str]:
    return sorted(entry.seed.url for entry in taken)


@pytest.mark.parametrize("kind", FILL)
def test_what_is_taken_is_held_until_it_is_acknowledged(store: JobStore, kind: str) -> None:
    FILL[kind](store.client, URLS)
    queue = SeedQueue(store, KEY, "one")
    first = queue.take(3)
    if kind != "set":
        assert [entry.seed.url for entry in first] == URLS[:3]
    assert sorted(queue.taken()) == sorted(first), "as after a crash, or a lost response"
    rest = queue.take(100)
    assert urls(first + rest) == URLS
    queue.acknowledge([entry.number for entry in first])
    assert sorted(queue.taken()) == sorted(rest)
    queue.acknowledge([entry.number for entry in first + rest])
    assert queue.taken() == []
    assert queue.take(10) == []


@pytest.mark.parametrize("kind", FILL)
def test_what_a_silent_consumer_has_goes_to_another(store: JobStore, kind: str) -> None:
    FILL[kind](store.client, URLS)
    dead, living = SeedQueue(store, KEY, "dead"), SeedQueue(store, KEY, "living", takeover=100)
    taken = dead.take(3)
    dead.acknowledge([taken[0].number])
    assert living.reclaim() == 0, "it was heard of a moment ago"
    consumers = f"amicrawl:consumers:{KEY}"
    store.client.zincrby(consumers, -101, "dead")
    assert living.reclaim() == 2
    assert urls(living.take(10) + living.taken()[: 2 * (kind == "stream")]) == sorted(
        set(URLS) - {taken[0].seed.url}
    )
    assert store.client.zrange(consumers, 0, -1) == ["living"]
    assert dead.taken() == []


@pytest.mark.parametrize("kind", FILL)
def test_a_consumer_that_was_silent_itself_keeps_what_it_has(store: JobStore, kind: str) -> None:
    FILL[kind](store.client, URLS)
    queue = SeedQueue(store, KEY, "one", takeover=100)
    taken = queue.take(3)
    store.client.zincrby(f"amicrawl:consumers:{KEY}", -101, "one")
    assert queue.reclaim() == 0
    assert sorted(queue.taken()) == sorted(taken)
    assert len(queue.take(10)) == 2, "nothing was put back into the queue"


def test_a_sorted_set_gives_the_greatest_first_and_gets_scores_back(store: JobStore) -> None:
    store.client.zadd(KEY, {URLS[0]: 1.5, URLS[1]: 7})
    assert SeedQueue(store, KEY, "dead").take(1)[0].seed.url == URLS[1]
    store.client.zincrby(f"amicrawl:consumers:{KEY}", -1000, "dead")
    SeedQueue(store, KEY, "other").reclaim()
    assert store.client.zrange(KEY, 0, -1, withscores=True) == [(URLS[0], 1.5), (URLS[1], 7.0)]


@pytest.mark.parametrize("kind", FILL)
def test_what_is_no_seed_is_a_dead_letter_and_holds_nobody_up(store: JobStore, kind: str) -> None:
    bad = [
        pickle.dumps({"url": "http://a.example/"}),
        b"\xff",
        b"x" * 70_000,
        b"{",
        b'{"url": 5}',
        b'{"meta": {}}',
        b'{"url": "http://a.example/", "method": "POST"}',
        b"javascript:alert(1)",
        b"[]",
    ]
    FILL[kind](store.client, [*bad, URLS[0]])
    queue = SeedQueue(store, KEY, "one")
    assert urls(queue.take(100)) == [URLS[0]]
    assert urls(queue.taken()) == [URLS[0]]
    assert len(redis_values.dead_letters(store)) == len(bad)


def test_a_seed_may_be_an_object_with_further_fields(store: JobStore) -> None:
    store.client.rpush(KEY, '{"url": " http://a.example/ ", "meta": {"job": 7}, "etag": "\\"x\\""}')
    store.client.xadd("s", {"url": "http://a.example/", "depth": "3"})
    (entry,) = SeedQueue(store, KEY, "one").take(1)
    assert (entry.seed.url, entry.seed.etag) == ("http://a.example/", '"x"')
    assert entry.seed.meta_json == '{"meta":"{\\"job\\":7}"}'
    (entry,) = SeedQueue(store, "s", "one").take(1)
    assert (entry.seed.url, entry.seed.meta_json) == ("http://a.example/", '{"depth":"3"}')


def test_a_key_that_is_no_queue_is_refused_and_nothing_taken(store: JobStore) -> None:
    store.client.set(KEY, "x")
    with pytest.raises(UsageError, match="a string"):
        SeedQueue(store, KEY, "one").take(1)
    store.client.delete(KEY)
    store.client.rpush(KEY, *URLS)
    store.client.set(f"amicrawl:taken:one:{KEY}", "x")
    with pytest.raises(UsageError, match="a key beside it"):
        SeedQueue(store, KEY, "one").take(1)
    assert store.client.llen(KEY) == 5
    with pytest.raises(UsageError, match="own"):
        SeedQueue(store, "amicrawl:dead", "one")


def test_seeds_that_cannot_be_put_back_are_kept_and_told(store: JobStore) -> None:
    store.client.rpush(KEY, *URLS)
    SeedQueue(store, KEY, "dead").take(5)
    store.client.set(KEY, "odd")
    store.client.zincrby(f"amicrawl:consumers:{KEY}", -1000, "dead")
    assert SeedQueue(store, KEY, "other").reclaim() == 0
    assert store.client.hlen(f"amicrawl:taken:dead:{KEY}") == 5
    assert redis_values.dead_letters(store)[0].where == f"amicrawl:taken:dead:{KEY}"


def test_two_consumers_share_a_queue_and_get_nothing_twice(store: JobStore) -> None:
    many = [f"http://a.example/{n}" for n in range(500)]
    for fill in FILL.values():
        store.client.delete(KEY)
        fill(store.client, many)
        consumers = [SeedQueue(store, KEY, name) for name in ("one", "two")]
        found: list[str] = []
        while batch := [entry for queue in consumers for entry in queue.take(7)]:
            found += urls(batch)
        assert sorted(found) == sorted(many)


@pytest.mark.parametrize("kind", ["list", "set", "zset"])
def test_numbers_of_seeds_do_not_come_back_when_the_database_is_emptied(
    store: JobStore, kind: str
) -> None:
    """A crawl that fetches what it took before would take new seeds for those, and have them gone."""
    FILL[kind](store.client, URLS)
    queue = SeedQueue(store, KEY, "one")
    before = {entry.number for entry in queue.take(3)}
    store.client.flushall()
    FILL[kind](store.client, [f"{url}?again" for url in URLS])
    assert not before & {entry.number for entry in queue.take(3)}


@pytest.mark.parametrize("odd", ["no number", "1e308", "9" * 400, "-7", "nan", str(2**53)])
def test_no_seed_is_lost_to_an_odd_number(store: JobStore, odd: str) -> None:
    FILL["list"](store.client, URLS)
    store.client.set(f"amicrawl:seeds:{KEY}", odd)
    queue = SeedQueue(store, KEY, "one")
    assert urls(queue.take(3)) == URLS[:3]
    assert urls(queue.taken()) + store.client.lrange(KEY, 0, -1) == URLS
