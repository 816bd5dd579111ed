"""The entrance of a room: the names it gives, each loaded when it is asked for.

A room's `__init__.py` names what others may take from it. Most rooms are small, and load it all. Where
one room holds both what weighs nothing (the date of a record) and what takes longer to load than a
command to run (Parquet, libcurl), its entrance is made here, and whoever enters pays for what is used:

    if TYPE_CHECKING:
        from amicrawl.fetch.wire import Wire
    else:
        __getattr__ = entrance(__name__, Wire="wire")

The imports that are for type checkers alone are what import-linter, mypy and editors see. A name must
not be that of a module of the room, which Python would give instead.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def entrance(room: str, /, **modules: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of *room*, in which each name lies in the module given for it."""

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(f"{room}.{modules[name]}"), name)

    return load
