"""When a crawl is due, and where it goes: a table of what may have happened before."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from amicrawl.config import CrawlConfig
from amicrawl.crawlfile.schedule import (
    Action,
    CrawlSchedule,
    LastCrawl,
    duration_of,
    last_crawls,
    plan,
    run_id_at,
)
from amicrawl.directory_lock import DirectoryLock
from amicrawl.errors import DamagedFileError

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2027, 3, 10, 12, tzinfo=UTC)
WEEKLY = CrawlSchedule(every=timedelta(days=7))
IN_PLACE = CrawlSchedule(every=timedelta(days=7), recrawl=True)


def ended(days: float, run_id: str = "") -> LastCrawl:
    """A crawl that took an hour and ended cleanly that many days ago."""
    finished = NOW - timedelta(days=days)
    return LastCrawl(run_id, finished - timedelta(hours=1), finished)


def broken_off(days: float, run_id: str = "") -> LastCrawl:
    return LastCrawl(run_id, NOW - timedelta(days=days), None)


@pytest.mark.parametrize(
    ("schedule", "run_id", "crawls", "action", "goes_to"),
    [
        (CrawlSchedule(), "", [ended(1)], Action.CRAWL, ""),
        (CrawlSchedule(), "%Y-%m-%d", [], Action.CRAWL, "2027-03-10"),
        (WEEKLY, "", [], Action.CRAWL, ""),
        (WEEKLY, "", [ended(6.9)], Action.WAIT, ""),
        (WEEKLY, "", [ended(7)], Action.CRAWL, ""),
        (WEEKLY, "r", [ended(7.1, "r")], Action.CRAWL, "r"),
        (IN_PLACE, "", [ended(6.9)], Action.WAIT, ""),
        (IN_PLACE, "", [ended(7.1)], Action.RECRAWL, ""),
        (IN_PLACE, "", [broken_off(0.1)], Action.CRAWL, ""),
        (
            WEEKLY, "%Y-%m-%d", [ended(8, "2027-03-02"), ended(1, "2027-03-09")],
            Action.WAIT, "2027-03-09",
        ),
        (WEEKLY, "%Y-%m-%d", [ended(8, "2027-03-02")], Action.CRAWL, "2027-03-10"),
        (WEEKLY, "%Y-%m-%d", [broken_off(2, "2027-03-08")], Action.CRAWL, "2027-03-08"),
        (WEEKLY, "%Y-%m-%d", [broken_off(9, "2027-03-01")], Action.CRAWL, "2027-03-10"),
        (WEEKLY, "", [broken_off(9)], Action.CRAWL, ""),
        (WEEKLY, "", [ended(9)._replace(is_running=True)], Action.WAIT, ""),
    ],
)  # fmt: skip
def test_what_is_done_follows_from_what_was(
    schedule: CrawlSchedule, run_id: str, crawls: list[LastCrawl], action: Action, goes_to: str
) -> None:
    planned = plan(schedule, run_id, crawls, now=NOW)
    assert (planned.action, planned.run_id) == (action, goes_to)
    assert bool(planned.sentence) == (action is Action.WAIT)


def test_a_crawl_that_rests_says_until_when() -> None:
    planned = plan(WEEKLY, "", [ended(6.5)], now=NOW)
    assert planned.sentence == "Nothing to do: the next crawl is due at 2027-03-11 00:00 UTC."


def test_spans_are_read() -> None:
    assert [duration_of(text) for text in ("30m", "12h", "7d", "4w")] == [
        timedelta(minutes=30), timedelta(hours=12), timedelta(days=7), timedelta(days=28),
    ]  # fmt: skip


def crawl_json(directory: Path, **changed: object) -> None:
    directory.mkdir(parents=True)
    told = {"state": "finished", "finish_reason": "finished", "started": "2027-03-09T10:00:00.000Z",
            "finished": "2027-03-09T11:00:00.000Z"} | changed  # fmt: skip
    (directory / "crawl.json").write_text(json.dumps(told))


@pytest.mark.parametrize(
    ("changed", "is_clean"),
    [
        ({}, True),
        ({"finish_reason": "limit-pages", "unfinished": False}, True),
        ({"finish_reason": "limit-pages", "unfinished": True}, False),
        ({"finish_reason": "limit-time"}, False),
        ({"finish_reason": "shutdown"}, False),
        ({"finish_reason": "stop-file"}, False),
        ({"finish_reason": "limit-errors"}, False),
        ({"state": "running", "finish_reason": None, "finished": None}, False),
    ],
)
def test_only_a_clean_end_starts_the_rest(
    tmp_path: Path, changed: dict[str, object], *, is_clean: bool
) -> None:
    crawl_json(tmp_path / "out", **changed)
    (crawl,) = last_crawls(tmp_path / "out", "")
    assert (crawl.finished is not None) == is_clean
    assert not crawl.is_running


def test_only_directories_that_the_pattern_names_count(tmp_path: Path) -> None:
    crawl_json(tmp_path / "2027-03-02")
    crawl_json(tmp_path / "other")
    (tmp_path / "2027-03-03").mkdir()
    assert [crawl.run_id for crawl in last_crawls(tmp_path, "%Y-%m-%d")] == ["2027-03-02"]
    assert last_crawls(tmp_path, "") == []


@pytest.mark.parametrize(
    "pattern",
    [
        "%Y-%m-%d",
        "%F",
        "news-%F",
        "%G-W%V",
        "%s",
        "%-d.%-m.%Y",
        "%b-%d-%Y",
        "%Y%m%dT%H%M%SZ",
        "%Y-%j",
    ],
)
def test_every_code_that_can_name_a_directory_is_known_again(tmp_path: Path, pattern: str) -> None:
    for month in (1, 11):
        name = run_id_at(pattern, NOW.replace(month=month))
        crawl_json(tmp_path / name)
    crawl_json(tmp_path / "another-crawl's")
    crawl_json(tmp_path / f"{name}x")
    assert len(last_crawls(tmp_path, pattern)) == 2


def test_a_directory_that_is_written_to_is_running(tmp_path: Path) -> None:
    crawl_json(tmp_path / "out", state="running", finish_reason=None, finished=None)
    with DirectoryLock(tmp_path / "out"):
        assert last_crawls(tmp_path / "out", "")[0].is_running
    assert not last_crawls(tmp_path / "out", "")[0].is_running


@pytest.mark.parametrize(
    "times", [{"started": "2027-03-09T10:00:00"}, {"finished": "2027-03-09"}, {"finished": None}]
)
def test_a_time_that_is_none_is_a_damaged_file(tmp_path: Path, times: dict[str, object]) -> None:
    crawl_json(tmp_path / "out", **times)
    with pytest.raises(DamagedFileError):
        last_crawls(tmp_path / "out", "")


@pytest.mark.parametrize("content", ["", "[]", '{"started": 1}', '{"started": "x"}', "null"])
def test_a_file_that_is_no_crawl_json_is_a_damaged_one(tmp_path: Path, content: str) -> None:
    (tmp_path / "crawl.json").write_text(content)
    with pytest.raises(DamagedFileError):
        last_crawls(tmp_path, "")


def test_a_crawl_that_is_due_beyond_the_last_date_waits_or_goes_on() -> None:
    never = CrawlSchedule(every=duration_of("999999w"))
    waits = plan(never, "%Y", [ended(1, "2027")], now=NOW)
    assert (waits.action, "9999-12-31" in waits.sentence) == (Action.WAIT, True)
    assert plan(never, "%Y", [broken_off(1, "2026")], now=NOW) == (Action.CRAWL, "2026", "")


@pytest.mark.parametrize(
    ("written", "shortest"),
    [
        ("90m", "90m"),
        ("48h", "2d"),
        ("7d", "1w"),
        ("104w", "104w"),
        ("730d", "730d"),
        ("999999w", "999999w"),
        ("999999m", "999999m"),
    ],
)
def test_an_interval_of_years_is_an_age_that_a_recrawl_takes(written: str, shortest: str) -> None:
    text = CrawlSchedule(every=duration_of(written)).every_text
    assert (text, duration_of(text)) == (shortest, duration_of(written))
    assert CrawlConfig.model_validate({"recrawl_after": text}).recrawl_after == {"*": text}
