"""How the verbs of `amicrawl job` name a job, look at it and write times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from amicrawl.jobs.ident import checked_ident, ident_of, normalised

EVERY = 0.5
"""Seconds between two looks at a job."""


def ident_in(job: str) -> str:
    """Return the ident that *job* is, or that the URL *job* has; raises UsageError for neither."""
    return ident_of(normalised(job)) if "://" in job else checked_ident(job)


JobArgument = Annotated[
    str,
    typer.Argument(metavar="JOB", help="Its ident, or its URL.", show_default=False, callback=ident_in),
]
"""A job; the command is given its ident."""


def moment(seconds: float | None) -> str:
    """Return Unix *seconds* as people read a time, in UTC; a dash where there is none."""
    if seconds is None or not 0 <= seconds < 4e9:
        return "-"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
