"""Signals of a page: who listens hears them, by whatever way it connected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydispatch import dispatcher
from scrapy import Spider
from scrapy.crawler import Crawler

from amicrawl.crawl.internals import Signaller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MARK = object()
CONNECTIONS: dict[str, Callable[[Crawler], dict[str, object]]] = {
    "of this crawl": lambda crawler: {"sender": crawler, "signal": MARK},
    "of anybody": lambda _: {"signal": MARK},
    "whatever this crawl says": lambda crawler: {"sender": crawler},
    "whatever anybody says": lambda _: {},
}


@pytest.fixture
def crawler() -> Crawler:
    return Crawler(Spider)


@pytest.fixture(params=CONNECTIONS)
def heard(request: pytest.FixtureRequest, crawler: Crawler) -> Iterator[list[object]]:
    told: list[object] = []

    def listen(page: object = None) -> None:
        told.append(page)

    wanted = CONNECTIONS[request.param](crawler)
    dispatcher.connect(listen, **wanted)
    yield told
    dispatcher.disconnect(listen, **wanted)


def test_whoever_listens_hears(crawler: Crawler, heard: list[object]) -> None:
    Signaller(crawler).send(MARK, page="a page")
    assert heard == ["a page"]


def test_nobody_hears_what_another_crawl_says(crawler: Crawler) -> None:
    told: list[object] = []

    def listen(page: object) -> None:
        told.append(page)

    crawler.signals.connect(listen, MARK)
    Signaller(Crawler(Spider)).send(MARK, page="a page")
    assert told == []
