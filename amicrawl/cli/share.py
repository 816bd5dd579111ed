"""`amicrawl share`: one crawl over several machines, which share a Redis and nothing else."""

from __future__ import annotations

import json
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.options import AsOneObject, Depth, Settings, grouped
from amicrawl.cli.project import (
    OUR_SETTINGS,
    SETTINGS_MODULE,
    options_of_crawls,
    settings_module,
)
from amicrawl.cli.redis_options import RedisOptions, with_store
from amicrawl.config import OF_PROGRAMS, PREFIX, CrawlConfig, Identity
from amicrawl.discovery import has_scope
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError, UsageError
from amicrawl.fleet.database import connect
from amicrawl.fleet.leases import LEASE
from amicrawl.fleet.sharing import (
    SeedGiver,
    Share,
    ShareRecord,
    ShareWorker,
    begin,
    checked_name,
    child_command,
    keep_starts,
    seeds_given,
    starts_of,
    written_once,
)
from amicrawl.fleet.sharing.creation import MOST_STARTS
from amicrawl.fleet.sharing.share import INBOX, MOST_PARTITIONS
from amicrawl.seed import open_seed
from amicrawl.uploads import check_keeps_state, open_bucket
from amicrawl.urls import Refused, UrlKey, fetchable, url_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.fleet.database import JobStore
    from amicrawl.seed import Seed, SeedFault


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
    starts: list[str] = []
    if not record.scoped:
        listed = _few_enough(listed)
        starts = [seed.url for seed in listed if not isinstance(fetchable(seed.url), Refused)]
        if not starts:
            raise InputError(f"Not one line of {seeds} could be used as a start URL.")
    share, token = begin(store, record, again=again)
    if starts:
        _widen_scope(share, starts)
    identity = by or (Identity.EXACT if record.is_list else Identity.CANONICAL)
    giver = SeedGiver(share, token, key_of=lambda url: _key_of(url, identity))
    giver.give(listed)
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


def _refuse_programs(settings: Iterable[str], *, what: str) -> None:
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
    _refuse_programs(settings, what=str(path))
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


_END = {
    ExitCode.DONE: "The crawl has ended.",
    ExitCode.STOPPED: "Stopped; the partitions that were held here wait for another worker.",
    ExitCode.OUR_ERROR: "The crawl has ended, but for what was given up.",
}

_LEASE = LEASE.total_seconds()

Data = Annotated[Path, typer.Option("--data", help="Directory for what is crawled here.")]
Slots = Annotated[int, typer.Option("--slots", min=1, help="Partitions crawled at once.")]
Lease = Annotated[float, typer.Option("--lease", min=1.0, help="Duration of a lease in seconds.")]
Turn = Annotated[
    float,
    typer.Option(
        "--turn", min=0.0, help="Seconds after which a partition gives way to waiting ones; 0: never."
    ),
]


@grouped
def work(
    name: Name,
    *,
    data: Data,
    slots: Slots = 1,
    lease: Lease = _LEASE,
    turn: Turn = 0.0,
    settings: Settings = None,
    redis: RedisOptions,
) -> None:
    """Work on the shared crawl NAME until it has ended.

    Each partition is crawled into DATA/NAME/part-NNN by `scrapy crawl site -a share=NAME` (`seeds` for
    a list). On the first signal the crawls here stop in order, and their partitions wait for another
    worker. Example:
    amicrawl share work gov --slots 4 --data /var/crawls
    """
    checked_name(name)
    given = options_of_crawls(settings)
    way = redis.settings()
    store = connect(way)
    share, disk = Share.open(store, name), Disk()
    _arguments_of(share, data / name, disk=disk)

    def command(number: int, directory: Path) -> list[str]:
        # Anew for each crawl: start URLs may have been added, which make the scope.
        further = [*_arguments_of(share, data / name, disk=disk), *given]
        return child_command(share.record, number, directory.absolute(), further)

    worker = ShareWorker(
        share,
        data,
        command=command,
        environment={**way.environment(), SETTINGS_MODULE: settings_module() or OUR_SETTINGS},
        slots=slots,
        ttl=timedelta(seconds=lease),
        turn=timedelta(seconds=turn),
        disk=disk,
        tell=lambda sentence: typer.echo(sentence, err=True),
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.signalled())
    try:
        worker.run()
    finally:
        store.close()
    typer.echo(_END.get(worker.code, f"Ended with code {worker.code}."), err=True)
    sys.exit(worker.code)


def _arguments_of(share: Share, directory: Path, *, disk: Disk) -> list[str]:
    """Return the arguments of every child, with the files that they name written to *directory*."""
    directory.mkdir(parents=True, exist_ok=True)
    record = share.record
    # What a crawl file says of starts is not meant here: they come in batches.
    further = ["-a", "file="] if record.is_list else ["-a", f"depth={record.depth}", "-a", "url="]
    if record.config:
        path = written_once(directory / "crawl.toml", record.config.encode("utf-8"), disk=disk)
        # A client that may write to Redis must not have a program run here.
        from amicrawl.crawlfile import read_crawl_file  # noqa: PLC0415  # as above

        of_crawl = f"The crawl file of the shared crawl {record.name}"
        _refuse_programs(read_crawl_file(path, needs_operator=False).settings, what=of_crawl)
        further += ["-a", f"config={path.absolute()}"]
    if record.is_list:
        return further
    if record.scoped:
        further += ["-a", "file="]
    else:
        urls = starts_of(share)
        if not urls:
            raise InputError(
                f"The start URLs of {record.name} are not in Redis yet. Wait until `amicrawl share "
                "create` has ended; if it was broken off, repeat it with --add."
            )
        path = written_once(
            directory / "starts.txt",
            "".join(f"{url}\n" for url in urls).encode("utf-8", "surrogatepass"),
            disk=disk,
        )
        further += ["-a", f"file={path.absolute()}", "-a", "format=lines"]
    return further


Resend = Annotated[
    bool, typer.Option("--resend", help="Send all links again, in case Redis has lost some.")
]


@with_store
def status(store: JobStore, name: Name, as_json: AsOneObject = False) -> None:
    """Show the state of the shared crawl NAME, partition by partition.

    Example: amicrawl share status gov-2027 --json
    """
    share = Share.open(store, checked_name(name))
    rows = [_shown(number, known) for number, known in enumerate(share.standings())]
    record = share.record
    flags = [text for text, on in (("stopped", record.stop), ("paused", record.pause)) if on]
    if record.seeding:
        flags.append("seeds are still being given")
    if as_json:
        whole = {"name": name, "state": record.state, "flags": flags, "partitions": rows}
        typer.echo(json.dumps(whole))
        return
    typer.echo(f"{name}: {', '.join([record.state, *flags])}")
    for row in rows:
        batches = f"{row['batches']} batches" if row["batches"] not in ("", "0") else ""
        parts = [str(row["state"]), str(row["owner"]), str(row["figures"]), batches]
        typer.echo(f"  part-{row['number']:03d}  " + "  ".join(part for part in parts if part))


@with_store
def stop(store: JobStore, name: Name) -> None:
    """Stop every worker of NAME in an orderly way; `retry` undoes it.

    Example: amicrawl share stop gov-2027
    """
    Share.open(store, checked_name(name)).set_flag("stop", on=True)


@with_store
def pause(store: JobStore, name: Name) -> None:
    """Pause NAME until `resume`.

    Example: amicrawl share pause gov-2027
    """
    Share.open(store, checked_name(name)).set_flag("pause", on=True)


@with_store
def resume(store: JobStore, name: Name) -> None:
    """Resume NAME after `pause`.

    Example: amicrawl share resume gov-2027
    """
    Share.open(store, checked_name(name)).set_flag("pause", on=False)


@with_store
def retry(store: JobStore, name: Name, *, resend: Resend = False) -> None:
    """Resume NAME after `stop`, and retry partitions that were given up.

    Example: amicrawl share retry gov-2027
    """
    again = Share.open(store, checked_name(name)).retry(resend=resend)
    typer.echo(f"{name}: {again} partitions are retried.")


@with_store
def remove(store: JobStore, name: Name) -> None:
    """Delete NAME from Redis. What was crawled is kept.

    Example: amicrawl share remove gov-2027
    """
    share = Share.for_removal(store, checked_name(name))
    if share.is_held():
        raise UsageError(f"{name} is being crawled: stop it first with `amicrawl share stop {name}`.")
    share.remove()


def _shown(number: int, known: dict[str, str]) -> dict[str, object]:
    """Return what is shown of a partition; everything in it may be anything that Redis held."""
    state = known.get("state", "ready")
    if state == "held":
        state = "idle" if "idle" in known else "held" if known["lease"] else "lapsed"
    try:
        facts = json.loads(known.get("facts", "{}"))
        figures = f"{int(facts['rows'])} rows, {int(facts['queued'])} queued, {int(facts['urls'])} URLs"
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        figures = ""
    return {
        "number": number,
        "state": ascii(state)[1:-1],
        "owner": ascii(known.get("owner", ""))[1:-1],
        "attempt": ascii(known.get("attempt", "0"))[1:-1],
        "lease_ms": known["lease"],
        "batches": known["batches"],
        "figures": figures,
    }


app = typer.Typer(no_args_is_help=True, help="Share one crawl between several machines.")
for command in (create, work, status, stop, pause, resume, retry, remove):
    app.command()(command)
