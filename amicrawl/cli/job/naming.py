"""How the verbs of `amicrawl job` reach Redis, how they name a job, and how they write times."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.redis_options import job_store
from amicrawl.jobs.ident import checked_ident, ident_of, normalised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.jobs.connection import JobStore

JobArgument = Annotated[
    str, typer.Argument(metavar="JOB", help="Its ident, or its URL.", show_default=False)
]


@contextmanager
def store_at(redis: str | None, prefix: str | None) -> Iterator[JobStore]:
    """Give the way to Redis, and turn what goes wrong with it into a sentence."""
    store = job_store(redis, prefix)
    try:
        with store.answering():
            yield store
    finally:
        store.close()


@contextmanager
def job_at(redis: str | None, prefix: str | None, job: str) -> Iterator[tuple[JobStore, str]]:
    """Give the way to Redis, as `store_at` does, and the ident that *job* means."""
    with store_at(redis, prefix) as store:
        yield store, ident_in(job)


def ident_in(job: str) -> str:
    """Return the ident that *job* is, or that the URL *job* has; raises UsageError for neither."""
    return ident_of(normalised(job)) if "://" in job else checked_ident(job)


def moment(seconds: float | None) -> str:
    """Return Unix *seconds* as people read a time, in UTC; a dash where there is none."""
    if seconds is None or not 0 <= seconds < 4e9:
        return "-"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
