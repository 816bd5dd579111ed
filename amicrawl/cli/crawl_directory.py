"""The argument that names the output directory of a crawl."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amicrawl.errors import InputError

CrawlDirectory = Annotated[Path, typer.Argument(help="The output directory of a crawl.")]


def check_is_there(directory: Path) -> None:
    """Raise InputError where *directory* is none."""
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory. Give the output directory of a crawl.")
