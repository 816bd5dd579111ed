"""`amicrawl pipeline ls`: columns for people, objects for programs, nothing of a record believed."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.errors import UsageError
from amicrawl.fleet.jobs.pipeline_record import (
    RUNNING,
    PipelineIdentity,
    PipelineRecord,
    is_silent,
    pipelines,
)

if TYPE_CHECKING:
    from pathlib import Path

    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore

FIGURES = {"load_average_1m": "0.956", "disk_available": str(int(56.3 * 1024**3))}


def listed(server: RedisServer, *options: str) -> list[str]:
    line = ["pipeline", "ls", "--redis", server.url, *options]
    return CliRunner().invoke(app, line, catch_exceptions=False).output.splitlines()


def report(store: JobStore, nickname: str, *, ago: float) -> str:
    record = PipelineRecord(store, PipelineIdentity(nickname, f"{nickname}.example", 7, nickname))
    record.report(RUNNING, time.time() - ago, FIGURES, slots=2, running=1)
    return record.key


def test_pipelines_are_listed_in_columns_that_people_read(
    redis_server: RedisServer, store: JobStore
) -> None:
    assert listed(redis_server) == [
        "No pipeline runs. Start one with `amicrawl pipeline --data DIRECTORY`."
    ]
    keys = [report(store, "anna", ago=0), report(store, "a-longer-name", ago=7 * 60)]
    head, *lines = listed(redis_server)
    assert head.split() == ["name", "status", "jobs", "load", "free", "reported", "key"]
    assert [line.split() for line in lines] == [
        ["a-longer-name", "silent", "?/2", "0.96", "56.3", "GiB", "7", "min", "ago", keys[1]],
        ["anna", "Running", "1/2", "0.96", "56.3", "GiB", lines[1].split()[6], "s", "ago", keys[0]],
    ]
    assert lines[0].index("silent") == lines[1].index("Running")


@pytest.mark.parametrize(("ago", "silent"), [(10, False), (17, True)])
def test_a_pipeline_that_has_not_reported_for_15_seconds_is_silent(
    redis_server: RedisServer, store: JobStore, ago: int, silent: bool
) -> None:
    report(store, "anna", ago=ago)
    (line,) = listed(redis_server, "--json")
    assert json.loads(line)["silent"] is silent


def test_a_pipeline_whose_clock_is_wrong_is_not_silent(store: JobStore) -> None:
    record = PipelineRecord(store, PipelineIdentity("anna", "anna.example", 7, "anna"))
    for moment in (time.time() - 3600, time.time() - 3599):
        record.report(RUNNING, moment, FIGURES, slots=2, running=1)
    (fields,) = pipelines(store)
    assert not is_silent(fields, store.now())


def test_pipelines_are_listed_as_objects(redis_server: RedisServer, store: JobStore) -> None:
    assert listed(redis_server, "--json") == []
    key = report(store, "anna", ago=0)
    (line,) = listed(redis_server, "--json")
    told = json.loads(line)
    assert (told["nickname"], told["status"], told["key"]) == ("anna", "Running", key)
    assert told["silent"] is False
    assert (told["running"], told["slots"], told["load"]) == (1, 2, 0.956)
    assert told["free_bytes"] == int(56.3 * 1024**3)
    assert time.time() - 60 < told["reported"] <= time.time()


def test_a_record_that_holds_anything_is_shown_with_question_marks(
    redis_server: RedisServer, store: JobStore
) -> None:
    key = report(store, "anna", ago=0)
    wrong = {"slots": "²", "running": "-1", "load_average_1m": "nan", "disk_available": "much"}
    wrong |= {"ts": "9" * 400, "status": "\x1b[2J", "nickname": "\u202e"}
    store.client.hset(key, mapping=dict[Any, Any](wrong))
    (_, line) = listed(redis_server)
    assert line.split()[:6] == ["\\u202e", "silent", "?/?", "?", "?", "?"]
    (told,) = map(json.loads, listed(redis_server, "--json"))
    assert {told[name] for name in ("running", "slots", "load", "free_bytes", "reported")} == {None}


@pytest.mark.parametrize("setting", ["AMICRAWL_ALLOW_PRIVATE=1", "AMICRAWL_DELLAY=1"])
@pytest.mark.parametrize("command", [["pipeline"], ["share", "work", "gov"]])
def test_a_setting_that_every_crawl_would_refuse_is_refused_before_one_begins(
    command: list[str], setting: str, tmp_path: Path
) -> None:
    """Each job would fail by it, one after the other."""
    line = [*command, "--redis", "redis://127.0.0.1:1/0", "--data", str(tmp_path), "-s", setting]
    with pytest.raises(UsageError, match=setting.partition("=")[0]):
        CliRunner().invoke(app, line, catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []
