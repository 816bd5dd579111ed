"""The commands: what each is called, where it is, and the sentence that lists of commands show.

The sentence is the first one of the command's own help, which is loaded with the command; all commands
together take seconds to load, and a list has no use for the rest of them. A test holds the two together.
"""

from __future__ import annotations

import gc
import inspect
import os
import re
import signal
import sys
import threading
from functools import cache, partial
from importlib.machinery import ExtensionFileLoader
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from typer import BadParameter
from typer.core import TyperArgument, TyperCommand
from typer.main import get_command, get_group

from amicrawl.errors import ExitCode
from amicrawl.invalid import reason_of
from amicrawl.wings import import_of_wing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType


class Place(NamedTuple):
    """Where a command is."""

    where: str
    """A module of this room, and what in it the command is made of."""
    sentence: str
    is_listed: bool = True
    """Whether lists show it; False for a second name."""


_JOB = Place(
    "job:app",
    "Submit, watch and control jobs in Redis; JOB is an ident, or the URL it was submitted with.",
)

_BY_GROUP: Mapping[str, Mapping[str, Place]] = {
    "Crawl": {
        "crawl": Place(
            "crawl:crawl",
            "Crawl a site by its URL, the URLs of a seed list, or what a crawl file describes.",
        ),
        "recrawl": Place(
            "crawl:recrawl", "Request again what is due of the crawl in DIR, and store what has changed."
        ),
        "inspect": Place(
            "inspect:inspect",
            "Show what PATH holds: the captures of a crawl, or the records of a WARC file.",
        ),
        "report": Place(
            "report:report",
            "Write a page about the crawl in DIR: rates over time, hosts, types, failures and remedies.",
        ),
        "watch": Place(
            "watch:watch",
            "Show the crawl in DIR in a browser: rate, queue, hosts, failures; pause, change or stop "
            "it.",
        ),
        "replay": Place(
            "replay:replay",
            "Show the pages of the crawl in DIRECTORY as visitors saw them, in a browser; needs pywb.",
        ),
        "explain": Place("explain:explain", "Say whether a crawl takes URL, and which rule decides."),
        "check": Place("check:check", "Check crawl FILES, and report every fault with its line."),
        "frontier": Place("frontier:app", "Inspect, verify and convert frontier files and directories."),
        "url": Place(
            "url:url",
            "Show the canonical form, host, group, keys and SURT of each URL, or why it is refused.",
        ),
    },
    "Archives": {
        "index": Place("index:index", "Write a sorted CDXJ file for each of FILES."),
        "collection": Place(
            "collection:collection",
            "Build all derivatives of FILES, each read once; the same command resumes an interrupted "
            "run.",
        ),
        "sidecar": Place(
            "derivatives:sidecar",
            "Write type, PRONOM id, charset and languages of payloads as X.warc.meta.gz.",
        ),
        "merge": Place(
            "merge:merge", "Add type, format, charset, languages and soft-404 probability to CDXJ lines."
        ),
        "wat": Place(
            "derivatives:wat",
            "Write the metadata of every record in FILES, with the links of pages, as X.warc.wat.gz.",
        ),
        "wet": Place("derivatives:wet", "Write the text of every page in FILES as X.warc.wet.gz."),
        "wacz": Place("wacz:wacz", "Package WARC files with an index and a page list as WACZ."),
        "cdx": Place(
            "cdx:app", "Look up captures in CDXJ files and ZipNum clusters, and build clusters."
        ),
        "repair": Place(
            "output_directory:repair",
            "Seal what a killed crawl left in DIRECTORY: whole records are kept, torn ones moved aside.",
        ),
        "upload": Place(
            "output_directory:upload",
            "Upload the files of DIRECTORY to a bucket, and verify each there by size and digest.",
        ),
    },
    "Analysis": {
        "table": Place("table:table", "Convert CDXJ files to a Parquet table with one row per capture."),
        "query": Place("query:query", "Run a named query, or SQL of your own, on the table at PATH."),
        "summary": Place(
            "summary:summary",
            "Summarise the indexes, tables or archive files at PATHs as one collection.",
        ),
    },
    "Jobs": {
        "job": _JOB,
        "jobs": _JOB._replace(is_listed=False),
        "pipeline": Place("pipeline:app", "Run jobs from Redis, each crawl in a child process."),
        "share": Place("share:app", "Share one crawl between several machines."),
        "dashboard": Place("dashboard:app", "Watch and control jobs in a browser or over HTTP."),
    },
}
"""Commands under their headings, both in the order in which lists show them."""

COMMANDS: Mapping[str, Place] = {
    name: place for places in _BY_GROUP.values() for name, place in places.items()
}
GROUPS: Mapping[str, str] = {name: group for group, places in _BY_GROUP.items() for name in places}
"""Under which heading each command is."""


def is_plain() -> bool:
    """Return whether help and errors are plain text: on a dumb terminal, in a pipe, in a log."""
    streams = sys.stdout, sys.stderr  # None where they are closed
    return os.environ.get("TERM") == "dumb" or not all(stream and stream.isatty() for stream in streams)


class ListedCommand(TyperCommand):
    """A command as lists show it. It is loaded once it is called."""

    def __init__(self, name: str) -> None:
        super().__init__(name, help=COMMANDS[name].sentence, rich_help_panel=GROUPS.get(name))

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **further: Any) -> Any:
        """Load the command and return its context, with which the caller runs it."""
        return loaded(self.name or "").make_context(info_name, args, *more, **further)


def loaded(name: str) -> Any:
    """Return the command *name*, with all its options."""
    return _loaded(name, plain=is_plain())


@cache
def _loaded(name: str, *, plain: bool) -> Any:
    module, _, made_of_name = COMMANDS[name].where.partition(":")
    made_of = getattr(import_of_wing(f"amicrawl.cli.{module}"), made_of_name)
    if isinstance(made_of, typer.Typer):
        command: Any = get_group(made_of)
    else:
        alone = typer.Typer(add_completion=False)
        alone.command(name)(made_of)
        command = get_command(alone)
    command.name = name
    _lay_out(command, plain=plain)
    return command


def _lay_out(command: Any, *, plain: bool) -> None:
    """Lay out the help of *command* and of its own commands for the width and kind of the terminal."""
    # Lines of a paragraph are as long as those of the code, and rich would break them once more.
    paragraphs = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(command.help or ""))
    command.help = re.sub(r"(?<=\S) +(Example: )", r"\n\n\1", paragraphs)
    if plain:
        command.rich_markup_mode = None
    for param in command.params:
        _name_value(param)
    vars(command)["make_context"] = partial(_parsed, command.make_context)
    vars(command)["invoke"] = partial(_begun, command.invoke)
    for each in getattr(command, "commands", {}).values():
        _lay_out(each, plain=plain)
        # The first sentence whole: typer cuts it after 45 characters.
        each.short_help = each.help.partition("\n\n")[0]


def _begun(invoke: Callable[..., Any], context: Any) -> Any:
    """Do what *invoke* does, with SIGINT and SIGTERM as a command without handlers of its own has them.

    SIGINT raises KeyboardInterrupt, for files to be tidied up; a second one ends the process at once.
    """
    for number, handler in ((signal.SIGINT, _interrupt), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
    _keep_what_is_imported()
    return invoke(context)


class _Interrupt(KeyboardInterrupt):
    """SIGINT: Python ends by the signal where KeyboardInterrupt itself leaves generated code."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _is_native_import(frame):
        again = threading.Timer(_MOMENT, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
        return
    signal.signal(signal.SIGINT, _end)
    raise _Interrupt


def _is_native_import(frame: FrameType | None) -> bool:
    """Return whether *frame* is called by a native module that is being imported.

    DuckDB aborts the process where what it calls then raises an exception.
    """
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
            return True
        frame = frame.f_back
    return False


def _end(*_: object) -> None:
    os._exit(ExitCode.STOPPED)


def end_at_interrupt() -> None:
    """Have SIGINT end the process at once: a command has ended, and nothing would catch an exception."""
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, _end)


@cache
def _keep_what_is_imported() -> None:
    """Have Python not look through it for cycles at the end, which takes longer than many a command.

    Once: a command of a group begins twice, and whether anything is kept is found by counting all of it.
    """
    gc.freeze()


_MOMENT = 0.05
"""Seconds until a signal is sent again that came while no exception may be raised."""
_LONE = {"--browser": "always"}
"""Options whose value may be left away, and what it is then."""


def _parsed(
    parse: Callable[..., Any], command: str | None, words: list[str], *more: Any, **further: Any
) -> Any:
    """Return what *parse* makes of *words*, with errors in a user's words in place of pydantic's."""
    for at in range(len(words) - 1, -1, -1):
        if words[at] in _LONE and words[at + 1 : at + 2] not in (["always"], ["auto"], ["never"]):
            words = [*words[: at + 1], _LONE[words[at]], *words[at + 1 :]]
    try:
        return parse(command, words, *more, **further)
    except BadParameter as fault:
        # Not by its class: pydantic is not loaded for words that typer can read without.
        if faults := getattr(fault.__cause__, "errors", None):
            fault.message = "; ".join(map(reason_of, faults()))
        raise


def _name_value(param: Any) -> None:
    """Name what *param* takes by a word, as in `FILES...` or `--title TEXT`; typer shows its type."""
    if isinstance(param, TyperArgument):
        name = param.metavar or str(param.name).upper()
        param.metavar = name.removesuffix("...")
        shown = name if param.required else f"[{name}]"
        usage = f"{shown}..." if param.nargs != 1 and not name.endswith("...") else shown
        vars(param)["_usage_display_name"] = lambda: usage
        vars(param)["display_type_rich"] = _no_type
    elif param.is_flag or param.count:
        param.show_default = False
        vars(param)["display_type_rich"] = _no_type
    elif param.metavar is None and not param.type_descriptor.is_choice:
        kind = param.display_type(None)
        param.metavar = "PATH" if "ath" in kind else "N" if "int" in kind or "float" in kind else "TEXT"


def _no_type(ctx: object) -> None:  # typer calls it so
    """Show no type."""
