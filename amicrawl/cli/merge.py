"""`amicrawl merge`: add to a collection's CDXJ files what its sidecars say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amicrawl.archive.index import Merged, merge_on_spark
from amicrawl.archive.index import merge as merge_files
from amicrawl.archive.index.merging.merge import SIDECAR_SUFFIXES
from amicrawl.archive.lines import files_in
from amicrawl.archive.location import Location
from amicrawl.cli.archive_files import make_directory, placed_lines
from amicrawl.cli.options import PartitionedOptions, Processes, Quiet, grouped, process_count
from amicrawl.errors import ExitCode
from amicrawl.terminal import ProgressBar, counted, harmless

Indexes = Annotated[
    str, typer.Argument(metavar="CDXJ", help="A CDXJ file, or a directory of them; for Spark, or a URI.")
]
Sidecars = Annotated[
    list[str],
    typer.Argument(
        metavar="SIDECARS...",
        help="Sidecars (WARC, or their CDXJ), and directories; for Spark, or URIs.",
    ),
]
Out = Annotated[
    str, typer.Option("-o", "--out", help="Output directory; for Spark, or a URI.", metavar="DIRECTORY")
]
ByKey = Annotated[
    bool, typer.Option("--by-key", help="Match by key and second only, as merge_cdxj does.")
]


@grouped
def merge(
    indexes: Indexes,
    sidecars: Sidecars,
    out: Out,
    *,
    by_key: ByKey = False,
    jobs: Processes = 0,
    spark: PartitionedOptions,
    quiet: Quiet = False,
) -> None:
    """Add type, format, charset, languages and soft-404 probability to CDXJ lines.

    A line finds its record by record id, else by file and offset, else by key, second and digest, else
    by key and second. Lines without one are copied. Example: amicrawl merge cdxj/ meta/ -o merged/
    """
    spark.check_places([indexes, *sidecars, out])
    with ProgressBar(quiet=quiet) as bar:

        def show_progress(merged: Merged, files: int) -> None:
            lines = counted(merged.counts.lines, "line")
            bar.show(merged.files, files, f"{merged.files:,} of {counted(files, 'file')}, {lines}")

        if spark.on_spark:
            from amicrawl.archive.spark import session  # noqa: PLC0415  # an extra

            placed = placed_lines([indexes])
            beside = placed_lines(sidecars, suffixes=SIDECAR_SUFFIXES)
            where = Location.of(out)
            with session(spark.master) as opened:
                merged = merge_on_spark(
                    opened, placed, beside, where, by_key_only=by_key, partitions=spark.partitions,
                    show=lambda merged: show_progress(merged, len(placed)),
                )  # fmt: skip
        else:
            lines = files_in([Path(indexes)])
            records = files_in([Path(name) for name in sidecars], suffixes=SIDECAR_SUFFIXES)
            make_directory(Path(out))
            merged = merge_files(
                lines, records, Path(out), processes=process_count(jobs), by_key_only=by_key,
                show=lambda merged: show_progress(merged, len(lines)),
            )  # fmt: skip
    if not quiet:
        show(merged, out)
    print_losses(merged)


def show(merged: Merged, out: str) -> None:
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


def print_losses(merged: Merged) -> None:
    """Print what could not be merged to standard error; if there is any, end with exit code 5."""
    malformed = merged.counts.malformed
    if malformed:
        typer.echo(f"No CDXJ, and copied as it is: {counted(malformed, 'line')}.", err=True)
    for fault in merged.faults:
        typer.echo(f"Broken: {harmless(fault)}", err=True)
    if (more := merged.counts.faults - len(merged.faults)) > 0:
        typer.echo(f"Broken, and not listed: {more:,} more.", err=True)
    if merged.faults or malformed:
        raise typer.Exit(ExitCode.DAMAGED)
