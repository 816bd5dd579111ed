"""`amicrawl sidecar`: what the bytes of archived payloads show them to be, as WARC metadata files."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.archive_files import ArchiveFiles, archive_files, make_directory
from amicrawl.cli.detector_lines import detector_lines
from amicrawl.cli.processes import Processes, as_many, to_be_continued
from amicrawl.cli.progress_line import ProgressLine
from amicrawl.cli.terminal import counted, harmless
from amicrawl.errors import ExitCode
from amicrawl.index.collection.marks import Outcome
from amicrawl.index.sidecar.detectors import KINDS
from amicrawl.index.sidecar.file import PRODUCT, Publisher
from amicrawl.index.sidecar.making import Failed, Reached, jobs_for, make_sidecars

if TYPE_CHECKING:
    from amicrawl.index.sidecar.making import Report

_LOSSES_SHOWN = 20


Out = Annotated[Path, typer.Option("-o", "--out", help="Directory for the sidecars.")]
Without = Annotated[
    list[str] | None,
    typer.Option(help=f"A detector to leave out: {', '.join(KINDS)}.", metavar="NAME"),
]
Operator = Annotated[str, typer.Option(help="Who runs this, for the warcinfo record.")]
PublisherName = Annotated[str, typer.Option(help="Whose the sidecars are, for the warcinfo record.")]


def sidecar(  # noqa: PLR0917  # typer makes options of them
    files: ArchiveFiles,
    out: Out = Path(),
    jobs: Processes = 0,
    without: Without = None,
    operator: Operator = "",
    publisher: PublisherName = "",
) -> None:
    """Write what payloads in FILES are (type, PRONOM id, charset, language, soft 404) as X.warc.meta.gz.

    A file that is done is not done again. Exit code 5 where something of a file is lost; the rest of it
    is written. Example: amicrawl sidecar crawls/*.warc.gz -o meta/
    """
    sources = archive_files(files)
    make_directory(out)
    made_by = Publisher(operator=operator, publisher=publisher, address=_address())
    work = jobs_for(sources, out, publisher=made_by, without=without or ())
    for line in detector_lines(work[0].detectors, without=without or ()):
        typer.echo(harmless(line), err=True)
    screen = _Screen(len(work))
    with to_be_continued(screen.clear):
        report = make_sidecars(work, processes=as_many(jobs), show=screen.show)
    screen.clear()
    _say(report)
    if not report.is_sound:
        raise typer.Exit(ExitCode.DAMAGED)


def _address() -> str:
    """Return the IP address that this machine's name stands for, where it has one."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except (OSError, UnicodeError):
        return ""


def _say(report: Report) -> None:
    for outcome in report.before:
        _say_losses(outcome)
    entries = sum(outcome.products[PRODUCT].entries for outcome in report.made)
    records = sum(outcome.records for outcome in report.made)
    typer.echo(
        f"{counted(len(report.made), 'file')}: {counted(entries, 'metadata record')} "
        f"of {counted(records, 'record')}. "
        f"{len(report.before):,} were done before, {len(report.failed):,} failed."
    )


def _say_losses(outcome: Outcome) -> None:
    for loss in outcome.losses[:_LOSSES_SHOWN]:
        typer.echo(harmless(f"{outcome.source}, byte {loss.offset}: {loss.reason}"), err=True)
    if outcome.lost > _LOSSES_SHOWN:
        typer.echo(harmless(f"{outcome.source}: {outcome.lost - _LOSSES_SHOWN:,} more losses"), err=True)


class _Screen:
    """Says what comes of each file, and on a line how far it is."""

    def __init__(self, files: int) -> None:
        self._files = files
        self._done = 0
        self._line = ProgressLine()

    def show(self, told: Outcome | Failed | Reached) -> None:
        """Take in what was told."""
        if isinstance(told, Reached):
            self._line.show(
                f"{self._done:,} of {counted(self._files, 'file')}; in one of them at byte "
                f"{told.offset:,}, {counted(told.records, 'record')}"
            )
            return
        self.clear()
        self._done += 1
        if isinstance(told, Failed):
            line = (
                f"{told.source}: no sidecar could be made; read up to byte {told.offset}: {told.reason}"
            )
            typer.echo(harmless(line), err=True)
            return
        made = told.products[PRODUCT]
        typer.echo(harmless(f"{made.file}: {made.entries:,} of {counted(told.records, 'record')}"))
        _say_losses(told)

    def clear(self) -> None:
        """Take the line on how far it is from the terminal."""
        self._line.clear()
