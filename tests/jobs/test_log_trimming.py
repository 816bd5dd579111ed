"""Logs do not grow for ever, and the last lines of a job are there as long as its record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amicrawl.fleet.database.ident import ident_of
from amicrawl.fleet.jobs.submission import Submission, submit
from amicrawl.fleet.logs import job_log
from amicrawl.fleet.logs.job_log import Stdout, encoded

if TYPE_CHECKING:
    from amicrawl.fleet.database.connection import JobStore

URL = "http://a.example/"
IDENT = ident_of(URL)
LOG = f"{IDENT}_log"


@pytest.fixture
def logged(store: JobStore) -> JobStore:
    """A job with 2000 entries."""
    submit(store, Submission(url=URL), now=1.0)
    store.client.zadd(LOG, {encoded(Stdout(1.0, f"line {n}")): n for n in range(1, 2001)})
    store.client.hset(IDENT, "log_score", 2000)
    return store


def marks(store: JobStore, analyzed: str, broadcasted: str) -> None:
    store.client.hset(
        IDENT,
        mapping={"last_analyzed_log_entry": analyzed, "last_broadcasted_log_entry": broadcasted},
    )


def scores(store: JobStore) -> list[float]:
    pairs: Any = store.client.zrange(LOG, 0, -1, withscores=True)
    return [score for _, score in pairs]


def test_what_all_consumers_have_seen_goes_once_it_is_much(logged: JobStore) -> None:
    marks(logged, "499", "2000")
    assert job_log.trim_log(logged, IDENT) == 0
    marks(logged, "700", "500")
    assert job_log.trim_log(logged, IDENT) == 500
    assert scores(logged)[0] == 501
    assert logged.client.hget(IDENT, "last_trimmed_log_entry") == "500"
    marks(logged, "999", "999")
    assert job_log.trim_log(logged, IDENT) == 0


def test_without_consumers_the_oldest_go_by_number_and_by_size(logged: JobStore) -> None:
    assert job_log.trim_log(logged, IDENT, most_entries=1500) == 500
    assert job_log.trim_log(logged, IDENT, most_bytes=50_000) > 500
    # By as many samples as the script takes: of fewer, the estimate is another.
    assert (logged.client.memory_usage(LOG, samples=50) or 0) <= 50_000
    left = scores(logged)
    assert left[-1] == 2000
    assert len(left) > 50, "no more goes than has to"
    assert float(str(logged.client.hget(IDENT, "last_trimmed_log_entry"))) == left[0] - 1


def test_one_entry_that_is_too_large_stays_the_last(store: JobStore) -> None:
    submit(store, Submission(url=URL), now=1.0)
    store.client.zadd(LOG, {"x" * 100_000: 1})
    assert job_log.trim_log(store, IDENT, most_bytes=1000) == 0
    store.client.zadd(LOG, {"y" * 100_000: 2})
    assert job_log.trim_log(store, IDENT, most_bytes=1000) == 1
    assert scores(store) == [2]


def test_a_finished_job_keeps_its_last_lines_whatever_was_seen(logged: JobStore) -> None:
    logged.client.hset(IDENT, "finished_at", "5")
    marks(logged, "2000", "2000")
    assert job_log.trim_log(logged, IDENT) == 0
    assert len(scores(logged)) == 2000


def test_watermarks_that_mean_nothing_trim_nothing(logged: JobStore) -> None:
    for bad in ("+inf", "", "many", "-7"):
        marks(logged, bad, bad)
        assert job_log.trim_log(logged, IDENT) == 0


def test_no_log_is_trimmed_for_a_record_that_is_none(store: JobStore) -> None:
    store.client.zadd(LOG, {"x": 1})
    store.client.hset(IDENT, "heartbeat", "1")
    assert job_log.trim_log(store, IDENT) == 0
    store.client.delete(IDENT)
    store.client.set(IDENT, "odd")
    assert job_log.trim_log(store, IDENT) == 0
    assert store.client.zcard(LOG) == 1


def test_a_reader_goes_on_behind_the_last_entry_that_it_saw(logged: JobStore) -> None:
    page = job_log.entries_after(logged, IDENT, 0, most=1500)
    assert (len(page.entries), page.last) == (1500, 1500)
    page = job_log.entries_after(logged, IDENT, page.last, most=1500)
    assert [entry.score for entry in page.entries] == list(range(1501, 2001))
    assert job_log.entries_after(logged, IDENT, page.last) == ([], 2000)
    newest = job_log.newest_entries(logged, IDENT, most=3)
    assert [entry.score for entry in newest.entries] == [1998, 1999, 2000]
    assert job_log.newest_entries(logged, ident_of("http://b.example/")) == ([], 0)
