"""Whatever lies in Redis, no reader stops: it becomes a dead letter, bounded, and is passed over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import redis

from amicrawl.errors import AmicrawlError
from amicrawl.fleet.database import redis_values
from amicrawl.fleet.database.connection import JobStore, connect
from amicrawl.fleet.database.ident import ident_of
from amicrawl.fleet.jobs import lookup, queues, verbs
from amicrawl.fleet.jobs.pipeline_record import pipelines
from amicrawl.fleet.jobs.submission import Submission, submit
from amicrawl.fleet.logs import job_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from redis_server import RedisServer


NOW = 1_700_000_000.0
URL = "http://a.example/"
IDENT = ident_of(URL)
OTHER = ident_of("http://b.example/")
PIPELINE = f"pipeline:{'a' * 32}"
NOT_UTF_8 = b"\xff\xfe\x00"
HUGE = b"x" * (3 << 20)
INJECTED = (
    f"{IDENT}:x",
    f"{IDENT}\n",
    "pending",
    "*",
    "a" * 26,
    "",
    "../../etc/passwd",
    "amicrawl:dead",
)

READERS: dict[str, Callable[[JobStore], object]] = {
    "job": lambda store: lookup.job_or_none(store, IDENT),
    "ignores": lambda store: lookup.ignores(store, IDENT),
    "desired": lambda store: lookup.desired(store, IDENT),
    "config": lambda store: lookup.config(store, IDENT),
    "list": lambda store: lookup.url_list(store, IDENT),
    "config fault": lambda store: lookup.config_fault(store, IDENT),
    "list fault": lambda store: lookup.url_list_fault(store, IDENT),
    "working": lookup.working,
    "finished": lookup.finished,
    "counts": lookup.counts,
    "pipelines": pipelines,
    "nicknames": lambda store: lookup.live_nicknames(store, NOW),
    "queues": queues.queue_names,
    "waiting": queues.waiting,
    "lengths": queues.lengths,
    "log": lambda store: job_log.entries_after(store, IDENT),
    "newest": lambda store: job_log.newest_entries(store, IDENT),
    "trim": lambda store: job_log.trim_log(store, IDENT),
    "letters": redis_values.dead_letters,
    "where": lambda store: verbs.where(store, IDENT),
    "pause": lambda store: verbs.pause(store, IDENT),
    "ignore": lambda store: verbs.ignore(store, IDENT, ["x"]),
    "move": lambda store: queues.move(store, IDENT, place=1),
    "abort": lambda store: verbs.abort(store, IDENT, now=NOW),
    "expire": lambda store: verbs.expire(store, IDENT),
    "submit": lambda store: submit(store, Submission(url=URL, pipeline="blue", again=0), now=NOW),
}
"""Everything that reads; what is asked of a person (a verb) may refuse, with a sentence."""

REFUSED = {"abort", "pause", "ignore", "move", "remove", "expire", "submit", "where"}

KEYS = [
    *(IDENT, f"{IDENT}_ignores", f"{IDENT}_log", "pending", "pending-ao", "pending-large"),
    *("pending:blue", "working", "pipelines", PIPELINE, "finish_notifications", "jobs_completed"),
    *("jobs_aborted", "jobs_failed", f"amicrawl:desired:{IDENT}", f"amicrawl:config:{IDENT}"),
    *(f"amicrawl:list:{IDENT}", f"amicrawl:claim:{IDENT}", f"amicrawl:lease:{IDENT}", "amicrawl:dead"),
]

TYPES: dict[str, Callable[[Any, str], object]] = {
    "string": lambda raw, key: raw.set(key, NOT_UTF_8),
    "huge string": lambda raw, key: raw.set(key, HUGE),
    "hash": lambda raw, key: raw.hset(key, mapping={NOT_UTF_8: NOT_UTF_8, "url": HUGE, "ts": "NaN"}),
    "list": lambda raw, key: raw.rpush(key, NOT_UTF_8, HUGE, *INJECTED, IDENT),
    "set": lambda raw, key: raw.sadd(key, NOT_UTF_8, HUGE, *INJECTED),
    "zset": lambda raw, key: raw.zadd(key, {NOT_UTF_8: 1, HUGE: 2, "{}": 3, "null": 4, "x": "inf"}),
    "stream": lambda raw, key: raw.xadd(key, {b"a": NOT_UTF_8}),
}


@pytest.fixture
def raw(redis_server: RedisServer) -> Iterator[redis.Redis]:
    client = redis.Redis(port=redis_server.port)
    yield client
    client.close()


def read_everything(store: JobStore) -> None:
    for name, read in READERS.items():
        try:
            read(store)
        except AmicrawlError:  # a sentence
            assert name in REFUSED, name


@pytest.mark.parametrize("kind", TYPES)
def test_no_type_in_any_key_stops_a_reader(store: JobStore, raw: redis.Redis, kind: str) -> None:
    for key in KEYS:
        raw.flushall()
        submit(store, Submission(url=URL), now=NOW)
        raw.delete(key)
        TYPES[kind](raw, key)
        read_everything(store)


def test_all_keys_of_a_wrong_type_at_once_stop_nobody(store: JobStore, raw: redis.Redis) -> None:
    for key in KEYS:
        TYPES["stream"](raw, key)
    read_everything(store)


def test_a_key_of_a_wrong_type_is_told_with_its_name(store: JobStore, raw: redis.Redis) -> None:
    raw.set("working", "x")
    assert lookup.working(store) == []
    (letter,) = redis_values.dead_letters(store)
    assert (letter.where, letter.why) == ("working", "it is a string, and should be a list")


def test_idents_that_are_none_never_become_keys(store: JobStore, raw: redis.Redis) -> None:
    raw.rpush("pending", *INJECTED, NOT_UTF_8, HUGE, OTHER)
    raw.rpush("working", *INJECTED, OTHER)
    for name in INJECTED:
        raw.sadd(f"{name}_ignores", "x")
    assert [entry.ident for entry in queues.waiting(store)] == [OTHER]
    assert lookup.working(store) == [OTHER]
    assert lookup.finished(store) == []
    told = {letter.excerpt for letter in redis_values.dead_letters(store) if letter.where == "pending"}
    assert {f"{IDENT}:x", f"{IDENT}\\n", "*"} <= told


def test_a_queue_whose_tag_is_none_is_not_a_queue(store: JobStore, raw: redis.Redis) -> None:
    for name in ("pending:", "pending:a b", b"pending:\xff", "pending:" + "x" * 40):
        raw.rpush(name, OTHER)
    assert queues.queue_names(store) == ["pending", "pending-ao", "pending-large"]
    assert len(redis_values.dead_letters(store)) == 4


def test_a_log_with_anything_in_it_gives_its_good_entries(store: JobStore, raw: redis.Redis) -> None:
    good = '{"ts": 1, "message": "good", "type": "stdout"}'
    bad = [NOT_UTF_8, HUGE, b"null", b"[[[", b'{"type": "evil"}', b"[" * 100_000]
    raw.zadd(f"{IDENT}_log", {text: n for n, text in enumerate([*bad, good.encode()])})
    page = job_log.entries_after(store, IDENT, -1)
    assert [entry.score for entry in page.entries] == [len(bad)]
    assert page.last == len(bad)
    found = redis_values.dead_letters(store)
    assert len(found) == len(bad)
    assert all(letter.where.startswith(f"{IDENT}_log ") for letter in found)


def test_fields_of_a_record_that_cannot_be_read_are_told_and_passed_over(
    store: JobStore, raw: redis.Redis
) -> None:
    submit(store, Submission(url=URL), now=NOW)
    raw.hset(IDENT, mapping={"concurrency": "x", "note": NOT_UTF_8, "slug": HUGE, b"\xff": b"\xff"})
    record = lookup.job(store, IDENT)
    assert (record.concurrency, record.url) == (None, URL)
    assert len(record.slug) < 20_000
    assert {letter.where for letter in redis_values.dead_letters(store)} == {IDENT}


def test_a_hash_of_a_million_fields_is_not_read_whole(store: JobStore, raw: redis.Redis) -> None:
    fields: dict[Any, Any] = {f"field-{n}": "x" for n in range(100_000)}
    raw.hset(IDENT, mapping={**fields, "url": URL})
    assert len(redis_values.hash_at(store, IDENT)) < 2_000
    assert lookup.job(store, IDENT).url == URL, "nor is the job hidden by it"


def test_ignores_that_are_too_long_or_no_text_are_left_out(store: JobStore, raw: redis.Redis) -> None:
    raw.sadd(f"{IDENT}_ignores", "good$", NOT_UTF_8, HUGE, "y" * 2001, "x" * 2000)
    assert lookup.ignores(store, IDENT) == ["good$", "x" * 2000]
    assert len(redis_values.dead_letters(store)) == 3


def test_counts_that_are_none_read_as_nothing(store: JobStore, raw: redis.Redis) -> None:
    raw.mset({"jobs_completed": "many", "jobs_aborted": NOT_UTF_8, "jobs_failed": "7"})
    assert lookup.counts(store) == (0, 0, 7)


def test_a_pipeline_that_names_itself_oddly_is_not_listed_by_it(
    store: JobStore, raw: redis.Redis
) -> None:
    raw.hset(PIPELINE, mapping={"nickname": "\x1b[2Jblue", "ts": str(int(NOW))})
    raw.hset("pipeline:x/../y", mapping={"nickname": "blue", "ts": str(int(NOW))})
    assert lookup.live_nicknames(store, NOW) == []


def test_letters_are_few_short_and_harmless(store: JobStore) -> None:
    for n in range(redis_values.MOST_DEAD_LETTERS + 50):
        redis_values.put_dead_letter(
            store, where=f"key {n}", why="odd", value="\x1b[31m" * 1000, now=float(n)
        )
    redis_values.put_dead_letter(store, where="key 900", why="odd", value="\x1b[31m" * 1000, now=5000.0)
    found = redis_values.dead_letters(store)
    assert len(found) == redis_values.MOST_DEAD_LETTERS
    assert (found[0].where, found[0].seen) == ("key 900", 5000.0)
    assert all(len(letter.excerpt) < 5000 and letter.excerpt.isprintable() for letter in found)
    assert redis_values.clear_dead_letters(store) == redis_values.MOST_DEAD_LETTERS
    assert redis_values.dead_letters(store) == []


def test_a_reader_without_the_right_to_write_reads_on(
    redis_server: RedisServer, raw: redis.Redis
) -> None:
    acl: Any = raw.execute_command
    acl(
        *("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+@connection"),
        *("+evalsha", "+script|load", "-@dangerous"),
    )
    raw.rpush("working", "no ident", OTHER)
    store = connect({"REDIS_URL": redis_server.url.replace("//", "//reader:pw@")})
    assert lookup.working(store) == [OTHER]
    store.close()
    acl("ACL", "DELUSER", "reader")


def test_the_text_of_a_letter_is_json(store: JobStore) -> None:
    redis_values.put_dead_letter(store, where="k", why="w", value="v")
    (text,) = store.client.zrange("amicrawl:dead", 0, -1)
    assert json.loads(str(text)) == {"where": "k", "why": "w", "excerpt": "v"}
