"""A list whose every page offers one more argument has as many pages as its arguments have subsets."""

from __future__ import annotations

import pytest
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

START = "http://shop.example/list"


def followed(run: Run, offer: Offer, link: str) -> list[Offer]:
    """Return what the page of *offer* leads to, which names *link* and nothing else."""
    assert run.following is not None
    body = f'<a href="{link.replace("&", "&amp;")}">more</a>'.encode()
    made = capture(offer.seed.url, head=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", body=body)
    return run.following.read_now(CaptureItem(made, offer.seed), offer)


@pytest.mark.parametrize("separator", ["&", ";"])
def test_a_query_that_grows_from_page_to_page_is_followed_four_times(separator: str) -> None:
    run = Run(CrawlConfig(), Identity.CANONICAL, engine=StandInEngine())
    scope = Scope()
    scope.widen(START)
    selection = Selection(scope=scope, ignores=IgnoreSet())
    run.following = Following(selection, key_of=run.key_of, starts=(START,), widens=False)
    key = run.key_of(START)
    assert isinstance(key, UrlKey)
    (offer,) = followed(run, Offer(Seed(START), key, Source.SEED), f"{START}?a=0")
    for number in range(1, 5):
        (offer,) = followed(run, offer, f"{offer.seed.url}{separator}a{number}=0")
    assert followed(run, offer, f"{offer.seed.url}{separator}a5=0") == []
    assert run.following.counts["kept_out/growth"] == 1
    # Another query of the same list is no further argument, and the count begins anew.
    (offer,) = followed(run, offer, f"{START}?page=2")
    assert len(followed(run, offer, f"{offer.seed.url}{separator}a=0")) == 1
