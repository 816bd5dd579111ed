"""`amicrawl job VERB`, or `amicrawl jobs VERB`: submit, watch and control jobs in Redis.

A job is named by its ident, or by the URL that it was submitted with. With `--json`, responses are JSON:
one object, or one per line. The verbs that change a running or queued job are here; each says in a line
what it has done.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.job.listing import JobArgument, dead, ident_in, ls, pending, show, status, where
from amicrawl.cli.job.log_entries import log
from amicrawl.cli.job.settings import command_of
from amicrawl.cli.job.submission import submit
from amicrawl.cli.redis_options import with_store
from amicrawl.errors import AmicrawlError, ExitCode, UsageError
from amicrawl.fleet.jobs import job_settings, queues, verbs
from amicrawl.terminal import counted, harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from amicrawl.fleet.database import JobStore

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
PlaceInQueue = Annotated[
    str, typer.Argument(metavar="PLACE", help="Position (1: the next), front or back.")
]
Queue = Annotated[
    str | None, typer.Option("--queue", metavar="NAME", help="Into another queue: pending:TAG, ...")
]


def _each(jobs: Sequence[str], act: Callable[[str], str]) -> None:
    """Print what *act* returns for each of *jobs*; one that it cannot act on keeps it from no other.

    Exits with the code of the first fault.
    """
    code = ExitCode.DONE
    for job in jobs:
        try:
            typer.echo(act(job))
        except AmicrawlError as fault:
            typer.echo(f"amicrawl: {fault}", err=True)
            code = code or fault.exit_code
    if code:
        raise typer.Exit(code)


@with_store
def abort(store: JobStore, jobs: Jobs) -> None:
    """Abort jobs: a queued one leaves its queue at once, a running one stops within seconds.

    Example: amicrawl job abort https://example.org/ https://example.net/
    """

    def one(job: str) -> str:
        ident = ident_in(job)
        done, left = verbs.abort(store, ident, now=time.time())
        archived = f" What was archived before is {harmless(left)}." if left else ""
        return _ABORTED[done].format(ident) + archived

    _each(jobs, one)


@with_store
def ignore(store: JobStore, job: JobArgument, patterns: Patterns) -> None:
    """Add ignore patterns. URLs that match one are not fetched, queued ones included.

    Example: amicrawl job ignore https://example.org/ '/calendar/' '[?&]sort='

    {primary_url} and {primary_netloc} stand for the start URL and its host. One that cannot be used
    refuses them all.
    """
    added = verbs.ignore(store, job, patterns)
    typer.echo(f"{counted(added, 'pattern')} added, {len(patterns) - added} there already.")


@with_store
def unignore(store: JobStore, job: JobArgument, patterns: ExactPatterns) -> None:
    """Remove ignore patterns. URLs that were already ignored stay ignored.

    Example: amicrawl job unignore https://example.org/ '/calendar/'
    """
    removed = verbs.unignore(store, job, patterns)
    if not removed:
        raise UsageError("The job has no such ignore pattern; `amicrawl job show` lists those it has.")
    typer.echo(f"{counted(removed, 'pattern')} removed.")


@with_store
def ignore_set(store: JobStore, job: JobArgument, names: SetNames) -> None:
    """Add all patterns of shipped ignore sets.

    Example: amicrawl job ignore-set https://example.org/ blogs,forums
    """
    wanted = [name for text in names for name in text.replace(",", " ").split()]
    added = verbs.add_ignore_sets(store, job, wanted)
    typer.echo(f"{counted(added, 'pattern')} added.")


@with_store
def expire(store: JobStore, jobs: Jobs) -> None:
    """Delete the records of ended jobs, so that their URLs can be submitted again. Captures are kept.

    Example: amicrawl job expire https://example.org/
    """

    def one(job: str) -> str:
        verbs.expire(store, ident_in(job))
        return f"The record of {job} is deleted."

    _each(jobs, one)


@with_store
def pause(store: JobStore, jobs: Jobs) -> None:
    """Stop requesting new URLs until the jobs are resumed.

    Example: amicrawl job pause https://example.org/
    """

    def one(job: str) -> str:
        verbs.pause(store, ident_in(job))
        return f"{job} is asked to pause."

    _each(jobs, one)


@with_store
def resume(store: JobStore, jobs: Jobs) -> None:
    """Resume paused jobs.

    Example: amicrawl job resume https://example.org/
    """

    def one(job: str) -> str:
        was_paused = verbs.resume(store, ident_in(job))
        return f"{job} is asked to resume." if was_paused else f"{job} was not paused."

    _each(jobs, one)


@with_store
def move(store: JobStore, job: JobArgument, to: PlaceInQueue, *, queue: Queue = None) -> None:
    """Move a queued job within its queue, or to another queue.

    Example: amicrawl job move https://example.org/ front
    """
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
    *(command_of(setting) for setting in job_settings.live()),
    *(where, expire, pause, resume, move, dead),
)
for verb in _VERBS:
    app.command()(verb)
