"""The Scrapy project in which a command is called: where it is, and what its settings say.

A project is found as Scrapy finds it (`SCRAPY_SETTINGS_MODULE`, `scrapy.cfg`, `SCRAPY_PROJECT`), and its
settings are what its module holds. Scrapy has a function for that, and takes half a second to load, of
which commands that run no crawl have no use for any.
"""

from __future__ import annotations

import os
import sys
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.cli.options import pairs, settings_options

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

SETTINGS_MODULE = "SCRAPY_SETTINGS_MODULE"
"""The variable that names the module of the settings."""
OUR_SETTINGS = "amicrawl.settings"
"""The settings of a crawl outside of any project."""

OUR_SPIDERS = "amicrawl.spiders"
"""The module of the spiders that come with amicrawl."""

_FILE = "scrapy.cfg"
_ADDON = "amicrawl.crawl.addon.ArchiveAddon"


def project_directory() -> Path | None:
    """Return the directory of the project around the working directory; None without."""
    start = Path.cwd()
    return next((place for place in (start, *start.parents) if (place / _FILE).exists()), None)


def settings_module() -> str:
    """Return the name of the module that the settings are in; empty without a project."""
    named = os.environ.get(SETTINGS_MODULE)
    if named is not None:
        return named
    found = ConfigParser()
    # Those of the machine, of the user, of the project: the last one that speaks is heard.
    found.read(_files())
    return found.get("settings", os.environ.get("SCRAPY_PROJECT", "default"), fallback="")


def project_settings(names: Collection[str]) -> dict[str, Any]:
    """Return those settings among *names* that the project makes; none without a project.

    Whatever goes wrong in the project's module is raised as it is.
    """
    module = settings_module()
    directory = project_directory()
    if directory is not None and str(directory) not in sys.path:
        sys.path.append(str(directory))
    if not module:
        return {}
    loaded = import_module(module)
    return {name: value for name in names if (value := getattr(loaded, name, None))}


def options_of_crawls(written: Sequence[str] | None) -> list[str]:
    """Return the settings *written* behind `-s` as options for the command line of each crawl.

    Raises UsageError for one that a crawl would refuse, since each crawl would fail by it.
    """
    # Most commands that import this module start no crawl.
    from amicrawl.config import SETTINGS, CrawlConfig  # noqa: PLC0415

    CrawlConfig.from_settings({**project_settings(SETTINGS), **pairs(written or (), option="-s")})
    return settings_options(written)


def crawl_settings() -> tuple[dict[str, str], list[str]]:
    """Return what a crawl by a spider of ours, started here, needs: more environment, more options.

    In a Scrapy project that archives, it runs by that project's settings; anywhere else by ours.
    Whatever goes wrong in the project's module is raised as it is.
    """
    if SETTINGS_MODULE not in os.environ and project_directory() is None:
        return {SETTINGS_MODULE: OUR_SETTINGS}, []
    found = project_settings(("ADDONS", "SPIDER_MODULES"))
    if _ADDON not in map(_dotted, found.get("ADDONS", ())):
        return {SETTINGS_MODULE: OUR_SETTINGS}, []
    modules = found.get("SPIDER_MODULES", ())
    modules = modules.split(",") if isinstance(modules, str) else list(modules)
    if OUR_SPIDERS in modules:
        return {}, []
    return {}, ["-s", f"SPIDER_MODULES={','.join([*modules, OUR_SPIDERS])}"]


def _dotted(named: object) -> str:
    """Return the path of a class, which settings may name or hold."""
    return f"{named.__module__}.{named.__qualname__}" if isinstance(named, type) else str(named)


def _files() -> list[Path]:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    files = [Path("/etc", _FILE), home / _FILE, Path.home() / f".{_FILE}"]
    directory = project_directory()
    return files if directory is None else [*files, directory / _FILE]
