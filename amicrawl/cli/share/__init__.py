"""`amicrawl share`: one crawl over several machines, which share a Redis and nothing else.

The verbs that look at a shared crawl and steer it are here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.options import AsOneObject
from amicrawl.cli.redis_options import with_store
from amicrawl.cli.share.creation import Name, create
from amicrawl.cli.share.working import work
from amicrawl.errors import UsageError
from amicrawl.fleet.sharing import Share, checked_name

if TYPE_CHECKING:
    from amicrawl.fleet.database import JobStore

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
