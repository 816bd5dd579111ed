"""`amicrawl cdx`: look captures up in an index, here or over HTTP; make one of blocks to do it in."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.archive.index import (
    BLOCK_LINES,
    SHARD_LINES,
    CdxServer,
    looked_up,
    open_sources,
    write_zipnum,
)
from amicrawl.archive.index.lookup.server import PATH
from amicrawl.archive.lines import external_sort, files_in, line_blocks
from amicrawl.archive.location import Location
from amicrawl.cli.archive_files import placed_lines
from amicrawl.cli.options import AsJson, BlockLines, PartitionedOptions, Port, grouped
from amicrawl.disk import Disk, made_directory
from amicrawl.errors import ExitCode, UsageError
from amicrawl.terminal import counted, harmless
from amicrawl.urls import is_loopback

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.archive.index import WrittenCluster

_LONGEST_SHOWN = 1 << 20

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Look up captures in CDXJ files and ZipNum clusters, and build clusters.",
)

_SUFFIXES = (".cdxj", ".cdxj.gz", ".cdx", ".cdx.gz")

Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH...", help="Sorted CDXJ files, ZipNum directories.")
]


Url = Annotated[str, typer.Option(help="URL, *.HOST, or URL* for all that begin so.")]
MatchType = Annotated[
    str, typer.Option("--match-type", help="exact, prefix, host or domain.", metavar="TYPE")
]
From = Annotated[str, typer.Option("--from", help="Captures from then on.", metavar="TIME")]
To = Annotated[str, typer.Option("--to", help="Captures up to then.", metavar="TIME")]
ResolveRevisits = Annotated[
    bool, typer.Option("--resolve-revisits", help="Add the position of the original to revisits.")
]
Filters = Annotated[
    list[str] | None,
    typer.Option("--filter", help="[!][=|~]field:value (may be repeated).", metavar="FILTER"),
]
Collapse = Annotated[
    list[str] | None,
    typer.Option(
        help="Show the first of consecutive captures with equal FIELD[:N] (may be repeated).",
        metavar="F",
    ),
]
Sort = Annotated[str, typer.Option(help="reverse or closest.")]
Closest = Annotated[str, typer.Option(help="Order by distance to TIME.", metavar="TIME")]
Offset = Annotated[int, typer.Option(min=0, help="Lines to skip.")]
Limit = Annotated[int, typer.Option(help="Maximum number of lines; negative: the last ones.")]
Fields = Annotated[str, typer.Option(help="Fields to show, comma-separated.")]
Output = Annotated[str, typer.Option(help="cdxj, json or text.", show_default="cdxj")]
Page = Annotated[int, typer.Option(min=-1, help="Page number, from 0; -1: everything.")]
PageSize = Annotated[int, typer.Option("--page-size", min=0, help="Blocks per page.")]
ShowNumPages = Annotated[bool, typer.Option("--show-num-pages", help="Only count the pages.")]


@app.command()
def query(
    paths: Paths,
    url: Url,
    *,
    match_type: MatchType = "",
    first: From = "",
    last: To = "",
    resolve_revisits: ResolveRevisits = False,
    filters: Filters = None,
    collapse: Collapse = None,
    sort: Sort = "",
    closest: Closest = "",
    offset: Offset = 0,
    limit: Limit = 0,
    fields: Fields = "",
    output: Output = "",
    as_json: AsJson = False,
    page: Page = -1,
    page_size: PageSize = 0,
    show_num_pages: ShowNumPages = False,
) -> None:
    """Show the captures of a URL in the indexes PATH...

    Example: amicrawl cdx query index/ --url '*.example.com' --filter '=status:200'
    """
    if as_json and output not in {"", "json"}:
        raise UsageError(f"--json is --output json, and not {output}. Leave one of the two out.")
    given = {
        "url": url,
        "matchType": match_type,
        "from": first,
        "to": last,
        "resolveRevisits": "true" if resolve_revisits else "",
        "sort": sort,
        "closest": closest,
        "offset": str(offset),
        "limit": str(limit or ""),
        "fields": fields,
        "output": "json" if as_json else output or "cdxj",
        "page": "" if page < 0 else str(page),
        "pageSize": str(page_size or ""),
        "showNumPages": "true" if show_num_pages else "",
    }
    parameters = {name: [value] for name, value in given.items()}
    lines = looked_up(parameters | {"filter": filters or [], "collapse": collapse or []}, paths)
    # For programs the bytes as they are; a terminal would obey what a stranger has put into them.
    shown = sys.stdout.isatty()
    for line in lines:
        sys.stdout.buffer.write(_harmless(line) if shown else line)
    sys.stdout.buffer.flush()


def _harmless(lines: bytes) -> bytes:
    texts = lines.decode("utf-8", "replace").split("\n")
    return "\n".join(harmless(text, limit=_LONGEST_SHOWN) for text in texts).encode()


IndexFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="CDXJ or CDX files, packed or not, or directories of them; URIs for Spark.",
    ),
]
ClusterDirectory = Annotated[
    str, typer.Option("-o", "--out", help="Directory for the cluster; for Spark, or a URI.")
]
ShardLines = Annotated[int, typer.Option("--shard-lines", min=1, help="Lines per shard.", metavar="N")]
Title = Annotated[str, typer.Option(help="Title of the collection.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace an existing cluster.")]


@app.command()
@grouped
def zipnum(
    paths: IndexFiles,
    out: ClusterDirectory,
    *,
    block_lines: BlockLines = BLOCK_LINES,
    shard_lines: ShardLines = SHARD_LINES,
    title: Title = "",
    replace: Replace = False,
    where: PartitionedOptions,
) -> None:
    """Build a ZipNum cluster from index files, sorted or not.

    Exit code 5 if lines were left out because they are not index lines.
    Example: amicrawl cdx zipnum cdxj/ -o index/
    """
    where.check_places([*paths, out])
    on_spark = partial(_zipnum_on_spark, master=where.master, partitions=where.partitions)
    make = on_spark if where.on_spark else _zipnum_here
    written = make(
        paths,
        out,
        on_rejected=_print_rejected,
        block_lines=block_lines,
        shard_lines=shard_lines,
        title=title,
        replace=replace,
    )
    typer.echo(
        f"{out}: {counted(written.lines, 'line')} in {counted(written.blocks, 'block')} "
        f"and {counted(written.shards, 'shard')}; "
        f"{written.duplicates:,} repeated, {written.rejected:,} not index lines"
    )
    if written.rejected:
        raise typer.Exit(ExitCode.DAMAGED)


def _zipnum_here(paths: Sequence[str], out: str, **options: Any) -> WrittenCluster:
    files = files_in([Path(name) for name in paths], suffixes=_SUFFIXES)
    lines = (line + b"\n" for path in files for block in line_blocks(path) for line in block)
    with made_directory(Path(out)):
        return write_zipnum(external_sort(lines, scratch=Path(out)), Path(out), disk=Disk(), **options)


def _zipnum_on_spark(paths: Sequence[str], out: str, *, master: str, **options: Any) -> WrittenCluster:
    # Both need an extra.
    from amicrawl.archive.index import write_zipnum_on_spark  # noqa: PLC0415
    from amicrawl.archive.spark import session  # noqa: PLC0415

    indexes, where = placed_lines(paths, suffixes=_SUFFIXES), Location.of(out)
    with session(master) as spark:
        return write_zipnum_on_spark(spark, indexes, where, **options)


def _print_rejected(line: bytes, reason: str) -> None:
    text = harmless(line[:200].decode("utf-8", "replace"), limit=100)
    sys.stderr.write(f"Left out, {reason}: {text}\n")


Host = Annotated[str, typer.Option(help="Address to listen on.")]
Public = Annotated[bool, typer.Option("--public", help="Allow addresses that other machines can reach.")]


@app.command()
def serve(paths: Paths, *, host: Host = "127.0.0.1", port: Port = 8095, public: Public = False) -> None:
    """Serve the indexes PATH... as a CDX server, until interrupted.

    Example: amicrawl cdx serve index/
    """
    if not public and not is_loopback(host):
        raise UsageError(
            f"Others could reach {host}, and everyone who can may read the index. Add --public if that "
            "is meant."
        )
    with CdxServer((host, port), open_sources(paths)) as server:
        name = f"[{host}]" if ":" in host else host
        typer.echo(f"Serving http://{name}:{server.port}{PATH}?url=URL")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("Stopped.")
