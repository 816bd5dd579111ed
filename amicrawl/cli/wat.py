"""`amicrawl wat`: metadata of records and pages, as WAT files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amicrawl.cli.archive_files import ArchiveFiles, archive_files
from amicrawl.cli.processes import Processes
from amicrawl.cli.wet import make_all

Out = Annotated[Path, typer.Option("-o", "--out", help="Directory for the WAT files.")]


def wat(files: ArchiveFiles, out: Out = Path(), jobs: Processes = 0) -> None:
    """Write the metadata of every record in FILES, with the links of pages, as X.warc.wat.gz.

    A file that is done is not done again. Exit code 5 where something of a file is lost; the rest of it
    is written.

    Example: amicrawl wat *.warc.gz -o wat/
    """
    make_all("wat", archive_files(files), out, processes=jobs)
