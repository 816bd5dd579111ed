"""`amicrawl wet`: the text of pages, as WET files."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.archive_files import ArchiveFiles, archive_files, make_directory, tell_loss
from amicrawl.cli.terminal import counted, harmless, human_size
from amicrawl.errors import ExitCode, InputError
from amicrawl.index.derivatives.deriving import derive
from amicrawl.index.derivatives.file import Maker
from amicrawl.index.derivatives.naming import derived_name, named_apart
from amicrawl.index.derivatives.wet import WetFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from amicrawl.index.derivatives.deriving import Derivative
    from amicrawl.index.reading.records import Broken


Out = Annotated[Path, typer.Option("-o", "--out", help="Directory for the WET files.")]


def wet(files: ArchiveFiles, out: Out = Path()) -> None:
    """Write the text of every page in FILES, HTML and plain text, as X.warc.wet.gz.

    Exit code 5 where something of a file is lost; the rest of it is written.

    Example: amicrawl wet *.warc.gz -o wet/
    """
    make_directory(out)
    maker = Maker(hostname=socket.gethostname())
    make_all(
        archive_files(files),
        name_of=lambda stem: out / derived_name(stem, "wet"),
        begin=lambda _, path: WetFile(path, maker=maker),
    )


def make_all(
    sources: Sequence[Path], *, name_of: Callable[[str], Path], begin: Callable[[Path, Path], Derivative]
) -> None:
    """Make a derivative of each of *sources* and say what came of it.

    Exit 5 if something is lost, 3 if a source cannot be read; the others are made.
    """
    lost: list[Broken] = []
    unreadable = False

    def on_broken(broken: Broken) -> None:
        lost.append(broken)
        tell_loss(broken)

    for source, stem in named_apart(sources).items():
        path = name_of(stem)
        try:
            made = derive(source, begin(source, path), on_broken=on_broken)
        except InputError as error:
            typer.echo(harmless(str(error)), err=True)
            unreadable = True
            continue
        facts = f"{made.written:,} of {counted(made.read, 'record')}, {human_size(made.size)}"
        typer.echo(harmless(f"{path}: {facts}"))
    if unreadable:
        raise typer.Exit(ExitCode.INPUT)
    if lost:
        raise typer.Exit(ExitCode.DAMAGED)
