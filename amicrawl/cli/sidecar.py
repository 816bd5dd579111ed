"""`amicrawl sidecar`: what the bytes of archived payloads show them to be, as WARC metadata files."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from amicrawl.cli.archive_files import ArchiveFiles, archive_files, make_directory
from amicrawl.cli.detector_lines import detector_lines
from amicrawl.cli.file_work import do_files, end
from amicrawl.cli.processes import Processes
from amicrawl.index.collection.collecting import jobs_for
from amicrawl.index.collection.products import ProductOptions
from amicrawl.index.derivatives.file import Publisher
from amicrawl.index.sidecar.detectors import KINDS, installed_detectors
from amicrawl.terminal import harmless

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
    for line in detector_lines(options.detectors, without=left_out):
        typer.echo(harmless(line), err=True)
    work = jobs_for(sources, out, products=["sidecar"], options=options, in_directories=False)
    end(do_files(work, processes=jobs, is_claimed=True), noun="metadata record")


def _address() -> str:
    """Return the IP address that this machine's name stands for, where it has one."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except (OSError, UnicodeError):
        return ""
