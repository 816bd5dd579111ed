"""Lazy exports: names that a package exports, imported from their modules on first access (PEP 562).

A room's `__init__.py` names what other rooms may import from it. Where a room has both light modules and
ones that take longer to import than a command takes to run (Parquet, TLS), its `__init__.py` imports a
name when it is first used:

    # mypy: implicit-reexport
    if TYPE_CHECKING:
        from amicrawl.fetch.wire import Wire
    else:
        __getattr__, __all__ = lazy_exports(__spec__)

Type checkers, editors and import-linter see the imports below `TYPE_CHECKING`. They alone say what is
exported: they are read in the source of the package. An exported name must not be the name of a module
of the room: Python would return the module.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec


def lazy_exports(package: ModuleSpec) -> tuple[Callable[[str], Any], list[str]]:
    """Return the `__getattr__` and the `__all__` of *package*."""
    source: str = package.loader.get_source(package.name)  # type: ignore[union-attr]
    origins = {
        name.asname or name.name: (imported.module, name.name)
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        for imported in block.body
        if isinstance(imported, ast.ImportFrom) and imported.module
        for name in imported.names
    }

    def load(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package.name!r} has no attribute {name!r}")
        module, original = origins[name]
        exported = getattr(import_module(module), original)
        # The next access finds it there: a page of a crawl may use a name that is imported late.
        setattr(sys.modules[package.name], name, exported)
        return exported

    return load, [*origins]
