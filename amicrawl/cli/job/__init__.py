"""`amicrawl job VERB`, or `amicrawl jobs VERB`: submit, watch and control jobs in Redis.

A job is named by its ident, or by the URL that it was submitted with. With `--json`, answers are JSON:
one object, or one per line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from amicrawl.cli.job import control
from amicrawl.cli.job.listing import dead, log, ls, pending, show, status, where
from amicrawl.cli.job.submission import submit

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Submit, watch and control jobs in Redis; JOB is an ident, or the URL it was submitted with.",
)
_VERBS: tuple[Callable[..., None], ...] = (
    *(submit, status, ls, show, log, pending),
    *(control.abort, control.ignore, control.unignore, control.ignore_set),
    *(control.delay, control.concurrency, control.note, where, control.expire),
    *(control.pause, control.resume, control.reports, control.move, dead),
)
for verb in _VERBS:
    app.command()(verb)
