"""Commands that make one product of archive files: how far they are, what is lost, how they end."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import typer

from amicrawl.cli.processes import as_many, to_be_continued
from amicrawl.errors import ExitCode
from amicrawl.index.collection.collecting import Failed, collect, collect_by
from amicrawl.index.collection.file import collect_file
from amicrawl.index.workers import run_jobs
from amicrawl.terminal import LiveLines, counted, harmless, human_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.index.collection.collecting import Collected, Run, State
    from amicrawl.index.collection.file import FileJob
    from amicrawl.index.collection.marks import Outcome


class Screen:
    """Says on a line how far it is."""

    def __init__(self) -> None:
        self._line = LiveLines()
        self._shown = -1.0

    def show(self, state: State) -> None:
        """Show *state*, a few times a second."""
        if 0 <= state.seconds - self._shown < 0.2:
            return
        self._shown = state.seconds
        rate = state.read / state.seconds if state.seconds else 0
        left = f", {(state.total - state.read) / rate:,.0f} s left" if rate else ""
        failed = f", {state.failed:,} failed" if state.failed else ""
        read = f"{human_size(state.read)} of {human_size(state.total)}, {human_size(int(rate))}/s"
        self._line.show(
            f"{state.done:,} of {counted(state.files, 'file')}{failed}, "
            f"{counted(state.records, 'record')}, {read}{left}"
        )

    def end(self) -> None:
        """Make room for other lines."""
        self._line.clear()


class Telling:
    """Says what came of each file, as it comes."""

    def __init__(self, screen: Screen, *, names_products: bool = True) -> None:
        self._screen = screen
        self._names_products = names_products

    def __call__(self, job: FileJob, came: Outcome | Failed) -> None:
        """Say what *came* of a file: its product, and what is lost of it."""
        self._screen.end()
        if isinstance(came, Failed):
            complain(
                came.reason
                if came.is_unreadable
                else f"{came.source}, byte {came.offset} or behind: {came.reason}"
            )
            return
        made = came.products[job.products[0]]
        if self._names_products:
            facts = f"{made.entries:,} of {counted(came.records, 'record')}, {human_size(made.size)}"
            typer.echo(harmless(f"{job.out / made.file}: {facts}"))
        for loss in came.losses:
            complain(f"{came.source}, byte {loss.offset}: {loss.reason}")
        if came.lost > len(came.losses):
            complain(f"{came.source}: and {came.lost - len(came.losses):,} more")


def do_files(
    jobs: Sequence[FileJob],
    *,
    processes: int,
    is_claimed: bool = False,
    names_products: bool = True,
    again: bool = False,
    run: Run | None = None,
) -> Collected:
    """Do *jobs*, each with one product, and say what comes of each; then `end` says what was done.

    In up to so many *processes*; one of several files is no reason for a process of its own, but where
    the directory is *is_claimed*. Or *run* does the work.
    """
    screen = Screen()
    told = Telling(screen, names_products=names_products)
    processes = as_many(processes)
    with to_be_continued(screen.end):
        if is_claimed:
            collected = collect(jobs, processes=processes, show=screen.show, came=told)
        else:
            if run is None and processes > 1 and len(jobs) > 1:
                run = partial(run_jobs, work=collect_file, processes=processes)
            collected = collect_by(run, jobs, show=screen.show, came=told, again=again)
    screen.end()
    return collected


def end(collected: Collected, *, noun: str) -> None:
    """Say what was done, things called *noun* of records, and end with the code for what was not."""
    outcomes = collected.outcomes.values()
    made = sum(made.entries for outcome in outcomes for made in outcome.products.values())
    records = sum(outcome.records for outcome in outcomes)
    lost = sum(outcome.lost for outcome in outcomes)
    places = f", lost in {counted(lost, 'place')}" if lost else ""
    before = f", {len(collected.before):,} of them before" if collected.before else ""
    failed = f", {counted(len(collected.failed), 'file')} failed" if collected.failed else ""
    complain(
        f"{counted(len(outcomes), 'file')}{before}: {counted(made, noun)} of "
        f"{counted(records, 'record')}{places}{failed}"
    )
    if any(each.is_unreadable for each in collected.failed):
        raise typer.Exit(ExitCode.INPUT)
    if not collected.is_sound:
        raise typer.Exit(ExitCode.DAMAGED)


def complain(sentence: str) -> None:
    """Say *sentence*, which may hold anything, on standard error."""
    typer.echo(harmless(sentence, limit=2000), err=True)
