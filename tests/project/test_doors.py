"""A room is entered by its door: from another room, only what its `__init__` exports is imported."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import amicrawl
from amicrawl.wings import WINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(amicrawl.__file__).parent

PAST_THE_DOOR = frozenset({
    # What the commands of `amicrawl frontier` show and change is the format itself.
    *(("cli", f"meguri.format.{module}") for module in (
        *("difference", "faults", "footer", "header", "manifest", "operations", "reader"),
        *("schema", "strings", "verification", "writer"),
    )),
    # A name for type checkers only, and functions that are called as their modules are.
    ("crawl", "fetch.resolver"),
    ("cli", "archive.index.collection.collecting"),
    ("archive.report", "urls.surt"),
    ("cli", "archive.table.named_queries"),
    ("cli", "record.repair"),
})  # fmt: skip
"""Imports of names that are not exported, by the room that imports and the module. None may be added."""


MOST_EXPORTS = 36
"""A room that needs more names has no door: it is two rooms, or its callers need fewer better names."""


def _rooms() -> frozenset[str]:
    of_the_crawl = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - WINGS.keys()
    of_wings = {
        f"{wing}.{path.parent.name}" for wing in WINGS for path in PACKAGE.glob(f"{wing}/*/__init__.py")
    }
    return frozenset(of_the_crawl | of_wings)


ROOMS = _rooms()


def _room_of(parts: tuple[str, ...]) -> str:
    return next((room for room in (".".join(parts[:2]), parts[0] if parts else "") if room in ROOMS), "")


@cache
def _imports_between_rooms() -> tuple[tuple[str, str, str], ...]:
    """Return the rooms that import, with the modules they import from, and the names."""
    return tuple(_found_between_rooms())


def _found_between_rooms() -> Iterator[tuple[str, str, str]]:
    for path in PACKAGE.rglob("*.py"):
        here = _room_of(path.relative_to(PACKAGE).parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("amicrawl."):
                module = str(node.module).removeprefix("amicrawl.")
                if _room_of(tuple(module.split("."))) not in ("", here):
                    yield from ((here, module, each.name) for each in node.names)


def test_rooms_are_entered_by_their_doors() -> None:
    past = {
        (here, module): name
        for here, module, name in _imports_between_rooms()
        if module not in ROOMS and not name.isupper()
    }
    assert {key: name for key, name in past.items() if key not in PAST_THE_DOOR} == {}
    assert past.keys() >= PAST_THE_DOOR, "an exception that no import needs any more"


def test_no_room_exports_more_than_36_names() -> None:
    exported = {room: set(getattr(import_module(f"amicrawl.{room}"), "__all__", ())) for room in ROOMS}
    for _, module, name in _imports_between_rooms():
        if module in ROOMS:
            # A module that other rooms take is a name, too.
            exported[module].add(name)
    assert {room: len(names) for room, names in exported.items() if len(names) > MOST_EXPORTS} == {}


def test_nine_of_ten_imports_between_rooms_go_through_doors() -> None:
    ways = Counter(module in ROOMS for _, module, _ in _imports_between_rooms())
    assert ways[False] <= ways.total() / 10
