"""Lazy exports: names that a package exports, imported from their modules on first access (PEP 562).

A room's `__init__.py` names what other rooms may import from it. Where a room has both light modules and
ones that take longer to import than a command takes to run (Parquet, TLS), its `__init__.py` imports a
name when it is first used:

    if TYPE_CHECKING:
        from amicrawl.fetch.wire import Wire
    else:
        __getattr__ = lazy_exports(__name__, Wire="wire")

Type checkers, editors and import-linter see the imports below `TYPE_CHECKING`. An exported name must not
be the name of a module of the room: Python would return the module.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def lazy_exports(package: str, /, **modules: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of *package*; a keyword is a name, its value its module."""

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        exported = getattr(import_module(f"{package}.{modules[name]}"), name)
        # The next access finds it there: a page of a crawl may use a name that is imported late.
        setattr(sys.modules[package], name, exported)
        return exported

    return load
