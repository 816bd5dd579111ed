"""The command `amicrawl`: everything around the crawl. One module per command.

A command parses, calls one function of a room, and prints. What goes wrong on purpose is said in a
sentence on standard error, and the exit code says whose fault it was (`docs/exit-codes.md`).
"""

from __future__ import annotations

import difflib
import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from amicrawl import __version__
from amicrawl.errors import AmicrawlError, ExitCode

_COMMANDS = {
    "cdx": "cdx:app",
    "check": "check:check",
    "collection": "collection:collection",
    "crawl": "crawl:crawl",
    "dashboard": "dashboard:app",
    "explain": "explain:explain",
    "frontier": "frontier:app",
    "index": "index:index",
    "inspect": "inspect:inspect",
    "job": "job:app",
    "jobs": "job:app",
    "merge": "merge:merge",
    "pipeline": "pipeline:app",
    "query": "query:query",
    "repair": "repair:repair",
    "share": "share:app",
    "sidecar": "sidecar:sidecar",
    "summary": "summary:summary",
    "table": "table:table",
    "upload": "upload:upload",
    "url": "url:url",
    "wacz": "wacz:wacz",
    "wat": "wat:wat",
    "wet": "wet:wet",
}
"""Commands by name: the module of this room, and what in it the command is made of."""


class _Commands(TyperGroup):
    """Loads a command when it is called for: together they take a second to load, most of one none."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # typer calls it so
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            for nearest in difflib.get_close_matches(cmd_name, _COMMANDS, n=1):
                ctx.fail(f"No such command '{cmd_name}'. Did you mean {nearest}?")
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        made_of = getattr(import_module(f"amicrawl.cli.{module}"), name)
        if isinstance(made_of, typer.Typer):
            command: Any = get_group(made_of)
        else:
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name)(made_of)
            command = get_command(alone)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="An archival crawler on Scrapy. To crawl: scrapy crawl seeds -a file=seeds.jsonl",
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001  # typer calls it so
    if wanted:
        typer.echo(f"amicrawl {__version__}")
        raise typer.Exit


@app.callback()
def _amicrawl(
    version: Annotated[  # its callback has done the work
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that stand before any command."""


def main() -> None:
    """Run the command line of this process and exit."""
    try:
        app()
    except AmicrawlError as error:
        sys.stderr.write(f"amicrawl: {error}\n")
        sys.exit(error.exit_code)
    except SystemExit as end:
        # The reader behind a pipe has had enough, of which typer makes an error.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        # Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.DONE)
