"""Work in processes: how many do it (`--jobs`), and what is said where it is broken off."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Processes = Annotated[int, typer.Option("-j", "--jobs", min=0, help="Processes; 0: one per processor.")]


def as_many(processes: int) -> int:
    """Return how many *processes* are meant: for 0, one for each processor that we may use."""
    return processes or len(os.sched_getaffinity(0))


@contextmanager
def to_be_continued(end_screen: Callable[[], None]) -> Iterator[None]:
    """Let an interruption be no error: what is done is kept, and the next run goes on from there."""
    try:
        yield
    except KeyboardInterrupt:
        end_screen()
        typer.echo("Stopped. Start it again to go on: what is done is not done again.", err=True)
        raise typer.Exit(ExitCode.STOPPED) from None
