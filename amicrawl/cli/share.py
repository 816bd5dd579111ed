"""`amicrawl share`: one crawl over several machines, that share a Redis and nothing else."""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.redis_options import PrefixOption, RedisOption, job_store, redis_settings
from amicrawl.config import PREFIX, CrawlConfig, Identity
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError, UsageError
from amicrawl.jobs.sharing.beginning import MOST_STARTS, begin, keep_starts, seeds_given, starts_of
from amicrawl.jobs.sharing.giving import SeedGiver
from amicrawl.jobs.sharing.share import LEASE, Share
from amicrawl.jobs.sharing.share_record import INBOX, MOST_PARTITIONS, ShareRecord, checked_name
from amicrawl.jobs.sharing.shipping import Shipper
from amicrawl.jobs.sharing.worker import Worker, child_command, written_once
from amicrawl.seed import open_seed
from amicrawl.urls import Refused, UrlKey, fetchable, url_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.seed import Fault, Seed

app = typer.Typer(
    no_args_is_help=True,
    help="One crawl over several machines: made once, worked on by any number of them.",
)

_FAULTS_TOLD = 20

Name = Annotated[str, typer.Argument(metavar="NAME", help="The shared crawl.", show_default=False)]


@app.command()
def create(
    name: Name,
    *,
    seeds: Annotated[
        str,
        typer.Option("--seeds", help="The seed list, as for `scrapy crawl seeds`.", show_default=False),
    ],
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions", min=1, max=MOST_PARTITIONS, help="Parts of the hosts; fixed for good."
        ),
    ] = 12,
    config: Annotated[
        Path | None, typer.Option("--config", help="A crawl file for the spider `site`.")
    ] = None,
    depth: Annotated[
        str, typer.Option("--depth", help="inf, or shallow: start pages alone; else the crawl file's.")
    ] = "",
    place: Annotated[
        str,
        typer.Option("--place", help="Bucket that partitions travel through: s3://, gs:// or file:///."),
    ] = "",
    inbox: Annotated[
        int, typer.Option("--inbox", min=1, help="Letters that one inbox holds at most.")
    ] = INBOX,
    seed_format: Annotated[str | None, typer.Option("--format", help="Format of the seed list.")] = None,
    add: Annotated[
        bool, typer.Option("--add", help="Give more seeds to a crawl that is there.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 7 for a line that cannot be used.")
    ] = False,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Make the shared crawl NAME and give it its seeds.

    The seeds wait in Redis until workers take them: a long list is given as fast as they do. Example:
    amicrawl share create gov --seeds starts.txt --partitions 24 --config crawls/gov.toml
    """
    text, settings, said = _crawl_file(config)
    depth = depth or said
    if depth not in {"inf", "shallow"}:
        raise UsageError(f"--depth {depth} is neither inf nor shallow.")
    crawl = CrawlConfig.from_settings(settings)
    scoped = bool(crawl.surts or crawl.hosts or crawl.domains or crawl.include)
    if place:
        Shipper(place, checked_name(name), disk=Disk(), machine="")
    record = ShareRecord(
        checked_name(name), partitions, inbox=inbox, depth=depth, config=text, scoped=scoped, place=place
    )
    faults: list[Fault] = []

    def tell(fault: Fault) -> None:
        faults.append(fault)
        if len(faults) <= _FAULTS_TOLD:
            typer.echo(f"{fault.source}, line {fault.line}: {fault.reason}", err=True)

    listed: Iterable[Seed] = open_seed(seeds, format=seed_format, on_fault=tell)
    if not scoped:
        listed = _few_enough(listed)
    store = job_store(redis, prefix)
    try:
        share, token = begin(store, record, again=add)
        if not scoped:
            starts = [seed.url for seed in listed if not isinstance(fetchable(seed.url), Refused)]
            if not starts:
                raise InputError(f"Not one line of {seeds} could be used as a start URL.")
            keep_starts(share, starts)
        identity = crawl.identity or Identity.CANONICAL
        giver = SeedGiver(share, token, key_of=lambda url: _key_of(url, identity))
        giver.give(listed)
        seeds_given(share)
    finally:
        store.close()
    typer.echo(f"{name}: {giver.given} seeds in {share.record.partitions} partitions.")
    if strict and faults:
        raise typer.Exit(ExitCode.SEEDS_BAD)


@app.command()
def work(
    name: Name,
    *,
    data: Annotated[Path, typer.Option("--data", help="Directory for what is crawled here.")],
    slots: Annotated[
        int, typer.Option("--slots", min=1, help="Partitions that are crawled at a time.")
    ] = 1,
    lease: Annotated[float, typer.Option("--lease", min=1.0, help="Seconds that a lease lasts.")] = (
        LEASE.total_seconds()
    ),
    turn: Annotated[
        float,
        typer.Option(
            "--turn", min=0.0, help="Seconds that a partition is held while others wait; 0: all."
        ),
    ] = 0.0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "-s", "--set", metavar="NAME=VALUE", help="A setting of the crawl on this machine."
        ),
    ] = None,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Work on the shared crawl NAME until it has ended.

    Each partition is crawled into DATA/NAME/part-NNN by `scrapy crawl site -a share=NAME`. On the first
    signal the crawls here stop in order, and their partitions wait for another worker. Example:
    amicrawl share work gov --slots 4 --data /var/crawls
    """
    checked_name(name)
    for setting in settings or []:
        if not setting.partition("=")[0] or "=" not in setting:
            raise UsageError(f"-s {setting!r} is not NAME=VALUE. Write it so.")
    way = redis_settings(redis, prefix)
    store = job_store(redis, prefix)
    share = Share.open(store, name)
    disk = Disk()
    further = _arguments_of(share, data / name, disk=disk)
    for setting in settings or []:
        further += ["-s", setting]
    environment = way.environment()
    if "SCRAPY_SETTINGS_MODULE" not in os.environ and not _in_project(Path.cwd()):
        environment["SCRAPY_SETTINGS_MODULE"] = "amicrawl.settings"
    worker = Worker(
        share,
        data,
        command=lambda number, directory: child_command(
            name, share.record.partitions, number, directory.absolute(), further
        ),
        environment=environment,
        slots=slots,
        ttl=timedelta(seconds=lease),
        turn=timedelta(seconds=turn),
        shipper=_shipper(share, disk),
        disk=disk,
        tell=lambda sentence: typer.echo(sentence, err=True),
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.stop())
    try:
        code = worker.run()
    finally:
        store.close()
    typer.echo(_END.get(code, f"Ended with code {code}."), err=True)
    sys.exit(code)


@app.command()
def status(
    name: Name,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Show how the shared crawl NAME stands, partition by partition."""
    store = job_store(redis, prefix)
    share = Share.open(store, checked_name(name))
    rows = [_shown(number, known) for number, known in enumerate(share.standings())]
    store.close()
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
        letters = f"{row['letters']} letters" if row["letters"] not in ("", "0") else ""
        parts = [str(row["state"]), str(row["owner"]), str(row["figures"]), letters]
        typer.echo(f"  part-{row['number']:03d}  " + "  ".join(part for part in parts if part))


@app.command()
def stop(name: Name, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Have every worker of NAME stop in order; `retry` takes it back."""
    _flag(name, "stop", redis, prefix, on=True)


@app.command()
def pause(name: Name, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Have NAME fetch nothing more until `resume`."""
    _flag(name, "pause", redis, prefix, on=True)


@app.command()
def resume(name: Name, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Have NAME go on after `pause`."""
    _flag(name, "pause", redis, prefix, on=False)


@app.command()
def retry(
    name: Name,
    *,
    resend: Annotated[
        bool, typer.Option("--resend", help="Send all links once more: Redis may have lost some.")
    ] = False,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Have NAME go on: after `stop`, and with partitions that were given up."""
    store = job_store(redis, prefix)
    again = Share.open(store, checked_name(name)).retry(resend=resend)
    store.close()
    typer.echo(f"{name}: {again} partitions are tried again.")


@app.command()
def remove(name: Name, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Have Redis forget NAME. What was crawled stays where it is."""
    store = job_store(redis, prefix)
    share = Share.open(store, checked_name(name))
    if any(known.get("lease") for known in share.standings()):
        raise UsageError(f"{name} is being crawled: stop it first with `amicrawl share stop {name}`.")
    share.remove()
    store.close()


_END = {
    ExitCode.DONE: "The crawl has ended.",
    ExitCode.STOPPED: "Stopped; the partitions that were held here wait for another worker.",
    ExitCode.OUR_ERROR: "The crawl has ended, but for what was given up.",
}


def _crawl_file(path: Path | None) -> tuple[str, dict[str, object], str]:
    """Return the text, the settings and the depth of the crawl file *path*, which must stand alone."""
    if path is None:
        return "", {}, "inf"
    # Imported when it is called for: it takes a while, and most commands have no use for it.
    from amicrawl.crawlfile import read_crawl_file  # noqa: PLC0415

    file = read_crawl_file(path)
    if file.spider != "site":
        raise UsageError(f"{path} is for the spider `{file.spider}`; a shared crawl is one of `site`.")
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


def _arguments_of(share: Share, directory: Path, *, disk: Disk) -> list[str]:
    """Return the arguments of every child, with the files that they name written to *directory*."""
    directory.mkdir(parents=True, exist_ok=True)
    record = share.record
    # What a crawl file says of starts is not meant here: they come by letter.
    further = ["-a", f"depth={record.depth}", "-a", "url="]
    if record.config:
        path = written_once(directory / "crawl.toml", record.config.encode("utf-8"), disk=disk)
        further += ["-a", f"config={path.absolute()}"]
    if record.scoped:
        further += ["-a", "file="]
    else:
        urls = starts_of(share)
        path = written_once(
            directory / "starts.txt",
            "".join(f"{url}\n" for url in urls).encode("utf-8", "surrogatepass"),
            disk=disk,
        )
        further += ["-a", f"file={path.absolute()}", "-a", "format=lines"]
    return further


def _shipper(share: Share, disk: Disk) -> Shipper | None:
    record = share.record
    if not record.place:
        return None
    return Shipper(record.place, record.name, disk=disk, machine=os.uname().nodename)


def _in_project(directory: Path) -> bool:
    return any(
        (place / "scrapy.cfg").exists()
        for place in (directory.absolute(), *directory.absolute().parents)
    )


def _flag(name: str, flag: str, redis: str | None, prefix: str | None, *, on: bool) -> None:
    store = job_store(redis, prefix)
    Share.open(store, checked_name(name)).set_flag(flag, on=on)
    store.close()


def _shown(number: int, known: dict[str, str]) -> dict[str, object]:
    """Return what is shown of a partition; everything in it may be anything that Redis held."""
    state = known.get("state", "ready")
    if state == "held":
        state = "idle" if "idle" in known else "held" if known["lease"] else "lapsed"
    try:
        facts = json.loads(known.get("facts", "{}"))
        figures = f"{int(facts['rows'])} rows, {int(facts['queued'])} queued, {int(facts['urls'])} URLs"
    except (ValueError, KeyError, TypeError, RecursionError):
        figures = ""
    return {
        "number": number,
        "state": ascii(state)[1:-1],
        "owner": ascii(known.get("owner", ""))[1:-1],
        "attempt": ascii(known.get("attempt", "0"))[1:-1],
        "lease_ms": known["lease"],
        "letters": known["letters"],
        "figures": figures,
    }
