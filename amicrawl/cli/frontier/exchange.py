"""`amicrawl frontier export` and `import`: a frontier as one JSON object, and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.frontier.output import AnyPath, print_lines
from amicrawl.cli.frontier.source import partition_in
from amicrawl.cli.json_answer import AsJson, json_text
from amicrawl.disk import Disk, OutputFile
from amicrawl.errors import InputError, UsageError
from amicrawl.frontier.format.dump import dump_pieces, partition_of
from amicrawl.frontier.format.schema import Codec
from amicrawl.frontier.format.writer import WriteOptions, write_partition
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.frontier.format.partition import Partition

OutOrStandard = Annotated[
    Path | None,
    typer.Option("-o", "--out", metavar="FILE", help="Output file; standard output by default."),
]
JsonAnyway = Annotated[
    bool, typer.Option("--json", help="Accepted and ignored: the output is always JSON.")
]
DumpFile = Annotated[Path, typer.Argument(help="Output of export; - for standard input.")]
Out = Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The frontier file to write.")]
CodecName = Annotated[str, typer.Option(metavar="none|zstd", help="How the pages are compressed.")]
Schedule = Annotated[bool, typer.Option("--schedule", help="List the rows by when they are due.")]
PageRows = Annotated[
    int, typer.Option(min=0, metavar="N", help="Most rows of a page; 0: one page a column.")
]


def export(path: AnyPath, *, out: OutOrStandard = None, as_json: JsonAnyway = False) -> None:
    """Export PATH as one JSON object.

    Example: amicrawl frontier export frontier.meguri -o dump.json
    """
    del as_json
    partition = partition_in(path)
    if out is None:
        print_lines(_lines(partition))
        return
    file = OutputFile.replacing(out, disk=Disk())
    try:
        for piece in dump_pieces(partition):
            file.write(piece)
        file.seal()
    finally:
        file.close()


def _lines(partition: Partition) -> Iterator[str]:
    """Yield the dump in lines: it has a line break between portions of rows."""
    rest = ""
    for piece in dump_pieces(partition):
        *lines, rest = (rest + piece.decode("ascii")).split("\n")
        for line in lines:
            yield line.replace("\x7f", "\\u007f")


def import_dump(
    dump: DumpFile,
    *,
    out: Out,
    codec: CodecName = "zstd",
    schedule: Schedule = False,
    max_page_rows: PageRows = 0,
    as_json: AsJson = False,
) -> None:
    """Write the frontier file that the JSON object in DUMP describes.

    Example: amicrawl frontier import dump.json -o frontier.meguri --schedule
    """
    options = WriteOptions(
        codec=codec_named(codec),
        schedule=schedule,
        max_page_rows=max_page_rows,
        # The format allows a key to come twice; what was exported is imported as it was.
        equal_keys=True,
    )
    partition = partition_of(_text_in(dump))
    size = write_partition(partition, out, options=options, disk=Disk())
    urls, hosts = len(partition.urls["host_key"]), len(partition.hosts["host_key"])
    if as_json:
        print_lines([json_text({"path": str(out), "urls": urls, "hosts": hosts, "bytes": size})])
    else:
        print_lines([f"imported {urls} urls, {hosts} hosts into {harmless(str(out))}, {size} bytes"])


def codec_named(name: str) -> Codec:
    """Return the codec of that name; raises UsageError."""
    try:
        return Codec[name.upper()]
    except KeyError as error:
        raise UsageError(f"There is no codec {name!r}. Choose none or zstd.") from error


def _text_in(path: Path) -> bytes:
    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}. Check path and permissions."
        ) from error
