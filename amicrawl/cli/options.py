"""Options of several commands: `-q`, `--json`, `--engine`, `--jobs`, `NAME=VALUE`, a directory."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from amicrawl.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print errors only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AsOneObject = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def json_text(found: Any) -> str:
    """Return *found* as one line of JSON that a terminal cannot mistake for commands."""
    # In ASCII, DEL is all that JSON leaves raw and a terminal may obey.
    return json.dumps(found).replace("\x7f", "\\u007f")


def print_lines(lines: Iterable[str]) -> None:
    """Print *lines*, in which nothing is left that must not reach a terminal."""
    encoding = sys.stdout.encoding or "utf-8"
    for line in lines:
        # A terminal that knows only ASCII gets escapes instead of an exception.
        typer.echo(line.encode(encoding, "backslashreplace").decode(encoding))


class Engine(StrEnum):
    """What does the work."""

    LOCAL = "local"
    SPARK = "spark"


EngineOption = Annotated[Engine, typer.Option(help="This machine, or a Spark cluster.")]
Master = Annotated[
    str,
    typer.Option(help="Spark master URL; spark-submit's by default.", metavar="URL"),
]


Reach = Literal["inf", "shallow"]
"""How far a crawl of a site goes: below the directory of each start URL, or the start pages alone."""

Processes = Annotated[int, typer.Option("-j", "--jobs", min=0, help="Processes; 0: one per processor.")]


def as_many(processes: int) -> int:
    """Return how many *processes* are meant: for 0, one for each processor that we may use."""
    return processes or len(os.sched_getaffinity(0))


@contextmanager
def to_be_continued(end_screen: Callable[[], None]) -> Iterator[None]:
    """Turn an interruption into exit code 6: what is done is kept, and the next run resumes there."""
    try:
        yield
    except KeyboardInterrupt:
        end_screen()
        typer.echo("Stopped. Run the same command again to resume.", err=True)
        raise typer.Exit(ExitCode.STOPPED) from None


def check_installed(extra: str, *modules: str, find: Callable[[str], object] = find_spec) -> None:
    """Raise UsageError, with what to run, unless *find* finds the *modules* that *extra* brings."""
    missing = [name for name in modules if find(name) is None]
    if missing:
        raise UsageError(
            f"This command needs {', '.join(missing)}. Run: pip install 'amicrawl[{extra}]'"
        )


CrawlDirectory = Annotated[Path, typer.Argument(help="The output directory of a crawl.")]


def check_is_there(directory: Path) -> None:
    """Raise InputError if *directory* is not a directory."""
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory. Give the output directory of a crawl.")


def pairs(written: Iterable[str], *, option: str) -> dict[str, str]:
    """Return what was *written* behind *option* as a dictionary; UsageError for what is not a pair."""
    found = {}
    for text in written:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text!r} is not NAME=VALUE. Write it so.")
        found[name] = value
    return found


def passed_on(written: Iterable[str] | None) -> list[str]:
    """Return settings as the command line of a crawl takes them; UsageError for what is not a pair."""
    settings = list(written or ())
    pairs(settings, option="-s")
    return [part for setting in settings for part in ("-s", setting)]
