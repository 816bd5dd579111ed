"""The keys of a crawl file: their tables, values and settings, and their JSON Schema. Pure.

Every key bears the name of the setting or the spider argument that it stands for; tables only group
them. Kinds follow from the fields of `CrawlConfig`, so that a file and a setting cannot disagree.
`crawl-file.schema.json` beside this module is what `crawl_file_schema` returns, for editors that
complete and check; `amicrawl check` also looks at what values mean.
"""

from __future__ import annotations

import ast
import inspect
import json
import types
from enum import StrEnum
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from pydantic import ByteSize

from amicrawl import config
from amicrawl.config import GREATEST_NUMBER, LONGEST_TIME, PREFIX, WARC_PREFIX, CrawlConfig, Robots
from amicrawl.crawlfile import kinds
from amicrawl.seed import SeedFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic.fields import FieldInfo

    from amicrawl.crawlfile.kinds import ValueKind


SEEDS, SITE = "seeds", "site"
HOST = "host"
"""The table with the settings of single hosts."""
RECRAWL = "recrawl"
"""The table with the ages from which URLs are requested again, in which keys may be patterns."""

_SETTINGS: dict[str, tuple[str, ...]] = {
    "seeds": ("identity",),
    "scope": (
        "surts", "hosts", "domains", "include", "exclude", "max_hops", "requisites",
        "requisites_off_site", "max_requisite_hops", "max_page_requisites", "calendar_pages",
        "links_off_site", "sitemaps", "max_urls", "max_host_urls",
    ),
    "ignores": ("ignore_sets", "ignores"),
    "politeness": (
        "robots", "max_crawl_delay", "delay", "per_host", "address_delay", "latency_factor",
        "backoff_max", "retry_after_max", "bandwidth", "host_bandwidth", "inflight_start",
        "inflight_min", "inflight_max", "host_fail_threshold", "max_retries",
    ),
    "request": (
        "operator", "headers", "proxy", "cookies", "tls", "allow_private", "dns_servers", "timeout",
        "connect_timeout", "timeout_floor", "min_rate", "min_rate_time",
    ),
    "browser": (
        "browser", "browser_path", "browser_pages", "browser_per_host", "browser_page_time",
        "browser_page_bytes", "browser_page_requests", "browser_page_memory", "browser_strict_pace",
        "browser_sandbox", "browser_screenshots", "browser_behaviours",
    ),
    "limits": (
        "stop_pages", "stop_bytes", "stop_time", "stop_errors", "stop_free", "pause_free",
        "max_header", "max_body", "spool_above", "drain_time",
    ),
    "output": (
        "out", "run_id", "warc_size", "warc_prefix", "store_unchanged", "warc_metadata",
        "dedup", "durability",
        "bucket", "remove_uploaded",
    ),
    "watch": ("metrics", "webhooks", "webhook_secret", "log_format", "progress_every"),
    RECRAWL: ("recrawl_after",),
    HOST: ("host_overrides",),
}  # fmt: skip


class Key:
    """One key."""

    __slots__ = ("kind", "meaning", "name", "setting", "spiders", "table")

    def __init__(
        self, table: str, name: str, *, kind: ValueKind, meaning: str = "", setting: str = "",
        spiders: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.table = table
        """The table; empty for the top of the file."""
        self.name = name
        self.kind = kind
        self.meaning = meaning
        """One sentence; empty for a setting, whose field has it as its docstring."""
        self.setting = setting
        """The setting that it sets; empty for none."""
        self.spiders = spiders
        """The spiders that have it as an argument; empty if it is not an argument."""


TOP = (
    Key("", "spider", kind=kinds.choice((SEEDS, SITE)),
        meaning="Spider: `seeds` fetches the list, `site` follows links."),
    Key("", "extends", kind=kinds.text_or_texts("a path or a list of paths"),
        meaning="Files whose keys apply unless this file sets them; later files override earlier ones."),
    Key("", "public", kind=kinds.switch(),
        meaning="`false`: all hosts are your own, and `operator` is optional."),
)  # fmt: skip

_BOTH = (SEEDS, SITE)
_ARGUMENTS = (
    Key("seeds", "url", kind=kinds.text_or_texts("an http(s) URL or a list of them"),
        meaning="Start URLs of the site, from which links are followed.", spiders=(SITE,)),
    Key("seeds", "file", kind=kinds.text("a path or an http(s) address", is_path=True, pattern=r"."),
        meaning="The seed list; additional start URLs for the spider `site`.", spiders=_BOTH),
    Key("seeds", "format", kind=kinds.choice([*map(str, SeedFormat)]),
        meaning="Format of the list, if its name does not show it.", spiders=_BOTH),
    Key("seeds", "strict", kind=kinds.switch(),
        meaning="End with exit code 7 if a line of the list is invalid.", spiders=(SEEDS,)),
    Key("seeds", "depth", kind=kinds.depth(),
        meaning="`inf`: all below the directory of each URL; `shallow`: the page and its requisites; a "
        "number: pages that are so many links from a URL at most.",
        spiders=(SITE,)),
    Key("seeds", "shards", kind=kinds.integer(least=1, most=9_999_999),
        meaning="Number of parts that the hosts are divided into.", spiders=_BOTH),
    Key("seeds", "shard", kind=kinds.integer(least=0),
        meaning="Number of the part to fetch, from 0.", spiders=_BOTH),
    Key("seeds", "processes",
        kind=kinds.text('a number from "1" to "128", or "auto"',
                        pattern=r"^([1-9][0-9]?|1[01][0-9]|12[0-8]|auto)$"),
        meaning="Number of processes, each with a part of the hosts; `auto`: one per core.",
        spiders=_BOTH),
)  # fmt: skip

_OTHER_SETTINGS = (
    Key("request", "user_agent", kind=kinds.text("a string"), setting="USER_AGENT",
        meaning="`User-Agent`. Default: `amicrawl/VERSION (+OPERATOR)`."),
    Key("request", "fields", kind=kinds.fields(), setting="DEFAULT_REQUEST_HEADERS",
        meaning="Header fields of every request; they override those of `headers`."),
)  # fmt: skip

_SCHEDULE = (
    Key("schedule", "every", kind=kinds.duration(),
        meaning="Time after the end of a finished crawl at which it is due again."),
    Key("schedule", "recrawl", kind=kinds.switch(),
        meaning="When the crawl is due, fetch again what has probably changed, in the same directory."),
)  # fmt: skip

_RECRAWL = (
    Key(RECRAWL, "after", kind=kinds.duration(), setting=f"{PREFIX}RECRAWL_AFTER",
        meaning="Age from which a captured URL is requested again by a recrawl. Default: `every` of the "
        "schedule; without one, when its page has probably changed."),
)  # fmt: skip
PATTERN = Key(RECRAWL, '"/news/*"', kind=kinds.duration(),
    meaning="The same for URLs that match a pattern in quotes, where `*` stands for any characters: one "
    "that begins with `/` is compared with path and query, any other with the whole URL. The longest "
    "that matches counts.")  # fmt: skip

HOST_KEYS: Mapping[str, Key] = {
    key.name: key
    for key in (
        Key(HOST, "delay", kind=kinds.number(least=0, most=LONGEST_TIME),
            meaning="Minimum time between the starts of two requests."),
        Key(HOST, "per_host", kind=kinds.integer(least=1, most=GREATEST_NUMBER),
            meaning="Maximum number of requests in flight."),
        Key(HOST, "robots", kind=kinds.choice([word.value for word in Robots]),
            meaning="Use of its robots.txt."),
        Key(HOST, "auth", kind=kinds.reference(),
            meaning="Reference to `user:password`, for Basic authentication (RFC 7617)."),
        Key(HOST, "auth_port", kind=kinds.integer(least=1, most=65535),
            meaning="Port that `auth` is sent to. Default: the port of the scheme."),
        Key(HOST, "allow_plain", kind=kinds.switch(),
            meaning="`true`: send `auth` over unencrypted http, too."),
    )
}  # fmt: skip
"""The keys of a table `[host."name"]`."""

# Strings that a crawl file checks more closely than the field does.
_SPECIAL: Mapping[str, ValueKind] = {
    "cookies": kinds.reference(),
    "webhook_secret": kinds.reference(),
    "proxy": kinds.text(
        '"http://host:port", "socks5h://host:port", "env:NAME" or "file:PATH"',
        pattern=r"^(https?|socks4a?|socks5h?)://|^env:.|^file:.|^$",
        is_path=True,
    ),
    "bucket": kinds.text(
        '"s3://...", "gs://...", "file:///...", "rsync://...", "rsync+ssh://..." or "ia://..."',
        pattern=r"^(s3|gs|file|rsync|rsync\+ssh|ia)://.|^$",
    ),
    "metrics": kinds.text('"host:port"', pattern=r":[0-9]{1,5}$|^$"),
    "webhooks": kinds.texts('a list of http(s) URLs, "env:NAME" or "file:PATH"', is_path=True),
    "run_id": kinds.text(
        "letters, digits, `.`, `_`, `-` and codes of strftime",
        pattern=r"^([A-Za-z0-9%][A-Za-z0-9._%-]{0,99}|)$",
    ),
    "warc_prefix": kinds.text(
        "letters, digits, `.`, `_`, `-`, {run}, {time} and {host}, 1 to 100 characters",
        pattern=WARC_PREFIX,
    ),
}


def _kind_of(name: str, field: FieldInfo) -> ValueKind:
    """Return the kind of value of the field *name* of the configuration."""
    if name in _SPECIAL:
        return _SPECIAL[name]
    annotation: Any = field.annotation
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    bounds = {
        word: getattr(entry, word)
        for entry in field.metadata
        for word in ("ge", "gt")
        if hasattr(entry, word)
    }
    least, above = bounds.get("ge"), bounds.get("gt")
    if get_origin(annotation) is tuple:
        return kinds.texts()
    makers: list[tuple[type, Callable[[], ValueKind]]] = [
        (ByteSize, lambda: kinds.size(least=least or 0)),
        (StrEnum, lambda: kinds.choice([word.value for word in annotation])),
        (bool, kinds.switch),
        (int, lambda: kinds.integer(least=least)),
        (float, lambda: kinds.number(least=least, above=above)),
        (str, kinds.text),
        (Path, kinds.text),
    ]
    return next(make() for base, make in makers if issubclass(annotation, base))


def _all() -> dict[tuple[str, str], Key]:
    keys = [*_ARGUMENTS]
    for table, names in _SETTINGS.items():
        if table not in (HOST, RECRAWL):
            keys += [
                Key(table, name, kind=_kind_of(name, CrawlConfig.model_fields[name]),
                    setting=PREFIX + name.upper())
                for name in names
            ]  # fmt: skip
        keys += [key for key in _OTHER_SETTINGS if key.table == table]
    return {(key.table, key.name): key for key in [*TOP, *keys, *_SCHEDULE, *_RECRAWL]}


KEYS: Mapping[tuple[str, str], Key] = _all()
"""Every key outside of `[host]`, by table and name, in the order of the manual."""
TABLES: tuple[str, ...] = (*dict.fromkeys(table for table, _ in KEYS if table), HOST)
"""The tables there are."""
CONFIG_TABLES: Mapping[str, str] = {name: table for table, names in _SETTINGS.items() for name in names}
"""The table of each field of `CrawlConfig`."""


def key_at(place: tuple[str, ...]) -> Key | None:
    """Return the key at *place*: `("politeness", "delay")`, `("host", "example.org", "delay")`."""
    if place[0] == HOST:
        return HOST_KEYS.get(place[-1])
    known = KEYS.get((place[0], place[1]))
    is_pattern = place[0] == RECRAWL and ("*" in place[1] or "/" in place[1])
    return PATTERN if known is None and is_pattern else known


def tables_of(name: str) -> list[str]:
    """Return the tables that have a key *name*; the empty string is the top of the file."""
    return [table for table, key in KEYS if key == name] + ([HOST] if name in HOST_KEYS else [])


def description_of(key: Key) -> str:
    """Return the sentence that describes *key*, on one line."""
    return key.meaning or setting_description(key.name)


def setting_description(field: str) -> str:
    """Return the docstring of *field* of `CrawlConfig`, on one line."""
    return _field_docstrings()[field]


@cache
def _field_docstrings() -> dict[str, str]:
    """Return the docstring of each field of `CrawlConfig`; parsed on first use, which is rare."""
    tree = ast.parse(inspect.getsource(config))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "CrawlConfig").body
    docstrings = {}
    for field, below in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            assert isinstance(field.target, ast.Name)
            docstrings[field.target.id] = " ".join(ast.literal_eval(below.value).split())
    return docstrings


FILE_NAME = "crawl-file.schema.json"


def crawl_file_schema() -> dict[str, Any]:
    """Return the schema (2020-12) of what TOML readers make of a crawl file."""
    tables = {
        table: _table(key for key in KEYS.values() if key.table == table)
        for table in TABLES
        if table != HOST
    }
    tables[RECRAWL]["patternProperties"] = {"[*/]": _property(PATTERN)}
    hosts = {
        "type": "object",
        "description": "Settings of single hosts, by host name in quotes.",
        "additionalProperties": _table(HOST_KEYS.values()),
    }
    top = {key.name: _property(key) for key in KEYS.values() if not key.table}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "amicrawl crawl file",
        "type": "object",
        "additionalProperties": False,
        "properties": {**top, **tables, HOST: hosts},
    }


def schema_text() -> str:
    """Return the schema as the file that is shipped holds it."""
    return json.dumps(crawl_file_schema(), indent=2) + "\n"


def shipped_schema() -> str:
    """Return the content of the file that is shipped."""
    return resources.files(__package__).joinpath(FILE_NAME).read_text(encoding="utf-8")


def _table(keys: Iterable[Key]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: _property(key) for key in keys},
    }


def _property(key: Key) -> dict[str, Any]:
    return {**key.kind.schema, "description": description_of(key)}
