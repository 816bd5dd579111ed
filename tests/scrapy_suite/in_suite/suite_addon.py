"""Put the add-on into every crawler of a process: what `sitecustomize` of the suite's runs loads.

Scrapy's tests make their crawlers from settings of their own, in their process and in children of it, so
the line goes into Scrapy's default settings, as soon as these are imported. Each crawler archives into a
directory of its own, and servers on this machine may be contacted.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from importlib.abc import Loader, MetaPathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_DEFAULTS = "scrapy.settings.default_settings"


class _Finder(MetaPathFinder):
    """Finds Scrapy's default settings, and adds the line to them once they are loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _DEFAULTS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        spec.loader = _WithLine(spec.loader)
        return spec


class _WithLine(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        module.ADDONS = {"suite_addon.SuiteAddon": 300}  # type: ignore[attr-defined]


def __getattr__(name: str) -> Any:
    """Make the add-on of the suite when it is requested: most processes have no use for it."""
    if name != "SuiteAddon":
        raise AttributeError(name)
    from amicrawl.crawl.addon import ArchiveAddon  # noqa: PLC0415

    class SuiteAddon(ArchiveAddon):
        """The add-on, with a directory of its own for each crawler."""

        def update_settings(self, settings: Any) -> None:
            """Do as the add-on, into a new directory."""
            directory = tempfile.mkdtemp(prefix="suite-", dir=os.environ["AMICRAWL_SUITE_OUT"])
            settings.set("AMICRAWL_OUT", directory, "default")
            settings.set("AMICRAWL_ALLOW_PRIVATE", "127.0.0.0/8,::1/128,10.0.0.0/8", "default")
            super().update_settings(settings)

    globals()[name] = SuiteAddon
    return SuiteAddon


def install() -> None:
    """Have the line in Scrapy's default settings from now on."""
    sys.meta_path.insert(0, _Finder())


def clean() -> None:
    """Remove what was archived."""
    shutil.rmtree(os.environ["AMICRAWL_SUITE_OUT"], ignore_errors=True)
