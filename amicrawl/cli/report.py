"""`amicrawl report`: one crawl as a page that opens anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amicrawl.archive.report import figures_of, page_of_crawl
from amicrawl.cli.archive_files import check_output_file
from amicrawl.cli.options import check_directory
from amicrawl.disk import Disk, replace_file
from amicrawl.terminal import counted

Crawl = Annotated[Path, typer.Argument(metavar="DIR", help="Output directory of a crawl.")]
Output = Annotated[Path, typer.Option("-o", "--out", "--output", help="The page, NAME.html.")]
Compare = Annotated[
    Path | None, typer.Option(metavar="OLDER", help="Output directory of an older crawl of the same.")
]
Title = Annotated[
    str, typer.Option(help="Title of the page; by default the start URL or the directory.")
]


def report(
    directory: Crawl, output: Output = Path("report.html"), compare: Compare = None, title: Title = ""
) -> None:
    """Write a page about the crawl in DIR: rates over time, hosts, types, failures and remedies.

    The page is one file without scripts that needs no network. A running or killed crawl has one, too.
    Example: amicrawl report ami-out -o report.html
    """
    for crawl in (directory, *([compare] if compare is not None else ())):
        check_directory(crawl)
    check_output_file(output, option="-o")
    figures = figures_of(directory, older=compare)
    asked = figures.crawl.get("asked")
    start = str(asked.get("url") or asked.get("file") or "") if isinstance(asked, dict) else ""
    heading = title or f"Crawl of {start or directory.absolute().name}"
    replace_file(output, page_of_crawl(figures, title=heading).encode(), disk=Disk())
    typer.echo(f"{output}: {counted(figures.rows, 'row')} of {counted(len(figures.hosts), 'host')}")
