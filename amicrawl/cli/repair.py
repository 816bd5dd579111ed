"""`amicrawl repair`: repair what a killed crawl left, without starting another."""

from __future__ import annotations

import typer

from amicrawl.cli.options import CrawlDirectory, check_is_there
from amicrawl.disk import Disk
from amicrawl.record.repair import repair as repair_directory


def repair(directory: CrawlDirectory) -> None:
    """Seal what a killed crawl left in DIRECTORY: whole records are kept, torn ones moved aside.

    The next crawl into the directory does the same by itself. Example: amicrawl repair ami-out
    """
    check_is_there(directory)
    repaired = repair_directory(directory, disk=Disk())
    typer.echo(repaired.sentence() if repaired.found_anything else f"Nothing to repair in {directory}.")
