"""Crawl configuration: read once from the `AMICRAWL_*` settings, checked, frozen.

This is the sole reader of those settings. Every field of `CrawlConfig` is the setting of the same name
in capitals behind `AMICRAWL_`; `docs/settings.md` lists them, and a test holds it against this module.
"""

from __future__ import annotations

import difflib
import re
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    Field,
    ValidationError,
    model_validator,
)

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

PREFIX = "AMICRAWL_"

UNTOLD = frozenset({"webhooks", "webhook_secret"})
"""Fields that the output of a crawl says nothing of: the address of a webhook is often its password."""

WARC_PREFIX = r"^(?=.{1,100}$)([A-Za-z0-9]|\{(run|time|host)\})([A-Za-z0-9._-]|\{(run|time|host)\})*$"
"""What a prefix of WARC files is made of."""

Network = IPv4Network | IPv6Network


class Identity(StrEnum):
    """What makes two URLs the same row of the frontier."""

    EXACT = "exact"
    """The URL as written."""
    CANONICAL = "canonical"
    """Its canonical form."""


class Durability(StrEnum):
    """When captures and rows are forced to disk."""

    NONE = "none"
    """When a file is sealed."""
    NORMAL = "normal"
    """In groups, at most a second old; a power cut may cost the last group, which is fetched again."""
    FULL = "full"
    """Before a URL counts as done."""


class Robots(StrEnum):
    """What robots.txt decides."""

    OBEY = "obey"
    REQUISITES = "obey-but-fetch-requisites"
    """What a page needs to be shown is fetched all the same."""
    IGNORE = "ignore"


class Headers(StrEnum):
    """Which fields a request carries besides `Host` and `User-Agent`, where the project says nothing."""

    FAST = "fast"
    """`Accept: */*` and the content codings that replay tools can undo."""
    BROWSER = "browser"
    """`Accept` and `Accept-Language` as browsers send them, for servers that answer by them."""


class TlsPolicy(StrEnum):
    """What becomes of a server whose certificate is not trusted."""

    VERIFY = "verify"
    """The fetch fails, `tls-certificate`."""
    RECORD = "record"
    """The exchange is archived, and the outcome of the check recorded."""


class LogFormat(StrEnum):
    """How the log is written."""

    TEXT = "text"
    JSON = "json"
    """One object a line."""


class Dedup(StrEnum):
    """Which earlier captures a payload is compared with before it is stored again."""

    SEED = "seed"
    """The one that the seed names by its digest."""
    CRAWL = "crawl"
    """That one, and those of this crawl."""


class Direct(StrEnum):
    """Whether rows that no callback reads are visited without Scrapy's engine."""

    AUTO = "auto"
    """Where nothing but the crawl's own components is in the way."""
    NEVER = "never"


def _networks(value: object) -> object:
    """Read a comma-separated string or a sequence as networks; host bits may be set."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, (list, tuple)):
        return tuple(ip_network(item, strict=False) for item in value)
    return value


def _words(value: object) -> object:
    """Read words apart by white space, as a command line gives them, or a sequence."""
    return tuple(value.split()) if isinstance(value, str) else value


def _names(value: object) -> object:
    """Read words apart by white space or commas."""
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


def _warc_prefix(value: str) -> str:
    """Refuse what would lead elsewhere as the beginning of a file's name, or be hidden there."""
    if re.fullmatch(WARC_PREFIX, value) is None:
        raise ValueError(
            "it must be letters, digits, `.`, `_`, `-`, {run}, {time} and {host}, 1 to 100 characters "
            "in all, and must not begin with a mark"
        )
    return value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class CrawlConfig(BaseModel, frozen=True, extra="forbid"):
    """How one crawl behaves. Times are seconds and sizes bytes, unless a field says otherwise."""

    out: Path = Path("ami-out")
    """Directory the crawl is written to; made where it is missing."""
    run_id: str = Field(default="", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$|^$")
    """Sub-directory of `out` for this run; empty for none."""
    warc_size: ByteSize = Field(default=ByteSize(1024**3), ge=1024)
    """Size at which a WARC file is sealed and the next one begun. A record is never split."""
    warc_prefix: Annotated[str, AfterValidator(_warc_prefix)] = "ami"
    """What names of WARC files begin with; in it `{run}` is the run or else the directory, `{time}` when
    the crawl began (14 digits, UTC), and `{host}` this machine."""
    store_unchanged: bool = False
    """Store the payload again even where it equals an earlier capture's."""
    dedup: Dedup = Dedup.SEED
    """Which earlier captures a payload is compared with."""
    durability: Durability = Durability.NORMAL
    """When what is written is forced to disk."""
    operator: str = ""
    """Who crawls, with a way to reach them; goes into every warcinfo record."""
    robots: Robots = Robots.OBEY
    """Whether robots.txt decides what may be fetched."""
    max_crawl_delay: float = Field(default=60.0, ge=0)
    """Longest `Crawl-delay` of a robots.txt that is honoured; one that is longer is logged."""
    headers: Headers = Headers.FAST
    """Which fields a request of a list crawl carries."""
    identity: Identity | None = None
    """What makes two URLs one; None: the spider's own choice (`seeds`: exact, others: canonical)."""

    direct: Direct = Direct.AUTO
    """Whether rows that no callback reads are visited without Scrapy's engine between them."""

    delay: float = Field(default=1.0, ge=0)
    """Least time between the starts of two requests to a host key."""
    per_host: int = Field(default=1, ge=1)
    """Requests to a host key that may be in flight at once."""
    latency_factor: float = Field(default=2.0, ge=0)
    """Times its own answer took that a slow host is left alone for; 0: as fast as `delay` allows."""
    backoff_max: float = Field(default=300.0, ge=0)
    """Longest delay that a host's 429 and 5xx answers lead to; 0: none for that."""
    retry_after_max: float = Field(default=3600.0, ge=0)
    """Longest Retry-After that keeps a host from being asked; 0: it does not."""
    address_delay: float = Field(default=0.05, ge=0)
    """Least time between the starts of two requests to one address, of whatever hosts; 0: none."""
    bandwidth: ByteSize = Field(default=ByteSize(0), ge=0)
    """Bytes per second that are received on average, over all hosts; 0: as many as come."""
    host_bandwidth: ByteSize = Field(default=ByteSize(0), ge=0)
    """Bytes per second that are received on average from one host key; 0: as many as come."""
    inflight_start: int = Field(default=64, ge=1)
    """Requests that may be in flight at the start, over all hosts."""
    inflight_min: int = Field(default=32, ge=1)
    """Least number the in-flight limit shrinks to."""
    inflight_max: int = Field(default=2000, ge=1)
    """Greatest number the in-flight limit grows to."""
    host_fail_threshold: int = Field(default=3, ge=1)
    """Counted failures after which a silent host is skipped for the rest of the crawl."""
    max_retries: int = Field(default=4, ge=0)
    """How often a fetch that failed before a response is tried again."""

    timeout: float = Field(default=120.0, gt=0)
    """Time for one exchange, first byte to last; what came by then is kept and marked `time`."""
    connect_timeout: float = Field(default=20.0, gt=0)
    """Time for name look-up, connection and TLS handshake."""
    timeout_floor: float = Field(default=10.0, ge=0)
    """Shortest wait for an answer to begin, where most hosts are quick; 0: always `timeout`."""
    min_rate: int = Field(default=64, ge=0)
    """Bytes per second, averaged over `min_rate_time`, below which an exchange is ended; 0: never."""
    min_rate_time: float = Field(default=30.0, gt=0)
    """How long the rate may stay below `min_rate`."""
    max_header: ByteSize = Field(default=ByteSize(256 * 1024), ge=1024)
    """Bytes of response head that are kept; the rest is cut and marked `length`."""
    max_body: ByteSize = Field(default=ByteSize(64 * 1024**2), ge=0)
    """Bytes of response body that are kept; the rest is cut and marked `length`."""
    spool_above: ByteSize = Field(default=ByteSize(1024**2), ge=0)
    """Size above which a body being received moves from memory to a temporary file."""
    tls: TlsPolicy = TlsPolicy.VERIFY
    """What becomes of a server whose certificate is not trusted."""
    allow_private: Annotated[tuple[Network, ...], BeforeValidator(_networks)] = ()
    """Networks (CIDR) that may be dialled although they are private, loopback or otherwise special."""

    dns_servers: Names = ()
    """Name servers that are asked for addresses, `192.0.2.53` or `192.0.2.53:5353`; none: those of the
    system's resolv.conf; `system`: the system's own resolver instead."""

    proxy: str = ""
    """Proxy for every request, `http://host:port` or `socks5h://host:port`; one with a password is given
    as `env:` and a name, or `file:` and a path; empty for none."""
    cookies: str = ""
    """Where cookies are taken from, `file:` and a path (cookies.txt) or `env:` and a name."""
    host_overrides: dict[str, dict[str, Any]] = {}
    """What is different for single hosts, by host name: `delay`, `per_host`, `robots`, `auth`, ..."""

    surts: Words = ()
    """SURT prefixes of what is on site, where links are followed."""
    hosts: Names = ()
    """Hosts that are on site, each for itself."""
    domains: Names = ()
    """Hosts that are on site with all that lie under them."""
    include: Words = ()
    """Regular expressions of what is on site."""
    exclude: Words = ()
    """Regular expressions of what is not taken, wherever it is."""
    max_hops: int | None = Field(default=None, ge=0)
    """Links that may lie between a seed and a page; None: any number."""
    requisites: bool = True
    """Whether images, style sheets and the like are fetched with a page."""
    requisites_off_site: bool = True
    """Whether requisites are taken from anywhere."""
    links_off_site: bool = False
    """Whether pages that are linked to off site are fetched, and none of theirs."""
    sitemaps: bool = False
    """Whether the sitemaps that robots.txt names are read for URLs."""
    ignore_sets: Names = ("global",)
    """Named sets of ignore patterns."""
    ignores: Words = ()
    """Ignore patterns of one's own, besides the sets."""
    max_urls: int = Field(default=0, ge=0)
    """URLs that are taken at most; 0: any number."""
    max_host_urls: int = Field(default=0, ge=0)
    """URLs that are taken of one host key at most; 0: any number."""

    stop_pages: int = Field(default=0, ge=0)
    """Rows of the index after which the crawl ends; 0: never."""
    stop_bytes: ByteSize = Field(default=ByteSize(0), ge=0)
    """Bytes received after which the crawl ends; 0: never."""
    stop_time: float = Field(default=0.0, ge=0)
    """Time after which the crawl ends; 0: never."""
    stop_errors: int = Field(default=0, ge=0)
    """Fetches without an answer after which the crawl ends; 0: never."""
    stop_free: ByteSize = Field(default=ByteSize(0), ge=0)
    """Free bytes on the disk of the output below which the crawl ends; 0: never."""
    pause_free: ByteSize = Field(default=ByteSize(512 * 1024**2), ge=0)
    """Free bytes below which nothing new is fetched until there is room again; 0: never."""

    bucket: str = ""
    """Where sealed files are copied to: `s3://bucket/path`, `gs://bucket/path` or `file:///path`."""
    remove_uploaded: bool = False
    """Whether a WARC file is removed here once its copy was verified."""

    metrics: str = ""
    """Address that serves Prometheus metrics, `host:port`; empty for none."""
    webhooks: Words = ()
    """URLs that are called when the crawl has ended."""
    webhook_secret: str = ""
    """Where the key that signs such calls is taken from: `env:` and a name, `file:` and a path."""
    log_format: LogFormat = LogFormat.TEXT
    """How the log is written."""

    redis_prefix: str = ""
    """Prefix of every key and channel in Redis; empty to share a database with ArchiveBot."""

    drain_time: float = Field(default=20.0, ge=0)
    """How long requests in flight may still take when the crawl is asked to stop."""
    progress_every: float = Field(default=0.0, ge=0)
    """Time between two progress reports; 0: 1 on a terminal, 10 elsewhere."""

    @model_validator(mode="before")
    @classmethod
    def _one_limit_moves_the_others(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Let somebody who sets only the greatest in-flight number not trip over the two defaults."""
        ceiling = given.get("inflight_max")
        if ceiling is not None and str(ceiling).isdigit():
            start = given.get("inflight_start", min(64, int(ceiling)))
            given = {**given, "inflight_start": start}
        start = given.get("inflight_start")
        if "inflight_min" not in given and start is not None and str(start).isdigit():
            given = {**given, "inflight_min": min(32, int(start))}
        return given

    @model_validator(mode="after")
    def _limits_agree(self) -> Self:
        if not self.inflight_min <= self.inflight_start <= self.inflight_max:
            raise ValueError(
                f"AMICRAWL_INFLIGHT_MIN ({self.inflight_min}), _START ({self.inflight_start}) and _MAX "
                f"({self.inflight_max}) must not descend"
            )
        return self

    @property
    def directory(self) -> Path:
        """The directory of this run: `out`, or `out`/`run_id`."""
        return self.out / self.run_id if self.run_id else self.out

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Read the `AMICRAWL_*` keys of *settings*; the others are not looked at.

        Raises UsageError, naming the setting, for an unknown name or a value that cannot be followed.
        """
        given = {name: value for name, value in settings.items() if name.startswith(PREFIX)}
        known = {PREFIX + field.upper(): field for field in cls.model_fields}
        for name in given:
            if name not in known:
                raise UsageError(f"Unknown setting {name}.{_suggestion(name, list(known))}")
        try:
            return cls(**{known[name]: value for name, value in given.items()})
        except ValidationError as error:
            raise UsageError(_sentence(error)) from error


def refuse_near_names(names: Iterable[str], *, known: Container[str]) -> None:
    """Raise UsageError for one of *names* that is nearly, but not quite, the name of a setting here.

    *names* are those that a command line gives, and *known* those of settings that others read. A
    setting under a name that no component reads would be accepted and do nothing.
    """
    ours = [PREFIX + field.upper() for field in CrawlConfig.model_fields]
    for name in names:
        if name in known or name in ours:
            continue
        written = name.upper().replace("-", "_")
        full = written if written.startswith(PREFIX) else PREFIX + written
        for nearest in difflib.get_close_matches(full, ours, n=1, cutoff=0.9):
            raise UsageError(f"Unknown setting {name}. Did you mean {nearest}?")


def _suggestion(name: str, known: list[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {nearest[0]}?" if nearest else " See docs/settings.md for those there are."


def _sentence(error: ValidationError) -> str:
    """Say in one line which settings are wrong and why."""
    faults = []
    for fault in error.errors():
        reason = fault["msg"].removeprefix("Value error, ")
        if fault["loc"]:
            setting = PREFIX + str(fault["loc"][0]).upper()
            reason = f"Setting {setting} is {fault['input']!r}: {reason}"
        faults.append(reason.rstrip("."))
    return ". ".join(faults) + ". Change it and start again."
