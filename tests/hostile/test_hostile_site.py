"""A crawl that follows the links of a hostile site: it finds what is there, and ends."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import rows
from hostile.hostile_pages import DEEPER, ENDLESS, HOSTILE_SITE, PAGES
from hostile.hostile_server import HostileServer
from hostile.test_hostile_crawl import SHORT
from hostile.watched_crawls import MIB, Ended, check_archive, raw_controls, run_watched
from loopback import QUICK

if TYPE_CHECKING:
    from pathlib import Path

FOLLOWING = SHORT | {
    "AMICRAWL_TIMEOUT": "10",
    "AMICRAWL_MAX_BODY": str(4 * MIB),
    "AMICRAWL_PER_HOST": "8",
    # Pages that lead to one more each are a site of any size; how far to go is the operator's to say.
    "AMICRAWL_MAX_HOPS": "12",
}

MOST_MEMORY = 512 * MIB
"""190 MiB of libraries; eight pages of 4 MiB at once, each up to 10 MiB unpacked and once more in lower
case; 20,000 links of a page as objects."""


@dataclass(frozen=True)
class Crawled:
    ended: Ended
    out: Path
    server: HostileServer
    paths: dict[str, dict[str, Any]]
    """The rows of this site by path."""
    elsewhere: list[dict[str, Any]]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    directory = tmp_path_factory.mktemp("hostile-site")
    out = directory / "out"
    with HostileServer([HOSTILE_SITE]) as server:
        ((_, url),) = server.urls()
        line = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"url={url}", "-a", f"out={out}"]
        for name, value in {**QUICK, **FOLLOWING}.items():
            line += ["-s", f"{name}={value}"]
        ended = run_watched(line, log=directory / "log", within=150)
    here, elsewhere = {}, []
    for row in rows(out):
        if row["url"].startswith(url):
            here["/" + row["url"].removeprefix(url)] = row
        else:
            elsewhere.append(row)
    return Crawled(ended, out, server, here, elsewhere)


def test_the_crawl_of_a_hostile_site_ends_well_and_by_itself(crawled: Crawled) -> None:
    assert crawled.ended.code == 0, crawled.ended.said[-2000:]
    assert '"reason": "finished"' in crawled.ended.said


def test_every_hostile_page_is_archived(crawled: Crawled) -> None:
    assert {path for path in PAGES if crawled.paths[path]["status"] not in (200, 302)} == set()


@pytest.mark.parametrize("path", [path for path, page in PAGES.items() if page.leads_to])
def test_what_is_behind_an_attack_is_found(crawled: Crawled, path: str) -> None:
    assert crawled.paths[PAGES[path].leads_to]["status"] == 200


def test_what_leads_on_without_end_is_followed_so_far_and_no_further(crawled: Crawled) -> None:
    counts = {
        first: sum(path.startswith(first.rpartition("0")[0]) for path in crawled.paths)
        for first in ENDLESS
    }
    deeper = sum(path.startswith(DEEPER) for path in crawled.paths)
    assert all(0 < count <= 20 for count in (*counts.values(), deeper)), (counts, deeper)


def test_links_to_forbidden_addresses_are_refused_and_never_dialled(crawled: Crawled) -> None:
    assert crawled.server.forbidden == []
    found = Counter((row["status"], row["error"].partition(":")[0]) for row in crawled.elsewhere)
    assert found.keys() == {(0, "address-refused")}
    assert {row["url"].partition(":")[0] for row in crawled.elsewhere} == {"http"}


def test_a_hostile_site_leaves_the_crawl_bounded_and_whole(crawled: Crawled) -> None:
    assert 0 < crawled.ended.peak < MOST_MEMORY, crawled.ended.peak / MIB
    assert raw_controls(crawled.ended.said) == []
    check_archive(crawled.out)
