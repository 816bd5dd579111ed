"""`amicrawl table`: the table of a collection, from its CDXJ files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from amicrawl.api import table as make_table
from amicrawl.archive.location import Location, is_uri
from amicrawl.archive.table import (
    MONTH_PREFIX,
    REJECTS_SUFFIX,
    SCHEMAS,
    CapturePlace,
    TableOptions,
    TableReport,
    beside,
)
from amicrawl.cli.archive_files import placed_lines
from amicrawl.cli.options import PartitionedOptions, Quiet, grouped
from amicrawl.errors import ExitCode
from amicrawl.terminal import ProgressBar, counted, harmless


class SchemaName(StrEnum):
    """Which table is made."""

    EOT = "eot"
    CCINDEX = "ccindex"


Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="CDXJ...", help="CDXJ files, packed with gzip or not, and directories; URIs for Spark."
    ),
]
Out = Annotated[
    str,
    typer.Option(
        "-o", "--out", help="Directory of the table; for Spark, or a URI.", metavar="DIRECTORY"
    ),
]


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns a table has, and what some of them say."""

    schema: Annotated[
        SchemaName, typer.Option(help="The 31 columns of the End of Term table, or Common Crawl's.")
    ] = SchemaName.EOT
    flat: Annotated[
        bool,
        typer.Option("--flat", help="No partition directories: crawl and subset as ordinary columns."),
    ] = False
    language_shares: Annotated[
        bool,
        typer.Option(
            "--language-shares",
            help="One more column: content_language_shares, percents of the text, as 83,12.",
        ),
    ] = False
    crawl: Annotated[
        str, typer.Option(help="Value of the column crawl in all rows; from file names by default.")
    ] = ""
    segment: Annotated[str, typer.Option(help="Value of the column segment.")] = ""
    subset: Annotated[str, typer.Option(help="Value of the column subset.")] = ""

    def table_options(self) -> TableOptions:
        """Return them as options of the table."""
        place = CapturePlace(self.crawl or None, self.segment or None, self.subset or None)
        schema = SCHEMAS[self.schema.value]
        if self.language_shares:
            schema = schema.with_language_shares()
        return TableOptions(schema=schema, place=place, flat=self.flat)


@grouped
def table(
    inputs: Inputs,
    out: Out,
    *,
    columns: ColumnOptions,
    spark: PartitionedOptions,
    quiet: Quiet = False,
) -> None:
    """Convert CDXJ files to a Parquet table with one row per capture.

    A line that cannot be converted is written to `DIRECTORY.rejects.txt`, behind the reason; the exit
    code is then 5. Example: amicrawl table merged/ -o table/
    """
    options = columns.table_options()
    spark.check_places([*inputs, out])
    if spark.on_spark:
        from amicrawl.archive.spark import session  # noqa: PLC0415  # an extra
        from amicrawl.archive.table import make_table_on_spark  # noqa: PLC0415

        places, where = placed_lines(inputs), Location.of(out)
        with session(spark.master) as opened:
            report = make_table_on_spark(
                opened, places, where, options=options, partitions=spark.partitions
            )
    else:
        with ProgressBar(quiet=quiet) as bar:

            def show_progress(done: int, total: int, made: TableReport) -> None:
                bar.show(done, total, counted(made.lines, "line") if made.lines else "sorting")

            report = make_table(inputs, out=out, options=options, progress=show_progress)
    show(report, out, quiet=quiet)
    if report.rejects or report.damaged:
        raise typer.Exit(ExitCode.DAMAGED)


def show(report: TableReport, out: str, *, quiet: bool) -> None:
    """Say what became of the lines; if *quiet*, only of those that gave no row."""
    files, lines = counted(report.files, "file"), counted(report.lines, "line")
    if not quiet:
        typer.echo(f"{counted(report.rows, 'row')} in {files} below {out}, of {lines}.")
    if report.rows_without_crawl and not quiet:
        typer.echo(
            f"Filed by month, as crawl={MONTH_PREFIX}YYYY-MM: "
            f"{counted(report.rows_without_crawl, 'row')}. WARC file names "
            f"({harmless(report.example_without_crawl or 'none given', limit=120)}) name no crawl. "
            "Name it with --crawl, --segment and --subset."
        )
    rejects = (
        Location.of(out).beside(REJECTS_SUFFIX) if is_uri(out) else beside(Path(out), REJECTS_SUFFIX)
    )
    for reason, count in sorted(report.rejects_by_reason.items(), key=lambda item: -item[1]):
        typer.echo(f"{counted(count, 'line')} in {rejects}: {harmless(reason)}.", err=True)
    for damage in report.damaged:
        typer.echo(f"Damaged, and read up to there: {harmless(damage)}", err=True)
