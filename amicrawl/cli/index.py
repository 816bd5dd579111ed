"""`amicrawl index`: WARC and ARC files in, sorted CDXJ or CDX out."""

from __future__ import annotations

import shutil
import sys
import tempfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.api import check_root, index_by, index_jobs
from amicrawl.archive.index import (
    BLOCK_LINES,
    MARKS,
    ProductOptions,
    write_blocks,
    write_zipnum,
)
from amicrawl.archive.lines import (
    ARCHIVE_ENDINGS,
    Compat,
    IndexOptions,
    Layout,
    archive_files,
    merged_files,
    without_repeats,
    write_lines,
)
from amicrawl.archive.location import Location, is_uri
from amicrawl.cli.archive_files import make_directory, placed_files
from amicrawl.cli.file_work import (
    DIR_ROOT,
    CompatOption,
    DirRoot,
    Post,
    Screen,
    do_placed_files,
)
from amicrawl.cli.options import BlockLines, EngineOptions, Processes, Quiet, grouped, resumable
from amicrawl.disk import Disk
from amicrawl.errors import OutputError, UsageError
from amicrawl.reading import RECORD_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from amicrawl.archive.index import Collected


Files = Annotated[
    list[str],
    typer.Argument(
        help="WARC or ARC files, directories of them, URIs of either, or - for standard input."
    ),
]
Out = Annotated[
    str | None,
    typer.Option("-o", "--out", help="Directory or URI for one index per file; - for standard output."),
]
Again = Annotated[bool, typer.Option("--again", help="Rebuild what is done already.")]


@dataclass(frozen=True)
class LineOptions:
    """What gets a line, and what is in it."""

    compat: CompatOption = Compat.CDXJ_INDEXER
    layout: Annotated[Layout, typer.Option("--format", help="Format of a line.")] = Layout.CDXJ
    post: Post = False
    every: Annotated[
        bool, typer.Option("--all", help="Index requests, warcinfo and all other records too.")
    ] = False
    records: Annotated[
        str, typer.Option(help="Record types to index, comma-separated, or all.", metavar="TYPES")
    ] = ""
    fields: Annotated[
        str,
        typer.Option(
            *("-f", "--fields"),
            help="Further fields, comma-separated: recordid, http:NAME, a WARC field.",
        ),
    ] = ""
    only: Annotated[
        str, typer.Option("-rf", "--only-fields", help="Exactly these fields, comma-separated.")
    ] = ""
    digests: Annotated[
        bool,
        typer.Option("-d", "--record-digests", help="Add SHA-256 of each record's bytes as stored."),
    ] = False

    def index_options(self) -> IndexOptions:
        """Return them as options of the index. Raises UsageError for what does not go together."""
        if self.only and (self.fields or self.layout is not Layout.CDXJ):
            raise UsageError("--only-fields says all that a line has. Leave -f and --format out.")
        types = _listed(self.records)
        if unknown := sorted({*types} - {*RECORD_TYPES, "all"}):
            raise UsageError(
                f"There are no records of type {', '.join(unknown)}. "
                f"Choose from {', '.join(RECORD_TYPES)}, all."
            )
        return IndexOptions(
            compat=self.compat,
            post=self.post,
            all_records=self.every or "all" in types,
            fields=_listed(self.only or self.fields),
            only_fields=bool(self.only),
            records=types,
            stored_digests=self.digests,
        )


def _listed(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())


STANDARD = Path("-")
"""Standard input or output."""


@dataclass(frozen=True)
class Whole:
    """What is made of the indexes of all files together."""

    merge: Annotated[
        Path | None,
        typer.Option(help="One sorted index of all files; - for standard output.", metavar="FILE"),
    ] = None
    zipnum: Annotated[
        Path | None, typer.Option(help="Directory for a ZipNum cluster of all files.", metavar="DIR")
    ] = None
    blocks: Annotated[
        Path | None,
        typer.Option(
            *("-c", "--blocks"),
            help="One index of all files in packed blocks, and their places.",
            metavar="FILE",
        ),
    ] = None
    block_lines: BlockLines = BLOCK_LINES
    packed: Annotated[bool, typer.Option("--gzip", help="Compress the index with gzip.")] = False

    @property
    def is_wanted(self) -> bool:
        """Whether anything is."""
        return any(out is not None for out in (self.merge, self.zipnum, self.blocks))

    def check(self, layout: Layout) -> None:
        """Raise OutputError for a directory where a file is to be, UsageError for a cluster of CDX.

        UsageError, too, for the name of an archive: where the file is there, it is one.
        """
        if (self.zipnum or self.blocks) is not None and layout is not Layout.CDXJ:
            raise UsageError(
                "A ZipNum cluster, or one of blocks, is made of CDXJ lines. Leave --format out."
            )
        for path, option in ((self.merge, "--merge"), (self.blocks, "--blocks")):
            if path is not None and path.is_dir():
                raise OutputError(f"{path} is a directory. Name a file with {option}.")
            if path is not None and path.name.endswith(ARCHIVE_ENDINGS):
                raise UsageError(
                    f"{path} has the name of a WARC or ARC file, and {option} writes an index. "
                    "Name another file."
                )

    @property
    def parts(self) -> Path | None:
        """Directory of the indexes of single files until they are merged; a new run resumes from it."""
        beside = next(
            (
                out
                for out in (self.merge, self.zipnum, self.blocks)
                if out not in (None, STANDARD) and (not out.exists() or out.is_file() or out.is_dir())
            ),
            None,
        )
        # The directory that one is in has no name as it is written.
        beside = beside.absolute() if beside is not None else None
        return beside.with_name(f"{beside.name}.parts") if beside is not None else None

    def write(self, parts: Sequence[Path], scratch: Path) -> None:
        """Write it from *parts*, each in byte order."""
        if self.merge is not None:
            with merged_files(parts, scratch=scratch) as lines:
                if self.merge == STANDARD:
                    _write_out(without_repeats(lines), packed=self.packed)
                else:
                    # The legends of the parts come first, and are one.
                    write_lines(without_repeats(lines), self.merge, packed=self.packed, disk=Disk())
        if self.zipnum is not None:
            make_directory(self.zipnum)
            with merged_files(parts, scratch=scratch) as lines:
                write_zipnum(lines, self.zipnum, disk=Disk(), block_lines=self.block_lines, replace=True)
        if self.blocks is not None:
            with merged_files(parts, scratch=scratch) as lines:
                write_blocks(lines, self.blocks, disk=Disk(), block_lines=self.block_lines)


@grouped
def index(
    files: Files,
    *,
    out: Out = None,
    whole: Whole,
    line: LineOptions,
    root: DirRoot = None,
    jobs: Processes = 0,
    again: Again = False,
    quiet: Quiet = False,
    where: EngineOptions,
) -> None:
    """Write a sorted CDXJ file for each of FILES.

    Files that are indexed already and have not changed are skipped. The exit code is 5 if a part of a
    file is damaged; the rest is indexed. Example: amicrawl index crawl/*.warc.gz -o cdxj/
    """
    if out == "-":
        out, whole = None, replace(whole, merge=whole.merge or STANDARD)
    whole.check(line.layout)
    packed = whole.packed and not whole.is_wanted
    how = ProductOptions(line.index_options(), line.layout, packed=packed)
    screen = Screen(quiet=quiet, names_products=False)
    if where.on_spark or any(map(is_uri, [*files, out or ""])):
        collected = _index_placed(
            files, out, how, whole, screen,
            root=root, processes=jobs, again=again, master=where.cluster,
        )  # fmt: skip
    else:
        collected = _index_files(
            list(map(Path, files)), out, how, whole, screen, root=root, processes=jobs, again=again
        )
    screen.conclude(collected, noun="line")


def _index_files(
    files: Sequence[Path],
    out: str | None,
    options: ProductOptions,
    whole: Whole,
    screen: Screen,
    *,
    root: str | None,
    processes: int,
    again: bool,
) -> Collected:
    """Index *files* into the directory *out*, and make of it what *whole* names.

    The names in the index are those below *root*.
    """
    above = None if root is None else Path(root)
    check_root(above, written=DIR_ROOT)
    with tempfile.TemporaryDirectory(prefix="amicrawl-index-") as scratch:
        sources = list(_sources(files, Path(scratch)))
        parts = whole.parts or Path(scratch) / "parts"
        directory = Path(out) if out is not None else parts if whole.is_wanted else Path()
        jobs = index_jobs(sources, directory, options=options, root=above, written=DIR_ROOT)
        make_directory(directory / MARKS)
        with resumable(screen.end):
            collected = index_by(
                jobs, processes=processes, again=again, show=screen.show, came=screen.came
            )
        screen.end()
        if whole.is_wanted:
            whole.write([job.path for job in jobs if job.stem in collected.outcomes], directory)
            if out is None:
                shutil.rmtree(directory)
    return collected


def _index_placed(
    files: Sequence[str],
    out: str | None,
    options: ProductOptions,
    whole: Whole,
    screen: Screen,
    *,
    root: str | None,
    processes: int,
    again: bool,
    master: str | None,
) -> Collected:
    """Index *files*, paths or URIs, to the directory or URI *out*; with a *master*, over Spark.

    What *whole* names is put together here, where *out* is a path. Otherwise as `_index_files`.
    """
    if "-" in files or (out is None and whole.is_wanted):
        raise UsageError("Workers read and write files. Name files, and a directory with -o.")
    out = out or "."
    if whole.is_wanted and is_uri(out):
        raise UsageError(
            "What is made of all indexes together is made on this machine. Name a directory with -o."
        )
    places = placed_files(files)
    sources = [(path, path.name) for path in places]
    above = None if root is None else Location.of(root).as_path
    jobs = index_jobs(sources, Path(), options=options, root=above, written=DIR_ROOT)
    collected = do_placed_files(
        jobs, screen, places, out, processes=processes, master=master, again=again
    )
    if whole.is_wanted:
        paths = [replace(job, out=Path(out)).path for job in jobs if job.stem in collected.outcomes]
        whole.write(paths, Path(out))
    return collected


def _sources(files: Sequence[Path], scratch: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file and what it is called; what comes on standard input is put into *scratch*."""
    named = [path for path in files if path != STANDARD]
    if len(named) < len(files):
        spooled = scratch / "stdin"
        try:
            with spooled.open("wb") as spool:
                while block := sys.stdin.buffer.read(1 << 20):
                    spool.write(block)
        except OSError as error:
            raise OutputError(
                f"Standard input cannot be kept in {scratch}: {error.strerror}. "
                "Set TMPDIR to where there is room."
            ) from error
        yield spooled, "-"
    if named:
        for path in archive_files(named):
            yield path, path.name


def _write_out(lines: Iterable[bytes], *, packed: bool) -> None:
    stream = sys.stdout.buffer
    packer = zlib.compressobj(wbits=31) if packed else None
    for line in lines:
        stream.write(line if packer is None else packer.compress(line))
    stream.write(b"" if packer is None else packer.flush())
    stream.flush()
