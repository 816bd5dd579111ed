"""`amicrawl job VERB`, or `amicrawl jobs VERB`: submit, watch and control jobs in Redis.

A job is named by its ident, or by the URL that it was submitted with. With `--json`, answers are JSON:
one object, or one per line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from amicrawl.cli.job import changing
from amicrawl.cli.job.listing import dead, log, ls, pending, show, status, where
from amicrawl.cli.job.submitting import submit

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Submit, watch and control jobs in Redis; JOB is an ident, or the URL it was submitted with.",
)
_VERBS: tuple[Callable[..., None], ...] = (
    *(submit, status, ls, show, log, pending),
    *(changing.abort, changing.ignore, changing.unignore, changing.ignore_set),
    *(changing.delay, changing.concurrency, changing.note, where, changing.expire),
    *(changing.pause, changing.resume, changing.reports, changing.move, dead),
)
for verb in _VERBS:
    app.command()(verb)
