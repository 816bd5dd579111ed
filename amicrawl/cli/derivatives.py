"""`amicrawl sidecar`, `wat` and `wet`: the commands that write one derivative of each archive file."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.archive.index import (
    OFF_BY_DEFAULT,
    ProductOptions,
    Publisher,
    installed_detectors,
    jobs_for,
)
from amicrawl.archive.index.sidecar.detectors import KINDS
from amicrawl.archive.lines import archive_files
from amicrawl.cli.archive_files import ArchiveFiles, make_directory
from amicrawl.cli.file_work import Screen, do_files, print_error
from amicrawl.cli.options import Processes, Quiet

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


Out = Annotated[Path, typer.Option("-o", "--out", help="Directory for the output files.")]
_LEFT_OUT_BY_NAME = tuple(kind for kind in KINDS if kind not in OFF_BY_DEFAULT)
Without = Annotated[
    list[str] | None,
    typer.Option(
        help=f"A detector to leave out: {', '.join(_LEFT_OUT_BY_NAME)}.",
        metavar="NAME",
    ),
]
Soft404 = Annotated[
    bool,
    typer.Option("--soft-404", help="Add the probability that a page is an error page; often wrong."),
]
Operator = Annotated[str, typer.Option(help="The warcinfo record's operator.")]
PublisherName = Annotated[str, typer.Option(help="The warcinfo record's publisher.")]


def sidecar(  # noqa: PLR0917  # typer makes options of them
    files: ArchiveFiles,
    out: Out = Path(),
    jobs: Processes = 0,
    without: Without = None,
    soft_404: Soft404 = False,
    operator: Operator = "",
    publisher: PublisherName = "",
    quiet: Quiet = False,
) -> None:
    """Write type, PRONOM id, charset and languages of payloads as X.warc.meta.gz.

    Files that are done are skipped. The exit code is 5 if a part of a file is damaged; the rest is
    written. Example: amicrawl sidecar crawls/*.warc.gz -o meta/
    """
    left_out = tuple(sorted({*(without or ()), *(() if soft_404 else OFF_BY_DEFAULT)}))
    options = ProductOptions(
        publisher=Publisher(operator=operator, publisher=publisher, address=_address()),
        hostname=socket.gethostname(),
        without=left_out,
        detectors=tuple(installed_detectors(left_out).versions()),
    )
    sources = archive_files(files)
    show_detectors(options.detectors, without=left_out, quiet=quiet)
    _make("sidecar", sources, out, options, noun="metadata record", processes=jobs, quiet=quiet)


def wat(files: ArchiveFiles, out: Out = Path(), jobs: Processes = 0, quiet: Quiet = False) -> None:
    """Write the metadata of every record in FILES, with the links of pages, as X.warc.wat.gz.

    Files that are done are skipped. The exit code is 5 if a part of a file is damaged; the rest is
    written. Example: amicrawl wat *.warc.gz -o wat/
    """
    options = ProductOptions(hostname=socket.gethostname())
    _make("wat", archive_files(files), out, options, noun="entry", processes=jobs, quiet=quiet)


def wet(files: ArchiveFiles, out: Out = Path(), jobs: Processes = 0, quiet: Quiet = False) -> None:
    """Write the text of every page in FILES as X.warc.wet.gz.

    Files that are done are skipped. The exit code is 5 if a part of a file is damaged; the rest is
    written. Example: amicrawl wet *.warc.gz -o wet/
    """
    options = ProductOptions(hostname=socket.gethostname())
    _make("wet", archive_files(files), out, options, noun="entry", processes=jobs, quiet=quiet)


def _make(
    product: str,
    sources: Sequence[Path],
    out: Path,
    options: ProductOptions,
    *,
    noun: str,
    processes: int,
    quiet: bool,
) -> None:
    """Write the *product* of each of *sources* to *out*, print the outcome, and end with its code."""
    make_directory(out)
    jobs = jobs_for(sources, out, products=[product], options=options, in_directories=False)
    screen = Screen(quiet=quiet)
    # Detectors run in a process of their own: they may crash, and claim the directory for that.
    is_claimed = product == "sidecar"
    screen.conclude(do_files(jobs, screen, processes=processes, is_claimed=is_claimed), noun=noun)


def _address() -> str:
    """Return the IP address that this machine's name stands for, where it has one."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except (OSError, UnicodeError):
        return ""


_OPTIONAL = {
    "fido": ("fido", "fido "),
    "libmagic": ("libmagic", "libmagic "),
    "chardetng": ("charset", "+chardetng"),
    "cld2": ("languages", "cld2 "),
}
"""The detectors of the extra `sidecar`: the kind that leaves each out, and how versions name it."""


def show_detectors(
    versions: Sequence[str], *, without: Collection[str] = (), quiet: bool = False
) -> None:
    """Print the *versions* of detectors, and which are missing; the kinds *without* are not wanted."""
    if quiet:
        return
    print_error(f"Detectors: {', '.join(versions)}")
    missing = [
        name
        for name, (kind, mark) in _OPTIONAL.items()
        if kind not in without and not any(mark in version for version in versions)
    ]
    if missing:
        print_error(f"Not installed: {', '.join(missing)} (pip install 'amicrawl[sidecar]')")
