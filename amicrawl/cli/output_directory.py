"""`amicrawl repair` and `upload`: finish what a crawl left in its output directory, or could not do."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.options import CrawlDirectory, check_directory
from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import OPEN_SUFFIX, Disk
from amicrawl.errors import AmicrawlError, InputError, OutputError
from amicrawl.listing import FILE_NAME, check_gathered
from amicrawl.record.repair import repair as repair_directory
from amicrawl.terminal import counted, harmless, human_size
from amicrawl.uploads import Uploads, check_keeps_state, open_bucket

if TYPE_CHECKING:
    from amicrawl.listing import SealedFile


def repair(directory: CrawlDirectory) -> None:
    """Seal what a killed crawl left in DIRECTORY: whole records are kept, torn ones moved aside.

    The next crawl into the directory does the same by itself. Example: amicrawl repair ami-out
    """
    check_directory(directory)
    repaired = repair_directory(directory, disk=Disk())
    typer.echo(repaired.sentence() if repaired.found_anything else f"Nothing to repair in {directory}.")


To = Annotated[str, typer.Option(help="s3://, gs://, file:///, rsync://, rsync+ssh:// or ia:// URL.")]
Frontier = Annotated[bool, typer.Option("--frontier", help="Upload the frontier as well.")]
Remove = Annotated[
    bool, typer.Option("--remove", help="Remove WARC files here once their copies are verified.")
]


def upload(
    directory: CrawlDirectory, to: To, frontier: Frontier = False, remove: Remove = False
) -> None:
    """Upload the files of DIRECTORY to a bucket, and verify each there by size and digest.

    Files that are there already are skipped. Example: amicrawl upload ami-out --to s3://archive/2026-11
    """
    check_directory(directory)
    if frontier:
        check_keeps_state(to, "A frontier")
    disk = Disk()
    with DirectoryLock(directory):
        check_gathered(directory)
        _check_sealed(directory)
        uploads = Uploads(
            directory,
            open_bucket(to, disk=disk),
            disk=disk,
            now=lambda: datetime.now(UTC),
            remove=remove,
        )
        files = [*uploads.warc_files(), *uploads.closing_files(frontier=frontier)]
        if not files:
            raise InputError(f"{directory} holds no crawl. Give the output directory of one.")
        here = {file.name for file in files}
        gone = [name for name in uploads.find_gone() if name not in here]
        left = _send(uploads, files)
        if frontier and not left:
            uploads.drop_frontier_but(files)
        uploads.publish()
        _print_missing(uploads.missing())
        _print_gone(gone, to)
    if left:
        raise OutputError(
            f"Not uploaded: {left} of {counted(len(files), 'file')}. All are still there; run the same "
            "command again."
        )
    there = [file for name, file in uploads.uploaded.items() if name not in gone]
    size = human_size(sum(file.size for file in there))
    typer.echo(f"In {to}, verified: {counted(len(there), 'file')}, {size}.")


def _check_sealed(directory: Path) -> None:
    """Raise InputError where a killed crawl has left what is to be repaired first."""
    unsealed = sorted(path.name for path in directory.glob(f"*{OPEN_SUFFIX}"))
    if unsealed:
        raise InputError(
            f"{directory} has files that are not finished ({unsealed[0]}). Seal them first: "
            f"amicrawl repair {directory}"
        )


def _send(uploads: Uploads, files: list[SealedFile]) -> int:
    """Send *files*, telling of each that could not be sent; return how many those are."""
    left = 0
    for file in files:
        if left and file.name == FILE_NAME:
            # Who finds it in the bucket counts on all that it lists.
            left += 1
            continue
        try:
            uploads.upload(file)
        except AmicrawlError as error:
            left += 1
            typer.echo(f"amicrawl: {harmless(str(error), limit=2000)}", err=True)
    return left


def _print_gone(names: list[str], to: str) -> None:
    if names:
        typer.echo(
            f"{counted(len(names), 'file')} uploaded before ({harmless(names[0])}): not in {to} any "
            "more, and not here.",
            err=True,
        )


def _print_missing(names: list[str]) -> None:
    if names:
        typer.echo(
            f"{len(names)} WARC files that crawl.json lists are neither here nor there "
            f"({harmless(names[0])}): they were moved away before they were uploaded.",
            err=True,
        )
