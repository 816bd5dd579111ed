"""`amicrawl share`: one crawl over several machines, that share a Redis and nothing else.

One module for making a shared crawl, one for working on it, one for looking at it and steering it.
"""

from __future__ import annotations

import typer

from amicrawl.cli.share import steering
from amicrawl.cli.share.creating import create
from amicrawl.cli.share.working import work

app = typer.Typer(
    no_args_is_help=True,
    help="Share one crawl between several machines.",
)
for command in (
    *(create, work, steering.status, steering.stop, steering.pause, steering.resume),
    *(steering.retry, steering.remove),
):
    app.command()(command)
