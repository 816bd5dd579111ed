"""A crawl that obeys robots.txt, of servers that attack by it, named in sitemaps that attack as well."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import rows
from hostile.hostile_server import Behaviour, Expected, HostileServer
from hostile.robots_files import ROBOTS_FILES
from hostile.test_hostile_crawl import MOST_MEMORY, SHORT
from hostile.watched_crawls import MIB, Ended, check_archive, raw_controls, run_watched
from loopback import command, write_jsonl

from amicrawl.errors import ExitCode
from amicrawl.record.captures import COLUMNS
from amicrawl.record.journal import read_rows

if TYPE_CHECKING:
    from pathlib import Path

OBEYING = SHORT | {"AMICRAWL_ROBOTS": "obey", "AMICRAWL_MAX_CRAWL_DELAY": "0.2"}


@dataclass(frozen=True)
class Crawled:
    ended: Ended
    out: Path
    server: HostileServer
    pages: dict[str, list[dict[str, Any]]]
    """The rows by behaviour, those of robots.txt left out."""
    robots: list[dict[str, Any]]


def stop_at_the_end(out: Path, server: HostileServer, is_over: threading.Event) -> None:
    """Stop the crawl into *out* when it has all that is expected, unless it *is_over* before.

    It does not end by itself: a robots.txt that cannot be had is requested again after a minute.
    """
    journal, pages = out / "captures-00000.open", sum(len(each.expected) for each in ROBOTS_FILES)
    while not is_over.wait(0.1):
        found = list(read_rows(journal, on_damage=lambda _: None)) if journal.exists() else []
        named = [{name: cell for (name, _), cell in zip(COLUMNS, row, strict=True)} for row in found]
        robots = {row["host"] for row in named if not row["meta_json"]}
        if robots >= set(server.behaviours) and sum(bool(row["meta_json"]) for row in named) >= pages:
            (out / "control" / "stop").touch()
            return


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    directory = tmp_path_factory.mktemp("hostile-robots")
    out = directory / "out"
    with HostileServer(ROBOTS_FILES) as server:
        seeds = [{"url": url, "behaviour": behaviour.name} for behaviour, url in server.urls()]
        line = command(write_jsonl(directory / "seeds.jsonl", seeds), out, settings=OBEYING)
        is_over = threading.Event()
        stopping = threading.Thread(target=stop_at_the_end, args=(out, server, is_over))
        stopping.start()
        ended = run_watched(line, log=directory / "log", within=150)
        is_over.set()
        stopping.join()
    pages: dict[str, list[dict[str, Any]]] = {behaviour.name: [] for behaviour in ROBOTS_FILES}
    robots = []
    for row in rows(out):
        if row["meta_json"]:
            pages[json.loads(row["meta_json"])["behaviour"]].append(row)
        else:
            robots.append(row)
    return Crawled(ended, out, server, pages, robots)


def test_the_crawl_ends_as_it_was_told_to(crawled: Crawled) -> None:
    assert crawled.ended.code == ExitCode.STOPPED, crawled.ended.said[-2000:]
    assert '"reason": "stop-file"' in crawled.ended.said


@pytest.mark.parametrize("behaviour", ROBOTS_FILES, ids=lambda behaviour: behaviour.name)
def test_a_robots_txt_decides_no_more_than_it_may(crawled: Crawled, behaviour: Behaviour) -> None:
    found = [
        Expected(status=row["status"], error=row["error"].partition(":")[0])
        for row in crawled.pages[behaviour.name]
    ]
    assert sorted(found, key=repr) == sorted(behaviour.expected, key=repr)


def test_every_robots_txt_is_archived_and_requested_a_bounded_number_of_times(crawled: Crawled) -> None:
    requested = [row["host"] for row in crawled.robots]
    assert set(requested) >= set(crawled.server.behaviours)
    assert max(map(requested.count, requested)) <= 25


def test_the_rest_of_the_crawl_is_bounded_and_whole(crawled: Crawled) -> None:
    assert 0 < crawled.ended.peak < MOST_MEMORY, crawled.ended.peak / MIB
    assert crawled.server.forbidden == []
    assert raw_controls(crawled.ended.said) == []
    check_archive(crawled.out)
