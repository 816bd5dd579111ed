"""Callbacks of ordinary spiders: what they request waits on disk, and outlives a kill in their midst."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import warm_processes
from archive_reading import rows
from crawl.reading_spider import THINGS
from loopback import PROJECT, QUICK, RawServer, environment, page

if TYPE_CHECKING:
    from pathlib import Path

ALL = {f"/thing/{number}-{thing}" for number in range(3) for thing in range(THINGS)}
MOVED, MISSING, SILENT = "/thing/0-1", "/thing/0-2", "/thing/2-5"


def respond(head: bytes) -> bytes:
    path = path_of(head)
    if path == MOVED:
        return page(b"", "Location: /elsewhere", status="302 Found")
    if path == MISSING:
        return page(b"", status="404 Not Found")
    return b"" if path == SILENT else page(b"<html></html>", "Content-Type: text/html")


def path_of(head: bytes) -> str:
    return head.split(b" ")[1].decode()


@dataclass
class Ran:
    """A run of the spider: how it ended, what it noted, and what of the server it requested."""

    returncode: int
    said: str
    noted: list[dict[str, Any]]
    requested: Counter[str]
    heads: list[bytes]


def read(server: RawServer, tmp_path: Path, **arguments: str) -> Ran:
    settings = {
        **QUICK,
        "AMICRAWL_OUT": str(tmp_path / "out"),
        "AMICRAWL_MAX_RETRIES": "1",
        "JOBDIR": str(tmp_path / "job"),
        "LOG_LEVEL": "WARNING",
    }
    before, notes = len(server.requests), tmp_path / "notes.jsonl"
    notes.write_text("")
    line = [sys.executable, "-m", "scrapy", "runspider", "tests/crawl/reading_spider.py"]
    for name, value in {"site": server.url, "notes": str(notes), **arguments}.items():
        line += ["-a", f"{name}={value}"]
    for name, value in settings.items():
        line += ["-s", f"{name}={value}"]
    done = warm_processes.run(
        line,
        cwd=PROJECT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    noted = [json.loads(line) for line in notes.read_text().splitlines()]
    heads = server.requests[before:]
    return Ran(done.returncode, done.stderr, noted, Counter(map(path_of, heads)), heads)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    """A run that is killed while it reads the second list, the one after it, and a third."""
    tmp_path = tmp_path_factory.mktemp("reading")
    with RawServer(respond) as server:
        killed = read(server, tmp_path, dies_in="/list/1")
        others = [read(server, tmp_path) for _ in range(2)]
    assert len(rows(tmp_path / "out")) >= len(ALL)
    return [killed, *others]


def test_a_page_whose_callback_was_killed_is_read_again_and_nothing_else_is(runs: list[Ran]) -> None:
    killed, resumed, _ = runs
    assert killed.returncode == -signal.SIGKILL
    assert killed.requested.keys() >= {"/", "/list/0", "/list/1", "/list/2", "/thing/1-0"}
    unseen = {f"/thing/1-{thing}" for thing in range(THINGS // 2, THINGS)}
    assert not unseen & killed.requested.keys()
    assert resumed.returncode == 0, resumed.said
    assert resumed.requested == Counter({"/": 1, "/list/1": 1, **dict.fromkeys(unseen, 1)})


def test_every_thing_was_read_once_with_its_arguments(runs: list[Ran]) -> None:
    things = {MOVED.replace("/thing/0-1", "/elsewhere"), *(ALL - {MOVED, MISSING, SILENT})}
    found = [item for ran in runs for item in ran.noted if "url" in item]
    paths = ["/" + item["url"].split("/", 3)[3] for item in found]
    assert sorted(paths) == sorted(things)
    for path, item in zip(paths, found, strict=True):
        number, thing = (0, 1) if path == "/elsewhere" else map(int, path[7:].split("-"))
        assert item["labels"] == {"list": number, "of": [thing]}
        assert (item["hops"], item["depth"]) == (int(path == "/elsewhere"), 2)


def test_things_were_requested_as_the_spider_said_behind_a_redirect_too(runs: list[Ran]) -> None:
    for head in runs[0].heads + runs[1].heads:
        is_thing = path_of(head).startswith(("/thing", "/elsewhere"))
        assert (b"\r\nAccept: text/x-thing\r\n" in head) is is_thing
        assert head.count(b"\r\nAccept:") == 1


def test_a_third_run_requests_its_start_and_nothing_that_is_done(runs: list[Ran]) -> None:
    assert runs[2].requested == Counter({"/": 1})


def test_errbacks_hear_once_of_what_is_over_and_never_of_what_is_tried_again(runs: list[Ran]) -> None:
    assert runs[0].requested[SILENT] == 2
    missed = sorted((item["missed"], item["why"]) for item in runs[0].noted if "missed" in item)
    assert [(url.split("/", 3)[3], why) for url, why in missed] == [
        (MISSING[1:], "HttpError"),
        (SILENT[1:], "DownloadFailedError"),
    ]
