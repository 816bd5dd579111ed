"""`amicrawl sidecar`: what the bytes of archived payloads show them to be, as WARC metadata files."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from amicrawl.cli.archive_files import ArchiveFiles, archive_files, make_directory
from amicrawl.cli.file_work import Screen, complain, do_files
from amicrawl.cli.options import Processes, Quiet
from amicrawl.index.collection.collecting import jobs_for
from amicrawl.index.collection.products import ProductOptions
from amicrawl.index.derivatives.file import Publisher
from amicrawl.index.sidecar.detectors import KINDS, installed_detectors

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


Out = Annotated[Path, typer.Option("-o", "--out", help="Directory for the sidecars.")]
Without = Annotated[
    list[str] | None,
    typer.Option(help=f"A detector to leave out: {', '.join(KINDS)}.", metavar="NAME"),
]
Operator = Annotated[str, typer.Option(help="The warcinfo record's operator.")]
PublisherName = Annotated[str, typer.Option(help="The warcinfo record's publisher.")]


def sidecar(  # noqa: PLR0917  # typer makes options of them
    files: ArchiveFiles,
    out: Out = Path(),
    jobs: Processes = 0,
    without: Without = None,
    operator: Operator = "",
    publisher: PublisherName = "",
    quiet: Quiet = False,
) -> None:
    """Write type, PRONOM id, charset, language and soft-404 score of payloads as X.warc.meta.gz.

    A file that is done is not done again. Exit code 5 where something of a file is lost; the rest of it
    is written. Example: amicrawl sidecar crawls/*.warc.gz -o meta/
    """
    sources = archive_files(files)
    make_directory(out)
    left_out = tuple(sorted(set(without or ())))
    options = ProductOptions(
        publisher=Publisher(operator=operator, publisher=publisher, address=_address()),
        hostname=socket.gethostname(),
        without=left_out,
        detectors=tuple(installed_detectors(left_out).versions()),
    )
    show_detectors(options.detectors, without=left_out, quiet=quiet)
    work = jobs_for(sources, out, products=["sidecar"], options=options, in_directories=False)
    screen = Screen(quiet=quiet)
    screen.conclude(do_files(work, screen, processes=jobs, is_claimed=True), noun="metadata record")


def _address() -> str:
    """Return the IP address that this machine's name stands for, where it has one."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except (OSError, UnicodeError):
        return ""


class _Optional(NamedTuple):
    """A detector of the extra `sidecar`."""

    name: str
    kind: str
    """What leaves it out."""
    seen_as: tuple[str, ...]
    """One of these is in the list of versions if it, or a substitute, is installed."""


_OPTIONAL = (
    _Optional("fido", "fido", ("fido ",)),
    _Optional("libmagic", "libmagic", ("libmagic ",)),
    _Optional("chardetng", "charset", ("+chardetng",)),
    _Optional("cld2", "languages", ("cld2 ",)),
)


def show_detectors(
    versions: Sequence[str], *, without: Collection[str] = (), quiet: bool = False
) -> None:
    """Print the *versions* of detectors, and which are missing; the kinds *without* are not wanted."""
    if quiet:
        return
    complain(f"Detectors: {', '.join(versions)}")
    missing = [
        optional.name
        for optional in _OPTIONAL
        if optional.kind not in without
        and not any(mark in version for version in versions for mark in optional.seen_as)
    ]
    if missing:
        complain(f"Not installed: {', '.join(missing)} (pip install 'amicrawl[sidecar]')")
