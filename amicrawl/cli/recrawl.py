"""`amicrawl recrawl`: fetch again what is due of an earlier crawl, and store what has changed."""

from __future__ import annotations

from typing import Annotated

import typer

from amicrawl.cli.crawl import Arguments, Quiet, Settings, Verbose, begin, loudness
from amicrawl.cli.name_value import pairs, passed_on

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The output directory of a crawl.")]
Before = Annotated[
    str,
    typer.Option(
        "--before",
        metavar="DATE",
        help="Include what is due until then, for example 2027-01-31; a far date takes every URL.",
        show_default="now",
    ),
]


def recrawl(
    directory: Directory,
    *,
    before: Before = "",
    quiet: Quiet = False,
    verbose: Verbose = 0,
    settings: Settings = None,
    arguments: Arguments = None,
) -> None:
    """Request again what is due of the crawl in DIR, and store what has changed.

    Example: amicrawl recrawl ami-out --before 2100-01-01

    This is `scrapy crawl recrawl`. When a URL is due follows from how often its page was found changed.
    """
    given = {"dir": directory, **({"before": before} if before else {})}
    further = [*passed_on(settings), *loudness(quiet=quiet, verbose=verbose)]
    begin(["recrawl"], given | pairs(arguments or [], option="-a"), further)
