"""The keys of a crawl file: which table each stands in, what it holds and what it becomes. Pure.

Every key bears the name of the setting or the spider argument that it stands for; tables only group
them. Kinds follow from the fields of `CrawlConfig`, so that a file and a setting cannot disagree.
"""

from __future__ import annotations

import ast
import inspect
import types
from enum import StrEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from pydantic import ByteSize

from amicrawl import config
from amicrawl.config import PREFIX, WARC_PREFIX, CrawlConfig, Robots
from amicrawl.crawlfile import kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic.fields import FieldInfo

    from amicrawl.crawlfile.kinds import Kind

SEEDS, SITE = "seeds", "site"
HOST = "host"
"""The table of what is different for single hosts."""

_SETTINGS: dict[str, tuple[str, ...]] = {
    "seeds": ("identity",),
    "scope": (
        "surts", "hosts", "domains", "include", "exclude", "max_hops", "requisites",
        "requisites_off_site", "links_off_site", "sitemaps", "max_urls", "max_host_urls",
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
    "limits": (
        "stop_pages", "stop_bytes", "stop_time", "stop_errors", "stop_free", "pause_free",
        "max_header", "max_body", "spool_above", "drain_time",
    ),
    "output": (
        "out", "run_id", "warc_size", "warc_prefix", "store_unchanged", "dedup", "durability",
        "bucket", "remove_uploaded",
    ),
    "watch": ("metrics", "webhooks", "webhook_secret", "log_format", "progress_every"),
    HOST: ("host_overrides",),
}  # fmt: skip


class Key:
    """One key."""

    __slots__ = ("kind", "meaning", "name", "setting", "spiders", "table")

    def __init__(
        self, table: str, name: str, *, kind: Kind, meaning: str = "", setting: str = "",
        spiders: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.table = table
        """The table it stands in; empty for the top of the file."""
        self.name = name
        self.kind = kind
        self.meaning = meaning
        """A sentence; empty for a setting, whose field says it."""
        self.setting = setting
        """The setting that it becomes; empty for none."""
        self.spiders = spiders
        """The spiders that take it as an argument; empty where it is none."""


TOP = (
    Key("", "spider", kind=kinds.choice((SEEDS, SITE)), meaning="What crawls: the list, or the site."),
    Key("", "extends", kind=kinds.text_or_texts("a path or a list of paths"),
        meaning="Files whose keys hold where this one says nothing; of several, the later one wins."),
    Key("", "public", kind=kinds.switch(),
        meaning="false: the hosts are one's own, and `operator` may be left out."),
)  # fmt: skip

_BOTH = (SEEDS, SITE)
_ARGUMENTS = (
    Key("seeds", "url", kind=kinds.text_or_texts("an http(s) URL or a list of them"),
        meaning="Where the site begins; links are followed from there.", spiders=(SITE,)),
    Key("seeds", "file", kind=kinds.text("a path or an http(s) address", is_path=True, pattern=r"."),
        meaning="The seed list; for the spider `site` further URLs to begin with.", spiders=_BOTH),
    Key("seeds", "format", kind=kinds.choice(("lines", "jsonl", "parquet", "sitemap")),
        meaning="How the list is written, where its name does not tell.", spiders=_BOTH),
    Key("seeds", "strict", kind=kinds.switch(),
        meaning="End with exit code 7 where a line of the list cannot be used.", spiders=(SEEDS,)),
    Key("seeds", "depth", kind=kinds.choice(("inf", "shallow")),
        meaning="All below the directory of each URL, or the page with what it needs alone.",
        spiders=(SITE,)),
    Key("seeds", "shards", kind=kinds.integer(least=1),
        meaning="Into how many parts the hosts are divided.", spiders=_BOTH),
    Key("seeds", "shard", kind=kinds.integer(least=0),
        meaning="Which of them is fetched, from 0.", spiders=_BOTH),
    Key("seeds", "processes",
        kind=kinds.text('a number such as "4", or "auto"', pattern=r"^([1-9][0-9]{0,2}|auto)$"),
        meaning="How many processes crawl, each some of the hosts; auto: one a core.", spiders=_BOTH),
)  # fmt: skip

_OTHER_SETTINGS = (
    Key("request", "user_agent", kind=kinds.text("a text"), setting="USER_AGENT",
        meaning="The `User-Agent` field, in place of `amicrawl/VERSION (+OPERATOR)`."),
    Key("request", "fields", kind=kinds.fields(), setting="DEFAULT_REQUEST_HEADERS",
        meaning="Fields that every request carries, besides and before those of `headers`."),
)  # fmt: skip

_SCHEDULE = (
    Key("schedule", "every", kind=kinds.duration(),
        meaning="How long after its end a finished crawl is due again, for `amicrawl crawl`."),
    Key("schedule", "recrawl", kind=kinds.switch(),
        meaning="When it is due, ask again in place for what is expected to have changed."),
)  # fmt: skip

HOST_KEYS: Mapping[str, Key] = {
    key.name: key
    for key in (
        Key(HOST, "delay", kind=kinds.number(least=0),
            meaning="Least time between the starts of two requests."),
        Key(HOST, "per_host", kind=kinds.integer(least=1),
            meaning="Requests that may be in flight at once."),
        Key(HOST, "robots", kind=kinds.choice([word.value for word in Robots]),
            meaning="What its robots.txt decides."),
        Key(HOST, "auth", kind=kinds.reference(),
            meaning="Where `user:password` is kept, for Basic authentication (RFC 7617)."),
        Key(HOST, "auth_port", kind=kinds.integer(least=1, most=65535),
            meaning="The port that `auth` is for; without it, the one of the scheme."),
        Key(HOST, "allow_plain", kind=kinds.switch(),
            meaning="true: `auth` is sent over http too, readable by anybody on the way."),
    )
}  # fmt: skip
"""What may be said of one host."""

# A text of the setting that a crawl file gives a closer look than the field does.
_SPECIAL: Mapping[str, Kind] = {
    "cookies": kinds.reference(),
    "webhook_secret": kinds.reference(),
    "proxy": kinds.text(
        '"http://host:port", "socks5h://host:port", "env:NAME" or "file:PATH"',
        pattern=r"^(https?|socks4a?|socks5h?)://|^env:.|^file:.|^$",
        is_path=True,
    ),
    "bucket": kinds.text('"s3://...", "gs://..." or "file:///..."', pattern=r"^(s3|gs|file)://.|^$"),
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


def _kind_of(name: str, field: FieldInfo) -> Kind:
    """Return what a file must give for the field *name* of the configuration."""
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
    makers: list[tuple[type, Callable[[], Kind]]] = [
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
        if table != HOST:
            keys += [
                Key(table, name, kind=_kind_of(name, CrawlConfig.model_fields[name]),
                    setting=PREFIX + name.upper())
                for name in names
            ]  # fmt: skip
        keys += [key for key in _OTHER_SETTINGS if key.table == table]
    return {(key.table, key.name): key for key in [*TOP, *keys, *_SCHEDULE]}


KEYS: Mapping[tuple[str, str], Key] = _all()
"""Every key outside of `[host]`, by table and name, in the order of the manual."""
TABLES: tuple[str, ...] = (*dict.fromkeys(table for table, _ in KEYS if table), HOST)
"""The tables there are."""
CONFIG_TABLES: Mapping[str, str] = {name: table for table, names in _SETTINGS.items() for name in names}
"""The table of each field of `CrawlConfig`."""


def tables_of(name: str) -> list[str]:
    """Return the tables that have a key *name*; the empty text is the top of the file."""
    return [table for table, key in KEYS if key == name] + ([HOST] if name in HOST_KEYS else [])


def meaning_of(key: Key) -> str:
    """Return the sentence that says what *key* is for."""
    return key.meaning or _field_sentences()[key.name]


@cache
def _field_sentences() -> dict[str, str]:
    """Return what stands below each field of `CrawlConfig`; read when it is asked for, which is rare."""
    tree = ast.parse(inspect.getsource(config))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "CrawlConfig").body
    sentences = {}
    for field, below in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            assert isinstance(field.target, ast.Name)
            sentences[field.target.id] = inspect.cleandoc(ast.literal_eval(below.value))
    return sentences
