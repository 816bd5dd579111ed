"""`amicrawl wat` and `wet`: the metadata of records, and the text of pages, as WAT and WET files."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.archive_files import ArchiveFiles, archive_files, make_directory
from amicrawl.cli.file_work import Screen, do_files
from amicrawl.cli.options import Processes, Quiet
from amicrawl.index.collection.collecting import jobs_for
from amicrawl.index.collection.products import ProductOptions

if TYPE_CHECKING:
    from collections.abc import Sequence


Out = Annotated[Path, typer.Option("-o", "--out", help="Directory for the WET files.")]


def wet(files: ArchiveFiles, out: Out = Path(), jobs: Processes = 0, quiet: Quiet = False) -> None:
    """Write the text of every page in FILES as X.warc.wet.gz.

    A file that is done is not done again. Exit code 5 where something of a file is lost; the rest of it
    is written.

    Example: amicrawl wet *.warc.gz -o wet/
    """
    make_all("wet", archive_files(files), out, processes=jobs, quiet=quiet)


def make_all(product: str, sources: Sequence[Path], out: Path, *, processes: int, quiet: bool) -> None:
    """Make the *product* of each of *sources* in *out*, say what came of it, and end with its code."""
    make_directory(out)
    options = ProductOptions(hostname=socket.gethostname())
    jobs = jobs_for(sources, out, products=[product], options=options, in_directories=False)
    screen = Screen(quiet=quiet)
    screen.conclude(do_files(jobs, screen, processes=processes), noun="entry")


WatOut = Annotated[Path, typer.Option("-o", "--out", help="Directory for the WAT files.")]


def wat(files: ArchiveFiles, out: WatOut = Path(), jobs: Processes = 0, quiet: Quiet = False) -> None:
    """Write the metadata of every record in FILES, with the links of pages, as X.warc.wat.gz.

    A file that is done is not done again. Exit code 5 where something of a file is lost; the rest of it
    is written.

    Example: amicrawl wat *.warc.gz -o wat/
    """
    make_all("wat", archive_files(files), out, processes=jobs, quiet=quiet)
