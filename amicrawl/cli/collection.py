"""`amicrawl collection`: archive files in, index, metadata, table, text and summary out, in one pass."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.api import check_root
from amicrawl.archive.index import ProductOptions, collect, installed_detectors, jobs_for
from amicrawl.archive.index.collection.products import PRODUCTS
from amicrawl.archive.lines import Compat, IndexOptions, archive_files
from amicrawl.archive.location import Location, is_uri
from amicrawl.cli.archive_files import make_directory, placed_files
from amicrawl.cli.collection_steps import STEPS, source_of, step_lines, take_steps, write
from amicrawl.cli.derivatives import show_detectors
from amicrawl.cli.file_work import DIR_ROOT, CompatOption, DirRoot, Post, Screen, do_placed_files
from amicrawl.cli.options import EngineOptions, Processes, Quiet, grouped, process_count, resumable
from amicrawl.cli.table import ColumnOptions
from amicrawl.errors import ExitCode, UsageError
from amicrawl.terminal import counted, harmless

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from amicrawl.archive.index import Collected, FileOutcome

_ALL = "all"
_NAMES = ", ".join([*PRODUCTS, *STEPS])
_DETECTING = frozenset({"sidecar", "merged"})
_LINES_SHOWN = 40


Files = Annotated[
    list[str], typer.Argument(help="WARC or ARC files, directories of them, or URIs of either.")
]
Out = Annotated[str, typer.Option("-o", "--out", help="Directory or URI of the collection.")]
Products = Annotated[str, typer.Option(help=f"Products to build, comma-separated: {_NAMES}.")]
Patience = Annotated[
    int,
    typer.Option(
        min=1,
        max=999_999,
        help="Stop a worker process that reports nothing for so many seconds.",
        metavar="S",
    ),
]


@grouped
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
    columns: ColumnOptions,
    where: EngineOptions,
) -> None:
    """Build all derivatives of FILES, each read once; the same command resumes an interrupted run.

    A file that is damaged, or crashes a worker process, does not stop the rest: report.txt and
    report.json name it, and the exit code is 5.

    Example: amicrawl collection crawls/*.warc.gz -o collection/
    """
    wanted = _wanted(products)
    options = columns.table_options()
    steps = [name for name in STEPS if name in wanted]
    source = source_of(wanted)
    to_make = [name for name in PRODUCTS if name in wanted or (steps and name == source)]
    if not _DETECTING.isdisjoint(to_make):
        show_detectors(installed_detectors().versions(), quiet=quiet)
    how = ProductOptions(IndexOptions(compat=compat, post=post))
    screen = Screen(quiet=quiet)
    if where.on_spark or any(map(is_uri, [*files, out])):
        places = placed_files(files)
        root = None if dir_root is None else Location.of(dir_root).as_path
        work = jobs_for([*places], Path(), products=to_make, options=how, root=root)
        collected = do_placed_files(work, screen, places, out, processes=jobs, master=where.cluster)
    else:
        collected = _collected_here(
            files, Path(out), to_make, how, screen, root=dir_root, processes=jobs, patience=patience
        )
    collection_at = Location.of(out)
    # What was lost is written down first: a step may fail, for want of room as any.
    _write_report(collected, collection_at)
    with resumable(lambda: None):
        take_steps(steps, collection_at, collected, source=source, options=options, master=where.cluster)
    if steps:
        _write_report(collected, collection_at)
    if not (quiet and collected.is_sound):
        _show_report(collected, collection_at)
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
    check_root(above, written=DIR_ROOT)
    sources = archive_files([Path(name) for name in files])
    make_directory(out)
    work = jobs_for(sources, out, products=products, options=options, root=above)
    with resumable(screen.end):
        collected = collect(
            work,
            processes=process_count(processes),
            show=screen.show,
            patience=timedelta(seconds=patience),
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
    facts = json.dumps(collected.as_dict(), indent=1) + "\n"
    text = "".join(f"{line}\n" for line in _lines(collected))
    for name, written in (("report.json", facts), ("report.txt", text)):
        write(out.below(name), written)


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


def report_lines(collected: Collected) -> Iterator[str]:
    """Yield the report, a line at a time."""
    facts = collected.as_dict()
    yield (
        f"{counted(facts['files'], 'file')}: {facts['made']:,} done, "
        f"{facts['made_before']:,} done before, {facts['damaged']:,} damaged, "
        f"{facts['failed']:,} failed; {counted(facts['records'], 'record')}"
    )
    for name, product in facts["products"].items():
        entries = "1 entry" if product["entries"] == 1 else f"{product['entries']:,} entries"
        yield f"  {name}: {entries}, {counted(product['bytes'], 'byte')}"
    for name, said in collected.steps.items():
        yield from step_lines(name, said)
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


def _same_name_lines(names: Mapping[str, int]) -> Iterator[str]:
    for name, count in list(names.items())[:NAMES_SHOWN]:
        yield f"{count:,} files are called {name} in the index: --dir-root DIR has their paths there"
    if len(names) > NAMES_SHOWN:
        yield f"  and {counted(len(names) - NAMES_SHOWN, 'more name')} of several files each"


def _loss_lines(outcome: FileOutcome) -> Iterator[str]:
    for loss in outcome.losses[:LOSSES_SHOWN]:
        yield f"damaged: {outcome.source}, byte {loss.offset}: {loss.reason}"
    if outcome.lost > LOSSES_SHOWN:
        yield f"damaged: {outcome.source}: and {outcome.lost - LOSSES_SHOWN:,} more"
    if outcome.lost:
        kept = "was" if outcome.records == 1 else "were"
        yield f"  {counted(outcome.records, 'record')} of it {kept} kept"
