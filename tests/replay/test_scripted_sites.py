"""Sites made by scripts, archived in a browser, and shown by replayers after their server has ended.

The text is that of the live page, and less than a hundredth of the pixels differ.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from browser.browsing_site import crawl_pages, needs_chromium
from dashboard.browsing import chromium
from loopback import RawServer
from replay.replayers import REPLAYWEB, WINDOW, Pywb, ReplayWebPage, Shown, package, show
from replay.scripted_sites import SITES, respond
from replay.test_replay import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

pytestmark = [
    needs_chromium,
    pytest.mark.timeout(600),  # the first of them waits for the crawl of all sites
    pytest.mark.skipif(
        not (TOOLS / "wayback").exists() or not REPLAYWEB.exists(),
        reason="pywb or ReplayWeb.page is not installed: `make test` sets them up",
    ),
]
IS_LONG = "AMICRAWL_BROWSER_LONG" in os.environ
SHORT = {
    "pywb": ("/endless/", "/lazy/", "/worker/", "/search/"),
    "pywb as a proxy": ("/react/", "/vue/", "/svelte/"),
    "ReplayWeb.page": ("/react/", "/svelte/", "/search/"),
}
"""What each shows in every run of the tests; all sites in each with `make test-replay`."""
NOT_SHOWN = dict.fromkeys(
    [("pywb", path) for path in ("/react/", "/react/tides", "/vue/", "/svelte/", "/modules/")],
    "it declares `arguments` in each script, which is an error in modules",
)
"""What a replayer does not show, and why; the others show it from the same archive."""
CASES = [
    pytest.param(
        name, path,
        marks=[pytest.mark.xfail(strict=True, raises=AssertionError, reason=NOT_SHOWN[name, path])]
        if (name, path) in NOT_SHOWN else [],
    )
    for name, short in SHORT.items()
    for path in (SITES if IS_LONG else short)
]  # fmt: skip

SHOWN = dict.fromkeys(path for short in SHORT.values() for path in (SITES if IS_LONG else short))
"""The sites of these cases, once each."""


class Replays(NamedTuple):
    """The live pages, and what shows them from their archive."""

    live: dict[str, Shown]
    replayers: Mapping[str, Callable[[str, str], Shown]]
    replayweb: ReplayWebPage
    url: str
    comparing: Any
    """A page in which pictures are compared."""
    rows: list[str]
    """Of the table that `make test-replay` writes."""


@pytest.fixture(scope="module")
def replays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replays]:
    home = tmp_path_factory.mktemp("scripted")
    with chromium() as browser:
        with RawServer(respond) as server:
            settings = {"AMICRAWL_BROWSER_PAGES": "3", "AMICRAWL_PER_HOST": "3"}
            done = crawl_pages(f"{server.url}/", home / "out", settings)
            assert done.returncode == 0, done.stderr
            live = {
                path: show(browser.new_context(viewport=WINDOW), server.url + path, SITES[path])
                for path in SHOWN
            }
        with (
            Pywb(browser, home / "out", home) as pywb,
            ReplayWebPage(browser, package(home / "out", home / "site.wacz")) as replayweb,
        ):
            replayers = {
                "pywb": pywb.rewritten,
                "pywb as a proxy": pywb.as_proxy,
                "ReplayWeb.page": replayweb.shown,
            }
            rows: list[str] = []
            yield Replays(live, replayers, replayweb, server.url, browser.new_page(), rows)
    if table := os.environ.get("AMICRAWL_REPLAY_TABLE"):
        Path(table).write_text("| Replayer | Site | Text | Pixels that differ |\n|---|---|---|---|\n")
        with Path(table).open("a") as stream:
            stream.writelines(rows)


@pytest.mark.parametrize(("name", "path"), CASES)
def test_a_site_made_by_scripts_is_replayed_as_it_was(replays: Replays, name: str, path: str) -> None:
    live = replays.live[path]
    assert live.is_complete, live.text
    replayed = replays.replayers[name](replays.url + path, SITES[path])
    differs = live.differs(replayed, replays.comparing)
    same = "same" if live.text == replayed.text else "another"
    replays.rows.append(f"| {name} | `{path}` | {same} | {differs:.2%} |\n")
    assert replayed.text == live.text
    assert differs < 0.01


def test_a_reader_of_the_package_finds_a_page_by_what_its_scripts_have_shown(replays: Replays) -> None:
    opened = replays.replayweb.list_of_pages()
    listed = opened.locator("wr-page-entry")
    listed.first.wait_for(timeout=60_000)
    assert listed.count() > 1
    opened.get_by_placeholder("Search by Page URL, Title, or Text").fill("19 m in all")
    opened.get_by_text("1 page", exact=True).wait_for(timeout=60_000)
    (entry,) = listed.all()
    assert entry.locator("keyword-mark").first.get_attribute("title") == "Svelte"
    opened.close()
