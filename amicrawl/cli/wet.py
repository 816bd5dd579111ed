"""`amicrawl wet`: the text of pages, as WET files."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.archive_files import ArchiveFiles, archive_files, make_directory, tell_loss
from amicrawl.cli.terminal import counted, harmless, human_size
from amicrawl.errors import ExitCode, InputError
from amicrawl.index.collection.file import FileJob, FileReader
from amicrawl.index.derivatives.file import Maker
from amicrawl.index.derivatives.naming import named_apart
from amicrawl.index.reading.records import Broken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.index.collection.marks import Loss

Out = Annotated[Path, typer.Option("-o", "--out", help="Directory for the WET files.")]


def wet(files: ArchiveFiles, out: Out = Path()) -> None:
    """Write the text of every page in FILES, HTML and plain text, as X.warc.wet.gz.

    Exit code 5 where something of a file is lost; the rest of it is written.

    Example: amicrawl wet *.warc.gz -o wet/
    """
    make_all("wet", archive_files(files), out)


def make_all(product: str, sources: Sequence[Path], out: Path) -> None:
    """Make the *product* of each of *sources* in *out* and say what came of it.

    Exit 5 if something is lost, 3 if a source cannot be read; the others are made.
    """
    make_directory(out)
    maker = Maker(hostname=socket.gethostname())
    lost, unreadable = 0, False
    for source, stem in named_apart(sources).items():
        job = FileJob(source, stem, out, (product,), source.name, in_directories=False)
        reader = FileReader(job, maker, on_loss=partial(_tell, source))
        try:
            made = reader.read()[product]
        except InputError as error:
            typer.echo(harmless(str(error)), err=True)
            unreadable = True
            continue
        lost += reader.lost
        facts = f"{made.entries:,} of {counted(reader.records, 'record')}, {human_size(made.size)}"
        typer.echo(harmless(f"{out / made.file}: {facts}"))
    if unreadable:
        raise typer.Exit(ExitCode.INPUT)
    if lost:
        raise typer.Exit(ExitCode.DAMAGED)


def _tell(source: Path, loss: Loss) -> None:
    tell_loss(Broken(source, loss.offset, loss.reason))
