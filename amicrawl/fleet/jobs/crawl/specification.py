"""What the record of a job specifies: settings, and arguments of the spider `site`.

    fetch_depth             inf: the site; shallow: the page and what it needs to be shown
    url_file                the start URLs are the lines of that list, which is fetched first
    user_agent              in place of ours
    no_offsite_links        without it, pages that the site links to elsewhere are fetched, too
    crawl file              its settings, except those that only this machine may decide

Any client of the database may have written this. So a crawl file from Redis names no file of this
machine, no secret, no place or name for the output, no proxy, and no private network.
"""

from __future__ import annotations

import logging
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from amicrawl.config import OF_PROGRAMS, PREFIX, CrawlConfig
from amicrawl.crawl import SiteArguments, fetched_list, read_starts
from amicrawl.crawlfile import parsed_toml, read_crawl_file
from amicrawl.disk import Disk, replace_file
from amicrawl.errors import InputError, UsageError
from amicrawl.fleet.jobs import lookup
from amicrawl.fleet.jobs.crawl.opening import HeldJob, open_job, starting
from amicrawl.urls import without_userinfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from amicrawl.seed import Seed

logger = logging.getLogger(__name__)

LIST_NAME = "urls.txt"
_OF_THE_MACHINE = OF_PROGRAMS | frozenset(
    PREFIX + name
    for name in (
        *("OUT", "RUN_ID", "ALLOW_PRIVATE", "COOKIES", "PROXY", "DNS_SERVERS", "BUCKET", "METRICS"),
        *("REMOVE_UPLOADED", "WEBHOOKS", "WEBHOOK_SECRET", "LOG_FORMAT", "REDIS_PREFIX", "PAUSE_FREE"),
        *("WARC_PREFIX", "BROWSER_PROXY"),
    )
)
_AT_MOST = (
    *("max_body", "max_header", "spool_above", "inflight_max", "inflight_start", "inflight_min"),
    *("drain_time", "timeout", "connect_timeout"),
    *("browser_pages", "browser_per_host", "browser_page_time", "browser_page_bytes"),
    *("browser_page_requests", "browser_page_memory"),
)
"""Caps that protect the machine: a job has no more than the pipeline's own settings say."""
_AT_LEAST = ("stop_free",)
_SECRET = frozenset({"auth", "auth_port", "allow_plain"})


def take_settings(job: HeldJob, settings: BaseSettings) -> None:
    """Set in *settings* what the record of *job* and its crawl file request, where the spider stands.

    Raises InputError for a crawl file that cannot be followed.
    """
    record = job.copy.record
    if fault := job.copy.config_fault:
        raise InputError(
            f"The crawl file of {job.ident} in Redis cannot be read: {fault}. Submit it again."
        )
    wished = _crawl_file_settings(job.copy.config, job.ident)
    for name, value in {**wished, **_clamped(wished, settings)}.items():
        settings.set(name, value, "spider")
    agent = record.get("user_agent", "")
    if agent and agent.isascii() and agent.isprintable():
        settings.set("USER_AGENT", agent, "spider")
    elif agent:
        logger.warning("The job's user agent %s cannot be sent; ours is", ascii(agent[:200]))
    settings.set(f"{PREFIX}LINKS_OFF_SITE", not record.get("no_offsite_links"), "spider")
    if job.copy.ignores and not settings.get(f"{PREFIX}IGNORE_SETS"):
        # The record holds all expressions, those of sets included, and one may be taken back.
        settings.set(f"{PREFIX}IGNORE_SETS", "", "spider")


def _clamped(wished: Mapping[str, Any], settings: BaseSettings) -> dict[str, Any]:
    """Return those of the *wished* settings that go beyond the machine's caps, brought back to them.

    Raises UsageError for one that cannot be followed at all.
    """
    own = CrawlConfig.from_settings(dict(settings))
    theirs = CrawlConfig.from_settings({**dict(settings), **wished})
    found: dict[str, Any] = {}
    for names, beyond in ((_AT_MOST, max), (_AT_LEAST, min)):
        for name in names:
            cap, value = getattr(own, name), getattr(theirs, name)
            if value != cap and beyond(value, cap) == value:
                found[PREFIX + name.upper()] = cap
    if found:
        logger.warning(
            "The crawl file of the job goes beyond what this machine allows; its own holds for: %s",
            ", ".join(sorted(found)),
        )
    return found


def arguments_of(job: HeldJob, config: CrawlConfig) -> dict[str, str]:
    """Return the arguments of the spider `site` that crawl *job* into the directory of *config*.

    The list of a list job is fetched, unless the directory holds it. Raises InputError where it cannot
    be had, OutputError where it cannot be kept.
    """
    record = job.copy.record
    depth = "shallow" if record.get("fetch_depth") == "shallow" else "inf"
    kept = lookup.url_list(job.store, job.ident)
    if kept is None and (fault := lookup.url_list_fault(job.store, job.ident)):
        raise InputError(f"The list of {job.ident} in Redis cannot be read: {fault}. Submit it again.")
    if not record.get("url_file") and kept is None:
        # One start URL, whatever is in it: the argument takes blanks for what stands between several.
        return {"url": re.sub(r"\s", "%20", without_userinfo(record["url"])), "depth": depth}
    path = config.directory / LIST_NAME
    if not path.exists():
        content = None if kept is None else kept.encode("utf-8", "replace")
        _keep(path, fetched_list(record["url_file"], config) if content is None else content)
    return {"file": str(path), "format": "lines", "depth": depth}


def _keep(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content, disk=Disk())


def _crawl_file_settings(text: str, ident: str) -> dict[str, Any]:
    """Return the settings of the crawl file *text* that a job may have."""
    if not text:
        return {}
    try:
        said = parsed_toml(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"The crawl file of job {ident} is not TOML: {error}.") from error
    if "extends" in said:
        raise InputError(
            f"The crawl file of job {ident} extends another one, which this machine may not have. "
            "Submit it as one."
        )
    if "spider" not in said:
        text = f'spider = "site"\n{text}'
    with tempfile.TemporaryDirectory(prefix="amicrawl-job-") as directory:
        path = Path(directory, f"{ident}.toml")
        path.write_text(text, encoding="utf-8", errors="replace")
        settings = dict(read_crawl_file(path, needs_operator=False).settings)
    refused = sorted(_OF_THE_MACHINE & settings.keys())
    if refused:
        logger.warning("Not taken from the crawl file of a job: %s", ", ".join(refused))
    overrides = f"{PREFIX}HOST_OVERRIDES"
    if overrides in settings:
        settings[overrides] = {
            host: {name: value for name, value in said_of.items() if name not in _SECRET}
            for host, said_of in settings[overrides].items()
        }
    return {name: value for name, value in settings.items() if name not in _OF_THE_MACHINE}


@dataclass(frozen=True, slots=True)
class JobArguments:
    """The arguments of the spider `job`."""

    ident: str
    """The job."""
    out: str | None = None
    """Directory for the output."""
    run_id: str | None = None
    """Sub-directory of `out` for this run."""

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> Self:
        """Check *given*. Raises UsageError for an argument that there is none of."""
        values = {name: str(value) for name, value in given.items() if not name.startswith("_")}
        unknown = sorted(values.keys() - cls.__dataclass_fields__.keys())
        if unknown:
            raise UsageError(
                f"Unknown argument {unknown[0]} for the spider `job`. Known are ident, out and run_id; "
                "everything else is in the job's record."
            )
        if not values.get("ident"):
            raise UsageError(
                "The spider `job` needs the job: -a ident=IDENT, as `amicrawl job ls` shows it."
            )
        return cls(
            ident=values["ident"], out=values.get("out") or None, run_id=values.get("run_id") or None
        )


def open_job_of(
    crawler: Crawler, given: Mapping[str, object]
) -> tuple[HeldJob, SiteArguments, tuple[Seed, ...]]:
    """Claim the job that the arguments *given* name, and read its start URLs.

    What the job requests is set in the settings of *crawler*. Raises as `JobArguments.parse`,
    `open_job`, `take_settings`, `arguments_of` and `read_starts` do.
    """
    arguments = JobArguments.parse(given)
    for name, value in (("AMICRAWL_OUT", arguments.out), ("AMICRAWL_RUN_ID", arguments.run_id)):
        if value is not None:
            crawler.settings.set(name, value, "cmdline")
    directory = CrawlConfig.from_settings(dict(crawler.settings)).directory
    job = open_job(arguments.ident, crawler.settings, directory=directory)
    with starting(job):
        take_settings(job, crawler.settings)
        config = CrawlConfig.from_settings(dict(crawler.settings))
        site = SiteArguments.parse(arguments_of(job, config))
        return job, site, read_starts(site)
