"""`amicrawl job log`: what the log of a job has, and what comes behind it."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.job.listing import EVERY, Absence, JobArgument
from amicrawl.cli.options import AsJson
from amicrawl.cli.redis_options import with_store
from amicrawl.fleet.database import RedisUnavailable
from amicrawl.fleet.jobs import lookup
from amicrawl.fleet.logs import Download, Ignore, LogPage, entries_after, newest_entries
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from amicrawl.fleet.database import JobStore
    from amicrawl.fleet.jobs import JobRecord

_LINE = 4_000
"""Characters of a line that are shown."""

Lines = Annotated[int, typer.Option("-n", "--lines", min=0, help="Entries from the end.")]
Follow = Annotated[
    bool, typer.Option("-f", "--follow", help="Keep printing new entries until the job ends.")
]


@with_store
def log(
    store: JobStore,
    job: JobArgument,
    *,
    number: Lines = 100,
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Print the last entries of a job's log; with --follow, new ones as well.

    Example: amicrawl job log https://example.org/ --follow
    """
    record = lookup.job(store, job)
    page = newest_entries(store, job, most=max(number, 1))
    if number:
        _print(page, as_json=as_json)
    if follow:
        _follow(store, record, page.last, as_json=as_json)


def _follow(store: JobStore, job: JobRecord, last: float, *, as_json: bool) -> None:
    """Print what comes behind number *last*, past times when Redis is away, until *job* has ended."""
    has_ended, away, absence = job.has_ended, False, Absence()
    while True:
        ended = has_ended
        try:
            with store.responding():
                page = entries_after(store, job.ident, last)
                record = lookup.again(store, job)
        except RedisUnavailable as error:
            if not away:
                typer.echo(f"amicrawl: {error} Waiting for it.", err=True)
            away = True
            absence.interrupted()
            time.sleep(EVERY)
            continue
        away = False
        has_ended = absence.is_final(record) if record is None else record.has_ended
        _print(page, as_json=as_json)
        if page.last == last:
            # What was written before the job ended has been read: it ended before this look.
            if ended:
                return
            time.sleep(EVERY)
        last = page.last


def _print(page: LogPage, *, as_json: bool) -> None:
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
