"""Crawl configuration: read once from the `AMICRAWL_*` settings, checked, frozen.

This is the only reader of those settings. A field of `CrawlConfig` is the setting of the same name in
capitals, after `AMICRAWL_`. The docstrings of the fields are the source of the tables in
`docs/settings.md` and `docs/crawl-files.md` and of the JSON Schema of crawl files: `make reference`.
"""

from __future__ import annotations

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
    field_validator,
    model_validator,
)

from amicrawl.errors import UsageError
from amicrawl.invalid import refusal_of, unknown_setting
from amicrawl.jsontext import parsed
from amicrawl.socket_address import socket_address

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "AMICRAWL_"

SYSTEM = "system"
"""In place of name servers: the resolver of the system."""

SECRET_FIELDS = frozenset({"webhooks", "webhook_secret"})
"""Fields left out of a crawl's output: the address of a webhook is often its password."""

WARC_PREFIX = r"^(?=.{1,100}$)([A-Za-z0-9]|\{(run|time|host)\})([A-Za-z0-9._-]|\{(run|time|host)\})*$"
"""The form of `warc_prefix`, as a regular expression."""

LONGEST_TIME = 1_000_000_000
"""Seconds that a setting may say, 31 years: moments of frontier files have 32 bits."""
GREATEST_NUMBER = 2**53
"""What a setting may count: beyond, readers of JSON round."""

Network = IPv4Network | IPv6Network


class Identity(StrEnum):
    """When two URLs are the same row of the frontier."""

    EXACT = "exact"
    """The URL as written."""
    CANONICAL = "canonical"
    """Its canonical form."""


class Durability(StrEnum):
    """When captures and rows are synced to disk."""

    NONE = "none"
    """When a file is sealed."""
    NORMAL = "normal"
    """In groups, at most a second old; after a power failure the last group is fetched again."""
    FULL = "full"
    """Before a URL counts as done."""


class Robots(StrEnum):
    """Use of robots.txt."""

    OBEY = "obey"
    REQUISITES = "obey-but-fetch-requisites"
    """Requisites of a page are fetched even if they are disallowed."""
    IGNORE = "ignore"


class Headers(StrEnum):
    """Header fields of a request besides `Host` and `User-Agent`, unless the project sets them."""

    FAST = "fast"
    """`Accept: */*` and the content codings that replay tools can decode."""
    BROWSER = "browser"
    """`Accept` and `Accept-Language` as browsers send them, for servers that negotiate."""


class TlsPolicy(StrEnum):
    """What to do if the certificate of a server is not trusted."""

    VERIFY = "verify"
    """The fetch fails, `tls-certificate`."""
    RECORD = "record"
    """The exchange is archived, and the outcome of the check recorded."""


class Rendering(StrEnum):
    """Which pages are opened in a browser."""

    NEVER = "never"
    ALWAYS = "always"
    """Each page of HTML in the scope."""
    AUTO = "auto"
    """Pages that have scripts, and nearly no text and no links without them."""


class LogFormat(StrEnum):
    """Format of the log and of progress reports."""

    TEXT = "text"
    JSON = "json"
    """One object per line."""


class Dedup(StrEnum):
    """Earlier payloads that a payload is compared with before it is stored again."""

    SEED = "seed"
    """The one whose digest is in the seed."""
    CRAWL = "crawl"
    """That one, and all payloads of this crawl."""


class Direct(StrEnum):
    """Whether rows that no callback reads are fetched without Scrapy's engine."""

    AUTO = "auto"
    """If only the crawl's own middlewares, handlers and item pipelines are configured."""
    NEVER = "never"


def _networks(value: object) -> object:
    """Read words separated by whitespace or commas, or a sequence, as networks; host bits may be set."""
    value = _names(value)
    if isinstance(value, (list, tuple)):
        return tuple(ip_network(item, strict=False) for item in value)
    return value


def _words(value: object) -> object:
    """Read whitespace-separated words, as a command line gives them, or a sequence."""
    return tuple(value.split()) if isinstance(value, str) else value


def _names(value: object) -> object:
    """Read words separated by whitespace or commas."""
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


def _ages(value: object) -> object:
    """Read one span of time, which is for all URLs, or an object of JSON with one for each pattern."""
    if not isinstance(value, str) or value.lstrip().startswith("{"):
        return _table(value)
    return {"*": value} if value else {}


def _table(value: object) -> object:
    """Read an object of JSON, as a command line gives it, or a dictionary."""
    if not isinstance(value, str):
        return value
    try:
        return parsed(value.encode())
    except ValueError:
        return value


def _span(value: str) -> str:
    if re.fullmatch(r"[0-9]{1,6}[mhdw]", value) is None:
        raise ValueError("it must be a number and m, h, d or w, such as 30m, 12h, 7d or 4w")
    return value


def _endpoint(value: str) -> str:
    try:
        if value:
            socket_address(value)
    except ValueError as error:
        raise ValueError(
            "it must be an address and a port, as in 127.0.0.1:9410 (0.0.0.0:9410 for all that this "
            "machine has; port 0 for any that is free)"
        ) from error
    return value


def _name_servers(value: tuple[str, ...]) -> tuple[str, ...]:
    for name in () if value == (SYSTEM,) else value:
        try:
            usable = socket_address(name, port=53)[1] > 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError(
                f"{name!r} is not an address. Write 192.0.2.53 or 192.0.2.53:5353, or `system` alone "
                "for the system's resolver"
            )
    return value


def _warc_prefix(value: str) -> str:
    """Refuse a prefix that would name another directory or a hidden file."""
    if re.fullmatch(WARC_PREFIX, value) is None:
        raise ValueError(
            "it must be letters, digits, `.`, `_`, `-`, {run}, {time} and {host}, 1 to 100 characters "
            "in all, and must not begin with a mark"
        )
    return value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Span = Annotated[str, AfterValidator(_span)]
"""A span of time, as `30m`, `12h`, `7d` or `4w`."""
Ages = Annotated[dict[str, Span], BeforeValidator(_ages)]


OF_PROGRAMS = frozenset(f"{PREFIX}BROWSER_{name}" for name in ("PATH", "BEHAVIOURS", "SANDBOX"))
"""Settings that name a program or a script to be run, or say how it is confined: they are for the
operator of a machine to set, and taken from no database."""


DEEPEST = 99_999
"""The greatest number that is a depth."""


def is_depth(text: str) -> bool:
    """Return whether *text* is a depth: `inf`, `shallow`, or a number of links from a start URL."""
    return re.fullmatch(r"inf|shallow|[0-9]{1,5}", text) is not None  # at most DEEPEST


class CrawlConfig(BaseModel, frozen=True, extra="forbid"):
    """The configuration of one crawl. Times are in seconds and sizes in bytes."""

    out: Path = Path("ami-out")
    """Output directory. It is created if it is missing."""
    run_id: str = Field(default="", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$|^$")
    """Sub-directory of `out` for this run. A scrapyd job without `out` and `run_id` uses its job
    identifier."""
    warc_size: ByteSize = Field(default=ByteSize(1024**3), ge=1024)
    """Size at which a WARC file is sealed and the next one is started. A record is never split."""
    warc_prefix: Annotated[str, AfterValidator(_warc_prefix)] = "ami"
    """First part of WARC file names; a hyphen, five digits and `.warc.gz` follow. Letters, digits,
    `.`, `_` and `-`, 1 to 100 characters, the first a letter or a digit. `{run}` is replaced by the
    run (or the name of the directory), `{time}` by the time at which the crawl started (14 digits,
    UTC), `{host}` by the name of this machine: `example-{time}-{host}` is unique to a crawl."""
    store_unchanged: bool = False
    """Store a payload again even if it is equal to an earlier capture's; otherwise a revisit record is
    written."""
    warc_metadata: bool = False
    """Write a metadata record for each capture, as Heritrix does: the URL that it was found on (`via`),
    and how it was reached (`hopsFromSeed`, a letter for each hop)."""
    dedup: Dedup = Dedup.SEED
    """Earlier payloads that a payload is compared with: `seed` (the digest in its seed) or `crawl`
    (also every payload of this crawl). The spider `site` and jobs use `crawl` by default."""
    durability: Durability = Durability.NORMAL
    """When captures, rows and the frontier's journal are synced to disk (fsync): `none` (when a file
    is sealed), `normal` (in groups, at most one second old), `full` (before a URL counts as done). A
    killed process loses nothing that it has written with any of them; the setting matters when the
    power fails."""
    operator: str = ""
    """Who runs the crawl: a name with an e-mail address or a URL. It is part of the `User-Agent` and
    of every warcinfo record. Without it a crawl prints a warning, unless the `User-Agent` contains an
    address or `allow_private` permits loopback."""
    robots: Robots = Robots.OBEY
    """Use of robots.txt: `obey`, `obey-but-fetch-requisites` (images, style sheets and scripts of a
    page are fetched even if they are disallowed) or `ignore`."""
    max_crawl_delay: float = Field(default=60.0, ge=0)
    """Longest `Crawl-delay` in a robots.txt that is honoured. A longer one is logged, and this one is
    used."""
    headers: Headers = Headers.FAST
    """Header fields of a request besides `Host` and `User-Agent`: `fast` (`Accept: */*`, and the
    content codings that replay tools can decode) or `browser` (`Accept` and `Accept-Language` as
    browsers send them). Scrapy's `DEFAULT_REQUEST_HEADERS` overrides it."""
    identity: Identity | None = None
    """When two URLs are the same: `exact` (equal strings) or `canonical` (equal canonical forms).
    Default: `exact` for the spiders `seeds` and `queue`, `canonical` for all others."""

    direct: Direct = Direct.AUTO
    """Fetch rows that no callback reads without Scrapy's engine: `auto` (if no other downloader
    middleware, handler or item pipeline is configured) or `never`. The archive is the same; `never` is
    slower."""

    delay: float = Field(default=1.0, ge=0)
    """Minimum time between the starts of two requests to a host key."""
    per_host: int = Field(default=1, ge=1)
    """Maximum number of requests in flight to a host key."""
    latency_factor: float = Field(default=2.0, ge=0)
    """After a response, wait at least this many times its response time before the next request to the
    host key; 0: off."""
    backoff_max: float = Field(default=300.0, ge=0)
    """Maximum delay after 429 and 5xx responses. The delay doubles with each of them and shrinks with
    other responses; 0: no back-off."""
    retry_after_max: float = Field(default=3600.0, ge=0)
    """Longest `Retry-After` that is honoured; 0: `Retry-After` is ignored."""
    address_delay: float = Field(default=0.05, ge=0)
    """Minimum time between the starts of two requests to one IP address, whatever their hosts, if
    `delay` is not 0; 0: off."""
    bandwidth: ByteSize = Field(default=ByteSize(0), ge=0)
    """Maximum average download rate over all hosts, in bytes per second; 0: unlimited."""
    host_bandwidth: ByteSize = Field(default=ByteSize(0), ge=0)
    """Maximum average download rate of one host key, in bytes per second; 0: unlimited."""
    inflight_start: int = Field(default=64, ge=1)
    """Limit of requests in flight over all hosts at the start; it then adapts to the load."""
    inflight_min: int = Field(default=32, ge=1)
    """Lower bound of the adaptive limit of requests in flight."""
    inflight_max: int = Field(default=2000, ge=1)
    """Upper bound of the adaptive limit of requests in flight."""
    host_fail_threshold: int = Field(default=3, ge=1)
    """Number of failures after which a host that never responded is skipped for the rest of the
    crawl."""
    max_retries: int = Field(default=4, ge=0)
    """How often a fetch that ended without a response is retried."""

    timeout: float = Field(default=120.0, gt=0)
    """Maximum time of one exchange, from connecting to the last byte. What was received by then is
    kept, with `truncated` set to `time`."""
    connect_timeout: float = Field(default=20.0, gt=0)
    """Maximum time for name lookup, connection and TLS handshake."""
    timeout_floor: float = Field(default=10.0, ge=0)
    """The first byte must arrive within twice the 95th percentile of recent response times, but this
    setting is the minimum of that limit; 0: only `timeout` applies."""
    min_rate: int = Field(default=64, ge=0)
    """Minimum download rate in bytes per second, averaged over `min_rate_time`. A slower exchange is
    ended; 0: off."""
    min_rate_time: float = Field(default=30.0, gt=0)
    """Period over which `min_rate` is averaged."""
    max_header: ByteSize = Field(default=ByteSize(256 * 1024), ge=1024)
    """Maximum size of a response header. The rest is cut off, with `truncated` set to `length`."""
    max_body: ByteSize = Field(default=ByteSize(64 * 1024**2), ge=0)
    """Maximum size of a response body. The rest is cut off, with `truncated` set to `length`."""
    spool_above: ByteSize = Field(default=ByteSize(1024**2), ge=0)
    """Size above which a body is received into a temporary file instead of memory."""
    tls: TlsPolicy = TlsPolicy.VERIFY
    """What to do if the certificate of a server is not trusted: `verify` (the fetch fails) or `record`
    (it is archived, with the result of the check)."""
    allow_private: Annotated[tuple[Network, ...], BeforeValidator(_networks)] = ()
    """Networks in CIDR notation that may be connected to although they are private, loopback or
    otherwise reserved."""

    browser: Rendering = Rendering.NEVER
    """Open pages in Chromium and archive all that their scripts request: `never`, `always` or `auto`
    (pages that have scripts, and nearly no text and no links without them)."""
    browser_path: str = ""
    """The Chromium to start. Default: the system's, else the one that Playwright installed."""
    browser_pages: int = Field(default=2, ge=1, le=64)
    """Maximum number of pages that are open at once."""
    browser_per_host: int = Field(default=6, ge=1, le=32)
    """Maximum number of requests in flight of one page to one host key."""
    browser_page_time: float = Field(default=60.0, ge=2)
    """Maximum time that a page is open. What it received by then is kept."""
    browser_page_bytes: ByteSize = Field(default=ByteSize(256 * 1024**2), ge=1024)
    """Maximum size of what one page receives. Further requests of it are refused."""
    browser_page_requests: int = Field(default=1000, ge=1)
    """Maximum number of requests of one page. Further ones are refused."""
    browser_page_memory: ByteSize = Field(default=ByteSize(1024**3), ge=64 * 1024**2)
    """Maximum memory of the process of one page. A page that takes more is ended."""
    browser_strict_pace: bool = False
    """Hold requests of a page to other hosts for the delays of those hosts, too."""
    browser_sandbox: bool = True
    """Run Chromium in its sandbox. It cannot be used as root."""
    browser_screenshots: bool = True
    """Archive a picture of each page."""
    browser_proxy: bool = False
    """In a project with scrapy-playwright: send what its browser requests through amicrawl, so that the
    archive has the bytes of the servers."""
    browser_behaviours: str = ""
    """A file of JavaScript that is run in each page after the behaviours of amicrawl."""

    dns_servers: Annotated[Names, AfterValidator(_name_servers)] = ()
    """Name servers, as `192.0.2.53` or `192.0.2.53:5353`. Default: those in `/etc/resolv.conf`.
    `system`: the resolver of the system (`getaddrinfo`), which is slower, for names from sources other
    than DNS and the hosts file."""

    proxy: str = ""
    """Proxy for all requests: `http://host:port` or `socks5h://host:port`. One with a password is
    given as a reference: `env:NAME` or `file:PATH`."""
    cookies: str = ""
    """Cookies to send, in the format of cookies.txt: `file:PATH` or `env:NAME`."""
    host_overrides: Annotated[dict[str, dict[str, Any]], BeforeValidator(_table)] = {}
    """Settings of single hosts, by host name: `delay`, `per_host`, `robots`, `auth` and others. Best
    written in a crawl file; on the command line, an object of JSON: `{"example.org": {"delay": 5}}`."""

    recrawl_after: Ages = {}
    """Age from which captured URLs are requested again by a recrawl, such as `1d`, or an object of JSON
    with patterns of URLs: `{"*": "7d", "/news/*": "1h"}`. Default: when they have probably changed."""

    surts: Words = ()
    """SURT prefixes of URLs that are in scope."""
    hosts: Names = ()
    """Hosts that are in scope, without their subdomains."""
    domains: Names = ()
    """Hosts that are in scope, with their subdomains."""
    include: Words = ()
    """Regular expressions of URLs that are in scope."""
    exclude: Words = ()
    """Regular expressions of URLs that are never fetched."""
    max_hops: int | None = Field(default=None, ge=0)
    """Maximum number of links between a seed and a page. Default: unlimited."""
    requisites: bool = True
    """Fetch page requisites: images, style sheets, scripts and other resources that a page needs."""
    requisites_off_site: bool = True
    """Fetch page requisites from hosts that are not in scope, too."""
    max_requisite_hops: int = Field(default=5, ge=1, le=50)
    """Maximum number of steps from a page to one of its requisites: a style sheet is one step away, what
    it imports two, a font of that three."""
    max_page_requisites: int = Field(default=5000, ge=1)
    """Maximum number of URLs that a page adds to the crawl as requisites, those of its requisites
    included."""
    calendar_pages: int = Field(default=100, ge=0)
    """Number of pages by date in a row that show nothing new, each further away from today than the one
    that links to it, after which such links are left out. 0: any number."""
    links_off_site: bool = False
    """Fetch pages out of scope that a page in scope links to, but do not follow their links."""
    sitemaps: bool = False
    """Read the sitemaps that robots.txt names, and fetch their URLs."""
    ignore_sets: Names = ("global",)
    """Named sets of ignore patterns."""
    ignores: Words = ()
    """Additional ignore patterns."""
    max_urls: int = Field(default=0, ge=0)
    """Maximum number of URLs; 0: unlimited."""
    max_host_urls: int = Field(default=0, ge=0)
    """Maximum number of URLs of one host key; 0: unlimited."""

    stop_pages: int = Field(default=0, ge=0)
    """End the crawl after this many rows of the index; 0: off."""
    stop_bytes: ByteSize = Field(default=ByteSize(0), ge=0)
    """End the crawl after this many bytes were received; 0: off."""
    stop_time: float = Field(default=0.0, ge=0)
    """End the crawl after this time; 0: off."""
    stop_errors: int = Field(default=0, ge=0)
    """End the crawl after this many fetches without a response; 0: off."""
    stop_free: ByteSize = Field(default=ByteSize(0), ge=0)
    """End the crawl when less disk space than this is free; 0: off."""
    pause_free: ByteSize = Field(default=ByteSize(512 * 1024**2), ge=0)
    """Pause fetching while less disk space than this is free; 0: off."""

    bucket: str = ""
    """Where sealed files are uploaded to: `s3://bucket/path`, `gs://bucket/path`, `file:///path`,
    `rsync://host/module/path`, `rsync+ssh://host/path` or `ia://identifier`."""
    remove_uploaded: bool = False
    """Delete a local WARC file once its copy in the bucket is verified."""

    metrics: Annotated[str, AfterValidator(_endpoint)] = ""
    """Address at which Prometheus metrics are served, as `host:port`."""
    webhooks: Words = ()
    """URLs that receive a request when the crawl has ended."""
    webhook_secret: str = ""
    """Key that signs webhook requests, as a reference: `env:NAME` or `file:PATH`."""
    log_format: LogFormat = LogFormat.TEXT
    """Format of the log and of progress reports: `text` or `json` (one object per line)."""

    redis_prefix: str = ""
    """Prefix of all keys and channels in Redis. Leave it empty to share a database with ArchiveBot."""

    drain_time: float = Field(default=20.0, ge=0)
    """Maximum time for requests in flight to finish when the crawl is stopped."""
    progress_every: float = Field(default=0.0, ge=0)
    """Time between two progress reports; 0: 1 second on a terminal, 10 elsewhere."""

    @field_validator("*")
    @classmethod
    def _can_be_counted_with(cls, value: object) -> object:
        """Refuse a number that is beyond what clocks and files have room for."""
        if isinstance(value, float) and not value <= LONGEST_TIME:
            raise ValueError(f"it must be {LONGEST_TIME:,} or less")
        if isinstance(value, int) and value > GREATEST_NUMBER:
            raise ValueError(f"it must be {GREATEST_NUMBER:,} or less")
        return value

    @model_validator(mode="before")
    @classmethod
    def _one_limit_moves_the_others(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Lower the defaults of the other two limits if only a low `inflight_max` is set."""
        ceiling = given.get("inflight_max")
        if ceiling is not None and str(ceiling).isdecimal():
            start = given.get("inflight_start", min(64, int(ceiling)))
            given = {**given, "inflight_start": start}
        start = given.get("inflight_start")
        if "inflight_min" not in given and start is not None and str(start).isdecimal():
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

    def hops_within(self, depth: str) -> int | None:
        """Return how many links from a start URL a page may be in a crawl to *depth* (see `is_depth`).

        None for any number.
        """
        if depth == "shallow":
            return 0
        if not depth.isdecimal():
            return self.max_hops
        return int(depth) if self.max_hops is None else min(int(depth), self.max_hops)

    @property
    def directory(self) -> Path:
        """The directory of this run: `out`, or `out`/`run_id`."""
        return self.out / self.run_id if self.run_id else self.out

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Read the `AMICRAWL_*` keys of *settings*; other keys are ignored.

        Raises UsageError, naming the setting, for an unknown name or an invalid value.
        """
        given = {name: value for name, value in settings.items() if name.startswith(PREFIX)}
        for name in given:
            if name not in SETTINGS:
                raise UsageError(unknown_setting(name, SETTINGS))
        try:
            return cls(**{SETTINGS[name]: value for name, value in given.items()})
        except ValidationError as error:
            raise UsageError(refusal_of(error, prefix=PREFIX)) from error


SETTINGS = {PREFIX + field.upper(): field for field in CrawlConfig.model_fields}
"""The field of `CrawlConfig` that each setting is, by the name of the setting."""
