"""`amicrawl frontier pack`, `compact`, `export`, `import`: frontier files from others, and as JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer

from amicrawl.cli.frontier.rows import AnyPath, hour_now
from amicrawl.cli.options import AsJson, json_text, print_lines
from amicrawl.disk import Disk, OutputFile, readable
from amicrawl.errors import InputError, UsageError
from amicrawl.frontier import SETTLED_COLUMNS, settled_at
from amicrawl.meguri import Copies, Status, dump_pieces, partition_in, read_dump
from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.operations import compact as compacted
from amicrawl.meguri.format.operations import merge, with_raw_robots
from amicrawl.meguri.format.schema import Codec
from amicrawl.meguri.format.writer import PAGE_ROWS, WriteOptions, write_partition
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amicrawl.meguri.format.schema import Partition


_DAY = 24
_ROWS_OF_ONE_PAGE = 1 << 20
"""Rows up to which `import` makes one page of a column."""

Directory = Annotated[
    Path, typer.Argument(help="A frontier's directory, or a crawl's output directory.")
]
Paths = Annotated[list[Path], typer.Argument(help="Frontier files, or directories, of distinct hosts.")]
Gc = Annotated[bool, typer.Option("--gc", help="Leave out rows that are gone.")]
OlderThan = Annotated[
    int | None,
    typer.Option(min=0, metavar="DAYS", help="With --gc: only those last looked for so long ago."),
]
OutIfOther = Annotated[
    Path | None, typer.Option("-o", "--out", metavar="FILE", help="The file to write.")
]


def pack(
    directory: Directory,
    *,
    out: OutIfOther = None,
    codec: CodecName = "zstd",
    max_page_rows: PageRows = PAGE_ROWS,
    as_json: AsJson = False,
) -> None:
    """Write the frontier in DIRECTORY, snapshot and logs, as one file with a schedule.

    It goes to pack.meguri in DIRECTORY unless --out says otherwise; nothing else there is changed.
    Example: amicrawl frontier pack ami-out -o frontier.meguri
    """
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory. Give that of a frontier or of a crawl.")
    partition = _read_for(codec, directory)
    target = directory / "pack.meguri" if out is None else out
    size = write_partition(partition, target, options=_options(codec, max_page_rows), disk=Disk())
    if as_json:
        urls = len(partition.urls["host_key"])
        print_lines([json_text({"path": str(target), "urls": urls, "bytes": size})])
    else:
        print_lines([f"packed {harmless(str(directory))} -> {harmless(str(target))} ({size} bytes)"])


def compact(
    paths: Paths,
    *,
    out: OutIfOther = None,
    gc: Gc = False,
    older_than: OlderThan = None,
    codec: CodecName = "zstd",
    max_page_rows: PageRows = PAGE_ROWS,
    as_json: AsJson = False,
) -> None:
    """Write the rows of all PATHS as one file, every string once, with a schedule.

    It goes to compact.meguri beside the first unless --out says otherwise; the input stays.
    Example: amicrawl frontier compact a.meguri b.meguri --gc --older-than 90
    """
    if older_than is not None and not gc:
        raise UsageError("--older-than says which gone rows are left out. Give --gc as well.")
    # What is beside `.` is found by its name alone.
    first = paths[0] if paths[0].name else paths[0].absolute()
    target = first.parent / "compact.meguri" if out is None else out
    result, gone = _made_one(paths, codec=codec, gc=gc, older_than=older_than)
    size = write_partition(result, target, options=_options(codec, max_page_rows), disk=Disk())
    urls = len(result.urls["host_key"])
    if as_json:
        print_lines(
            [json_text({"path": str(target), "urls": urls, "gone_dropped": gone, "bytes": size})]
        )
        return
    name = harmless(str(target))
    print_lines(
        [
            f"compacted {len(paths)} file(s) -> {name}: {urls} urls ({gone} Gone dropped), {size} bytes"
            if gc
            else f"compacted {len(paths)} file(s) -> {name}: {urls} urls, {size} bytes "
            "(use --gc to drop Gone tombstones)"
        ]
    )


def _read_for(codec: str, path: Path) -> Partition:
    """Return what *path* holds, as a file whose pages *codec* compresses has it."""
    partition = partition_in(path)
    if codec != "none":
        return partition
    try:
        return with_raw_robots(partition)
    except Malformed as error:
        raise InputError(
            f"{path} cannot be written without compression: {error.reason}. Leave out --codec."
        ) from error


def _made_one(
    paths: Sequence[Path], *, codec: str, gc: bool, older_than: int | None
) -> tuple[Partition, int]:
    """Return the rows of all *paths*, and how many gone ones were left out."""
    try:
        merged = merge(*(_read_for(codec, path) for path in paths))
        spared = None if older_than is None else _settled_since(merged, hour_now() - older_than * _DAY)
        result = compacted(merged, spared=spared) if gc else merged
    except Malformed as error:
        names = ", ".join(map(str, paths))
        raise InputError(f"{names} cannot be made one: {error.reason}. Choose others.") from error
    return result, len(merged.urls["host_key"]) - len(result.urls["host_key"])


def _settled_since(partition: Partition, hour: int) -> np.ndarray:
    """Return which gone rows were settled at *hour* or later.

    A page that was found gone keeps the hour of its last capture, or has none: when it was looked for
    follows from when it will be again.
    """
    urls = partition.urls
    found = urls["last_crawled"] >= hour
    for row in np.flatnonzero((urls["status"] == Status.GONE) & ~found).tolist():
        found[row] = settled_at({name: int(urls[name][row]) for name in SETTLED_COLUMNS}) >= hour
    return found


def _options(codec: str, max_page_rows: int) -> WriteOptions:
    return WriteOptions(
        codec=Codec[codec.upper()], schedule=True, max_page_rows=max_page_rows, equal_keys=True
    )


OutOrStandard = Annotated[
    Path | None,
    typer.Option("-o", "--out", metavar="FILE", help="Output file; standard output by default."),
]
JsonAnyway = Annotated[
    bool, typer.Option("--json", help="Accepted and ignored: the output is always JSON.")
]
DumpFile = Annotated[Path, typer.Argument(help="Output of export; - for standard input.")]
Out = Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The frontier file to write.")]
CodecName = Annotated[Literal["none", "zstd"], typer.Option(help="How the pages are compressed.")]
Schedule = Annotated[bool, typer.Option("--schedule", help="List the rows by when they are due.")]
PageRows = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Maximum number of rows per page; 0: one page per column."),
]

PageRowsOrFewer = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Maximum number of rows per page; 0: one page per column. Default: 0 for up to a million "
        f"URLs, else {PAGE_ROWS}.",
    ),
]


def export(path: AnyPath, *, out: OutOrStandard = None, as_json: JsonAnyway = False) -> None:
    """Export PATH as one JSON object.

    Example: amicrawl frontier export frontier.meguri -o dump.json
    """
    del as_json
    partition = partition_in(path)
    if out is None:
        for text in printed_pieces(partition):
            typer.echo(text, nl=False)
        return
    file = OutputFile.replacing(out, disk=Disk())
    try:
        for piece in dump_pieces(partition):
            file.write(piece)
        file.seal()
    finally:
        file.close()


def printed_pieces(partition: Partition) -> Iterator[str]:
    """Yield the dump as it is printed: its strings are one line, which may be longer than memory."""
    for piece in dump_pieces(partition):
        yield piece.decode("ascii").replace("\x7f", "\\u007f")


def import_dump(
    dump: DumpFile,
    *,
    out: Out,
    codec: CodecName = "zstd",
    schedule: Schedule = False,
    max_page_rows: PageRowsOrFewer = None,
    as_json: AsJson = False,
) -> None:
    """Write the frontier file that the JSON object in DUMP describes.

    Example: amicrawl frontier import dump.json -o frontier.meguri --schedule
    """
    disk = Disk()
    with Copies(out.parent, disk) as copies:
        partition = _read(dump, copies)
        rows = len(partition.urls["host_key"])
        if max_page_rows is None:
            # A page is made in memory.
            max_page_rows = 0 if rows <= _ROWS_OF_ONE_PAGE else PAGE_ROWS
        options = WriteOptions(
            codec=Codec[codec.upper()],
            schedule=schedule,
            max_page_rows=max_page_rows,
            # The format allows a key to come twice; what was exported is imported as it was.
            equal_keys=True,
        )
        size = write_partition(partition, out, options=options, disk=disk, after_page=copies.drop_pages)
    hosts = len(partition.hosts["host_key"])
    if as_json:
        print_lines([json_text({"path": str(out), "urls": rows, "hosts": hosts, "bytes": size})])
    else:
        print_lines([f"imported {rows} urls, {hosts} hosts into {harmless(str(out))}, {size} bytes"])


def _read(path: Path, copies: Copies) -> Partition:
    with readable(path):
        if str(path) == "-":
            return read_dump(sys.stdin.buffer, copies)
        with path.open("rb") as source:
            return read_dump(source, copies)
