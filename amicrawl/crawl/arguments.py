"""Spider arguments, and what they have a crawl do.

Arguments are always strings, from a command line, scrapyd or a script; they are checked here, once. What
a crawl file says stands where a spider's `custom_settings` stand: above the project's settings, below
those of the command line. Arguments of the command line win over the file's.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from pydantic import ValidationError

from amicrawl.config import CrawlConfig, Headers, is_depth
from amicrawl.errors import AmicrawlError, UsageError
from amicrawl.invalid import nearest, reason_of
from amicrawl.urls import with_scheme, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_P = ParamSpec("_P")
_S = TypeVar("_S")

_FIELDS = "DEFAULT_REQUEST_HEADERS"
_SILENT_COMMANDS = frozenset({"fetch", "parse", "shell", "view"})
"""Commands of Scrapy that drop what a spider raises while it is made, or print a traceback of it."""
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})
_LAST_HOUR = 0xFFFF_FFFF
_MOST_PROCESSES = 128
_NUMBER = re.compile(r"[0-9]{1,7}")
JOB_ARGUMENT = "_job"
"""The argument in which scrapyd names the job; a spider that has it gets a directory for it."""
# Given by scrapyd to every job; named so that it is not taken for a slip of the pen.
_FROM_SCRAPYD = frozenset({JOB_ARGUMENT, "_version"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlArguments:
    """What the spiders `seeds` and `site` both take."""

    format: str | None = None
    """The format of the list, one of `SeedFormat`; inferred where not given."""
    share: str | None = None
    """The shared crawl of which this is a partition: its worker gives it, and sends seeds in batches."""
    out: str | None = None
    """Directory for the output."""
    run_id: str | None = None
    """Sub-directory of `out` for this run."""
    shard: int = 0
    """Which part of the hosts is fetched, from 0."""
    shards: int = 1
    """Into how many parts the hosts are divided."""
    processes: str = "1"
    """How many processes crawl, each some of the hosts: a number, or `auto` for one a core."""
    fresh: bool = False
    """Whether a directory that holds a frontier is refused instead of resumed."""
    rebuild: bool = False
    """Whether a frontier that cannot be opened is made anew from what was archived."""
    browser: str | None = None
    """Which pages are opened in a browser, as AMICRAWL_BROWSER says it."""
    config: str | None = None
    """The crawl file that the others were taken from, where they were."""

    @property
    def count(self) -> int:
        """The number of processes."""
        return process_count(self.processes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedArguments(CrawlArguments):
    """The arguments of the spider `seeds`."""

    file: str
    """The seed list: a path, `-` for standard input, or an http(s) address of a sitemap."""
    strict: bool = False
    """Whether a line that cannot be used makes the exit code 7."""

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> Self:
        """Check *given*. Raises UsageError, naming the nearest known argument for an unknown one."""
        values = known_arguments(given, cls.__dataclass_fields__, spider="seeds")
        _refuse_userinfo(values)
        if not values.get("file") and not values.get("share"):
            raise UsageError(
                "The spider `seeds` needs a seed list: give it one with -a file=seeds.jsonl "
                "(or -a file=- for standard input)."
            )
        return cls(file=values.get("file", ""), strict=_switch(values, "strict"), **_common(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteArguments(CrawlArguments):
    """The arguments of the spider `site`."""

    url: tuple[str, ...] = ()
    """Start URLs, space-separated."""
    file: str | None = None
    """A list of further start URLs: a path, or `-` for standard input."""
    depth: str = "inf"
    """`inf`: all of the site; `shallow`: the start pages and what they need to be shown; a number: pages
    that are so many links from a start URL at most."""

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> Self:
        """Check *given*. Raises UsageError, naming the nearest known argument for an unknown one."""
        values = known_arguments(given, cls.__dataclass_fields__, spider="site")
        _refuse_userinfo(values)
        url, file = tuple(values.get("url", "").split()), values.get("file") or None
        if not url and not file and not values.get("share"):
            raise UsageError(
                "The spider `site` needs a place to start: give it one with -a url=https://example.org/ "
                "(or several in a list, -a file=starts.txt)."
            )
        depth = values.get("depth") or "inf"
        if not is_depth(depth):
            raise UsageError(
                f"Argument depth={depth!r} is neither inf (the whole site) nor shallow (the start pages "
                "and what they need) nor a number of links from a start URL."
            )
        return cls(url=url, file=file, depth=depth, **_common(values))


@dataclass(frozen=True, slots=True)
class RecrawlArguments:
    """The arguments of the spider `recrawl`."""

    dir: str
    """The directory that was crawled into; what is fetched is added there."""
    before: int
    """What is due up to this hour since 1970 is fetched, unless an age is given."""
    after: str | None = None
    """The age from which all URLs are fetched again, such as `1d`; it overrides the setting."""
    config: str | None = None
    """The crawl file that the settings were taken from, where they were."""

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> Self:
        """Check *given*. Raises UsageError, naming the nearest known argument for an unknown one."""
        values = known_arguments(given, cls.__dataclass_fields__, spider="recrawl")
        if not values.get("dir"):
            raise UsageError(
                "The spider `recrawl` needs the directory of an earlier crawl: give it, -a dir=ami-out."
            )
        if values.get("before") and values.get("after"):
            raise UsageError("before and after are two rules for what is due. Give one of them.")
        if after := values.get("after"):
            _check_age(after)
        return cls(
            dir=values["dir"],
            before=_hour(values.get("before", "")),
            after=after or None,
            config=values.get("config") or None,
        )


def job_argument(given: Mapping[str, object], *, out: str | None) -> dict[str, object]:
    """Return the argument that gives a job of scrapyd its own directory; none where *out* names one."""
    return {name: value for name, value in given.items() if name == JOB_ARGUMENT and not out}


def _check_age(text: str) -> None:
    """Raise UsageError, with the name of the argument, where *text* cannot be its value."""
    try:
        CrawlConfig.model_validate({"recrawl_after": text})
    except ValidationError as error:
        reason = reason_of(error.errors()[0])
        raise UsageError(f"Argument after={text!r}: {reason}.") from None


def _hour(text: str) -> int:
    """Return the hour since 1970 that *text* names: a date, a moment, or nothing for now."""
    try:
        moment = datetime.fromisoformat(text) if text else datetime.now(UTC)
    except ValueError:
        raise UsageError(
            f"Argument before={text!r} is not a date: give one like 2027-01-31 or 2027-01-31T18:00Z."
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    hour = int(moment.timestamp() // 3600)
    if not 0 < hour <= _LAST_HOUR:
        raise UsageError(f"Argument before={text!r} is outside what a frontier can name.")
    return hour


def known_arguments(
    given: Mapping[str, object], fields: Iterable[str], *, spider: str
) -> dict[str, str]:
    """Return *given* without what scrapyd adds; raises UsageError for what is not among *fields*."""
    values = {name: str(value) for name, value in given.items() if name not in _FROM_SCRAPYD}
    known = sorted(fields, key=CrawlArguments.__dataclass_fields__.__contains__)  # its own first
    for name in values:
        if name not in known:
            meant = nearest(name, known)
            hint = f"Did you mean {meant}?" if meant else f"Known are {', '.join(known)}."
            raise UsageError(f"Unknown argument {name} for the spider `{spider}`. {hint}")
    return values


def _common(values: Mapping[str, str]) -> dict[str, Any]:
    """Return what *values* say of the fields of `CrawlArguments`."""
    shard, shards = _shard(values)
    texts = ("format", "share", "out", "run_id", "browser", "config")
    return {
        **{name: values.get(name) or None for name in texts},
        "shard": shard,
        "shards": shards,
        "processes": _processes(values, shards=shards),
        "fresh": _switch(values, "fresh"),
        "rebuild": _switch(values, "rebuild"),
    }


def _refuse_userinfo(values: Mapping[str, str]) -> None:
    # A start URL needs no scheme, and a path may have an @ in it.
    start_urls = [with_scheme(url) for url in values.get("url", "").split()]
    for name, urls in (("url", start_urls), ("file", values.get("file", "").split())):
        if any(without_userinfo(url) != url for url in urls if "://" in url):
            # The URL itself must not be repeated here.
            raise UsageError(
                f"Argument {name} has a user name or a password in a URL, and arguments are archived. "
                "Give the URL without, and what it takes to sign in as auth in a crawl file."
            )


def _shard(values: Mapping[str, str]) -> tuple[int, int]:
    shard, shards = whole_number(values, "shard", 0), whole_number(values, "shards", 1)
    if not 0 <= shard < shards:
        raise UsageError(
            f"Argument shard={shard} does not go with shards={shards}: shards count from 0, "
            f"so the last of {shards} is {max(shards - 1, 0)}."
        )
    return shard, shards


def process_count(text: str) -> int:
    """Return the number of processes that *text* means: a number, or `auto` for one a core."""
    return len(os.sched_getaffinity(0)) if text == "auto" else int(text)


def _processes(values: Mapping[str, str], *, shards: int) -> str:
    text = values.get("processes", "1")
    if text != "auto" and not (_NUMBER.fullmatch(text) and 1 <= int(text) <= _MOST_PROCESSES):
        raise UsageError(
            f"Argument processes={text!r} is neither a number from 1 to {_MOST_PROCESSES} nor auto."
        )
    if text != "1" and (shards > 1 or values.get("share")):
        raise UsageError(
            f"Argument processes={text!r} does not go with shards or share, which deal the hosts, too. "
            "Choose one of them."
        )
    return text


def whole_number(values: Mapping[str, str], name: str, default: int) -> int:
    """Return the argument *name* of *values*, or *default*; UsageError for what is not a number."""
    text = values.get(name, str(default))
    if not _NUMBER.fullmatch(text):
        raise UsageError(f"Argument {name}={text[:60]!r} is not a whole number: give 0 or more.")
    return int(text)


def _switch(values: Mapping[str, str], name: str) -> bool:
    text = values.get(name, "").lower()
    if text not in _TRUE | _FALSE:
        raise UsageError(f"Argument {name}={text!r} is neither yes nor no: give 1 or 0.")
    return text in _TRUE


def ends_with_sentence(make: Callable[_P, _S]) -> Callable[_P, _S]:
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


_USUAL_FIELDS = {
    Headers.FAST: {"Accept": "*/*"},
    Headers.BROWSER: {
        "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "Accept-Language": "en-US,en;q=0.5",
    },
}


def default_headers(headers: str) -> dict[str, str]:
    """Return the fields that a value of `AMICRAWL_HEADERS` stands for; none for any other value."""
    return next((dict(fields) for word, fields in _USUAL_FIELDS.items() if word.value == headers), {})
