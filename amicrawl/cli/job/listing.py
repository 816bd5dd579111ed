"""`amicrawl job status`, `ls`, `pending`, `dead`: what there is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.cli.job.naming import ident_in, moment, store_at
from amicrawl.cli.json_answer import AsJson
from amicrawl.cli.redis_options import PrefixOption, RedisOption
from amicrawl.jobs import letters, lookup, queues
from amicrawl.jobs.record import ENDED
from amicrawl.terminal import aligned, counted, harmless, human_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.jobs.connection import JobStore
    from amicrawl.jobs.record import JobRecord

_URL_SHOWN = 60


JobOrNone = Annotated[
    str | None, typer.Argument(metavar="[JOB]", help="An ident, or a URL; without one, totals.")
]
Finished = Annotated[bool, typer.Option("--finished", help="Include the last thousand that have ended.")]
Clear = Annotated[bool, typer.Option("--clear", help="Delete them.")]


def status(
    job: JobOrNone = None,
    *,
    as_json: AsJson = False,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Print the state of a job in a line, or the number of jobs."""
    with store_at(redis, prefix) as store:
        if job is not None:
            record = lookup.job(store, ident_in(job))
            typer.echo(json.dumps(facts_of(record)) if as_json else _sentence(record))
            return
        ended = lookup.counts(store)
        lengths = queues.lengths(store)
        totals = {**ended._asdict(), "working": len(lookup.working(store)), "queues": lengths}
        totals["dead_letters"] = len(letters.letters(store))
    if as_json:
        typer.echo(json.dumps(totals))
        return
    waiting = "; ".join(f"{name} {number:,}" for name, number in lengths.items() if number)
    typer.echo(
        f"Jobs: {ended.completed:,} completed, {ended.aborted:,} aborted, {ended.failed:,} failed, "
        f"{totals['working']:,} in progress, {sum(lengths.values()):,} waiting"
        + (f" ({waiting})." if waiting else ".")
    )
    if totals["dead_letters"]:
        typer.echo(f"{counted(totals['dead_letters'], 'dead letter')}: amicrawl job dead")


def ls(
    *,
    finished: Finished = False,
    as_json: AsJson = False,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """List running and pending jobs."""
    with store_at(redis, prefix) as store:
        found = _listed(store, finished=finished)
    if as_json:
        for record in found:
            typer.echo(json.dumps(facts_of(record)))
        return
    rows = [_row(record) for record in found]
    _print_table(
        ("ident", "state", "since", "received", "responses", "queue", "URL"),
        rows,
        right=(False, False, False, True, True, True, False),
    )


def pending(*, as_json: AsJson = False, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """List the pending jobs of every queue, the next one first."""
    with store_at(redis, prefix) as store:
        waiting = queues.waiting(store)
        records = lookup.jobs(store, [entry.ident for entry in waiting])
    if as_json:
        for entry in waiting:
            record = records.get(entry.ident)
            typer.echo(json.dumps({**entry._asdict(), "url": record.url if record else None}))
        return
    rows = []
    for entry in waiting:
        record = records.get(entry.ident)
        url = (
            harmless(record.url, limit=_URL_SHOWN) if record else "(no record: no pipeline will take it)"
        )
        rows.append((entry.queue, str(entry.place), entry.ident, url))
    _print_table(("queue", "place", "ident", "URL"), rows, right=(False, True, False, False))


def dead(
    *,
    clear: Clear = False,
    as_json: AsJson = False,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """List values in Redis that could not be parsed, newest first: key, reason, and first bytes."""
    with store_at(redis, prefix) as store:
        if clear:
            typer.echo(f"{counted(letters.clear(store), 'dead letter')} thrown away.")
            return
        found = letters.letters(store)
    for letter in found:
        if as_json:
            typer.echo(json.dumps(letter._asdict()))
        else:
            excerpt = f": {harmless(letter.excerpt, limit=80)}" if letter.excerpt else ""
            typer.echo(
                f"{moment(letter.seen)}  {harmless(letter.where)}: {harmless(letter.why)}{excerpt}"
            )


def facts_of(record: JobRecord) -> dict[str, Any]:
    """Return what `--json` tells of a job: ArchiveBot's object, and what that leaves out."""
    return {
        **record.job_data(),
        "state": str(record.state),
        "url_file": record.url_file or None,
        "slug": record.slug,
        "user_agent": record.user_agent or None,
        "no_offsite_links": record.no_offsite_links,
        "abort_requested": record.abort_requested,
        "failed": record.failed,
        "ended_at": record.ended_at,
        "heartbeat": record.heartbeat,
        "settings_age": record.settings_age,
        "attempt": record.further.get("amicrawl_attempt"),
        "faults": list(record.faults),
    }


def _listed(store: JobStore, *, finished: bool) -> list[JobRecord]:
    idents = lookup.working(store)
    idents += [entry.ident for entry in queues.waiting(store)]
    found = lookup.jobs(store, idents)
    if finished:
        remembered = lookup.finished(store)
        known = {(record.ident, record.ended_at) for record in remembered}
        past = [record for record in lookup.past(store) if (record.ident, record.ended_at) not in known]
        return [*found.values(), *(each for each in remembered if each.ident not in found), *past]
    return list(found.values())


def _row(record: JobRecord) -> tuple[str, ...]:
    since = record.ended_at if record.state in ENDED else record.started_at or record.queued_at
    return (
        record.ident,
        str(record.state),
        moment(since),
        human_size(max(record.bytes_downloaded or 0, 0)),
        f"{record.responses:,}",
        f"{record.in_queue:,}",
        harmless(record.url, limit=_URL_SHOWN),
    )


def _sentence(record: JobRecord) -> str:
    said = [f"{record.ident} is {record.state}: {harmless(record.url)}"]
    if record.started_by:
        said.append(f"submitted by {harmless(record.started_by, limit=60)}")
    if record.note:
        said.append(f"note: {harmless(record.note)}")
    if record.started_at is not None:
        said.append(
            f"{human_size(max(record.bytes_downloaded or 0, 0))}, "
            f"{counted(record.responses, 'response')}, {counted(record.error_count or 0, 'error')}, "
            f"{record.in_queue:,} in queue"
        )
    said.append(f"concurrency {record.concurrency or 0:,}, delay {delay_text(record)}")
    if record.abort_requested and not record.aborted:
        said.append("it was told to abort")
    return "; ".join(said)


def delay_text(record: JobRecord) -> str:
    """Return how long a job waits between two requests: `none`, `250 ms`, `250 to 375 ms`."""
    least, most = record.delay_min or 0, record.delay_max or 0
    if least == most:
        return f"{least:,} ms" if least else "none"
    return f"{least:,} to {most:,} ms"


def _print_table(
    heading: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, right: tuple[bool, ...]
) -> None:
    if not rows:
        typer.echo("None.")
        return
    for line in aligned([heading, *rows], right=right):
        typer.echo(line)
