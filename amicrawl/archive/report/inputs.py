"""Inputs of a summary: which files an argument stands for, on paths and in stores.

A file is itself. A directory, or a URI with files below it, is a ZipNum cluster if it has an `.idx`
file, a table if it has Parquet files, else the CDX files in it, else its WARC and ARC files. What is
still being written, or was given up, does not count: a name that ends in `.open`, a directory's, too.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.archive.lines import ARCHIVE_BEGINS, PARQUET_BEGINS, refuse_collection
from amicrawl.archive.location import Location, is_uri, reachable
from amicrawl.disk import is_unfinished, readable, refuse_pipe
from amicrawl.errors import InputError
from amicrawl.listing import check_tables
from amicrawl.reading import GZIP_MAGIC, ZSTD_BEGINS

if TYPE_CHECKING:
    from collections.abc import Mapping

STDIN = "-"
_GZIP_WINDOW = 31
_CLUSTER_INDEX = (".idx", ".summary")
_INDEX = tuple(f"{name}{packing}" for name in (".cdx", ".cdxj") for packing in ("", ".gz", ".bz2"))
_ARCHIVES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")


class InputFile(NamedTuple):
    """A file to be counted."""

    location: Location
    size: int
    """In bytes; 0 for standard input."""


def files_of(name: str | os.PathLike[str]) -> list[InputFile]:
    """Return the files that make up the input *name*, a path or a URI, in their order.

    Raises InputError where there are none, a part of a cluster is missing, or several processes of a
    killed crawl have theirs; UsageError for a directory that has every line twice.
    """
    name = os.fspath(name)
    if name == STDIN:
        return [InputFile(Location(name), 0)]
    location = Location.of(name) if is_uri(name) else Location(str(Path(name)))
    size, below = _facts_of(location)
    if size is not None:
        return [InputFile(location, size)]
    below = {file: size for file, size in below.items() if not is_unfinished(file)}
    tables = [file for file in below if file.endswith(".parquet")]
    if location.path is not None:
        check_tables(location.path, tables)
    found = _shards(location, below) or tables
    if not found:
        refuse_collection(name, below)
        found = [file for file in below if file.endswith(_INDEX)] or [
            file for file in below if file.endswith(_ARCHIVES)
        ]
    if not found:
        raise InputError(
            f"{name} holds no ZipNum cluster (.idx), no Parquet files, no .cdx or .cdxj files and no "
            "WARC or ARC files. Name the files, or another directory."
        )
    return [InputFile(location.below(file), below[file]) for file in found]


def _facts_of(location: Location) -> tuple[int | None, dict[str, int]]:
    """Return the size of a file, None for a directory; and the sizes of the files below, by name."""
    path = location.path
    if path is None:
        with reachable(location):
            facts = location.facts()
            below = {} if facts else {file: its.size for file, its in location.files().items()}
        return facts.size if facts else None, below
    with readable(path):
        if not path.is_dir():
            return path.stat().st_size, {}
        files = [file for file in path.rglob("*") if file.is_file()]
        names = {file.relative_to(path).as_posix(): file.stat().st_size for file in files}
    return None, dict(sorted(names.items()))


def _shards(location: Location, below: Mapping[str, int]) -> list[str]:
    """Return the parts of the ZipNum cluster in *location*, in the order of its index."""
    for index in (file for file in below if file.endswith(_CLUSTER_INDEX) and "/" not in file):
        names: dict[str, None] = {}
        with reachable(location.below(index)):
            lines = location.below(index).read() or b""
        for line in lines.splitlines():
            words = line.split(b"\t")
            if len(words) >= 4:
                names.setdefault(Path(words[1].decode("utf-8", "replace")).name)
        found = {
            name: next((file for file in (name, f"{name}.gz") if file in below), "") for name in names
        }
        missing = [name for name, file in found.items() if not file]
        if missing:
            raise InputError(
                f"{location.below(index)} names parts that are not beside it: {', '.join(missing[:5])}. "
                "Fetch them, or name the parts that are there one by one."
            )
        if found:
            return list(found.values())
    return []


def is_parquet(path: Path) -> bool:
    """Return whether *path* begins like a Parquet file; InputError where it cannot be read."""
    return _begin_of(path).startswith(PARQUET_BEGINS)


def is_archive(path: Path) -> bool:
    """Return whether *path* begins like a WARC or ARC file, compressed or not; InputError as above."""
    begin = _begin_of(path)
    if begin.startswith(GZIP_MAGIC):
        try:
            begin = zlib.decompressobj(_GZIP_WINDOW).decompress(begin, 16)
        except zlib.error:
            return False
    # No index is compressed with Zstandard.
    return begin.startswith((*ARCHIVE_BEGINS, *ZSTD_BEGINS))


def _begin_of(path: Path) -> bytes:
    if str(path) == STDIN:
        return b""
    with readable(path):
        refuse_pipe(path)
        with path.open("rb") as file:
            return file.read(4096)
