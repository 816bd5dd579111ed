"""`amicrawl summary`: what an index of captures, a table or a crawl holds, in figures."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from amicrawl.cli.archive_files import check_output_file
from amicrawl.cli.options import Engine, EngineOption, Master, Quiet, check_installed
from amicrawl.disk import Disk, OutputFile
from amicrawl.errors import ExitCode, InputError, OutputError, UsageError
from amicrawl.report.counts import CDX_SUMMARY, CORRECTED
from amicrawl.report.counts_json import counts_to_json, narrow_to_json, report_to_json, summary_to_json
from amicrawl.report.figures import overlap_of, overlap_to_json
from amicrawl.report.inputs import STDIN, files_of
from amicrawl.report.reading import KINDS, count_on_spark, read_counts
from amicrawl.report.text import REPLAY, narrow_lines, overlap_lines, text_lines
from amicrawl.terminal import ProgressBar, counted, harmless

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from amicrawl.report.counts import Counts
    from amicrawl.report.figures import Overlap
    from amicrawl.report.reading import Reading
    from amicrawl.report.years import YearsRead


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
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON that can be merged with others.")]
AsText = Annotated[bool, typer.Option("--text", help="Print text (the default).")]
Html = Annotated[Path | None, typer.Option("--html", help="Write a page with charts.", metavar="FILE")]
CompatOption = Annotated[Tool | None, typer.Option(help="Exactly the figures of this tool.")]
Source = Annotated[
    str | None, typer.Option("--from", help=f"One of {', '.join(KINDS)}.", metavar="KIND")
]
Others = Annotated[
    list[str] | None, typer.Option(help="Report what PATH and OTHER have in common.", metavar="OTHER")
]
Report = Annotated[bool, typer.Option("--report", help="With --json: raw values, all hosts.")]
Hosts = Annotated[int, typer.Option("--tophosts", min=0, help="Hosts to show; 0 shows all.")]
Samples = Annotated[int, typer.Option(min=0, max=100, help="Samples to show.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="Tables only: leave out what needs keys; many times as fast.")
]
Replay = Annotated[str, typer.Option(help="URL prefix of the links to samples.")]
Monthly = Annotated[bool, typer.Option("--monthly", help="cdx-summarize: by month.")]
Compact = Annotated[bool, typer.Option("--compact", help="cdx-summarize: without zeros.")]
FullHost = Annotated[bool, typer.Option("--fullhost", help="cdx-summarize: by host.")]
FoldOption = Annotated[Fold, typer.Option(help="cdx-summarize: count these hosts as one.")]
ShowForm = Annotated[Form, typer.Option(help="cdx-summarize: what is printed.")]


def summary(
    paths: Paths,
    *,
    as_json: AsJson = False,
    as_text: AsText = False,
    html: Html = None,
    compat: CompatOption = None,
    source: Source = None,
    overlap: Others = None,
    report: Report = False,
    hosts: Hosts = 10,
    samples: Samples = 10,
    quick: Quick = False,
    quiet: Quiet = False,
    replay: Replay = REPLAY,
    monthly: Monthly = False,
    compact: Compact = False,
    full_host: FullHost = False,
    fold: FoldOption = Fold.NONE,
    show: ShowForm = Form.LINES,
    engine: EngineOption = Engine.LOCAL,
    master: Master = "",
) -> None:
    """Summarise the indexes, tables or archive files at PATHs as one collection.

    Example: amicrawl summary ami-out/captures.parquet --html summary.html
    """
    inputs = [*paths, *(overlap or ())]
    _check(
        compat,
        inputs,
        ours=(as_json, html, overlap, report, quick, source),
        theirs=(monthly, compact, full_host, fold is not Fold.NONE, show is not Form.LINES),
        on_spark=engine is Engine.SPARK and (quick or compat is Tool.CDX_SUMMARIZE or STDIN in inputs),
        beside_quick=quick and (compat or html or overlap or report or source),
    )
    as_text = as_text or not (as_json or html)
    if compat is Tool.CDX_SUMMARIZE:
        _summarize(paths, monthly=monthly, compact=compact, full_host=full_host, fold=fold, show=show)
        return
    if quick:
        _quick(paths, as_json=as_json, as_text=as_text)
        return
    if html is not None:
        check_output_file(html, option="--html")
    rules = CORRECTED if compat is None else CDX_SUMMARY
    with ProgressBar(quiet=quiet) as bar:
        reading, other = _counted(
            paths, overlap or (), bar, rules=rules, kind=source,
            master=master if engine is Engine.SPARK else None,
        )  # fmt: skip
    for one in (reading, other):
        if one is not None:
            if one.without_captures and not one.counts.captures:
                raise InputError(one.without_captures[-1])
            one.damage += one.without_captures
    shared = None
    if other:
        reading.damage += other.damage
        shared = overlap_of(reading.counts, other.counts)
    shown = _Shown(reading.counts, shared, hosts or len(reading.counts.by_host), samples, replay)
    if html is not None:
        _write(html, shown.page(f"Summary of {', '.join(Path(path).name or path for path in paths)}"))
    if as_json:
        typer.echo(shown.json(report=report))
    if as_text:
        typer.echo("\n".join(shown.lines()))
    # A text has what was skipped.
    if not as_text or rules == CDX_SUMMARY:
        _tell_skipped(reading.counts.skipped)
    _tell_damage(reading.damage)


def _counted(
    paths: Sequence[str],
    others: Sequence[str],
    bar: ProgressBar,
    *,
    rules: str,
    kind: str | None,
    master: str | None,
) -> tuple[Reading, Reading | None]:
    """Count *paths*, and *others* where there are any; over Spark where there is a *master*."""
    if master is not None:
        from amicrawl.index.spark import session  # noqa: PLC0415  # an extra

        # What is missing is found before Spark is started.
        files, other = ([file for name in names for file in files_of(name)] for names in (paths, others))
        with session(master) as spark:
            count = partial(count_on_spark, spark, rules=rules, kind=kind)
            return count(files), count(other) if other else None
    read = partial(
        read_counts,
        rules=rules,
        kind=kind,
        progress=lambda done, total, counts: bar.show(done, total, counted(counts.captures, "capture")),
    )
    return read(paths), read(others) if others else None


def _check(
    compat: Tool | None,
    inputs: Sequence[str],
    *,
    ours: Sequence[object],
    theirs: Sequence[object],
    on_spark: bool,
    beside_quick: object,
) -> None:
    """Raise UsageError for what does not go together: *theirs* are options of cdx-summarize only."""
    refused = None
    if on_spark:
        refused = (
            f"--quick, --compat {Tool.CDX_SUMMARIZE} and standard input are for this machine. "
            "Leave --engine out."
        )
    elif inputs.count(STDIN) > 1:
        refused = f"{STDIN} is standard input, which can be read once. Name it once."
    elif compat is Tool.CDX_SUMMARIZE and any(ours):
        refused = (
            f"--compat {compat} prints lines of its own. Leave --json, --html, --overlap, --report, "
            "--quick and --from out."
        )
    elif compat is not Tool.CDX_SUMMARIZE and any(theirs):
        refused = (
            "--monthly, --compact, --fullhost, --fold and --show are options of "
            f"--compat {Tool.CDX_SUMMARIZE}. Add that, or leave them out."
        )
    elif beside_quick:
        refused = "--quick goes with --json and --text only: it knows no hosts or URLs."
    if refused:
        raise UsageError(refused)


class _Shown(NamedTuple):
    """What is shown, and how much of it."""

    counts: Counts
    shared: Overlap | None
    hosts: int
    samples: int
    replay: str

    def page(self, title: str) -> str:
        # What only some want is loaded for them alone, here and below: starting is most of a short run.
        from amicrawl.report.page import page_of  # noqa: PLC0415

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
        return json.dumps({**json.loads(text), "overlap": overlap_to_json(self.shared)}, indent=2)

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


def _quick(paths: list[str], *, as_json: bool, as_text: bool) -> None:
    check_installed("query", "duckdb")
    from amicrawl.report.parquet import count_narrow  # noqa: PLC0415  # loaded for this alone

    counts = count_narrow(paths)
    if as_json:
        typer.echo(narrow_to_json(counts))
    if as_text:
        typer.echo("\n".join(narrow_lines(counts, today=datetime.now(tz=UTC).date())))
    _tell_skipped(counts.skipped)


def _summarize(
    paths: list[str], *, monthly: bool, compact: bool, full_host: bool, fold: Fold, show: Form
) -> None:
    from amicrawl.report.years import folded, read_years  # noqa: PLC0415

    read_one = partial(read_years, monthly=monthly, full_host=full_host, fold=folded(fold))
    if show in {Form.OVERLAP, Form.OVERLAP_CSV}:
        _show_overlap({path: read_one([path]) for path in paths}, as_csv=show is Form.OVERLAP_CSV)
        return
    read = read_one(paths)
    lines = {
        "lines": lambda: read.years.lines(compact=compact),
        "totals": read.years.totals,
        "csv": read.years.csv,
    }[show]()
    for line in lines:
        typer.echo(line)
    _tell_skipped(read.skipped)
    _tell_damage(read.damage)


def _show_overlap(archives: Mapping[str, YearsRead], *, as_csv: bool) -> None:
    from amicrawl.report.years import shared_csv, shared_years  # noqa: PLC0415

    names = dict(zip(archives, _names(list(archives)), strict=True))
    shared = shared_years({names[path]: read.years for path, read in archives.items()})
    for line in shared_csv(shared) if as_csv else [json.dumps(shared)]:
        typer.echo(line)
    for path, read in archives.items():
        _tell_skipped(read.skipped, of=path)
    _tell_damage([sentence for read in archives.values() for sentence in read.damage])


def _names(paths: list[str]) -> list[str]:
    """Return what tells *paths* apart: names without what stands behind the first dot, or all of it."""
    short = [Path(path).name.partition(".")[0] for path in paths]
    return short if len(set(short)) == len(short) and all(short) else paths


def _tell_skipped(skipped: Counter[str], *, of: str = "") -> None:
    if skipped:
        where = f" of {harmless(of)}" if of else ""
        sys.stderr.write(f"amicrawl: skipped {counted(skipped.total(), 'line')}{where}, by reason:\n")
        for reason, lines in skipped.most_common():
            sys.stderr.write(f"  {lines:>12,}  {harmless(reason)}\n")


def _tell_damage(damage: list[str]) -> None:
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
