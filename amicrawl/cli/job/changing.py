"""The verbs of `amicrawl job` that change something: each says in a line what it has done."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer

from amicrawl.cli.job.naming import JobArgument, counted, ident_in, store_at
from amicrawl.cli.redis_options import PrefixOption, RedisOption
from amicrawl.errors import UsageError
from amicrawl.jobs import queues, verbs

_ABORTED = {
    verbs.Aborted.REMOVED: "{} is aborted: nobody was crawling it.",
    verbs.Aborted.ASKED: "{} was told to abort.",
    verbs.Aborted.AGAIN: "{} was told to abort before; it will when its pipeline next looks.",
}


def abort(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Idents, or URLs.")],
    *,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Abort jobs: one that waits leaves its queue at once, one that runs ends when it hears of it."""
    with store_at(redis, prefix) as store:
        for job in jobs:
            ident = ident_in(job)
            typer.echo(_ABORTED[verbs.abort(store, ident, now=time.time())].format(ident))


def ignore(
    job: JobArgument,
    patterns: Annotated[
        list[str], typer.Argument(metavar="PATTERN...", help="Regular expressions of Python.")
    ],
    *,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Add ignore expressions. URLs in which one is found are not fetched, queued ones included.

    {primary_url} and {primary_netloc} stand for the start URL and its host. One that cannot be used
    refuses them all.
    """
    with store_at(redis, prefix) as store:
        added = verbs.ignore(store, ident_in(job), patterns)
    typer.echo(f"{counted(added, 'expression')} added, {len(patterns) - added} there already.")


def unignore(
    job: JobArgument,
    patterns: Annotated[list[str], typer.Argument(metavar="PATTERN...", help="Their exact text.")],
    *,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Remove ignore expressions. What they have kept out until now stays out."""
    with store_at(redis, prefix) as store:
        removed = verbs.unignore(store, ident_in(job), patterns)
    if not removed:
        raise UsageError(
            "The job has no such ignore expression; `amicrawl job show` lists those it has."
        )
    typer.echo(f"{counted(removed, 'expression')} removed.")


def ignore_set(
    job: JobArgument,
    names: Annotated[list[str], typer.Argument(metavar="SET...", help="Names of shipped sets.")],
    *,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Add all expressions of shipped ignore sets."""
    wanted = [name for text in names for name in text.replace(",", " ").split()]
    with store_at(redis, prefix) as store:
        added = verbs.add_ignore_sets(store, ident_in(job), wanted)
    typer.echo(f"{counted(added, 'expression')} added.")


def delay(
    job: JobArgument,
    least: Annotated[int, typer.Argument(metavar="MIN", help="Milliseconds.")],
    greatest: Annotated[
        int | None, typer.Argument(metavar="[MAX]", help="Milliseconds; MIN without it.")
    ] = None,
    *,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Set the time between two requests."""
    most = least if greatest is None else greatest
    with store_at(redis, prefix) as store:
        verbs.delay(store, ident_in(job), least, most)
    typer.echo(f"Delay is {least} to {most} ms.")


def concurrency(
    job: JobArgument,
    number: Annotated[int, typer.Argument(metavar="N", help="Requests at once.")],
    *,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Set how many requests are made at once."""
    with store_at(redis, prefix) as store:
        verbs.concurrency(store, ident_in(job), number)
    typer.echo(f"Concurrency is {number}.")


def note(
    job: JobArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Empty to remove it.")],
    *,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Set the note that is shown with a job."""
    with store_at(redis, prefix) as store:
        verbs.note(store, ident_in(job), text)
    typer.echo("Noted." if text.strip() else "The note is removed.")


def expire(job: JobArgument, *, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Forget a job that has ended, so that its URL can be submitted again. What it fetched is kept."""
    ident = ident_in(job)
    with store_at(redis, prefix) as store:
        verbs.expire(store, ident)
    typer.echo(f"{ident} is forgotten.")


def pause(job: JobArgument, *, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Let a crawl ask for nothing new until it is resumed."""
    ident = ident_in(job)
    with store_at(redis, prefix) as store:
        verbs.pause(store, ident)
    typer.echo(f"{ident} was told to pause.")


def resume(job: JobArgument, *, redis: RedisOption = None, prefix: PrefixOption = None) -> None:
    """Let a paused crawl go on."""
    ident = ident_in(job)
    with store_at(redis, prefix) as store:
        was_paused = verbs.resume(store, ident)
    typer.echo(f"{ident} was told to go on." if was_paused else f"{ident} was not paused.")


def reports(
    job: JobArgument,
    to: Annotated[Literal["on", "off"], typer.Argument(metavar="on|off")],
    *,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Let the log tell of ignored URLs, or not."""
    ident = ident_in(job)
    with store_at(redis, prefix) as store:
        (verbs.show_ignores if to == "on" else verbs.hide_ignores)(store, ident)
    typer.echo(f"Ignored URLs are {'told' if to == 'on' else 'not told'} in the log.")


def move(
    job: JobArgument,
    to: Annotated[str, typer.Argument(metavar="PLACE", help="A number (1: the next), front or back.")],
    *,
    queue: Annotated[
        str | None, typer.Option("--queue", metavar="NAME", help="Into another queue: pending:TAG, ...")
    ] = None,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Move a job that waits to another place, of its queue or of another one."""
    places = {"front": 1, "back": queues.LAST}
    if to not in places and not (to.isascii() and to.isdigit() and len(to) < 9):
        raise UsageError(f"{to!r} is no place: give a number (1 is the next), front or back.")
    ident = ident_in(job)
    with store_at(redis, prefix) as store:
        name = queues.move(store, ident, place=places.get(to) or int(to), queue=queue)
    typer.echo(f"{ident} is in {name}.")
