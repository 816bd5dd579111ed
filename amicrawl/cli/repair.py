"""`amicrawl repair`: mend what a killed crawl left, without starting another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amicrawl.disk import Disk
from amicrawl.errors import InputError
from amicrawl.record import repair as repair_directory


def repair(
    directory: Annotated[Path, typer.Argument(help="The output directory of a crawl.")],
) -> None:
    """Seal what a killed crawl left in DIRECTORY: whole records are kept, torn ones moved aside.

    The next crawl into the directory does the same by itself. Example: amicrawl repair ami-out
    """
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory. Give the output directory of a crawl.")
    repaired = repair_directory(directory, disk=Disk())
    typer.echo(repaired.sentence() if repaired.found_anything else f"Nothing is amiss in {directory}.")
