"""`amicrawl collection`: archive files in, index, metadata, table, text and summary out, in one pass.

Table and summary are steps that take the products of all files together. A step is taken again only if
one of these has changed since, or its result is gone.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from amicrawl.cli.archive_files import archive_files, check_root, make_directory, placed_files
from amicrawl.cli.derivatives import show_detectors
from amicrawl.cli.file_work import Screen, do_placed_files
from amicrawl.cli.options import Engine, EngineOption, Master, Processes, Quiet, as_many, to_be_continued
from amicrawl.cli.table import (
    Crawl,
    Flat,
    SchemaName,
    SchemaOption,
    Segment,
    Subset,
    table_options,
)
from amicrawl.disk import OPEN_SUFFIX, Disk, explained, rename_durably, replace_file
from amicrawl.errors import AmicrawlError, ExitCode, UsageError
from amicrawl.index.collection.collecting import FAILED, as_object, collect
from amicrawl.index.collection.products import MARKS, PRODUCTS, ProductOptions, jobs_for
from amicrawl.index.lines.record_lines import Compat, IndexOptions
from amicrawl.index.location import Location, is_uri, reachable
from amicrawl.index.sidecar.detectors import installed_detectors
from amicrawl.report.counts_json import counts_to_json
from amicrawl.report.inputs import files_of
from amicrawl.report.reading import count_on_spark, read_counts
from amicrawl.report.text import text_lines
from amicrawl.table.builder import REJECTS_SUFFIX, REPORT_SUFFIX, NoRowsError, beside, make_table
from amicrawl.terminal import counted, harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from amicrawl.index.collection.collecting import Collected
    from amicrawl.index.collection.file import Outcome
    from amicrawl.table import TableOptions, TableReport


TABLE, SUMMARY = "table", "summary.json"


class Step(NamedTuple):
    """A step."""

    result: str
    """Its result, a name in the collection's directory."""
    take: Callable[[Sequence[Location], Location, TableOptions, SparkSession | None], dict[str, Any]]
    """Makes the result of files, in order, in the collection; returns what the report says of it."""


def make_table_of(
    files: Sequence[Location], collection: Location, options: TableOptions, spark: SparkSession | None
) -> dict[str, Any]:
    """Make the table of *files* in the *collection*, in place of the one that is there."""
    out = collection.below(TABLE)
    try:
        if spark is not None:
            # An extra.
            from amicrawl.table.spark import make_table_on_spark  # noqa: PLC0415

            out.remove()
            report = make_table_on_spark(spark, files, out, options=options)
        elif out.path is None:
            report = _table_in_store(files, out, options)
        else:
            new = out.path.with_name(out.path.name + OPEN_SUFFIX)
            _remove(new)
            report = make_table([file.as_path for file in files], new, disk=Disk(), options=options)
            _remove(out.path)
            rename_durably(new, out.path, disk=Disk())
    except NoRowsError as error:
        # A collection without captures is one, too.
        report = error.report
        out.remove()
    facts = asdict(report)
    return {
        name: facts[name]
        for name in ("lines", "rows", "rejects", "files", "rejects_by_reason", "damaged")
    }


def _table_in_store(files: Sequence[Location], out: Location, options: TableOptions) -> TableReport:
    """Make the table of *files* on this machine and put it into the store, its report last."""
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as name:
        fetched = []
        for number, file in enumerate(files):
            directory = Path(name) / str(number)
            directory.mkdir()
            fetched.append(file.fetched(directory))
        made = Path(name) / TABLE
        report = make_table(fetched, made, disk=Disk(), options=options)
        for suffix in (REPORT_SUFFIX, REJECTS_SUFFIX):
            out.beside(suffix).remove_file()
        out.remove()
        for path in sorted(made.rglob("*.parquet")):
            out.below(path.relative_to(made).as_posix()).put(path)
        for suffix in (REJECTS_SUFFIX, REPORT_SUFFIX):
            if beside(made, suffix).exists():
                out.beside(suffix).put(beside(made, suffix))
        for path, file in zip(fetched, files, strict=True):
            report.damaged = [fault.replace(str(path), str(file)) for fault in report.damaged]
    return report


def _remove(directory: Path) -> None:
    with explained(directory, "removed"):
        if directory.exists():
            shutil.rmtree(directory)


def make_summary_of(
    files: Sequence[Location], out: Location, _options: TableOptions, spark: SparkSession | None
) -> dict[str, Any]:
    """Write the summary of *files* into the collection *out*: as text, and as JSON that adds up."""
    names = [str(file) for file in files]
    if spark is None:
        reading = read_counts(names)
    else:
        reading = count_on_spark(spark, [file for name in names for file in files_of(name)])
    today = datetime.now(tz=UTC).date()
    text = "".join(f"{line}\n" for line in text_lines(reading.counts, today=today, harmless=harmless))
    _write(out.below("summary.txt"), text)
    _write(out.below(SUMMARY), counts_to_json(reading.counts) + "\n")
    skipped = reading.counts.skipped
    return {
        "captures": reading.counts.captures,
        "skipped": skipped.total(),
        "skipped_by_reason": dict(skipped),
        "damaged": reading.damage,
    }


STEPS: dict[str, Step] = {
    TABLE: Step(TABLE, make_table_of),
    "summary": Step(SUMMARY, make_summary_of),
}
"""The steps, by the name that they are asked for by, in the order in which they are taken."""


def source_of(wanted: Collection[str]) -> str:
    """Return the product of each file that steps are taken with, where *wanted* is asked for.

    That is the merged index; the bare one where that is asked for and the other is not.
    """
    return "cdxj" if "cdxj" in wanted and "merged" not in wanted else "merged"


def take_steps(
    names: Sequence[str],
    out: Location,
    collected: Collected,
    *,
    source: str,
    options: TableOptions,
    master: str | None = None,
) -> None:
    """Take the steps *names* with the products *source*, and add to *collected* what the report says.

    *options* are the table's. With *master*, a Spark cluster takes them.
    """
    with reachable(out), ExitStack() as stack:
        spark = None
        made = [
            outcome.products[source].file
            for _, outcome in sorted(collected.outcomes.items())
            if source in outcome.products
        ]
        files = [out.below(file) for file in made]
        facts: list[Any] = [
            [name, *(file.facts() or (-1, -1))] for name, file in zip(made, files, strict=True)
        ]
        of_table = [options.schema.name, options.place, options.flat]
        for name in names:
            written = json.dumps([*facts, of_table] if name == TABLE else facts)
            state = hashlib.sha256(written.encode()).hexdigest()
            taken = _taken_before(name, state, out)
            if taken is None and master is not None and spark is None:
                from amicrawl.index.spark import session  # noqa: PLC0415  # an extra

                spark = stack.enter_context(session(master, shows_tasks=False))
            take = partial(STEPS[name].take, files, out, options, spark)
            collected.steps[name] = taken or _take(take, state, _mark(out, name))


def _taken_before(name: str, state: str, out: Location) -> dict[str, Any] | None:
    try:
        mark = json.loads(_mark(out, name).read() or b"")
        if mark["state"] == state and _is_there(out.below(STEPS[name].result)):
            # What anybody may have changed is read again as what it is, by making it anew if need be.
            return _facts(mark["said"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def _is_there(result: Location) -> bool:
    return result.facts() is not None or bool(result.files())


def _facts(said: Any) -> dict[str, Any]:
    """Return what a step *said*: counts, also by reason, and sentences; TypeError for anything else."""
    facts = {str(name): value for name, value in said.items()}
    for name, value in facts.items():
        counts = value.values() if name.endswith("_by_reason") else [value]
        if name != "damaged" and not all(isinstance(count, int) for count in counts):
            raise TypeError
    facts["damaged"] = [str(sentence) for sentence in facts.get("damaged", [])]
    return facts


def _take(take: Callable[[], dict[str, Any]], state: str, mark: Location) -> dict[str, Any]:
    """Take a step; one that fails costs neither those behind it nor what was made of the files."""
    try:
        said = take()
    except AmicrawlError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, it costs this step only
        return {FAILED: f"{type(error).__name__}: {error}"}
    _write(mark, json.dumps({"state": state, "said": said}))
    return said


def _mark(out: Location, name: str) -> Location:
    # No stem of a file can hold a slash, so a directory of its own keeps the two apart.
    return out.below(f"{MARKS}/steps/{name}.json")


def _write(file: Location, text: str) -> None:
    """Write *text* to *file*, in a store or, durably, on this machine."""
    data = text.encode("utf-8", "replace")
    if file.path is None:
        with reachable(file):
            file.write(data)
    else:
        file.path.parent.mkdir(exist_ok=True)
        replace_file(file.path, data, disk=Disk())


_ALL = "all"
_NAMES = ", ".join([*PRODUCTS, *STEPS])
_DETECTING = frozenset({"sidecar", "merged"})
_LINES_SHOWN = 40


Files = Annotated[
    list[str], typer.Argument(help="WARC or ARC files, directories of them, or URIs of either.")
]
Out = Annotated[str, typer.Option("-o", "--out", help="Directory or URI of the collection.")]
Products = Annotated[str, typer.Option(help=f"Products to build, comma-separated: {_NAMES}.")]
CompatOption = Annotated[
    Compat, typer.Option(help="Reproduce the index lines of this tool byte for byte.")
]
Post = Annotated[bool, typer.Option("--post", help="Make the body of a POST part of its key.")]
DirRoot = Annotated[str | None, typer.Option(help="Record file names relative to this directory.")]
Patience = Annotated[
    int,
    typer.Option(
        min=1, help="Stop a worker process that reports nothing for so many seconds.", metavar="S"
    ),
]


def collection(
    files: Files,
    out: Out,
    *,
    products: Products = _ALL,
    jobs: Processes = 0,
    quiet: Quiet = False,
    compat: CompatOption = Compat.CDXJ_INDEXER,
    post: Post = False,
    dir_root: DirRoot = None,
    patience: Patience = 600,
    schema: SchemaOption = SchemaName.EOT,
    flat: Flat = False,
    crawl: Crawl = "",
    segment: Segment = "",
    subset: Subset = "",
    engine: EngineOption = Engine.LOCAL,
    master: Master = "",
) -> None:
    """Build all derivatives of FILES, each read once; the same command resumes an interrupted run.

    A file that is damaged, or crashes a worker process, does not stop the rest: report.txt and
    report.json name it, and the exit code is 5.

    Example: amicrawl collection crawls/*.warc.gz -o collection/
    """
    wanted = _wanted(products)
    options = table_options(schema, flat=flat, crawl=crawl, segment=segment, subset=subset)
    steps = [name for name in STEPS if name in wanted]
    source = source_of(wanted)
    to_make = [name for name in PRODUCTS if name in wanted or (steps and name == source)]
    if not _DETECTING.isdisjoint(to_make):
        show_detectors(installed_detectors().versions(), quiet=quiet)
    how = ProductOptions(IndexOptions(compat=compat, post=post))
    screen = Screen(quiet=quiet)
    cluster = master if engine is Engine.SPARK else None
    if engine is Engine.SPARK or any(map(is_uri, [*files, out])):
        places = placed_files(files)
        root = None if dir_root is None else Location.of(dir_root).as_path
        work = jobs_for([*places], Path(), products=to_make, options=how, root=root)
        collected = do_placed_files(work, screen, places, out, processes=jobs, master=cluster)
    else:
        collected = _collected_here(
            files, Path(out), to_make, how, screen, root=dir_root, processes=jobs, patience=patience
        )
    where = Location.of(out)
    # What was lost is written down first: a step may fail, for want of room as any.
    _write_report(collected, where)
    with to_be_continued(lambda: None):
        take_steps(steps, where, collected, source=source, options=options, master=cluster)
    if steps:
        _write_report(collected, where)
    if not (quiet and collected.is_sound):
        _show_report(collected, where)
    if not collected.is_sound:
        raise typer.Exit(ExitCode.DAMAGED)


def _collected_here(
    files: Sequence[str],
    out: Path,
    products: Sequence[str],
    options: ProductOptions,
    screen: Screen,
    *,
    root: str | None,
    processes: int,
    patience: int,
) -> Collected:
    """Make *products* of the files on this machine."""
    above = None if root is None else Path(root)
    check_root(above)
    sources = archive_files([Path(name) for name in files])
    make_directory(out)
    work = jobs_for(sources, out, products=products, options=options, root=above)
    with to_be_continued(screen.end):
        collected = collect(
            work, processes=as_many(processes), show=screen.show, patience=timedelta(seconds=patience)
        )
    screen.end()
    return collected


def _wanted(products: str) -> set[str]:
    wanted = {name.strip() for name in products.split(",") if name.strip()}
    if _ALL in wanted:
        wanted = wanted - {_ALL} | {*PRODUCTS, *STEPS}
    unknown = sorted(wanted - set(PRODUCTS) - set(STEPS))
    if unknown or not wanted:
        raise UsageError(
            f"There is no product {', '.join(unknown) or 'named'}. Choose from {_NAMES}, {_ALL}."
        )
    return wanted


def _write_report(collected: Collected, out: Location) -> None:
    facts = json.dumps(as_object(collected), indent=1) + "\n"
    text = "".join(f"{line}\n" for line in _lines(collected))
    for name, written in (("report.json", facts), ("report.txt", text)):
        _write(out.below(name), written)


def _show_report(collected: Collected, out: Location) -> None:
    lines = _lines(collected)
    for line in lines[:_LINES_SHOWN]:
        typer.echo(line)
    if len(lines) > _LINES_SHOWN:
        typer.echo(f"... and {len(lines) - _LINES_SHOWN:,} more lines: {out.below('report.txt')}")


def _lines(collected: Collected) -> list[str]:
    return [harmless(line, limit=2000) for line in report_lines(collected)]


NAMES_SHOWN = 5
"""Names shared by several files that are named."""
LOSSES_SHOWN = 20
"""Losses of one file that are named."""

_REASONS = {
    "rejects_by_reason": f" in table{REJECTS_SUFFIX}",
    "skipped_by_reason": " not in the summary",
}
"""Why a step left lines out, and where those are."""


def report_lines(collected: Collected) -> Iterator[str]:
    """Yield the report, a line at a time."""
    facts = as_object(collected)
    yield (
        f"{counted(facts['files'], 'file')}: {facts['made']:,} done, "
        f"{facts['made_before']:,} done before, {facts['damaged']:,} damaged, "
        f"{facts['failed']:,} failed; {counted(facts['records'], 'record')}"
    )
    for name, product in facts["products"].items():
        entries = "1 entry" if product["entries"] == 1 else f"{product['entries']:,} entries"
        yield f"  {name}: {entries}, {counted(product['bytes'], 'byte')}"
    for name, said in collected.steps.items():
        yield from _step_lines(name, said)
    if collected.not_named:
        yield (
            f"{counted(collected.not_named, 'file')} of earlier runs not named in this one: what came "
            "of them is still there; the table and the summary are without them"
        )
    yield from _same_name_lines(collected.same_names)
    for failed in collected.failed:
        reason = failed.reason.removesuffix(".")
        yield f"failed: {failed.source}, byte {failed.offset}: {reason}. Nothing of it was kept."
    for outcome in collected.outcomes.values():
        yield from _loss_lines(outcome)


def _step_lines(name: str, said: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a step says: its counts, why lines were left out, what was damaged."""
    if FAILED in said:
        yield f"  {name}: failed, {said[FAILED]}"
        return
    counts = [_noun_counted(count, what) for what, count in said.items() if isinstance(count, int)]
    yield f"  {name}: {', '.join(counts)}"
    for key, where in _REASONS.items():
        for reason, count in said.get(key, {}).items():
            yield f"    {counted(count, 'line')}{where}: {reason}"
    for sentence in said.get("damaged", ()):
        yield f"    {sentence}"


def _noun_counted(count: int, what: str) -> str:
    """Return *count* with what is counted: a noun in the plural, or an adjective, `skipped`."""
    return counted(count, what.removesuffix("s")) if what.endswith("s") else f"{count:,} {what}"


def _same_name_lines(names: Mapping[str, int]) -> Iterator[str]:
    for name, count in list(names.items())[:NAMES_SHOWN]:
        yield f"{count:,} files are called {name} in the index: --dir-root DIR has their paths there"
    if len(names) > NAMES_SHOWN:
        yield f"  and {counted(len(names) - NAMES_SHOWN, 'more name')} of several files each"


def _loss_lines(outcome: Outcome) -> Iterator[str]:
    for loss in outcome.losses[:LOSSES_SHOWN]:
        yield f"damaged: {outcome.source}, byte {loss.offset}: {loss.reason}"
    if outcome.lost > LOSSES_SHOWN:
        yield f"damaged: {outcome.source}: and {outcome.lost - LOSSES_SHOWN:,} more"
    if outcome.lost:
        kept = "was" if outcome.records == 1 else "were"
        yield f"  {counted(outcome.records, 'record')} of it {kept} kept"
