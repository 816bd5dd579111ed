"""`amicrawl index`: WARC and ARC files in, sorted CDXJ or CDX out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.engine import Engine, EngineOption, Master
from amicrawl.cli.index_work import STANDARD, Whole, index_files, index_placed
from amicrawl.cli.processes import Processes
from amicrawl.errors import UsageError
from amicrawl.index.collection.products import ProductOptions
from amicrawl.index.lines.cdx_text import Layout
from amicrawl.index.lines.cdxj import Compat, IndexOptions
from amicrawl.index.location import is_uri
from amicrawl.index.reading.records import RECORD_TYPES
from amicrawl.index.zipnum.cluster import BLOCK_LINES

if TYPE_CHECKING:
    from collections.abc import Collection

Files = Annotated[
    list[str],
    typer.Argument(
        help="WARC or ARC files, directories of them, URIs of either, or - for standard input."
    ),
]
Out = Annotated[
    str | None,
    typer.Option("-o", "--out", help="Directory or URI for one index a file; - for standard output."),
]
Merge = Annotated[
    Path | None,
    typer.Option(help="One sorted index of all files; - for standard output.", metavar="FILE"),
]
Zipnum = Annotated[
    Path | None, typer.Option(help="Directory for a ZipNum cluster of all files.", metavar="DIR")
]
Blocks = Annotated[
    Path | None,
    typer.Option(
        *("-c", "--blocks"),
        help="One index of all files in packed blocks, and their places.",
        metavar="FILE",
    ),
]
BlockLines = Annotated[
    int, typer.Option("-l", "--block-lines", min=1, help="Lines per block of -c and --zipnum.")
]
CompatOption = Annotated[Compat, typer.Option(help="Reproduce the lines of this tool byte for byte.")]
LayoutOption = Annotated[Layout, typer.Option("--format", help="Format of a line.")]
Post = Annotated[
    bool, typer.Option("--post", "-p", help="Make method and body of a POST or PUT part of its key.")
]
Every = Annotated[
    bool, typer.Option("--all", help="Index requests, warcinfo and all other records too.")
]
Records = Annotated[
    str, typer.Option(help="Record types to index, comma-separated, or all.", metavar="TYPES")
]
Fields = Annotated[
    str,
    typer.Option(
        "-f", "--fields", help="Further fields, comma-separated: recordid, http:NAME, a WARC field."
    ),
]
OnlyFields = Annotated[
    str, typer.Option("-rf", "--only-fields", help="Exactly these fields, comma-separated.")
]
RecordDigests = Annotated[
    bool, typer.Option("-d", "--record-digests", help="Add SHA-256 of each record's bytes as stored.")
]
DirRoot = Annotated[
    str | None, typer.Option("--dir-root", help="Record file names relative to this directory.")
]
Packed = Annotated[bool, typer.Option("--gzip", help="Compress the index with gzip.")]
Again = Annotated[bool, typer.Option("--again", help="Rebuild what is done already.")]


def index(
    files: Files,
    *,
    out: Out = None,
    merge: Merge = None,
    zipnum: Zipnum = None,
    blocks: Blocks = None,
    block_lines: BlockLines = BLOCK_LINES,
    compat: CompatOption = Compat.CDXJ_INDEXER,
    layout: LayoutOption = Layout.CDXJ,
    post: Post = False,
    every: Every = False,
    records: Records = "",
    fields: Fields = "",
    only: OnlyFields = "",
    digests: RecordDigests = False,
    root: DirRoot = None,
    packed: Packed = False,
    jobs: Processes = 0,
    again: Again = False,
    engine: EngineOption = Engine.LOCAL,
    master: Master = "",
) -> None:
    """Write a sorted CDXJ file for each of FILES.

    What is done and whose file has not changed is not done again. Exit code 5 where something of a file
    is lost; the rest of it is indexed. Example: amicrawl index crawl/*.warc.gz -o cdxj/
    """
    if out == "-":
        out, merge = None, merge or STANDARD
    if only and (fields or layout is not Layout.CDXJ):
        raise UsageError("--only-fields says all that a line has. Leave -f and --format out.")
    options = _options(compat, records, fields, only, post=post, every=every, digests=digests)
    whole = Whole(merge=merge, zipnum=zipnum, blocks=blocks, block_lines=block_lines, packed=packed)
    if (zipnum or blocks) is not None and layout is not Layout.CDXJ:
        raise UsageError(
            "A ZipNum cluster, or one of blocks, is made of CDXJ lines. Leave --format out."
        )
    how = ProductOptions(options, layout, packed=packed and not whole.is_asked_for)
    if engine is Engine.SPARK or any(map(is_uri, [*files, out or ""])):
        if "-" in files or (out is None and whole.is_asked_for):
            raise UsageError("Workers read and write files. Name files, and a directory with -o.")
        index_placed(
            files,
            out or ".",
            options=how,
            whole=whole,
            root=root,
            processes=jobs,
            again=again,
            master=master if engine is Engine.SPARK else None,
        )
        return
    index_files(
        [Path(name) for name in files],
        None if out is None else Path(out),
        options=how,
        whole=whole,
        root=None if root is None else Path(root),
        processes=jobs,
        again=again,
    )


def _options(
    compat: Compat, records: str, fields: str, only: str, *, post: bool, every: bool, digests: bool
) -> IndexOptions:
    types = _listed(records)
    _check_types(types)
    return IndexOptions(
        compat=compat,
        post=post,
        all_records=every or "all" in types,
        fields=_listed(only or fields),
        only_fields=bool(only),
        records=types,
        stored_digests=digests,
    )


def _check_types(types: Collection[str]) -> None:
    if unknown := sorted(set(types) - {*RECORD_TYPES, "all"}):
        raise UsageError(
            f"There are no records of type {', '.join(unknown)}. "
            f"Choose from {', '.join(RECORD_TYPES)}, all."
        )


def _listed(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())
