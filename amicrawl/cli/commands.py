"""The commands: what each is called, where it is, and the sentence that lists of commands show.

The sentence is the first one of the command's own help, which is loaded with the command; all commands
together take seconds to load, and a list has no use for the rest of them. A test holds the two together.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from typer.core import TyperCommand
from typer.main import get_command, get_group

if TYPE_CHECKING:
    from collections.abc import Mapping


class Place(NamedTuple):
    """Where a command is."""

    where: str
    """A module of this room, and what in it the command is made of."""
    sentence: str
    is_listed: bool = True
    """Whether lists show it; False for a second name."""


_JOB = Place(
    "job:app",
    "Jobs in Redis: submit, watch, steer. JOB is an ident, or the URL that it was submitted with.",
)

COMMANDS: Mapping[str, Place] = {
    "cdx": Place("cdx:app", "Look captures up in CDXJ files and ZipNum clusters, and make clusters."),
    "check": Place(
        "check:check", "Check FILES: a line for every fault, and one for every file that is good."
    ),
    "collection": Place(
        "collection:collection",
        "Make everything that can be known of FILES, each read once, and go on where a run was "
        "broken off.",
    ),
    "crawl": Place(
        "crawl:crawl",
        "Crawl WHAT: a site by its URL, the URLs of a seed list, or what a crawl file says.",
    ),
    "dashboard": Place("dashboard:app", "See and steer jobs in a browser, or over HTTP."),
    "explain": Place("explain:explain", "Say whether a crawl takes URL, and which rule decides."),
    "frontier": Place(
        "frontier:app", "Look into frontier files and directories, and make files of files."
    ),
    "index": Place(
        "index:index",
        "Index FILES: a sorted CDXJ file for each, in the current directory or that of -o.",
    ),
    "inspect": Place(
        "inspect:inspect",
        "Show what PATH holds: captures, statuses and files of a crawl, or the records of a WARC file.",
    ),
    "job": _JOB,
    "jobs": _JOB._replace(is_listed=False),
    "merge": Place(
        "merge:merge",
        "Add type, format, charset, languages and soft-404 probability to CDXJ lines.",
    ),
    "pipeline": Place(
        "pipeline:app",
        "Run jobs from Redis: claim them, crawl each as a child process, report, until told to stop.",
    ),
    "query": Place("query:query", "Ask the table at PATH the question NAME, or your own SQL."),
    "recrawl": Place(
        "recrawl:recrawl",
        "Fetch again what is due of the crawl in DIR; what has not changed becomes a revisit record.",
    ),
    "repair": Place(
        "repair:repair",
        "Seal what a killed crawl left in DIRECTORY: whole records are kept, torn ones moved aside.",
    ),
    "share": Place(
        "share:app",
        "One crawl over several machines: made once, worked on by any number of them.",
    ),
    "sidecar": Place(
        "sidecar:sidecar",
        "Write what payloads in FILES are (type, PRONOM id, charset, language, soft 404) as "
        "X.warc.meta.gz.",
    ),
    "summary": Place(
        "summary:summary", "Summarise PATHs, which follow each other, as if they were one index."
    ),
    "table": Place(
        "table:table",
        "Turn CDXJ files into a table that DuckDB, pandas and Spark read: one row a capture.",
    ),
    "upload": Place(
        "upload:upload",
        "Copy the files of DIRECTORY to a bucket, each verified there by size and SHA-256.",
    ),
    "url": Place(
        "url:url",
        "Show the canonical form, host, group, keys and SURT of each URL, or why it is refused.",
    ),
    "wacz": Place("wacz:wacz", "Pack WARC files with an index and a list of pages as a WACZ package."),
    "wat": Place(
        "wat:wat",
        "Write what every record of FILES says of itself, and every page of its links, as "
        "X.warc.wat.gz.",
    ),
    "wet": Place(
        "wet:wet", "Write the text of every page in FILES, HTML and plain text, as X.warc.wet.gz."
    ),
}


GROUPS: Mapping[str, str] = {
    name: group
    for group, names in {
        "Crawl": ("crawl", "recrawl", "check", "explain", "inspect", "frontier", "url"),
        "Archives": (
            *("index", "collection", "sidecar", "merge", "wat", "wet", "wacz", "cdx"),
            *("repair", "upload"),
        ),
        "Analysis": ("table", "query", "summary"),
        "Jobs": ("job", "pipeline", "share", "dashboard"),
    }.items()
    for name in names
}
"""Under which heading each listed command is."""


class Listed(TyperCommand):
    """A command as lists show it. It is loaded once it is called."""

    def __init__(self, name: str) -> None:
        super().__init__(name, help=COMMANDS[name].sentence, rich_help_panel=GROUPS.get(name))

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **further: Any) -> Any:
        """Load the command and return its context: whoever calls goes on with that."""
        return loaded(self.name or "").make_context(info_name, args, *more, **further)


def loaded(name: str) -> Any:
    """Return the command *name*, with all its options."""
    module, _, made_of_name = COMMANDS[name].where.partition(":")
    made_of = getattr(import_module(f"amicrawl.cli.{module}"), made_of_name)
    if isinstance(made_of, typer.Typer):
        command: Any = get_group(made_of)
    else:
        alone = typer.Typer(add_completion=False)
        alone.command(name)(made_of)
        command = get_command(alone)
    command.name = name
    if os.environ.get("TERM") == "dumb":
        _without_boxes(command)
    return command


def _without_boxes(command: Any) -> None:
    """Have the help of *command* and of its own commands be plain text."""
    command.rich_markup_mode = None
    for each in getattr(command, "commands", {}).values():
        _without_boxes(each)
