"""A room that exports names lazily exports every name that it lists, and no other."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

ROOMS = (
    *(
        "api",
        "crawl",
        "crawlfile",
        "discovery",
        "fetch",
        "frontier",
        "politeness",
        "reading",
        "record",
        "seed",
    ),
    *("archive.index", "archive.lines", "archive.report", "archive.table"),
    *("fleet.dashboard", "fleet.jobs", "fleet.sharing", "fleet.spark"),
)


@pytest.mark.parametrize("room", ROOMS)
def test_every_exported_name_can_be_imported(room: str) -> None:
    entered = import_module(f"amicrawl.{room}")
    assert all(getattr(entered, name) is not None for name in entered.__all__)


@pytest.mark.parametrize("room", ROOMS)
def test_no_exported_name_is_that_of_a_module(room: str) -> None:
    entered = import_module(f"amicrawl.{room}")
    modules = {module.name for module in pkgutil.iter_modules(entered.__path__)}
    assert modules.isdisjoint(entered.__all__)


@pytest.mark.parametrize("room", ROOMS)
def test_a_missing_name_raises_as_in_any_module(room: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'amicrawl.{room}' has no attribute 'nothing'"):
        _ = import_module(f"amicrawl.{room}").nothing
