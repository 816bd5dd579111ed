"""A crawl whose callback reads the pages: each that was archived reaches it, whatever it is."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from archive_reading import rows
from hostile import reading_spider
from hostile.hostile_server import HostileServer
from hostile.lies_about_content import LIES_ABOUT_CONTENT
from hostile.odd_messages import HEADS, STATUSES
from hostile.redirects_astray import REDIRECTS_ASTRAY
from hostile.test_hostile_crawl import SHORT
from hostile.watched_crawls import MIB, Ended, check_archive, raw_controls, run_watched
from loopback import QUICK, write_jsonl

from amicrawl.record.warc import URI_LIMIT
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from pathlib import Path

BEHAVIOURS = (*LIES_ABOUT_CONTENT, *HEADS, *STATUSES, *REDIRECTS_ASTRAY)

MOST_MEMORY = 480 * MIB
"""Beside what a list crawl needs: what Scrapy loads for callbacks, and a body unpacked to 32 MiB,
which is in memory up to three times while it is put together."""


class Crawled(NamedTuple):
    ended: Ended
    out: Path
    server: HostileServer
    items: list[dict[str, Any]]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    directory = tmp_path_factory.mktemp("hostile-callbacks")
    out, feed = directory / "out", directory / "items.jsonl"
    with HostileServer(BEHAVIOURS) as server:
        seeds = write_jsonl(directory / "seeds.jsonl", [{"url": url} for _, url in server.urls()])
        line = [sys.executable, "-m", "scrapy", "runspider", reading_spider.__file__, "-o", str(feed)]
        line += ["-a", f"file={seeds}", "-a", f"out={out}"]
        # Scrapy's cookies would fetch a list of public suffixes.
        for name, value in {**QUICK, **SHORT, "COOKIES_ENABLED": "0"}.items():
            line += ["-s", f"{name}={value}"]
        ended = run_watched(line, log=directory / "log", within=150)
    return Crawled(ended, out, server, [json.loads(item) for item in feed.read_text().splitlines()])


def _name(url: str) -> str:
    """Return the name under which *url* is archived."""
    found = fetchable(url)
    return "" if isinstance(found, Refused) else found.url


def test_every_page_that_was_archived_reaches_the_callback(crawled: Crawled) -> None:
    assert crawled.ended.code == 0, crawled.ended.said[-2000:]
    archived = [row["url"] for row in rows(crawled.out) if 200 <= row["status"] < 300]
    # What has a name too long for a record cannot be archived; the callback may have it all the same.
    read = [_name(item["url"]) for item in crawled.items if len(item["url"]) < URI_LIMIT]
    assert len(archived) > 60
    assert sorted(read) == sorted(archived)


def test_no_callback_is_given_a_bomb_unpacked(crawled: Crawled) -> None:
    assert max(item["size"] for item in crawled.items) <= 32 * MIB


def test_a_crawl_with_callbacks_stays_bounded_and_whole(crawled: Crawled) -> None:
    assert 0 < crawled.ended.peak < MOST_MEMORY, crawled.ended.peak / MIB
    assert crawled.server.forbidden == []
    assert raw_controls(crawled.ended.said) == []
    assert not [line for line in crawled.ended.said.splitlines() if " ERROR: " in line]
    check_archive(crawled.out)
