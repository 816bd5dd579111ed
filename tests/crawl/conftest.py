"""Crawls of this folder by both roads: rows visited directly, and rows that go by Scrapy's engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from loopback import QUICK

if TYPE_CHECKING:
    from collections.abc import Iterator

BY_BOTH = frozenset(
    {
        "test_behaviour",
        "test_crawl_robots",
        "test_crawl_politeness",
        "test_odd_crawl",
        "test_recrawl",
        "test_refusals",
        "test_resume",
        "test_site_crawl",
    }
)
"""Modules whose tests run by both roads each time; `pytest tests/crawl --roads` has all others do so."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    name = metafunc.module.__name__
    roads = ["auto"]
    if name in BY_BOTH or (metafunc.config.getoption("--roads") and name != "test_both_roads"):
        roads = ["auto", "never"]
        metafunc.fixturenames.append("road")
        metafunc.parametrize("road", roads, indirect=True)


@pytest.fixture
def road(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let crawls of the test take the road `request.param`, unless they say otherwise themselves."""
    QUICK["AMICRAWL_DIRECT"] = request.param
    yield
    del QUICK["AMICRAWL_DIRECT"]
