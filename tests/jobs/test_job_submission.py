"""Submitting: one step, one job a URL, ghosts swept away, everything checked before it is written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from amicrawl.errors import UsageError
from amicrawl.fleet.database.connection import connect
from amicrawl.fleet.database.ident import ident_of
from amicrawl.fleet.jobs import lookup, queues
from amicrawl.fleet.jobs.submission import JobExistsError, Submission, submit

if TYPE_CHECKING:
    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore

NOW = 1_700_000_000.0
URL = "http://a.example/"
IDENT = ident_of(URL)


def submitted(store: JobStore, **requested: Any) -> str:
    return submit(store, Submission(**{"url": URL, **requested}), now=NOW).queue


def ended(store: JobStore, at: float) -> None:
    store.client.hset(IDENT, mapping={"started_at": "1.5", "finished_at": str(int(at))})
    store.client.lrem("pending", 0, IDENT)


@pytest.mark.parametrize(
    ("requested", "queue"),
    [
        ({}, "pending"),
        ({"depth": "shallow"}, "pending-ao"),
        ({"large": True}, "pending-large"),
        ({"pipeline": "blue"}, "pending:blue"),
        ({"pipeline": "blue", "depth": "shallow"}, "pending:blue"),
    ],
)
def test_each_wish_has_its_queue(store: JobStore, requested: dict[str, Any], queue: str) -> None:
    assert submitted(store, **requested) == queue
    assert store.client.lrange(queue, 0, -1) == [IDENT]
    assert queues.waiting(store) == [(queue, 1, IDENT)]


@pytest.mark.parametrize(
    "requested",
    [
        {"large": True, "pipeline": "x"},
        {"large": True, "depth": "shallow"},
        {"pipeline": "a:b"},
        {"pipeline": "x" * 31},
        {"settings": {"delay_min": 5, "delay_max": 4}},
        {"settings": {"delay_min": -1, "delay_max": 4}},
        {"settings": {"delay_min": 0, "delay_max": 10_000_000}},
        {"settings": {"concurrency": 0}},
        {"settings": {"concurrency": 100}},
        {"ignore_sets": ("no-such-set",)},
        {"ignores": ("(",)},
        {"ignores": ("a\nb",)},
        {"settings": {"note": "two\nlines"}},
        {"settings": {"note": "x" * 1001}},
        {"settings": {"user_agent": "a\r\nX-Forged: 1"}},
        {"started_by": "\x1b[2J"},
        {"url": "nothing"},
        {"config": "x" * (2 << 20)},
        {"lines": "x" * (5 << 20), "is_list": True},
    ],
)
def test_what_cannot_be_followed_is_refused_and_nothing_written(
    store: JobStore, requested: dict[str, Any]
) -> None:
    with pytest.raises(UsageError):
        submitted(store, **requested)
    assert store.client.dbsize() == 0


def test_everything_requested_is_in_the_record(store: JobStore) -> None:
    requested: dict[str, Any] = {
        "settings": {
            "delay_min": 1,
            "delay_max": 2,
            "concurrency": 9,
            "note": " n ",
            "user_agent": "UA",
            "no_offsite_links": True,
        },
        "ignore_sets": ("forums",),
        "ignores": ("own$",),
        "config": "[seeds]\n",
        "started_by": "me",
    }
    submitted(store, **requested)
    record = lookup.job(store, IDENT)
    assert (record.delay_min, record.delay_max, record.concurrency) == (1, 2, 9)
    assert (record.note, record.user_agent, record.started_by) == ("n", "UA", "me")
    assert record.no_offsite_links
    assert "own$" in lookup.ignores(store, IDENT)
    assert len(lookup.ignores(store, IDENT)) > 10
    assert lookup.config(store, IDENT) == "[seeds]\n"


def test_of_many_who_submit_the_same_at_once_one_does(
    store: JobStore, redis_server: RedisServer
) -> None:
    def attempt(number: int) -> bool:
        own = connect({"REDIS_URL": redis_server.url})
        try:
            submit(own, Submission(url=URL, settings={"note": f"{number}"}), now=NOW)
        except JobExistsError:
            return False
        finally:
            own.close()
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(attempt, range(16))) == 1
    assert store.client.lrange("pending", 0, -1) == [IDENT]


def test_a_list_job_names_its_list_and_may_bring_it(store: JobStore) -> None:
    submitted(store, is_list=True, lines="http://b.example/\n")
    record = lookup.job(store, IDENT)
    assert (record.url_file, record.url, record.slug) == (URL, URL, "urls-a.example--inf")
    assert lookup.url_list(store, IDENT) == "http://b.example/\n"


def test_ftp_is_queued_with_one_worker_and_a_warning(store: JobStore) -> None:
    done = submit(store, Submission(url="ftp://a.example"), now=NOW)
    assert lookup.job(store, done.ident).concurrency == 1
    assert "FTP" in done.warnings[0]


def test_a_tag_that_no_living_pipeline_has_is_told(store: JobStore) -> None:
    key, dead = f"pipeline:{'a' * 32}", f"pipeline:{'b' * 32}"
    store.client.hset(key, mapping={"nickname": "deep-blue-1", "ts": str(int(NOW) - 9)})
    store.client.hset(dead, mapping={"nickname": "red-1", "ts": str(int(NOW) - 9000)})
    ours = Submission(url=URL, pipeline="blue")
    assert submit(store, ours, now=NOW).warnings == ()
    other = Submission(url="http://b.example/", pipeline="red")
    assert "deep-blue-1" in submit(store, other, now=NOW).warnings[0]


def test_a_job_that_waits_or_runs_is_never_begun_anew(store: JobStore) -> None:
    submitted(store)
    for again in ("never", "ended", 0):
        with pytest.raises(JobExistsError, match=f"{IDENT} is queued") as told:
            submitted(store, again=again)
        assert told.value.record.url == URL
    assert store.client.llen("pending") == 1


def test_another_depth_of_the_same_url_is_told_of(store: JobStore) -> None:
    submitted(store)
    with pytest.raises(JobExistsError, match="for a site; one URL can have one job"):
        submitted(store, depth="shallow")


def test_an_ended_job_is_crawled_again_if_wished_and_begins_from_nothing(store: JobStore) -> None:
    submitted(store, settings={"note": "old"}, config="old")
    ended(store, NOW - 100)
    store.client.hset(store.keys.claim(IDENT), mapping={"state": "done", "attempt": "4"})
    store.client.expire(IDENT, 50)
    for again in ("never", 101):
        with pytest.raises(JobExistsError, match="has completed"):
            submitted(store, again=again)
    assert submit(store, Submission(url=URL, again=100), now=NOW).again
    record = store.client.hgetall(IDENT)
    assert not {"note", "finished_at", "started_at"} & set(record)
    assert store.client.ttl(IDENT) == -1
    assert not store.client.exists(store.keys.config(IDENT), store.keys.claim(IDENT))


def test_a_ghost_without_url_is_swept_away(store: JobStore) -> None:
    store.client.hset(IDENT, mapping={"heartbeat": "9", "log_score": "3", "ts": "1"})
    store.client.zadd(f"{IDENT}_log", {"old": 3})
    submitted(store)
    record = store.client.hgetall(IDENT)
    assert not {"heartbeat", "log_score", "ts"} & set(record)
    assert not store.client.exists(f"{IDENT}_log")


def test_a_key_of_another_type_is_left_alone_and_told(store: JobStore) -> None:
    store.client.set(IDENT, "precious")
    with pytest.raises(UsageError, match="is a string"):
        submitted(store)
    assert store.client.get(IDENT) == "precious"
    store.client.delete(IDENT)
    store.client.set("pending", "odd")
    with pytest.raises(UsageError, match="is a string"):
        submitted(store)
    assert not store.client.exists(IDENT)
