"""Waiting for a job to end, through times when Redis is away."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from amicrawl.cli.job.naming import moment
from amicrawl.errors import ExitCode
from amicrawl.jobs import lookup
from amicrawl.jobs.connection import RedisUnavailable
from amicrawl.jobs.record import JobState

if TYPE_CHECKING:
    from amicrawl.jobs.connection import JobStore
    from amicrawl.jobs.record import JobRecord

EVERY = 0.5
"""Seconds between two looks."""

_CODES = {
    JobState.COMPLETED: ExitCode.DONE,
    JobState.ABORTED: ExitCode.STOPPED,
    JobState.FAILED: ExitCode.OUR_ERROR,
}


def wait_for(store: JobStore, ident: str) -> ExitCode:
    """Wait until the job *ident* has ended, telling how it stands; return the exit code for that."""
    last: JobRecord | None = None
    away = False
    while True:
        try:
            with store.answering():
                record = lookup.job_or_none(store, ident)
        except RedisUnavailable as error:
            if not away:
                typer.echo(f"amicrawl: {error} Waiting for it.", err=True)
            away = True
        else:
            away = False
            if record is None:
                return _vanished(ident, last)
            if last is None or record.state is not last.state:
                typer.echo(f"{moment(time.time())} {ident} is {record.state}", err=True)
            if record.has_ended:
                return _CODES[record.state]
            last = record
        time.sleep(EVERY)


def _vanished(ident: str, last: JobRecord | None) -> ExitCode:
    """Tell of a job whose record went between two looks: that of an aborted one lives seconds only."""
    if last is not None and (last.aborted or last.abort_requested):
        typer.echo(f"{ident} is aborted", err=True)
        return ExitCode.STOPPED
    typer.echo(f"amicrawl: {lookup.no_such_job(ident)}", err=True)
    return ExitCode.INPUT
