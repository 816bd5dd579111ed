"""The verbs of `amicrawl job` that change something: each says in a line what it has done."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer

from amicrawl.cli.job.naming import JobArgument, ident_in, job_at, store_at
from amicrawl.cli.redis_options import PrefixOption, RedisOption
from amicrawl.errors import UsageError
from amicrawl.jobs import queues, verbs
from amicrawl.terminal import counted

_ABORTED = {
    verbs.Aborted.REMOVED: "{} is aborted: no pipeline was crawling it.",
    verbs.Aborted.ASKED: "{} is asked to abort.",
    verbs.Aborted.AGAIN: "{} was asked to abort before; its pipeline will do so when it next polls.",
}


Jobs = Annotated[list[str], typer.Argument(metavar="JOB...", help="Idents, or URLs.")]
Patterns = Annotated[
    list[str], typer.Argument(metavar="PATTERN...", help="Regular expressions of Python.")
]
ExactPatterns = Annotated[list[str], typer.Argument(metavar="PATTERN...", help="Their exact text.")]
SetNames = Annotated[list[str], typer.Argument(metavar="SET...", help="Names of shipped sets.")]
Least = Annotated[int, typer.Argument(metavar="MIN", help="Milliseconds.")]
Greatest = Annotated[int | None, typer.Argument(metavar="MAX", help="Milliseconds; MIN without it.")]
Requests = Annotated[int, typer.Argument(metavar="N", help="Requests at once.")]
NoteText = Annotated[str, typer.Argument(metavar="TEXT", help="Empty to remove it.")]
OnOrOff = Annotated[Literal["on", "off"], typer.Argument(metavar="on|off")]
PlaceInQueue = Annotated[
    str, typer.Argument(metavar="PLACE", help="Position (1: the next), front or back.")
]
Queue = Annotated[
    str | None, typer.Option("--queue", metavar="NAME", help="Into another queue: pending:TAG, ...")
]


def abort(jobs: Jobs, *, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Abort jobs: a pending one leaves its queue at once, a running one stops within seconds."""
    with store_at(redis, prefix) as store:
        for job in jobs:
            ident = ident_in(job)
            typer.echo(_ABORTED[verbs.abort(store, ident, now=time.time())].format(ident))


def ignore(
    job: JobArgument, patterns: Patterns, *, redis: RedisOption = None, prefix: PrefixOption = None
) -> None:
    """Add ignore expressions. URLs that match one are not fetched, queued ones included.

    {primary_url} and {primary_netloc} stand for the start URL and its host. One that cannot be used
    refuses them all.
    """
    with job_at(redis, prefix, job) as (store, ident):
        added = verbs.ignore(store, ident, patterns)
    typer.echo(f"{counted(added, 'expression')} added, {len(patterns) - added} there already.")


def unignore(
    job: JobArgument, patterns: ExactPatterns, *, redis: RedisOption = None, prefix: PrefixOption = None
) -> None:
    """Remove ignore expressions. URLs that were already ignored stay ignored."""
    with job_at(redis, prefix, job) as (store, ident):
        removed = verbs.unignore(store, ident, patterns)
    if not removed:
        raise UsageError(
            "The job has no such ignore expression; `amicrawl job show` lists those it has."
        )
    typer.echo(f"{counted(removed, 'expression')} removed.")


def ignore_set(
    job: JobArgument, names: SetNames, *, redis: RedisOption = None, prefix: PrefixOption = None
) -> None:
    """Add all expressions of shipped ignore sets."""
    wanted = [name for text in names for name in text.replace(",", " ").split()]
    with job_at(redis, prefix, job) as (store, ident):
        added = verbs.add_ignore_sets(store, ident, wanted)
    typer.echo(f"{counted(added, 'expression')} added.")


def delay(
    job: JobArgument,
    least: Least,
    greatest: Greatest = None,
    *,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Set the time between two requests."""
    most = least if greatest is None else greatest
    with job_at(redis, prefix, job) as (store, ident):
        verbs.delay(store, ident, least, most)
    typer.echo(f"Delay is {least} to {most} ms.")


def concurrency(
    job: JobArgument, number: Requests, *, redis: RedisOption = None, prefix: PrefixOption = None
) -> None:
    """Set how many requests are made at once."""
    with job_at(redis, prefix, job) as (store, ident):
        verbs.concurrency(store, ident, number)
    typer.echo(f"Concurrency is {number}.")


def note(
    job: JobArgument, text: NoteText, *, redis: RedisOption = None, prefix: PrefixOption = None
) -> None:
    """Set the note that is shown with a job."""
    with job_at(redis, prefix, job) as (store, ident):
        verbs.note(store, ident, text)
    typer.echo("Noted." if text.strip() else "The note is removed.")


def expire(job: JobArgument, *, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Delete the record of an ended job, so that its URL can be submitted again. Captures are kept."""
    with job_at(redis, prefix, job) as (store, ident):
        verbs.expire(store, ident)
    typer.echo(f"{ident} is forgotten.")


def pause(job: JobArgument, *, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Stop requesting new URLs until the job is resumed."""
    with job_at(redis, prefix, job) as (store, ident):
        verbs.pause(store, ident)
    typer.echo(f"{ident} is asked to pause.")


def resume(job: JobArgument, *, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Resume a paused job."""
    with job_at(redis, prefix, job) as (store, ident):
        was_paused = verbs.resume(store, ident)
    typer.echo(f"{ident} is asked to resume." if was_paused else f"{ident} was not paused.")


def reports(
    job: JobArgument, to: OnOrOff, *, redis: RedisOption = None, prefix: PrefixOption = None
) -> None:
    """Log ignored URLs, or do not."""
    with job_at(redis, prefix, job) as (store, ident):
        (verbs.show_ignores if to == "on" else verbs.hide_ignores)(store, ident)
    typer.echo(f"Ignored URLs are {'' if to == 'on' else 'not '}logged.")


def move(
    job: JobArgument,
    to: PlaceInQueue,
    *,
    queue: Queue = None,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Move a pending job within its queue, or to another queue."""
    places = {"front": 1, "back": queues.LAST}
    if to not in places and not (to.isascii() and to.isdigit() and len(to) < 9):
        raise UsageError(f"{to!r} is not a place: give a number (1 is the next), front or back.")
    with job_at(redis, prefix, job) as (store, ident):
        name = queues.move(store, ident, place=places.get(to) or int(to), queue=queue)
    typer.echo(f"{ident} is in {name}.")
