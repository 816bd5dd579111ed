"""The command `amicrawl`: everything around the crawl. One module per command.

A command parses, calls one function of a room, and prints. What goes wrong on purpose is said in a
sentence on standard error, and the exit code says whose fault it was (`docs/exit-codes.md`).
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from amicrawl import __version__
from amicrawl.cli import frontier
from amicrawl.cli.check import check
from amicrawl.cli.crawl import crawl
from amicrawl.cli.explain import explain
from amicrawl.cli.inspect import inspect
from amicrawl.cli.repair import repair
from amicrawl.cli.upload import upload
from amicrawl.cli.url import url
from amicrawl.errors import AmicrawlError, ExitCode

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="An archival crawler on Scrapy. To crawl: scrapy crawl seeds -a file=seeds.jsonl",
)
app.command()(check)
app.command()(crawl)
app.command()(explain)
app.command()(inspect)
app.command()(repair)
app.command()(upload)
app.command()(url)
app.add_typer(frontier.app, name="frontier")


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
    except BrokenPipeError:
        # The reader behind a pipe has had enough; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.DONE)
