"""`amicrawl frontier pack` and `compact`: one file of a directory, or of several files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.frontier.exchange import CodecName, PageRows, codec_named
from amicrawl.cli.frontier.output import hour_now, print_lines
from amicrawl.cli.frontier.source import frontier_directory, partition_in
from amicrawl.cli.json_answer import AsJson, json_text
from amicrawl.disk import Disk
from amicrawl.errors import InputError, UsageError
from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.format.operations import compact as compacted
from amicrawl.frontier.format.operations import merge
from amicrawl.frontier.format.writer import PAGE_ROWS, WriteOptions, write_partition
from amicrawl.frontier.live import load
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.frontier.format.partition import Partition

_DAY = 24

Directory = Annotated[
    Path, typer.Argument(help="A frontier's directory, or a crawl's output directory.")
]
Paths = Annotated[list[Path], typer.Argument(help="Frontier files, or directories, of distinct hosts.")]
Gc = Annotated[bool, typer.Option("--gc", help="Leave out rows that are gone.")]
OlderThan = Annotated[
    int | None,
    typer.Option(min=0, metavar="DAYS", help="With --gc: only those last crawled so long ago."),
]
Out = Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="The file to write.")]


def pack(
    directory: Directory,
    *,
    out: Out = None,
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
    partition = load(frontier_directory(directory))
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
    out: Out = None,
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
    target = paths[0].with_name("compact.meguri") if out is None else out
    result, gone = _made_one(paths, gc=gc, older_than=older_than)
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


def _made_one(paths: Sequence[Path], *, gc: bool, older_than: int | None) -> tuple[Partition, int]:
    """Return the rows of all *paths*, and how many gone ones were left out."""
    try:
        merged = merge(*(partition_in(path) for path in paths))
        before = None if older_than is None else max(hour_now() - older_than * _DAY, 0)
        result = compacted(merged, drop_gone=gc, gone_before=before) if gc else merged
    except Malformed as error:
        names = ", ".join(map(str, paths))
        raise InputError(f"{names} cannot be made one: {error.reason}. Choose others.") from error
    return result, len(merged.urls["host_key"]) - len(result.urls["host_key"])


def _options(codec: str, max_page_rows: int) -> WriteOptions:
    return WriteOptions(
        codec=codec_named(codec), schedule=True, max_page_rows=max_page_rows, equal_keys=True
    )
