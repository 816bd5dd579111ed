"""`amicrawl share create`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.options import Reach
from amicrawl.cli.redis_options import PrefixOption, RedisOption, job_store
from amicrawl.cli.share.control import Name
from amicrawl.config import PREFIX, CrawlConfig, Identity
from amicrawl.discovery.selection import has_scope
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError, UsageError
from amicrawl.jobs.sharing.creation import MOST_STARTS, SeedGiver, begin, keep_starts, seeds_given
from amicrawl.jobs.sharing.share_record import INBOX, MOST_PARTITIONS, ShareRecord, checked_name
from amicrawl.record.bucket import open_bucket
from amicrawl.seed import open_seed
from amicrawl.urls import Refused, UrlKey, fetchable, url_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.jobs.connection import JobStore
    from amicrawl.seed import Fault, Seed

_FAULTS_SHOWN = 20

Seeds = Annotated[
    str,
    typer.Option("--seeds", help="The seed list, as for `scrapy crawl seeds`.", show_default=False),
]
Partitions = Annotated[
    int,
    typer.Option(
        "--partitions",
        min=1,
        max=MOST_PARTITIONS,
        help="Number of partitions of the hosts; cannot be changed.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", help="A crawl file for the spider `site`; with --list for `seeds`."),
]
Depth = Annotated[
    Reach | None,
    typer.Option("--depth", help="shallow: start pages alone; that of the crawl file by default."),
]
PlaceOption = Annotated[
    str,
    typer.Option(
        "--place",
        help="Bucket through which partitions move between machines: s3://, gs:// or file:///.",
    ),
]
AsList = Annotated[
    bool, typer.Option("--list", help="Fetch only the seeds and their redirects; follow no links.")
]
Inbox = Annotated[int, typer.Option("--inbox", min=1, help="Maximum number of messages per inbox.")]
SeedFormat = Annotated[str | None, typer.Option("--format", help="Format of the seed list.")]
Add = Annotated[bool, typer.Option("--add", help="Add seeds to an existing crawl.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit code 7 for a line that cannot be used.")]


def create(
    name: Name,
    *,
    seeds: Seeds,
    partitions: Partitions = 12,
    config: Config = None,
    depth: Depth = None,
    place: PlaceOption = "",
    inbox: Inbox = INBOX,
    seed_format: SeedFormat = None,
    as_list: AsList = False,
    add: Add = False,
    strict: Strict = False,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Create the shared crawl NAME and add its seeds.

    The seeds wait in Redis until workers take them: a long list is given as fast as they do. Example:
    amicrawl share create gov --seeds starts.txt --partitions 24 --config crawls/gov.toml
    """
    spider = "seeds" if as_list else "site"
    text, settings, said = _crawl_file(config, spider)
    if as_list and depth:
        raise UsageError("--depth is about links, and --list follows none: leave one of them out.")
    crawl = CrawlConfig.from_settings(settings)
    record = ShareRecord(
        checked_name(name),
        partitions,
        inbox=inbox,
        is_list=as_list,
        depth=depth or said,
        config=text,
        # A list is its own scope: no worker needs to hold it.
        scoped=as_list or has_scope(crawl),
        place=place,
    )
    if place:
        open_bucket(place, disk=Disk())
    faults = _Faults()
    listed = open_seed(seeds, format=seed_format, on_fault=faults)
    store = job_store(redis, prefix)
    try:
        given = _give(store, record, listed, seeds, again=add, by=crawl.identity)
    finally:
        store.close()
    typer.echo(f"{name}: {given} seeds in {record.partitions} partitions.")
    if strict and faults.count:
        raise typer.Exit(ExitCode.SEEDS_BAD)


def _give(
    store: JobStore,
    record: ShareRecord,
    listed: Iterable[Seed],
    seeds: str,
    *,
    again: bool,
    by: Identity | None,
) -> int:
    """Begin the crawl of *record*, give it what *seeds* has *listed*, and return how many that were."""
    if not record.scoped:
        listed = _few_enough(listed)
    share, token = begin(store, record, again=again)
    if not record.scoped:
        starts = [seed.url for seed in listed if not isinstance(fetchable(seed.url), Refused)]
        if not starts:
            raise InputError(f"Not one line of {seeds} could be used as a start URL.")
        keep_starts(share, starts)
    identity = by or (Identity.EXACT if record.is_list else Identity.CANONICAL)
    giver = SeedGiver(share, token, key_of=lambda url: _key_of(url, identity))
    giver.give(listed)
    seeds_given(share)
    return giver.given


class _Faults:
    """Prints the first lines that cannot be used, and counts them all."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, fault: Fault) -> None:
        self.count += 1
        if self.count <= _FAULTS_SHOWN:
            typer.echo(f"{fault.source}, line {fault.line}: {fault.reason}", err=True)


def _crawl_file(path: Path | None, spider: str) -> tuple[str, dict[str, object], str]:
    """Return text, settings and depth of the crawl file *path* for *spider*, which must stand alone."""
    if path is None:
        return "", {}, "inf"
    # Loaded for a crawl that has one: it takes a while.
    from amicrawl.crawlfile import read_crawl_file  # noqa: PLC0415

    file = read_crawl_file(path)
    if file.spider != spider:
        raise UsageError(
            f"{path} is for the spider `{file.spider}`; a shared crawl is one of `site`, or with --list "
            "of `seeds`."
        )
    text = path.read_text(encoding="utf-8")
    if any(line.strip().startswith("extends") for line in text.splitlines()):
        raise UsageError(
            f"{path} builds on another file, which other machines do not have. Write it as one."
        )
    settings = {name: value for name, value in file.settings.items() if name.startswith(PREFIX)}
    return text, settings, str(file.arguments.get("depth") or "inf")


def _few_enough(seeds: Iterable[Seed]) -> list[Seed]:
    """Return *seeds*, which make the scope."""
    starts: list[Seed] = []
    for seed in seeds:
        starts.append(seed)
        if len(starts) > MOST_STARTS:
            raise InputError(
                f"More than {MOST_STARTS:,} start URLs cannot make the scope of a crawl: every worker "
                "holds it. Say what is on site in a crawl file ([scope] domains, for example)."
            )
    return starts


def _key_of(url: str, identity: Identity) -> UrlKey | Refused:
    target = fetchable(url)
    return target if isinstance(target, Refused) else url_key(url, identity)
