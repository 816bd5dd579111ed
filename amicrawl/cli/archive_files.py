"""Arguments that name archive files: the files themselves, and directories that hold them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.terminal import harmless
from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.index.reading.records import Broken

ArchiveFiles = Annotated[list[Path], typer.Argument(help="WARC or ARC files, or directories of them.")]

_ENDINGS = (".warc", ".warc.gz", ".warc.zst", ".warc.lz4", ".arc", ".arc.gz")


def archive_files(named: Sequence[Path]) -> list[Path]:
    """Return the files in *named*: of a directory those that bear the name of a WARC or ARC file.

    Raises InputError where one is not there, UsageError where there is none at all.
    """
    files: dict[Path, None] = {}
    for path in named:
        if path.is_dir():
            within = sorted(p for p in path.rglob("*") if p.name.endswith(_ENDINGS) and p.is_file())
            files |= dict.fromkeys(within)
        elif path.exists():
            files[path] = None
        else:
            raise InputError(f"{path} is not there. Check the path.")
    if not files:
        raise UsageError("No WARC or ARC file is named. Name files, or a directory that holds some.")
    return list(files)


def tell_loss(broken: Broken) -> None:
    """Say on standard error what is lost of a file."""
    typer.echo(harmless(f"{broken.path}, byte {broken.offset}: {broken.reason}"), err=True)


def make_directory(path: Path) -> None:
    """Make the directory *path* where it is not there; UsageError where it cannot be one."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be a directory for the output: {error.strerror or error}. Choose another "
            "with -o."
        ) from error


def is_watched() -> bool:
    """Tell whether somebody looks at standard error."""
    return sys.stderr.isatty()
