"""`amicrawl wacz`: WARC files, their index and their pages in one file that replay tools open."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.api import wacz as pack
from amicrawl.archive.index import WACZ_SUFFIXES
from amicrawl.cli.archive_files import check_output_file
from amicrawl.cli.file_work import print_error
from amicrawl.errors import ExitCode, UsageError
from amicrawl.terminal import counted

if TYPE_CHECKING:
    from amicrawl.reading import Broken


Warcs = Annotated[
    list[Path], typer.Argument(metavar="WARC...", help="WARC files, or directories of them.")
]
Package = Annotated[Path, typer.Option("-o", "--out", "--output", help="The package, NAME.wacz.")]
Title = Annotated[str, typer.Option(help="Title of the collection.")]
DescriptionText = Annotated[str, typer.Option(help="What it holds, in Markdown.")]
MainPage = Annotated[
    str, typer.Option("--main-page", help="URL of the page to begin with.", metavar="URL")
]
Pages = Annotated[
    Path | None,
    typer.Option(help="captures.parquet of the crawl: list the pages that it has whole."),
]
Date = Annotated[str, typer.Option(help="Creation time, as 2026-01-31T12:00:00Z; now by default.")]


def wacz(
    warcs: Warcs,
    output: Package,
    *,
    title: Title = "",
    description: DescriptionText = "",
    main_page: MainPage = "",
    pages: Pages = None,
    date: Date = "",
) -> None:
    """Package WARC files with an index and a page list as WACZ.

    Example: amicrawl wacz ami-out -o collection.wacz --title "My collection"
    """
    check_output_file(output, option="-o")
    packed = pack(
        warcs,
        out=output,
        title=title,
        description=description,
        main_page=main_page,
        pages=pages,
        created=_moment(date),
        on_broken=_print_broken,
        on_left_out=_print_left_out,
    )
    typer.echo(
        f"{output}: {counted(packed.warcs, 'WARC file')}, {counted(packed.lines, 'index line')}, "
        f"{counted(packed.pages, 'page')}"
    )
    if packed.broken:
        raise typer.Exit(ExitCode.DAMAGED)


def _print_left_out(path: Path) -> None:
    print_error(f"Left out, as only {' and '.join(WACZ_SUFFIXES)} can go into a package: {path}")


def _moment(date: str) -> datetime:
    if not date:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        moment = datetime.fromisoformat(date)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{date!a} is not a time. Write it as 2026-01-31T12:00:00Z.") from error


def _print_broken(broken: Broken) -> None:
    print_error(f"{broken.path}, byte {broken.offset}: {broken.reason}")
