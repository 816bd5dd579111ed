"""In a crawl of few hops most pages are as far away as it goes: none of their links is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from crawl.stand_in_engine import StandInEngine
from record.exchanges import capture

from amicrawl.config import CrawlConfig, Identity
from amicrawl.crawl.following import Following
from amicrawl.crawl.run import Run
from amicrawl.discovery import IgnoreSet, Scope, Selection
from amicrawl.frontier import Offer, Source
from amicrawl.record import CaptureItem
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

START = "http://museum.example/"
BODY = b"""
<a href="/one">1</a> <a href="/two">2</a> <a href="http://other.example/">3</a> <img src="/ship.png">
"""


@dataclass(frozen=True, kw_only=True)
class Judging(Selection):
    """A selection that keeps what it was given to judge."""

    judged: list[str] = field(default_factory=list)

    def judge(self, url: str, **said: Any) -> Any:
        """Judge *url*, and keep it."""
        self.judged.append(url)
        return super().judge(url, **said)


def offered(*, hops: int) -> tuple[list[str], Following, list[str]]:
    """Return where a page so many hops away leads in a crawl of two hops, and what was judged."""
    run = Run(CrawlConfig(), Identity.CANONICAL, engine=StandInEngine())
    scope = Scope(max_hops=2)
    scope.widen(START)
    selection = Judging(scope=scope, ignores=IgnoreSet())
    run.following = Following(selection, key_of=run.key_of, starts=(START,), widens=False)
    url = f"{START}page"
    key = run.key_of(url)
    assert isinstance(key, UrlKey)
    made = capture(url, head=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", body=BODY)
    offer = Offer(Seed(url), key, Source.LINK, hops=hops)
    found = run.following.read_now(CaptureItem(made, offer.seed), offer)
    return [each.seed.url for each in found], run.following, selection.judged


def test_the_links_of_a_page_at_the_last_hop_are_counted_and_not_judged_one_by_one() -> None:
    found, following, judged = offered(hops=2)
    assert found == [f"{START}ship.png"]
    assert following.counts["kept_out/scope"] == 3
    assert judged == [f"{START}ship.png"]


def test_those_of_a_page_before_it_are_judged_each() -> None:
    found, following, judged = offered(hops=1)
    assert found == [f"{START}ship.png", f"{START}one", f"{START}two"]
    assert following.counts["kept_out/scope"] == 1
    assert len(judged) == 4
