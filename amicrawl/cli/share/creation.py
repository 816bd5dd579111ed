"""`amicrawl share create`: a shared crawl in Redis, with its crawl file and its seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.options import Depth, grouped
from amicrawl.cli.redis_options import RedisOptions
from amicrawl.config import OF_PROGRAMS, PREFIX, CrawlConfig, Identity
from amicrawl.discovery import has_scope
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError, UsageError
from amicrawl.fleet.sharing import (
    SeedGiver,
    Share,
    ShareRecord,
    begin,
    checked_name,
    keep_starts,
    seeds_given,
)
from amicrawl.fleet.sharing.creation import MOST_STARTS
from amicrawl.fleet.sharing.record import INBOX, MOST_PARTITIONS
from amicrawl.seed import open_seed
from amicrawl.uploads import check_keeps_state, open_bucket
from amicrawl.urls import Refused, UrlKey, fetchable, url_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.fleet.database import JobStore
    from amicrawl.seed import Seed, SeedFault, SeedReader

_FAULTS_SHOWN = 20

Name = Annotated[str, typer.Argument(metavar="NAME", help="The shared crawl.", show_default=False)]
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


@grouped
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
    redis: RedisOptions,
) -> None:
    """Create the shared crawl NAME and add its seeds.

    The seeds wait in Redis until workers take them: a long list is added as fast as they do. Example:
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
        check_keeps_state(place, "The state of partitions")
        open_bucket(place, disk=Disk())
    faults = _Faults()
    listed = open_seed(seeds, format=seed_format, on_fault=faults)
    with redis.store() as store:
        given = _give(store, record, listed, seeds, again=add, by=crawl.identity)
    typer.echo(f"{name}: {given} seeds in {record.partitions} partitions.")
    if listed.cut is not None:
        raise listed.cut
    if strict and faults.count:
        raise typer.Exit(ExitCode.SEEDS_BAD)


def _give(
    store: JobStore,
    record: ShareRecord,
    listed: SeedReader,
    seeds: str,
    *,
    again: bool,
    by: Identity | None,
) -> int:
    """Begin the crawl of *record*, give it what *seeds* has *listed*, and return how many that were."""
    starts: list[str] = []
    given: Iterable[Seed] = listed
    if not record.scoped:
        given = _few_enough(listed)
        if listed.cut is not None:
            raise listed.cut
        starts = [seed.url for seed in given if not isinstance(fetchable(seed.url), Refused)]
        if not starts:
            raise InputError(f"Not one line of {seeds} could be used as a start URL.")
    share, token = begin(store, record, again=again)
    if starts:
        _widen_scope(share, starts)
    identity = by or (Identity.EXACT if record.is_list else Identity.CANONICAL)
    giver = SeedGiver(share, token, key_of=lambda url: _key_of(url, identity))
    giver.give(given)
    seeds_given(share)
    return giver.given


def _widen_scope(share: Share, starts: list[str]) -> None:
    """Keep *starts* for the workers of *share*; raises UsageError where a crawl runs without them."""
    keep_starts(share, starts)
    # Behind that: a crawl that begins from here on has them, and one that had begun is held.
    if share.is_held():
        seeds_given(share)
        name = share.record.name
        raise UsageError(
            f"{name} is being crawled within the scope of its earlier start URLs: links from the new "
            f"ones would be left out. Stop it with `amicrawl share stop {name}`, wait until "
            f"`amicrawl share status {name}` shows no partition as held, repeat this command, and begin "
            f"the workers again behind `amicrawl share retry {name}`."
        )


def refuse_programs(settings: Iterable[str], *, what: str) -> None:
    """Raise UsageError where the crawl file *what* names what other machines are to run."""
    named = ", ".join(sorted(name.removeprefix(PREFIX).lower() for name in OF_PROGRAMS & {*settings}))
    if named:
        raise UsageError(
            f"{what} sets {named}, which is for each machine to say: set it there (-s, or the project)."
        )


class _Faults:
    """Prints the first lines that cannot be used, and counts them all."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, fault: SeedFault) -> None:
        self.count += 1
        if self.count <= _FAULTS_SHOWN:
            typer.echo(f"{fault.source}, line {fault.line}: {fault.reason}", err=True)


def _crawl_file(path: Path | None, spider: str) -> tuple[str, dict[str, object], str]:
    """Return what the crawl file *path* says to *spider*: as text, its settings and its depth.

    The text holds what the files say that it extends: other machines do not have them.
    """
    if path is None:
        return "", {}, "inf"
    # Loaded for a crawl that has one: it takes a while.
    from amicrawl.crawlfile import effective, read_crawl_file, read_sheet  # noqa: PLC0415

    file = read_crawl_file(path)
    if file.spider != spider:
        raise UsageError(
            f"{path} is for the spider `{file.spider}`; a shared crawl is one of `site`, or with --list "
            "of `seeds`."
        )
    text = effective(read_sheet(path), directory=Path.cwd())
    settings = {name: value for name, value in file.settings.items() if name.startswith(PREFIX)}
    refuse_programs(settings, what=str(path))
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
