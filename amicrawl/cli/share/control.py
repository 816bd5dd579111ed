"""`amicrawl share work`, and `status`, `stop`, `pause`, `resume`, `retry`, `remove` of a shared one."""

from __future__ import annotations

import json
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.project import (
    OUR_SETTINGS,
    SETTINGS_MODULE,
    options_of_crawls,
    settings_module,
)
from amicrawl.cli.redis_options import PrefixOption, RedisOption, job_store, redis_settings, with_store
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, UsageError
from amicrawl.jobs.lease import LEASE
from amicrawl.jobs.sharing.creation import starts_of
from amicrawl.jobs.sharing.share import Share
from amicrawl.jobs.sharing.share_record import checked_name
from amicrawl.jobs.sharing.worker import Worker, child_command, written_once

if TYPE_CHECKING:
    from amicrawl.jobs.connection import JobStore

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
Settings = Annotated[
    list[str] | None,
    typer.Option("-s", "--set", metavar="NAME=VALUE", help="A setting of the crawl on this machine."),
]


def work(
    name: Name,
    *,
    data: Data,
    slots: Slots = 1,
    lease: Lease = _LEASE,
    turn: Turn = 0.0,
    settings: Settings = None,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Work on the shared crawl NAME until it has ended.

    Each partition is crawled into DATA/NAME/part-NNN by `scrapy crawl site -a share=NAME` (`seeds` for
    a list). On the first signal the crawls here stop in order, and their partitions wait for another
    worker. Example:
    amicrawl share work gov --slots 4 --data /var/crawls
    """
    checked_name(name)
    given = options_of_crawls(settings)
    way = redis_settings(redis, prefix)
    store = job_store(redis, prefix)
    share, disk = Share.open(store, name), Disk()
    further = [*_arguments_of(share, data / name, disk=disk), *given]
    worker = Worker(
        share,
        data,
        command=lambda number, directory: child_command(
            share.record, number, directory.absolute(), further
        ),
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
        further += ["-a", f"config={path.absolute()}"]
    if record.is_list:
        return further
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


Name = Annotated[str, typer.Argument(metavar="NAME", help="The shared crawl.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object.")]
Resend = Annotated[
    bool, typer.Option("--resend", help="Send all links again, in case Redis has lost some.")
]


@with_store
def status(store: JobStore, name: Name, as_json: AsJson = False) -> None:
    """Show the state of the shared crawl NAME, partition by partition."""
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
    """Stop every worker of NAME in an orderly way; `retry` undoes it."""
    Share.open(store, checked_name(name)).set_flag("stop", on=True)


@with_store
def pause(store: JobStore, name: Name) -> None:
    """Pause NAME until `resume`."""
    Share.open(store, checked_name(name)).set_flag("pause", on=True)


@with_store
def resume(store: JobStore, name: Name) -> None:
    """Resume NAME after `pause`."""
    Share.open(store, checked_name(name)).set_flag("pause", on=False)


@with_store
def retry(store: JobStore, name: Name, *, resend: Resend = False) -> None:
    """Resume NAME after `stop`, and retry partitions that were given up."""
    again = Share.open(store, checked_name(name)).retry(resend=resend)
    typer.echo(f"{name}: {again} partitions are tried again.")


@with_store
def remove(store: JobStore, name: Name) -> None:
    """Delete NAME from Redis. What was crawled is kept."""
    share = Share.open(store, checked_name(name))
    if any(known.get("lease") for known in share.standings()):
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
    except (ValueError, KeyError, TypeError, RecursionError):
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
