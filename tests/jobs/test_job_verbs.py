"""The verbs: each changes what it says, ages the settings, tells the crawl, and makes no record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from job_changes import change

from amicrawl.errors import UsageError
from amicrawl.fleet.database.ident import ident_of
from amicrawl.fleet.database.redis_values import MOST_ELEMENTS
from amicrawl.fleet.jobs import lookup, queues, verbs
from amicrawl.fleet.jobs.lookup import NoSuchJobError
from amicrawl.fleet.jobs.submission import Submission, submit

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.fleet.database.connection import JobStore

NOW = 1_700_000_000.0
URLS = [f"http://{letter}.example/" for letter in "abcdefg"]
IDENTS = [ident_of(url) for url in URLS]
IDENT = IDENTS[0]

CHANGES: dict[str, Callable[[JobStore, str], object]] = {
    "ignore": lambda store, ident: verbs.ignore(store, ident, ["x$"]),
    "unignore": lambda store, ident: verbs.unignore(store, ident, ["x$"]),
    "ignore-set": lambda store, ident: verbs.add_ignore_sets(store, ident, ["forums"]),
    "delay": lambda store, ident: change(store, ident, "delay", 1, 2),
    "concurrency": lambda store, ident: change(store, ident, "concurrency", 9),
    "note": lambda store, ident: change(store, ident, "note", "n"),
    "reports on": lambda store, ident: change(store, ident, "reports", True),
    "reports off": lambda store, ident: change(store, ident, "reports", False),
    "pause": verbs.pause,
    "resume": verbs.resume,
    "abort": lambda store, ident: verbs.abort(store, ident, now=NOW),
}


@pytest.fixture
def jobs(store: JobStore) -> JobStore:
    for url in URLS:
        submit(store, Submission(url=url), now=NOW)
    return store


def started(store: JobStore, ident: str) -> None:
    store.client.rpoplpush("pending", "working")
    store.client.hset(ident, "started_at", "1700000000.5")


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_ages_the_settings_and_publishes_the_new_age(jobs: JobStore, name: str) -> None:
    started(jobs, IDENT)
    heard: Any = jobs.client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    heard.subscribe(f"archivebot:job:{IDENT}")
    before = int(str(jobs.client.hget(IDENT, "settings_age")))
    CHANGES[name](jobs, IDENT)
    assert jobs.client.hget(IDENT, "settings_age") == str(before + 1)
    message = None
    while message is None:
        message = heard.get_message(timeout=5)
    assert message["data"] == str(before + 1)
    heard.close()


@pytest.mark.parametrize("name", CHANGES)
def test_no_verb_makes_a_record_where_there_is_none(store: JobStore, name: str) -> None:
    with pytest.raises(NoSuchJobError):
        CHANGES[name](store, IDENT)
    assert store.client.dbsize() == 0
    store.client.hset(IDENT, "heartbeat", "4")
    with pytest.raises(NoSuchJobError):
        CHANGES[name](store, IDENT)
    assert store.client.hgetall(IDENT) == {"heartbeat": "4"}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_no_ident_reaches_no_key(store: JobStore, name: str) -> None:
    for text in ("working", f"{IDENT}\n", f"{IDENT}:x", "*", "", "a" * 500):
        with pytest.raises(UsageError):
            CHANGES[name](store, text)
    assert store.client.dbsize() == 0


@pytest.mark.parametrize("name", sorted(CHANGES.keys() - {"note"}))
def test_a_job_that_has_ended_is_left_as_it_is(jobs: JobStore, name: str) -> None:
    jobs.client.hset(IDENT, "finished_at", "1700000001")
    before = jobs.client.hgetall(IDENT)
    with pytest.raises(UsageError, match="no longer be changed"):
        CHANGES[name](jobs, IDENT)
    assert jobs.client.hgetall(IDENT) == before


def test_an_expression_that_no_crawl_can_use_refuses_all_of_them(jobs: JobStore) -> None:
    before = lookup.ignores(jobs, IDENT)
    for bad in ("(", "*", "", "a\nb", "x" * 2001):
        with pytest.raises(UsageError):
            verbs.ignore(jobs, IDENT, ["good$", bad])
    assert lookup.ignores(jobs, IDENT) == before
    assert verbs.ignore(jobs, IDENT, [r"{primary_url}\?s=", "good$"]) == 2
    assert verbs.ignore(jobs, IDENT, ["good$"]) == 0
    assert verbs.unignore(jobs, IDENT, ["good$", "never there"]) == 1


def test_ranges_are_those_of_the_bot(jobs: JobStore) -> None:
    for least, greatest in ((2, 1), (-1, 1), (0, 10_000_000)):
        with pytest.raises(UsageError):
            change(jobs, IDENT, "delay", least, greatest)
    for number in (0, 100, -3):
        with pytest.raises(UsageError):
            change(jobs, IDENT, "concurrency", number)
    change(jobs, IDENT, "delay", 0, 9_999_999)
    change(jobs, IDENT, "concurrency", 99)
    record = lookup.job(jobs, IDENT)
    assert (record.delay_min, record.delay_max, record.concurrency) == (0, 9_999_999, 99)


def test_flags_are_set_and_removed_never_written_false(jobs: JobStore) -> None:
    change(jobs, IDENT, "reports", True)
    assert not jobs.client.hexists(IDENT, "suppress_ignore_reports")
    change(jobs, IDENT, "reports", False)
    assert jobs.client.hget(IDENT, "suppress_ignore_reports") == "true"
    verbs.pause(jobs, IDENT)
    assert lookup.desired(jobs, IDENT) == {"paused": "1"}
    assert verbs.resume(jobs, IDENT)
    assert not verbs.resume(jobs, IDENT)
    change(jobs, IDENT, "note", "n")
    change(jobs, IDENT, "note", " ")
    assert not jobs.client.hexists(IDENT, "note")


def test_a_job_that_waits_is_aborted_at_once(jobs: JobStore) -> None:
    assert verbs.abort(jobs, IDENT, now=NOW).done is verbs.Aborted.REMOVED
    assert IDENT not in jobs.client.lrange("pending", 0, -1)
    record = lookup.job(jobs, IDENT)
    assert (record.aborted, record.finished_at) == (True, NOW)
    assert lookup.counts(jobs) == (0, 1, 0)
    for key in (IDENT, f"{IDENT}_ignores"):
        assert 0 < jobs.client.ttl(key) <= 5
    (notice,) = jobs.client.lrange("finish_notifications", 0, -1)
    assert json.loads(notice)["aborted"] is True
    assert json.loads(notice)["url"] == URLS[0]


def test_a_job_that_was_given_back_and_is_aborted_says_where_its_archive_is(jobs: JobStore) -> None:
    claim: dict[Any, Any] = {"directory": "a.example-inf-1", "store": "of-anna", "checkpoint": "1"}
    claim |= {"attempt": "1", "state": "queued", "queued_at": jobs.client.hget(IDENT, "queued_at")}
    jobs.client.hset(jobs.keys.claim(IDENT), mapping=claim)
    done, left = verbs.abort(jobs, IDENT, now=NOW)
    assert done is verbs.Aborted.REMOVED
    at = "in a.example-inf-1 of the data directory with the ID of-anna"
    assert left == f"{at}, and in the bucket with checkpoint 1"
    [entry] = jobs.client.zrange(f"{IDENT}_log", 0, -1)
    assert json.loads(str(entry))["message"] == f"What was archived before the abort is {left}\n"
    assert 0 < jobs.client.ttl(f"{IDENT}_log") <= 5


def test_a_job_that_is_aborted_says_nothing_of_the_archive_of_an_earlier_one(jobs: JobStore) -> None:
    """Whose claim ArchiveBot's bot leaves behind when it queues the URL again."""
    jobs.client.hset(jobs.keys.claim(IDENT), mapping={"directory": "a-1", "queued_at": "1600000000"})
    assert verbs.abort(jobs, IDENT, now=NOW) == (verbs.Aborted.REMOVED, "")
    assert not jobs.client.exists(f"{IDENT}_log")


def test_a_job_that_runs_is_asked_to_end(jobs: JobStore) -> None:
    started(jobs, IDENT)
    assert verbs.abort(jobs, IDENT, now=NOW).done is verbs.Aborted.ASKED
    assert verbs.abort(jobs, IDENT, now=NOW).done is verbs.Aborted.AGAIN
    record = jobs.client.hgetall(IDENT)
    assert record["abort_requested"] == "true"
    assert not {"aborted", "finished_at"} & set(record)
    assert jobs.client.ttl(IDENT) == -1


def test_a_job_that_is_leased_is_asked_even_where_working_lost_it(jobs: JobStore) -> None:
    jobs.client.lrem("pending", 0, IDENT)
    jobs.client.set(jobs.keys.lease(IDENT), "7")
    assert verbs.abort(jobs, IDENT, now=NOW).done is verbs.Aborted.ASKED


def test_only_what_has_an_expiry_can_be_forgotten(jobs: JobStore) -> None:
    with pytest.raises(UsageError, match="has not ended"):
        verbs.expire(jobs, IDENT)
    jobs.client.expire(IDENT, 1000)
    verbs.expire(jobs, IDENT)
    assert not jobs.client.exists(IDENT, f"{IDENT}_ignores")
    with pytest.raises(NoSuchJobError):
        verbs.expire(jobs, IDENT)


def test_nothing_of_a_job_that_is_aborted_or_forgotten_stays_for_ever(store: JobStore) -> None:
    """Here with a claim, as of a job that was given back to its queue."""

    def abort() -> None:
        verbs.abort(store, IDENT, now=NOW)

    def expire() -> None:
        store.client.expire(IDENT, 99)
        verbs.expire(store, IDENT)

    for forget in (abort, expire):
        store.client.flushall()
        submission = Submission(url=URLS[0], config="x", lines="http://x.example/", is_list=True)
        submit(store, submission, now=NOW)
        store.client.hset(store.keys.claim(IDENT), "state", "queued")
        verbs.pause(store, IDENT)
        forget()
        for key in store.client.scan_iter(match=f"*{IDENT}*"):
            assert 0 < store.client.ttl(key) <= 5, key


def test_where_tells_the_pipeline_only_of_a_key_that_is_one(jobs: JobStore) -> None:
    assert verbs.where(jobs, IDENT) == ("", "", "", "")
    key = f"pipeline:{'a' * 32}"
    jobs.client.hset(key, mapping={"nickname": "blue", "hostname": "h"})
    jobs.client.hset(IDENT, "pipeline_id", key)
    jobs.client.hset(jobs.keys.claim(IDENT), "directory", "a.example-inf-1")
    assert verbs.where(jobs, IDENT) == (key, "blue", "h", "a.example-inf-1")
    jobs.client.hset(IDENT, "pipeline_id", "finish_notifications")
    assert verbs.where(jobs, IDENT) == ("", "", "", "a.example-inf-1")


def order(store: JobStore, queue: str = "pending") -> list[str]:
    return [entry.ident for entry in queues.waiting(store, [queue])]


def test_what_waits_is_listed_with_the_next_first(jobs: JobStore) -> None:
    assert order(jobs) == IDENTS
    assert jobs.client.lrange("pending", -1, -1) == [IDENTS[0]]


@pytest.mark.parametrize(("which", "place"), [(4, 1), (0, 3), (2, 3), (6, 5), (3, 7), (1, 99)])
def test_a_job_is_moved_to_a_place_and_the_others_keep_their_order(
    jobs: JobStore, which: int, place: int
) -> None:
    wanted = [ident for ident in IDENTS if ident != IDENTS[which]]
    wanted.insert(place - 1, IDENTS[which])
    assert queues.move(jobs, IDENTS[which], place=place) == "pending"
    assert order(jobs) == wanted


def test_a_job_is_moved_to_the_ends_and_into_other_queues(jobs: JobStore) -> None:
    queues.move(jobs, IDENTS[3], place=1)
    queues.move(jobs, IDENTS[0], place=queues.LAST)
    assert (order(jobs)[0], order(jobs)[-1]) == (IDENTS[3], IDENTS[0])
    assert queues.move(jobs, IDENTS[1], place=1, queue="pending:blue") == "pending:blue"
    assert queues.queue_names(jobs) == ["pending", "pending-ao", "pending-large", "pending:blue"]
    assert order(jobs, "pending:blue") == [IDENTS[1]]
    assert queues.move(jobs, IDENTS[1], place=1) == "pending:blue"
    assert queues.lengths(jobs)["pending"] == 6


def test_a_job_is_moved_from_behind_more_than_anybody_reads(jobs: JobStore) -> None:
    jobs.client.rpush("pending", *(f"{number:020d}" for number in range(MOST_ELEMENTS + 1)))
    assert queues.move(jobs, IDENT, place=1) == "pending"
    assert jobs.client.lindex("pending", -1) == IDENT


def test_what_does_not_wait_cannot_be_moved(jobs: JobStore) -> None:
    started(jobs, IDENT)
    with pytest.raises(UsageError, match="it is running"):
        queues.move(jobs, IDENT, place=1)
    with pytest.raises(UsageError, match="not a queue"):
        queues.move(jobs, IDENTS[1], place=1, queue="working")
    with pytest.raises(UsageError):
        queues.move(jobs, IDENTS[1], place=0)
    assert order(jobs) == IDENTS[1:]
