"""`amicrawl share`: one crawl over several machines, which share a Redis and nothing else."""

from __future__ import annotations

import typer

from amicrawl.cli.share.control import pause, remove, resume, retry, status, stop, work
from amicrawl.cli.share.creation import create

app = typer.Typer(
    no_args_is_help=True,
    help="Share one crawl between several machines.",
)
for command in (create, work, status, stop, pause, resume, retry, remove):
    app.command()(command)
