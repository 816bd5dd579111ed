"""Options of several commands, each declared once; what is printed, and how a stopped run ends.

A command with many options takes them as a dataclass, which `grouped` turns into options.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from importlib.util import find_spec
from inspect import Parameter, signature
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from amicrawl.errors import ExitCode, InputError, UsageError
from amicrawl.terminal import aligned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return *command* with an option for each field of its keyword arguments that are dataclasses."""
    hints = get_type_hints(command, include_extras=True)
    groups = {}
    parameters = []
    for name, parameter in signature(command).parameters.items():
        if parameter.kind is Parameter.KEYWORD_ONLY and is_dataclass(hints[name]):
            groups[name] = hints[name]
            parameters += _parameters_of(hints[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @wraps(command)
    def called(*args: Any, **given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        command(*args, **given)

    return with_parameters(called, parameters)


def _parameters_of(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(group)
    ]


def with_parameters(
    command: Callable[..., None], parameters: Sequence[Parameter]
) -> Callable[..., None]:
    """Return *command* as a function of *parameters*, for typer, which reads both places."""
    vars(command)["__signature__"] = signature(command).replace(parameters=parameters)
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print errors only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
AsOneObject = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def json_text(found: Any) -> str:
    """Return *found* as one line of JSON that a terminal cannot mistake for commands.

    JSON has no number for a float that is not finite, which a file may have: it is a word.
    """
    try:
        text = json.dumps(found, allow_nan=False)
    except ValueError:
        text = json.dumps(_with_words(found))
    # In ASCII, DEL is all that JSON leaves raw and a terminal may obey.
    return text.replace("\x7f", "\\u007f")


def _with_words(found: Any) -> Any:
    """Return *found* with a word for each float that is not finite."""
    if isinstance(found, dict):
        return {name: _with_words(value) for name, value in found.items()}
    if isinstance(found, (list, tuple)):
        return [_with_words(value) for value in found]
    return str(found) if isinstance(found, float) and not isfinite(found) else found


def print_lines(lines: Iterable[str]) -> None:
    """Print *lines*, in which nothing is left that must not reach a terminal."""
    encoding = sys.stdout.encoding or "utf-8"
    for line in lines:
        # A terminal that knows only ASCII gets escapes instead of an exception.
        typer.echo(line.encode(encoding, "backslashreplace").decode(encoding))


def print_table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool], otherwise: str
) -> None:
    """Print *rows* below *heading*, in columns as `aligned`; *otherwise* if there are none."""
    print_lines(aligned([heading, *rows], right=right) if rows else [otherwise])


class Engine(StrEnum):
    """What does the work."""

    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True)
class EngineOptions:
    """Where the work is done. Raises UsageError for a Spark option without Spark."""

    engine: Annotated[Engine, typer.Option(help="This machine, or a Spark cluster.")] = Engine.LOCAL
    master: Annotated[
        str, typer.Option(help="Spark master URL; spark-submit's by default.", metavar="URL")
    ] = ""

    def __post_init__(self) -> None:
        if self.master and not self.on_spark:
            raise UsageError("--master is for Spark. Add --engine spark.")

    @property
    def on_spark(self) -> bool:
        """Whether a Spark cluster does the work."""
        return self.engine is Engine.SPARK

    @property
    def cluster(self) -> str | None:
        """The master of the Spark cluster; None for this machine."""
        return self.master if self.on_spark else None


@dataclass(frozen=True)
class PartitionedOptions(EngineOptions):
    """The same, and into how many parts Spark divides the work."""

    partitions: Annotated[
        int, typer.Option(min=0, metavar="N", help="With Spark: number of partitions; 0: its choice.")
    ] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partitions and not self.on_spark:
            raise UsageError("--partitions is for Spark. Add --engine spark.")

    def check_places(self, names: Iterable[str]) -> None:
        """Raise UsageError if one of *names* is a URI, which only Spark reads and writes here."""
        if not self.on_spark and any("://" in name for name in names):
            raise UsageError("URIs are for Spark. Add --engine spark, or give paths.")


def checked_depth(text: str | None) -> str | None:
    """Return the depth *text*; raises BadParameter for none."""
    if text is None:
        return None
    from amicrawl.config import is_depth  # noqa: PLC0415  # most commands have no use for it

    if is_depth(text):
        return text
    raise typer.BadParameter(f"{text!r} is neither 'inf' nor 'shallow' nor a number of links.")


Depth = Annotated[
    str | None,
    typer.Option(
        "--depth",
        metavar="inf|shallow|N",
        callback=checked_depth,
        help="How far from the start URLs: inf (all below their directories), shallow (these pages and "
        "what they need), or N links.",
        show_default="inf",
    ),
]

Processes = Annotated[
    int,
    typer.Option(
        *("-j", "--jobs", "--processes"), min=0, metavar="N", help="Processes; 0: one per processor."
    ),
]
BlockLines = Annotated[
    int, typer.Option("-l", "--block-lines", min=1, metavar="N", help="Lines per block of a cluster.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0: any free one.")]


def _complete_setting(incomplete: str) -> list[str]:
    """Return the names of settings that begin so, for a shell."""
    # Loaded for a shell that completes.
    from amicrawl.config import SETTINGS  # noqa: PLC0415

    return [f"{name}=" for name in SETTINGS if f"{name}=".startswith(incomplete)]


Settings = Annotated[
    list[str] | None,
    typer.Option(
        *("-s", "--set"),
        autocompletion=_complete_setting,
        metavar="NAME=VALUE",
        help="Set a setting (may be repeated); overrides the crawl file.",
    ),
]


def process_count(processes: int) -> int:
    """Return how many *processes* are meant: for 0, one for each processor that we may use."""
    return processes or len(os.sched_getaffinity(0))


@contextmanager
def resumable(end_screen: Callable[[], None]) -> Iterator[None]:
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


def check_directory(directory: Path) -> None:
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


def settings_options(written: Iterable[str] | None) -> list[str]:
    """Return settings as the command line of a crawl takes them; UsageError for what is not a pair."""
    settings = list(written or ())
    pairs(settings, option="-s")
    return [part for setting in settings for part in ("-s", setting)]
