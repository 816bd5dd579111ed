"""Printing: lines that no terminal mistakes for commands, and the options that all commands share."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from amicrawl.cli.frontier.words import HOUR

AnyPath = Annotated[
    Path, typer.Argument(help="A frontier file, a frontier's directory, or a crawl's output directory.")
]
AtHour = Annotated[int, typer.Option(min=0, metavar="HOUR", help="As of this hour since 1970; 0: now.")]
Limit = Annotated[int, typer.Option(min=0, metavar="N", help="Rows to show; 0: all.")]
HostKey = Annotated[
    str | None, typer.Option("--host", metavar="KEY", help="Only this host key, 0x... or decimal.")
]


def print_lines(lines: Iterable[str]) -> None:
    """Print *lines*, in which nothing is left that must not reach a terminal."""
    encoding = sys.stdout.encoding or "utf-8"
    for line in lines:
        # A terminal that knows only ASCII gets escapes instead of an exception.
        typer.echo(line.encode(encoding, "backslashreplace").decode(encoding))


def hour_now() -> int:
    """Return the time in whole hours since 1970."""
    return int(time.time()) // HOUR
