"""`amicrawl job show`, `where`, `log`: everything about one job."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.job.listing import delay_text, facts_of
from amicrawl.cli.job.naming import JobArgument, ident_in, moment, store_at
from amicrawl.cli.job.waiting import EVERY
from amicrawl.cli.json_answer import AsJson
from amicrawl.cli.redis_options import PrefixOption, RedisOption
from amicrawl.jobs import logs, lookup, verbs
from amicrawl.jobs.connection import RedisUnavailable
from amicrawl.jobs.entries import Download, Ignore
from amicrawl.jobs.record import RESPONSES
from amicrawl.terminal import harmless, human_size

if TYPE_CHECKING:
    from amicrawl.jobs.connection import JobStore
    from amicrawl.jobs.record import JobRecord

_LINE = 4_000


def show(
    job: JobArgument, *, as_json: AsJson = False, redis: RedisOption = None, prefix: PrefixOption = None
) -> None:
    """Print all data of a job, including its ignore expressions."""
    with store_at(redis, prefix) as store:
        record = lookup.job(store, ident_in(job))
        ignores = lookup.ignores(store, record.ident)
        desired = lookup.desired(store, record.ident)
        place = verbs.where(store, record.ident)
        config = lookup.config(store, record.ident)
    facts = {
        **facts_of(record),
        "paused": bool(desired.get("paused")),
        "pipeline": place.nickname or None,
        "further": dict(record.further),
        "config": config,
        "ignores": ignores,
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    for name, value in _lines(record):
        typer.echo(f"{name:<15}{value}")
    if facts["paused"]:
        typer.echo(f"{'paused':<15}yes")
    for fault in record.faults:
        typer.echo(f"{'cannot be read':<15}{harmless(fault)}")
    typer.echo(f"{'ignores':<15}{len(ignores):,}")
    for pattern in ignores:
        typer.echo(f"  {harmless(pattern, limit=2_000)}")


def where(
    job: JobArgument, *, as_json: AsJson = False, redis: RedisOption = None, prefix: PrefixOption = None
) -> None:
    """Say which pipeline crawls a job."""
    with store_at(redis, prefix) as store:
        ident = ident_in(job)
        place = verbs.where(store, ident)
    if as_json:
        typer.echo(json.dumps({"ident": ident, **place._asdict()}))
    elif not place.pipeline_id:
        typer.echo(f"No pipeline has taken {ident} yet.")
    else:
        on = f" on {harmless(place.hostname)}" if place.hostname else ""
        typer.echo(
            f"{harmless(place.nickname) or 'A pipeline that is gone'}{on}: {harmless(place.pipeline_id)}"
        )


Lines = Annotated[int, typer.Option("-n", "--lines", min=0, help="Entries from the end.")]
Follow = Annotated[
    bool, typer.Option("-f", "--follow", help="Keep printing new entries until the job ends.")
]


def log(
    job: JobArgument,
    *,
    number: Lines = 100,
    follow: Follow = False,
    as_json: AsJson = False,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Print the last entries of a job's log; with --follow, new ones as well."""
    ident = ident_in(job)
    with store_at(redis, prefix) as store:
        record = lookup.job(store, ident)
        page = logs.newest(store, ident, most=max(number, 1))
        if number:
            _print(page, as_json=as_json)
        if follow:
            _follow(store, record, page.last, as_json=as_json)


def _follow(store: JobStore, job: JobRecord, last: float, *, as_json: bool) -> None:
    """Print what comes behind number *last*, past times when Redis is away, until *job* has ended."""
    record: JobRecord | None = job
    away = False
    while True:
        ended = record is None or record.has_ended
        try:
            with store.answering():
                page = logs.after(store, job.ident, last)
                record = lookup.job_or_none(store, job.ident)
        except RedisUnavailable as error:
            if not away:
                typer.echo(f"amicrawl: {error} Waiting for it.", err=True)
            away = True
            time.sleep(EVERY)
            continue
        away = False
        _print(page, as_json=as_json)
        if page.last == last:
            # What was written before the job ended has been read: it ended before this look.
            if ended:
                return
            time.sleep(EVERY)
        last = page.last


def _print(page: logs.LogPage, *, as_json: bool) -> None:
    for score, entry in page.entries:
        if as_json:
            typer.echo(json.dumps({"score": score, **entry.fields()}))
            continue
        when = f"{datetime.fromtimestamp(min(entry.ts, 4e9), UTC):%H:%M:%S}"
        if isinstance(entry, Download):
            said = "" if entry.wget_code == "OK" else f" ({harmless(entry.wget_code)})"
            typer.echo(f"{when} {entry.response_code:>3} {harmless(entry.url, limit=_LINE)}{said}")
        elif isinstance(entry, Ignore):
            typer.echo(f"{when} IGN {harmless(entry.url, limit=_LINE)} by {harmless(entry.pattern)}")
        else:
            for line in entry.message.splitlines():
                typer.echo(f"{when}     {harmless(line, limit=_LINE)}")


def _lines(record: JobRecord) -> list[tuple[str, str]]:
    classes = ", ".join(f"{name} {getattr(record, name) or 0:,}" for name in RESPONSES)
    lines = [
        ("ident", record.ident),
        ("state", str(record.state)),
        ("URL", harmless(record.url, limit=2_000)),
        ("kind", ("list, " if record.url_file else "") + (harmless(record.fetch_depth) or "?")),
        ("note", harmless(record.note)),
        ("submitted by", f"{harmless(record.started_by)} in {harmless(record.started_in)}"),
        ("queued", moment(record.queued_at)),
        ("started", moment(record.started_at)),
        ("ended", moment(record.ended_at)),
        ("pipeline", harmless(record.pipeline_id)),
        ("attempt", harmless(record.further.get("amicrawl_attempt", ""))),
        ("files", harmless(record.slug)),
        ("user agent", harmless(record.user_agent)),
        ("off-site links", "no" if record.no_offsite_links else "yes"),
        ("delay", delay_text(record)),
        ("concurrency", str(record.concurrency)),
        ("ignore reports", "off" if record.suppress_ignore_reports else "on"),
        ("settings age", str(record.settings_age)),
        ("received", human_size(max(record.bytes_downloaded or 0, 0))),
        ("responses", classes),
        ("errors", f"{record.error_count or 0:,}"),
        ("in queue", f"{record.in_queue:,} of {record.items_queued or 0:,} ever queued"),
    ]
    return [(name, value) for name, value in lines if value]
