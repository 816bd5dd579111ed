"""A Scrapy without one of the private parts that are used is refused before the first request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from amicrawl.crawl import internals
from amicrawl.errors import UsageError


def crawler(*, without: str = "") -> Any:
    """Return a crawler whose open spider has everything in its slot but what *without* names."""
    slot = SimpleNamespace(**{name: set() for name in internals.SLOT if name != without})
    engine = SimpleNamespace() if without == "_slot" else SimpleNamespace(_slot=slot)
    return SimpleNamespace(engine=engine, crawling=True)


def test_the_scrapy_that_is_installed_has_all_of_them() -> None:
    internals.check(crawler())


@pytest.mark.parametrize("name", ["_slot", *internals.SLOT])
def test_one_that_is_missing_is_named_in_a_sentence(name: str) -> None:
    with pytest.raises(UsageError, match=rf"has no \w+\.{name}, which amicrawl needs"):
        internals.check(crawler(without=name))


def test_so_is_a_method_that_is_missing() -> None:
    missing: dict[type, tuple[str, ...]] = {**internals.CLASSES, str: ("renamed",)}
    with pytest.raises(UsageError, match=r"has no str\.renamed, which"):
        internals.check(crawler(), classes=missing)
