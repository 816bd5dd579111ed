"""`amicrawl merge`: add to a collection's CDXJ files what its sidecars say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amicrawl.cli.archive_files import make_directory
from amicrawl.cli.options import as_many
from amicrawl.errors import ExitCode
from amicrawl.index.lines.line_reader import files_in
from amicrawl.index.merging.merge import SIDECAR_SUFFIXES, Merged
from amicrawl.index.merging.merge import merge as merge_files
from amicrawl.terminal import LiveLines, counted, harmless

Indexes = Annotated[Path, typer.Argument(metavar="CDXJ", help="A CDXJ file, or a directory of them.")]
Sidecars = Annotated[
    list[Path],
    typer.Argument(metavar="SIDECARS...", help="Sidecars (WARC, or their CDXJ), and directories."),
]
Out = Annotated[Path, typer.Option("-o", "--out", help="Output directory.", metavar="DIRECTORY")]
ByKey = Annotated[
    bool, typer.Option("--by-key", help="Match by key and second only, as merge_cdxj does.")
]
AtATime = Annotated[
    int,
    typer.Option(
        "-j",
        "--jobs",
        "--processes",
        min=0,
        help="Files merged at a time; 0: one for each processor.",
        metavar="N",
    ),
]


def merge(
    indexes: Indexes, sidecars: Sidecars, out: Out, *, by_key: ByKey = False, processes: AtATime = 0
) -> None:
    """Add type, format, charset, languages and soft-404 probability to CDXJ lines.

    A line finds its record by record id, else by file and offset, else by key, second and digest, else
    by key and second. Lines without one are copied. Example: amicrawl merge cdxj/ meta/ -o merged/
    """
    lines, records = files_in([indexes]), files_in(sidecars, suffixes=SIDECAR_SUFFIXES)
    make_directory(out)
    line = LiveLines()

    def show_progress(merged: Merged) -> None:
        counts = merged.counts
        line.show(f"{merged.files:,} of {counted(len(lines), 'file')}, {counted(counts.lines, 'line')}")

    try:
        merged = merge_files(
            lines, records, out, processes=as_many(processes), by_key_only=by_key, show=show_progress
        )
    finally:
        line.clear()
    show(merged, out)
    if merged.faults or merged.counts.malformed:
        raise typer.Exit(ExitCode.DAMAGED)


def show(merged: Merged, out: Path) -> None:
    """Say what became of lines and records."""
    counts = merged.counts
    typer.echo(
        f"{counted(counts.lines, 'line')} in {counted(merged.files, 'file')} below {out}. "
        f"Merged by record id {counts.by_id:,}, "
        f"by file and offset {counts.by_place:,}, by key and digest {counts.by_digest:,}, "
        f"by key and second {counts.by_key:,}; {counts.unmatched:,} copied as they are."
    )
    typer.echo(
        f"{counted(counts.records, 'record')} of sidecars, "
        f"{counts.records_unused:,} of them without a line."
    )
    if counts.ambiguous:
        typer.echo(
            f"Nothing for {counted(counts.ambiguous, 'line')}, because several records of one key and "
            "second say different things. An index with record ids tells them apart: "
            "amicrawl index --fields recordid."
        )
    if counts.malformed:
        typer.echo(f"No CDXJ, and copied as it is: {counted(counts.malformed, 'line')}.", err=True)
    for fault in merged.faults:
        typer.echo(f"Broken: {harmless(fault)}", err=True)
