"""How a shared crawl stands, and what it is told: to stop, to pause, to go on, to be forgotten."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from amicrawl.cli.redis_options import PrefixOption, RedisOption, job_store
from amicrawl.errors import UsageError
from amicrawl.jobs.sharing.share import Share
from amicrawl.jobs.sharing.share_record import checked_name

Name = Annotated[str, typer.Argument(metavar="NAME", help="The shared crawl.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object.")]
Resend = Annotated[
    bool, typer.Option("--resend", help="Send all links again, in case Redis has lost some.")
]


def status(
    name: Name, as_json: AsJson = False, redis: RedisOption = None, prefix: PrefixOption = None
) -> None:
    """Show the state of the shared crawl NAME, partition by partition."""
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


def stop(name: Name, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Stop every worker of NAME in an orderly way; `retry` undoes it."""
    _flag(name, "stop", redis, prefix, on=True)


def pause(name: Name, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Pause NAME until `resume`."""
    _flag(name, "pause", redis, prefix, on=True)


def resume(name: Name, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Resume NAME after `pause`."""
    _flag(name, "pause", redis, prefix, on=False)


def retry(
    name: Name, *, resend: Resend = False, redis: RedisOption = None, prefix: PrefixOption = None
) -> None:
    """Resume NAME after `stop`, and retry partitions that were given up."""
    store = job_store(redis, prefix)
    again = Share.open(store, checked_name(name)).retry(resend=resend)
    store.close()
    typer.echo(f"{name}: {again} partitions are tried again.")


def remove(name: Name, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Delete NAME from Redis. What was crawled is kept."""
    store = job_store(redis, prefix)
    share = Share.open(store, checked_name(name))
    if any(known.get("lease") for known in share.standings()):
        raise UsageError(f"{name} is being crawled: stop it first with `amicrawl share stop {name}`.")
    share.remove()
    store.close()


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
