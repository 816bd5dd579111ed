"""A room that is loaded by name gives every name that it promises, and no other."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

ROOMS = ("crawlfile", "fetch", "frontier", "record", "seed")


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_of_a_room_is_there(room: str) -> None:
    entered = import_module(f"amicrawl.{room}")
    assert all(getattr(entered, name) is not None for name in entered.__all__)


@pytest.mark.parametrize("room", ROOMS)
def test_no_name_of_a_room_is_that_of_a_module_in_it(room: str) -> None:
    entered = import_module(f"amicrawl.{room}")
    modules = {module.name for module in pkgutil.iter_modules(entered.__path__)}
    assert modules.isdisjoint(entered.__all__)


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_room_does_not_have_is_said_as_python_says_it(room: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'amicrawl.{room}' has no attribute 'nothing'"):
        _ = import_module(f"amicrawl.{room}").nothing
