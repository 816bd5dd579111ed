"""`amicrawl explain`: what is said of robots.txt is what is known of it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from loopback import crawl, free_port, write_lines
from meguri.format.frontier_files import empty_partition
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.cli.explain import _of_calendar
from amicrawl.config import CrawlConfig
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError
from amicrawl.meguri.format.writer import WriteOptions, write_partition

if TYPE_CHECKING:
    from pathlib import Path

ORIGIN = "http://a.example/robots.txt"


def robots_said(directory: Path, *origins: dict[str, Any], **given: Any) -> str:
    """Return what is said of robots.txt where a crawl with the settings *given* kept *origins*."""
    (directory / "frontier").mkdir(exist_ok=True)
    snapshot = directory / "frontier" / "snap-1.meguri"
    write_partition(empty_partition(), snapshot, disk=Disk(), options=WriteOptions(schedule=True))
    settings = {"delay": CrawlConfig().delay, **given}
    requested = {"url": "http://a.example/"}
    (directory / "crawl.json").write_text(json.dumps({"settings": settings, "asked": requested}))
    known = {"agent": "amicrawl/1", "origins": origins}
    (directory / "frontier" / "robots.json").write_text(json.dumps(known))
    line = ["explain", "http://a.example/x", "--dir", str(directory), "--json"]
    rules = json.loads(CliRunner().invoke(app, line, catch_exceptions=False).output)["rules"]
    (said,) = (rule["says"] for rule in rules if rule["rule"] == "robots")
    return str(said)


def origin(access: str, *, responded: float = 1.0, robots: str | None = None) -> dict[str, Any]:
    now = time.time()
    kept = {"origin": ORIGIN, "access": access, "expires": now + 3600, "failures": 0, "robots": robots}
    return {**kept, "answered": responded * now}


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({}, "nothing is known: there was no response, or it has expired"),
        ({"access": "rules", "robots": "User-agent: *\nDisallow: /y\n"}, f"{ORIGIN} allows it"),
        ({"access": "rules", "robots": "User-agent: *\nDisallow: /x\n"}, "robots.txt disallows it"),
        ({"access": "allow-all"}, f"there is no {ORIGIN}, so nothing is forbidden"),
        ({"access": "wait", "responded": 0}, "robots.txt is unreachable, to be requested again"),
    ],
)
def test_a_robots_txt_allows_only_where_there_is_one(
    tmp_path: Path, known: dict[str, Any], says: str
) -> None:
    # What expires is made here: all tests are collected long before the last of them runs.
    assert robots_said(tmp_path, *([origin(**known)] if known else [])) == says


def test_what_a_killed_crawl_had_learnt_of_robots_txt_is_known(tmp_path: Path) -> None:
    (tmp_path / "frontier").mkdir()
    learnt = json.dumps(origin("rules", robots="User-agent: *\nDisallow: /x\n"))
    (tmp_path / "frontier" / "robots.jsonl").write_text(f"{learnt}\n{learnt[:40]}")
    assert robots_said(tmp_path) == "robots.txt disallows it"


@pytest.mark.parametrize("name", ["a.example", "A.Example.", "EXAMPLE"])
def test_an_override_holds_for_a_host_however_its_name_is_written(tmp_path: Path, name: str) -> None:
    forbids = origin("rules", robots="User-agent: *\nDisallow: /x\n")
    said = robots_said(tmp_path, forbids, host_overrides={name: {"robots": "ignore"}})
    assert said == "ignored: AMICRAWL_ROBOTS, or a host override"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://a.example/events/2036-02/", "about 2036-02: left out once 100 such pages"),
        ("http://a.example/cal?tribe-bar-date=2036-02-01", "about 2036-02-01: left out once 100 such"),
        ("http://a.example/about", None),
    ],
)
def test_a_url_with_a_date_is_said_to_be_of_a_calendar_that_may_end(url: str, says: str | None) -> None:
    line = ["explain", url, "--start", "http://a.example/", "--json"]
    rules = json.loads(CliRunner().invoke(app, line, catch_exceptions=False).output)["rules"]
    found = [rule["says"] for rule in rules if rule["rule"] == "calendar"]
    assert [each.startswith(says) for each in found] == ([] if says is None else [True])


def test_where_calendars_are_not_ended_nothing_is_said_of_them() -> None:
    assert _of_calendar(CrawlConfig(out="x", calendar_pages=0), "http://a.example/2036-02/") is None


def explained(url: str, directory: Path) -> str:
    line = ["explain", url, "--dir", str(directory)]
    return CliRunner().invoke(app, line, catch_exceptions=False).output


@pytest.mark.parametrize("given", [{"url": "a.example/docs/"}, {"file": "starts.txt"}])
def test_the_scope_of_a_crawl_is_that_of_its_start_urls(
    given: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "starts.txt", ["http://a.example/docs/"])
    requested = {"depth": "inf", **given}
    (tmp_path / "crawl.json").write_text(json.dumps({"settings": {}, "asked": requested}))
    assert "a link to it is taken" in explained("http://a.example/docs/x", tmp_path)
    assert "a link to it is kept out by scope" in explained("http://a.example/other", tmp_path)


def test_a_list_of_start_urls_that_is_gone_is_named(tmp_path: Path) -> None:
    requested = {"depth": "inf", "file": str(tmp_path / "starts.txt")}
    (tmp_path / "crawl.json").write_text(json.dumps({"settings": {}, "asked": requested}))
    with pytest.raises(InputError, match=r"starts\.txt.* decide its scope"):
        explained("http://a.example/x", tmp_path)


def test_a_url_that_was_not_captured_is_explained_by_its_last_failure(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    seeds = write_lines(tmp_path / "seeds.txt", [url])
    assert crawl(seeds, tmp_path / "out").returncode == ExitCode.UNREACHED
    line = ["explain", url, "--dir", str(tmp_path / "out")]
    said = CliRunner().invoke(app, line, catch_exceptions=False).output
    assert "not captured; the last fetch failed: connection-refused: " in said
    (tmp_path / "out" / "captures.parquet").unlink()
    said = CliRunner().invoke(app, line, catch_exceptions=False).output
    assert "not captured; due from" in said
