"""Commands that make one product of archive files: progress, losses, exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.api import index_by
from amicrawl.archive.index import Failed, FileJob, collect
from amicrawl.archive.lines import Compat
from amicrawl.cli.options import process_count, resumable
from amicrawl.errors import ExitCode
from amicrawl.terminal import ProgressBar, counted, harmless, human_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from amicrawl.archive.index import Collected, FileOutcome, RunState
    from amicrawl.archive.index.collection.collecting import Job
    from amicrawl.archive.location import Location, PathFacts


CompatOption = Annotated[
    Compat, typer.Option(help="Reproduce the index lines of this tool byte for byte.")
]
Post = Annotated[
    bool, typer.Option("--post", "-p", help="Make method and body of a POST or PUT part of its key.")
]
DirRoot = Annotated[
    str | None,
    typer.Option("--dir-root", metavar="DIR", help="Record file names relative to this directory."),
]
DIR_ROOT = "--dir-root {}"
"""How it is written."""


class Screen:
    """Shows on a terminal how far the files are, and prints what became of each; if *quiet*, losses."""

    def __init__(self, *, quiet: bool = False, names_products: bool = True) -> None:
        self._bar = ProgressBar(quiet=quiet)
        self._quiet = quiet
        self._names_products = names_products and not quiet
        self.end = self._bar.clear

    def show(self, state: RunState) -> None:
        """Show *state*, a few times a second."""
        rate = state.read / state.seconds if state.seconds else 0
        left = f", {(state.total - state.read) / rate:,.0f} s left" if rate else ""
        failed = f", {state.failed:,} failed" if state.failed else ""
        self._bar.show(
            state.read,
            state.total,
            f"{state.done:,} of {counted(state.files, 'file')}{failed}, "
            f"{counted(state.records, 'record')}, {human_size(int(rate))}/s{left}",
        )

    def came(self, job: Job, came: FileOutcome | Failed) -> None:
        """Print the outcome of a file: its product, and what is lost of it."""
        self.end()
        if isinstance(came, Failed):
            print_error(
                came.reason
                if came.is_unreadable
                else f"{came.source}, byte {came.offset} or behind: {came.reason}"
            )
            return
        made = came.products[job.products[0]]
        if self._names_products:
            facts = f"{made.entries:,} of {counted(came.records, 'record')}, {human_size(made.size)}"
            where = job.out / made.file if isinstance(job, FileJob) else job.out.below(made.file)
            typer.echo(harmless(f"{where}: {facts}"))
        for loss in came.losses:
            print_error(f"{came.source}, byte {loss.offset}: {loss.reason}")
        if came.lost > len(came.losses):
            print_error(f"{came.source}: and {came.lost - len(came.losses):,} more")

    def conclude(self, collected: Collected, *, noun: str) -> None:
        """Say what was done, things called *noun* of records; end with the code for what was not."""
        outcomes = collected.outcomes.values()
        made = sum(made.entries for outcome in outcomes for made in outcome.products.values())
        records = sum(outcome.records for outcome in outcomes)
        lost = sum(outcome.lost for outcome in outcomes)
        places = f", lost in {counted(lost, 'place')}" if lost else ""
        before = f", {len(collected.before):,} of them before" if collected.before else ""
        failed = f", {counted(len(collected.failed), 'file')} failed" if collected.failed else ""
        if not (self._quiet and collected.is_sound):
            print_error(
                f"{counted(len(outcomes), 'file')}{before}: {counted(made, noun)} of "
                f"{counted(records, 'record')}{places}{failed}"
            )
        if any(each.is_unreadable for each in collected.failed):
            raise typer.Exit(ExitCode.INPUT)
        if not collected.is_sound:
            raise typer.Exit(ExitCode.DAMAGED)


def do_files(
    jobs: Sequence[FileJob],
    screen: Screen,
    *,
    processes: int,
    is_claimed: bool,
) -> Collected:
    """Do *jobs*, each with one product; *screen* shows what comes of each.

    Uses up to so many *processes*, and none of its own for a single file, unless the directory
    *is_claimed*.
    """
    processes = process_count(processes)
    with resumable(screen.end):
        if is_claimed:
            collected = collect(jobs, processes=processes, show=screen.show, came=screen.came)
        else:
            collected = index_by(jobs, processes=processes, show=screen.show, came=screen.came)
    screen.end()
    return collected


def do_placed_files(
    jobs: Sequence[FileJob],
    screen: Screen,
    places: Mapping[Path, tuple[Location, PathFacts]],
    out: str,
    *,
    processes: int,
    master: str | None,
    again: bool = False,
) -> Collected:
    """Do as `do_files` where files lie in stores, or a Spark cluster with this *master* does the work.

    *places* has where the sources of *jobs* are; *out* is where the products go.
    """
    from amicrawl.archive.index import PlacedJob, collect_placed  # noqa: PLC0415  # with what runs Spark
    from amicrawl.archive.location import Location  # noqa: PLC0415

    where = Location.of(out)
    placed = [PlacedJob(job, *places[job.source], where) for job in jobs]
    with resumable(screen.end):
        collected = collect_placed(
            placed,
            processes=process_count(processes),
            master=master,
            show=screen.show,
            came=screen.came,
            again=again,
        )
    screen.end()
    return collected


def print_error(sentence: str) -> None:
    """Say *sentence*, which may hold anything, on standard error."""
    typer.echo(harmless(sentence, limit=2000), err=True)
