"""A list crawl whose list is an index of hostile sitemaps, fetched by the crawl itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import rows
from hostile.hostile_server import Behaviour, HostileServer
from hostile.sitemaps import SITEMAPS, index
from hostile.test_hostile_crawl import MOST_MEMORY, SHORT
from hostile.watched_crawls import MIB, Ended, check_archive, raw_controls, run_watched
from loopback import command

if TYPE_CHECKING:
    from pathlib import Path

    from hostile.hostile_server import Peer

# Sitemaps are read one after the other: each that drips is waited for alone.
IMPATIENT = SHORT | {"AMICRAWL_TIMEOUT": "2", "AMICRAWL_MIN_RATE_TIME": "1"}


@dataclass(frozen=True)
class Crawled:
    ended: Ended
    out: Path
    server: HostileServer
    pages: list[dict[str, Any]]
    """The rows of what is no sitemap."""


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    directory = tmp_path_factory.mktemp("hostile-sitemaps")
    named: list[bytes] = []

    def serve_index(peer: Peer) -> None:
        peer.request()
        peer.send(b"HTTP/1.0 200 OK\r\n\r\n" + index(*named))

    first = Behaviour(name="index", serve=serve_index, paths=("/sitemap.xml",))
    with HostileServer((first, *SITEMAPS)) as server:
        urls = [url for _, url in server.urls()]
        named += [url.encode() for url in urls[1:]]
        ended = run_watched(
            command(urls[0], directory / "out", settings=IMPATIENT), log=directory / "log", within=150
        )
    pages = [row for row in rows(directory / "out") if "sitemap" not in row["url"]]
    return Crawled(ended, directory / "out", server, pages)


def test_the_crawl_of_hostile_sitemaps_ends_well_and_by_itself(crawled: Crawled) -> None:
    assert crawled.ended.code == 0, crawled.ended.said[-2000:]
    assert '"reason": "finished"' in crawled.ended.said


def test_only_what_sitemaps_may_name_is_fetched(crawled: Crawled) -> None:
    found = Counter(
        (row["url"].partition("//")[2].partition("/")[2], row["status"], row["error"].partition(":")[0])
        for row in crawled.pages
    )
    assert found == {
        ("good", 200, ""): 1,
        # One with a password in it is left out of the list before it becomes a row.
        ("refused", 0, "address-refused"): 3,
        ("etc/passwd", 0, "unfetchable-url"): 1,
        ("", 0, "unfetchable-url"): 1,  # `javascript:`
        ("%0D%0AX-Forged:%20yes", 200, ""): 1,
        ("%E2%80%AEgpj.exe", 200, ""): 1,
    }


def test_indexes_are_followed_to_a_depth_and_each_sitemap_is_requested_once(crawled: Crawled) -> None:
    requested = Counter(row["url"] for row in rows(crawled.out) if "sitemap" in row["url"])
    assert max(requested.values()) == 1
    # Of the indexes that name two more each, down to five below the first.
    assert len(requested) < len(SITEMAPS) + 2**6


def test_hostile_sitemaps_leave_the_crawl_bounded_and_whole(crawled: Crawled) -> None:
    assert 0 < crawled.ended.peak < MOST_MEMORY, crawled.ended.peak / MIB
    assert crawled.server.forbidden == []
    assert raw_controls(crawled.ended.said) == []
    assert not any(
        b"forged" in request.lower().split(b"\r\n", 1)[1] for request in crawled.server.received
    )
    check_archive(crawled.out)
