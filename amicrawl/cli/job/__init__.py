"""`amicrawl job VERB`, or `amicrawl jobs VERB`: submit, watch and control jobs in Redis.

A job is named by its ident, or by the URL that it was submitted with. With `--json`, responses are JSON:
one object, or one per line. The verbs that change a running or queued job are here; each says in a line
what it has done.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from amicrawl.cli.job.listing import JobArgument, dead, ident_in, log, ls, pending, show, status, where
from amicrawl.cli.job.submission import submit
from amicrawl.cli.redis_options import with_store
from amicrawl.errors import UsageError
from amicrawl.fleet.jobs import queues, verbs
from amicrawl.terminal import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.fleet.jobs import JobStore

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


@with_store
def abort(store: JobStore, jobs: Jobs) -> None:
    """Abort jobs: a queued one leaves its queue at once, a running one stops within seconds."""
    for job in jobs:
        ident = ident_in(job)
        typer.echo(_ABORTED[verbs.abort(store, ident, now=time.time())].format(ident))


@with_store
def ignore(store: JobStore, job: JobArgument, patterns: Patterns) -> None:
    """Add ignore patterns. URLs that match one are not fetched, queued ones included.

    {primary_url} and {primary_netloc} stand for the start URL and its host. One that cannot be used
    refuses them all.
    """
    added = verbs.ignore(store, job, patterns)
    typer.echo(f"{counted(added, 'pattern')} added, {len(patterns) - added} there already.")


@with_store
def unignore(store: JobStore, job: JobArgument, patterns: ExactPatterns) -> None:
    """Remove ignore patterns. URLs that were already ignored stay ignored."""
    removed = verbs.unignore(store, job, patterns)
    if not removed:
        raise UsageError("The job has no such ignore pattern; `amicrawl job show` lists those it has.")
    typer.echo(f"{counted(removed, 'pattern')} removed.")


@with_store
def ignore_set(store: JobStore, job: JobArgument, names: SetNames) -> None:
    """Add all patterns of shipped ignore sets."""
    wanted = [name for text in names for name in text.replace(",", " ").split()]
    added = verbs.add_ignore_sets(store, job, wanted)
    typer.echo(f"{counted(added, 'pattern')} added.")


@with_store
def delay(store: JobStore, job: JobArgument, least: Least, greatest: Greatest = None) -> None:
    """Set the time between two requests."""
    most = least if greatest is None else greatest
    verbs.delay(store, job, least, most)
    typer.echo(f"Delay is {least} to {most} ms.")


@with_store
def concurrency(store: JobStore, job: JobArgument, number: Requests) -> None:
    """Set how many requests are made at once."""
    verbs.concurrency(store, job, number)
    typer.echo(f"Concurrency is {number}.")


@with_store
def note(store: JobStore, job: JobArgument, text: NoteText) -> None:
    """Set the note that is shown with a job."""
    verbs.note(store, job, text)
    typer.echo("Noted." if text.strip() else "The note is removed.")


@with_store
def expire(store: JobStore, job: JobArgument) -> None:
    """Delete the record of an ended job, so that its URL can be submitted again. Captures are kept."""
    verbs.expire(store, job)
    typer.echo(f"The record of {job} is deleted.")


@with_store
def pause(store: JobStore, job: JobArgument) -> None:
    """Stop requesting new URLs until the job is resumed."""
    verbs.pause(store, job)
    typer.echo(f"{job} is asked to pause.")


@with_store
def resume(store: JobStore, job: JobArgument) -> None:
    """Resume a paused job."""
    was_paused = verbs.resume(store, job)
    typer.echo(f"{job} is asked to resume." if was_paused else f"{job} was not paused.")


@with_store
def reports(store: JobStore, job: JobArgument, to: OnOrOff) -> None:
    """Log ignored URLs, or do not."""
    (verbs.show_ignores if to == "on" else verbs.hide_ignores)(store, job)
    typer.echo(f"Ignored URLs are {'' if to == 'on' else 'not '}logged.")


@with_store
def move(store: JobStore, job: JobArgument, to: PlaceInQueue, *, queue: Queue = None) -> None:
    """Move a queued job within its queue, or to another queue."""
    places = {"front": 1, "back": queues.LAST}
    if to not in places and not (to.isascii() and to.isdigit() and len(to) < 9):
        raise UsageError(f"{to!r} is not a place: give a number (1 is the next), front or back.")
    name = queues.move(store, job, place=places.get(to) or int(to), queue=queue)
    typer.echo(f"{job} is in {name}.")


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Submit, watch and control jobs in Redis; JOB is an ident, or the URL it was submitted with.",
)
_VERBS: tuple[Callable[..., None], ...] = (
    *(submit, status, ls, show, log, pending),
    *(abort, ignore, unignore, ignore_set),
    *(delay, concurrency, note, where, expire),
    *(pause, resume, reports, move, dead),
)
for verb in _VERBS:
    app.command()(verb)
