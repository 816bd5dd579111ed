"""What a spider is given: settings and arguments of a crawl file, a sentence for what is missing.

What a file says stands where a spider's `custom_settings` stand: above the project's settings, below
those of the command line. Arguments of the command line win over the file's.
"""

from __future__ import annotations

import sys
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from amicrawl.crawl.trim import default_headers
from amicrawl.errors import AmicrawlError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_P = ParamSpec("_P")
_S = TypeVar("_S")

_FIELDS = "DEFAULT_REQUEST_HEADERS"
_SILENT_COMMANDS = frozenset({"fetch", "parse", "shell", "view"})
"""Commands of Scrapy that drop what a spider raises while it is made, or print a traceback of it."""


def explained(make: Callable[_P, _S]) -> Callable[_P, _S]:
    """Return *make*, a `from_crawler`, with which an error of ours ends those commands in a sentence."""

    @wraps(make)
    def made(*args: _P.args, **kwargs: _P.kwargs) -> _S:
        try:
            return make(*args, **kwargs)
        except AmicrawlError as error:
            # Not `sys.argv`: Scrapy takes the name of the command out of it.
            if {*sys.orig_argv[2:4]}.isdisjoint(_SILENT_COMMANDS):
                raise
            sys.stderr.write(f"amicrawl: {error}\n")
            sys.exit(error.exit_code)

    return made


def configured(crawler: Crawler, given: Mapping[str, Any], *, spider: str = "") -> dict[str, Any]:
    """Return the arguments *given*, with those of the crawl file that `config` among them names.

    Its settings are set in *crawler*. Without a *spider*, its arguments are not looked at. Raises
    CrawlFileError or InputError, and UsageError for a file that is for another spider.
    """
    if not given.get("config"):
        return dict(given)
    # Loaded for a crawl that has one: most have not.
    from amicrawl.crawlfile import read_crawl_file  # noqa: PLC0415

    path = Path(str(given["config"]))
    file = read_crawl_file(path)
    if spider and file.spider != spider:
        raise UsageError(
            f"{path} is for the spider `{file.spider}`: scrapy crawl {file.spider} -a config={path}"
        )
    for name, value in file.settings.items():
        crawler.settings.set(name, value, "spider")
    if _FIELDS in file.settings:
        _keep_usual_fields(crawler.settings, file.settings[_FIELDS])
    return {**(file.arguments if spider else {}), **given}


def _keep_usual_fields(settings: BaseSettings, fields: Mapping[str, str]) -> None:
    """Put the *fields* of a crawl file in front of those that its requests would have without them."""
    named = {name.lower() for name in fields}
    usual = default_headers(str(settings.get("AMICRAWL_HEADERS", "fast")))
    rest = {name: value for name, value in usual.items() if name.lower() not in named}
    settings.set(_FIELDS, {**fields, **rest}, "spider")
