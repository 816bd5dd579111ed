"""`amicrawl summary`: what an index of captures, a table or a crawl holds, in figures."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from amicrawl.api import summary as counted_summary
from amicrawl.archive.report import (
    CDX_SUMMARY,
    CORRECTED,
    KINDS,
    REPLAY,
    STDIN,
    MixedRulesError,
    count_on_spark,
    counts_to_json,
    files_of,
    narrow_lines,
    narrow_to_json,
    overlap_lines,
    overlap_of,
    report_to_json,
    summary_to_json,
    text_lines,
)
from amicrawl.cli.archive_files import check_output_file
from amicrawl.cli.options import EngineOptions, Quiet, check_installed, grouped
from amicrawl.disk import Disk, OutputFile
from amicrawl.errors import DamagedFileError, ExitCode, InputError, OutputError, UsageError
from amicrawl.listing import FILE_NAME, TABLE_NAME
from amicrawl.terminal import ProgressBar, counted, harmless

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping, Sequence

    from amicrawl.archive.report import Counts, Overlap, ReadingProgress, YearsRead


_WITHOUT = "Name a CDX or CDXJ file, or say with --from what it is."


class Tool(StrEnum):
    """A tool whose figures are given."""

    CDX_SUMMARY = CDX_SUMMARY
    CDX_SUMMARIZE = "cdx-summarize"


class Fold(StrEnum):
    """Which hosts are counted as one."""

    NONE = "none"
    LVL2 = "lvl2"
    PSL = "psl"


class Form(StrEnum):
    """What is printed of the years."""

    LINES = "lines"
    TOTALS = "totals"
    CSV = "csv"
    OVERLAP = "overlap"
    OVERLAP_CSV = "overlap-csv"


Paths = Annotated[
    list[str],
    typer.Argument(
        help="CDX, CDXJ, ZipNum directory, Parquet table, captures.parquet, JSON, WARC, ARC, "
        "directories and URIs of them; - is stdin."
    ),
]


@dataclass(frozen=True)
class YearOptions:
    """What is printed with --compat cdx-summarize."""

    monthly: Annotated[bool, typer.Option("--monthly", help="cdx-summarize: by month.")] = False
    compact: Annotated[bool, typer.Option("--compact", help="cdx-summarize: without zeros.")] = False
    full_host: Annotated[bool, typer.Option("--fullhost", help="cdx-summarize: by host.")] = False
    fold: Annotated[Fold, typer.Option(help="cdx-summarize: count these hosts as one.")] = Fold.NONE
    show: Annotated[Form, typer.Option(help="cdx-summarize: what is printed.")] = Form.LINES


@dataclass(frozen=True)
class SummaryOptions:
    """What is counted, and where the figures go."""

    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON that can be merged with others.")
    ] = False
    as_text: Annotated[bool, typer.Option("--text", help="Print text (the default).")] = False
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page with charts.", metavar="FILE")
    ] = None
    compat: Annotated[Tool | None, typer.Option(help="Exactly the figures of this tool.")] = None
    source: Annotated[
        str | None, typer.Option("--from", help=f"One of {', '.join(KINDS)}.", metavar="KIND")
    ] = None
    overlap: Annotated[
        list[str] | None,
        typer.Option(help="Report what PATH and OTHER have in common.", metavar="OTHER"),
    ] = None
    report: Annotated[bool, typer.Option("--report", help="With --json: raw values, all hosts.")] = False
    hosts: Annotated[int, typer.Option("--tophosts", min=0, help="Hosts to show; 0 shows all.")] = 10
    samples: Annotated[int, typer.Option(min=0, max=100, help="Samples to show.")] = 10
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Tables only: leave out what needs keys; many times as fast."),
    ] = False
    quiet: Quiet = False
    replay: Annotated[str, typer.Option(help="URL prefix of the links to samples.")] = REPLAY

    @property
    def prints_text(self) -> bool:
        """Whether text is printed: where it is requested, or nothing else is."""
        return self.as_text or not (self.as_json or self.html)


@grouped
def summary(paths: Paths, *, options: SummaryOptions, years: YearOptions, where: EngineOptions) -> None:
    """Summarise the indexes, tables or archive files at PATHs as one collection.

    Example: amicrawl summary ami-out/captures.parquet --html summary.html
    """
    _check([*paths, *(options.overlap or ())], options, years, where)
    if options.compat is Tool.CDX_SUMMARIZE:
        _print_years(paths, years)
    elif options.quick:
        _quick(paths, options)
    else:
        _print_summary(paths, options, where)


def _check(
    inputs: Sequence[str], options: SummaryOptions, years: YearOptions, where: EngineOptions
) -> None:
    """Raise UsageError for what does not go together."""
    is_years = options.compat is Tool.CDX_SUMMARIZE
    only_ours = options.html or options.overlap or options.source or options.report
    if where.on_spark and (options.quick or is_years or STDIN in inputs):
        raise UsageError(
            f"--quick, --compat {Tool.CDX_SUMMARIZE} and standard input are for this machine. "
            "Leave --engine out."
        )
    if options.source is not None and options.source not in KINDS:
        raise UsageError(f"--from {options.source!a} is not known. Choose one of {', '.join(KINDS)}.")
    if inputs.count(STDIN) > 1:
        raise UsageError(f"{STDIN} is standard input, which can be read once. Name it once.")
    if is_years and (only_ours or options.as_json or options.quick):
        raise UsageError(
            f"--compat {options.compat} prints lines of its own. Leave --json, --html, --overlap, "
            "--report, --quick and --from out."
        )
    if not is_years and years != YearOptions():
        raise UsageError(
            "--monthly, --compact, --fullhost, --fold and --show are options of "
            f"--compat {Tool.CDX_SUMMARIZE}. Add that, or leave them out."
        )
    if options.quick and (only_ours or options.compat):
        raise UsageError("--quick goes with --json and --text only: it knows no hosts or URLs.")


def _print_summary(paths: Sequence[str], options: SummaryOptions, where: EngineOptions) -> None:
    """Count the captures at *paths*, and print or write the figures."""
    html = options.html
    if html is not None:
        check_output_file(html, option="--html")
    rules = CORRECTED if options.compat is None else CDX_SUMMARY
    with ProgressBar(quiet=options.quiet) as bar:
        reading, other = _counted(paths, options, bar, rules=rules, master=where.cluster)
    for one in (reading, other):
        if one is not None:
            if one.without_captures and not one.counts.captures:
                raise InputError(f"{one.without_captures[-1]}. {_WITHOUT}")
            one.damage += (f"{each}. {_WITHOUT}" for each in one.without_captures)
    shared = None
    if other:
        reading.damage += other.damage
        shared = overlap_of(reading.counts, other.counts)
    hosts = options.hosts or len(reading.counts.by_host)
    shown = _ShownParts(reading.counts, shared, hosts, options.samples, options.replay)
    if html is not None:
        _write(html, shown.page(f"Summary of {', '.join(Path(path).name or path for path in paths)}"))
    if options.as_json:
        typer.echo(shown.json(report=options.report))
    if options.prints_text:
        typer.echo("\n".join(shown.lines()))
        if rules == CORRECTED:
            for line in _unkept(paths):
                typer.echo(f"note: {harmless(line)}")
    # A text has what was skipped.
    if not options.prints_text or rules == CDX_SUMMARY:
        _print_skipped(reading.counts.skipped)
    _print_damage(reading.damage)


def _unkept(paths: Sequence[str]) -> Iterator[str]:
    """Yield what the crawls at *paths*, their directories or their indexes, could not keep."""
    for name in paths:
        path = Path(name)
        directory = path.parent if path.name == TABLE_NAME else path
        if "://" not in name and (directory / FILE_NAME).is_file():
            # Indexes have none of this, and what a crawl keeps takes a tenth of their start to import.
            from amicrawl.listing import read_crawl_json  # noqa: PLC0415
            from amicrawl.record import unkept_sentences  # noqa: PLC0415

            with suppress(DamagedFileError):
                yield from unkept_sentences(read_crawl_json(directory).get("unkept"), str(directory))


def _counted(
    paths: Sequence[str],
    options: SummaryOptions,
    bar: ProgressBar,
    *,
    rules: str,
    master: str | None,
) -> tuple[ReadingProgress, ReadingProgress | None]:
    """Count *paths*, and those of --overlap if there are any; over Spark if there is a *master*."""
    others, kind = options.overlap or (), options.source
    if master is not None:
        from amicrawl.archive.spark import session  # noqa: PLC0415  # an extra

        # What is missing is found before Spark is started.
        files, other = ([file for name in names for file in files_of(name)] for names in (paths, others))
        with session(master) as spark:
            count = partial(count_on_spark, spark, rules=rules, kind=kind)
            return count(files), count(other) if other else None
    read = partial(
        counted_summary,
        rules=rules,
        kind=kind,
        progress=lambda done, total, counts: bar.show(done, total, counted(counts.captures, "capture")),
    )
    try:
        return read(paths), read(others) if others else None
    except MixedRulesError as error:
        raise UsageError(f"{error} --compat sets them.") from error


class _ShownParts(NamedTuple):
    """What is shown, and how much of it."""

    counts: Counts
    shared: Overlap | None
    hosts: int
    samples: int
    replay: str

    def page(self, title: str) -> str:
        # What only some want is loaded for them alone, here and below: starting is most of a short run.
        from amicrawl.archive.report import page_of  # noqa: PLC0415

        return page_of(
            self.counts,
            title=title,
            hosts=self.hosts,
            samples=self.samples,
            replay=self.replay,
            overlap=self.shared,
        )

    def json(self, *, report: bool) -> str:
        if report:
            text = report_to_json(self.counts, samples=self.samples)
        elif self.counts.rules == CDX_SUMMARY:
            text = summary_to_json(self.counts, hosts=self.hosts, samples=self.samples)
        else:
            text = counts_to_json(self.counts, hosts=self.hosts, samples=self.samples)
        if self.shared is None:
            return text
        return json.dumps({**json.loads(text), "overlap": self.shared.as_dict()}, indent=2)

    def lines(self) -> list[str]:
        lines = text_lines(
            self.counts,
            hosts=self.hosts,
            samples=self.samples,
            today=datetime.now(tz=UTC).date(),
            harmless=harmless,
            replay=self.replay,
        )
        return [*lines, *(overlap_lines(self.shared) if self.shared is not None else ())]


def _quick(paths: list[str], options: SummaryOptions) -> None:
    check_installed("query", "duckdb")
    from amicrawl.archive.report import count_narrow  # noqa: PLC0415  # loaded for this alone

    counts = count_narrow(paths)
    if options.as_json:
        typer.echo(narrow_to_json(counts))
    if options.prints_text:
        typer.echo("\n".join(narrow_lines(counts, today=datetime.now(tz=UTC).date())))
    _print_skipped(counts.skipped)


def _print_years(paths: list[str], options: YearOptions) -> None:
    from amicrawl.archive.report import folded, read_years  # noqa: PLC0415

    read_one = partial(
        read_years, monthly=options.monthly, full_host=options.full_host, fold=folded(options.fold)
    )
    if options.show in {Form.OVERLAP, Form.OVERLAP_CSV}:
        as_csv = options.show is Form.OVERLAP_CSV
        _show_overlap({path: read_one([path]) for path in paths}, as_csv=as_csv)
        return
    read = read_one(paths)
    lines = {
        "lines": lambda: read.years.lines(compact=options.compact),
        "totals": read.years.totals,
        "csv": read.years.csv,
    }[options.show]()
    for line in lines:
        typer.echo(line)
    _print_skipped(read.skipped)
    _print_damage(read.damage)


def _show_overlap(archives: Mapping[str, YearsRead], *, as_csv: bool) -> None:
    from amicrawl.archive.report import shared_csv, shared_years  # noqa: PLC0415

    names = dict(zip(archives, _names(list(archives)), strict=True))
    shared = shared_years({names[path]: read.years for path, read in archives.items()})
    for line in shared_csv(shared) if as_csv else [json.dumps(shared)]:
        typer.echo(line)
    for path, read in archives.items():
        _print_skipped(read.skipped, of=path)
    _print_damage([sentence for read in archives.values() for sentence in read.damage])


def _names(paths: list[str]) -> list[str]:
    """Return what tells *paths* apart: names without what stands behind the first dot, or all of it."""
    short = [Path(path).name.partition(".")[0] for path in paths]
    return short if len(set(short)) == len(short) and all(short) else paths


def _print_skipped(skipped: Counter[str], *, of: str = "") -> None:
    if skipped:
        where = f" of {harmless(of)}" if of else ""
        sys.stderr.write(f"amicrawl: skipped {counted(skipped.total(), 'line')}{where}, by reason:\n")
        for reason, lines in skipped.most_common():
            sys.stderr.write(f"  {lines:>12,}  {harmless(reason)}\n")


def _print_damage(damage: list[str]) -> None:
    for sentence in damage:
        sys.stderr.write(f"amicrawl: {harmless(sentence)}\n")
    if damage:
        raise typer.Exit(ExitCode.DAMAGED)


def _write(path: Path, page: str) -> None:
    output = None
    try:
        output = OutputFile.replacing(path, disk=Disk())
        output.write(page.encode("utf-8"))
        output.seal()
    except OutputError as error:
        reason = getattr(error.__cause__, "strerror", "") or error
        raise OutputError(
            f"{path} cannot be written: {reason}. Name another place with --html."
        ) from error
    finally:
        if output is not None:
            output.close()
