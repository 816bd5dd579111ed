"""Indexes to look captures up in: ZipNum clusters, and sorted CDXJ or CDX files. Reads only.

Each gives the lines of a range, and a page of them. A page is a number of blocks; a file
that has none is thought to be cut into stretches of 256 KiB from the beginning of the range on.
"""

from __future__ import annotations

import errno
import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from amicrawl.archive.index.lookup.query import count_pages, response_lines
from amicrawl.archive.index.lookup.request import request_of
from amicrawl.archive.index.zipnum.cluster import Cluster
from amicrawl.archive.index.zipnum.writer import idx_path_of
from amicrawl.archive.lines import SortedLines, is_keyed, refuse_archive
from amicrawl.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

STRETCH = 256 * 1024
"""Bytes of a plain file that count as a block."""

_IDX_SUFFIXES = (".idx", ".summary")
_TEXT_SUFFIXES = (".cdxj", ".cdx", ".cdxj.gz", ".cdx.gz")
_GZIP_MAGIC = b"\x1f\x8b"
_HEADS = (b" ", b"!", b"@")
_LINE = re.compile(rb"[^ ]+ [0-9]{1,14} |[ !@]")
"""How a line of an index begins: with a key and a timestamp, or as a header."""
_LOOKED_AT = 100
"""Lines at the beginning of a file of which one has to begin so."""


class IndexSource(Protocol):
    """An index; threads may share it."""

    def lines(self, start: bytes, end: bytes) -> Iterator[bytes]:
        """Yield the lines in [*start*, *end*), in order and without their LF."""

    def block_count(self, start: bytes, end: bytes) -> int:
        """Return how many blocks the range concerns; 0 where no line is in it."""

    def lines_of_blocks(self, start: bytes, end: bytes, *, first: int, count: int) -> Iterator[bytes]:
        """Yield the lines in the range of *count* of its blocks, from the *first*, from 0, on."""

    def close(self) -> None:
        """Give up what was opened."""


class SortedFile:
    """A plain file of sorted lines."""

    def __init__(self, path: Path) -> None:
        """Open *path*; InputError where it is packed, no index, or not sorted."""
        self._lines = SortedLines(path)
        begin = self._lines.line_at(0)
        refuse_archive(path, begin)
        if begin.startswith(_GZIP_MAGIC):
            raise InputError(
                f"{path} is packed without an index of its blocks, so nothing can be looked up in it. "
                "Unpack it, or make a ZipNum cluster of it."
            )
        beginning = islice(self._lines.between(0, min(STRETCH, self._lines.size)), _LOOKED_AT)
        lines = [line for _, line in beginning if _LINE.match(line)]
        if begin and not lines:
            raise InputError(
                f"{path} is not a CDXJ or CDX file: no line at its beginning has a key and a timestamp."
            )
        captures = [line for line in lines if line[:1] not in _HEADS]
        if not is_keyed(begin) or (captures and not any(map(is_keyed, captures))):
            raise InputError(
                f"{path}: its keys are not SURTs, as those of wget, so nothing can be looked up. "
                "Index the WARC files: amicrawl index FILES --merge INDEX"
            )
        if not self._lines.is_in_order():
            raise InputError(f"{path} is not in byte order. Sort it first, as LC_ALL=C sort does.")

    def lines(self, start: bytes, end: bytes) -> Iterator[bytes]:
        """See `IndexSource`."""
        return self._between(*self._span(start, end))

    def block_count(self, start: bytes, end: bytes) -> int:
        """See `IndexSource`."""
        begin, stop = self._span(start, end)
        return -(-(stop - begin) // STRETCH)

    def lines_of_blocks(self, start: bytes, end: bytes, *, first: int, count: int) -> Iterator[bytes]:
        """See `IndexSource`."""
        begin, stop = self._span(start, end)
        return self._between(
            self._edge(begin, begin + first * STRETCH, stop),
            self._edge(begin, begin + (first + count) * STRETCH, stop),
        )

    def close(self) -> None:
        """See `IndexSource`."""
        self._lines.close()

    def _edge(self, begin: int, offset: int, stop: int) -> int:
        """Return where the first line begins that does so at *offset* or behind it."""
        if offset <= begin:
            return begin
        return stop if offset >= stop else min(stop, self._lines.after(offset - 1))

    def _span(self, start: bytes, end: bytes) -> tuple[int, int]:
        first = self._lines.first_from(start)
        return first, self._lines.first_from(end, start=first)

    def _between(self, start: int, end: int) -> Iterator[bytes]:
        return (line for _, line in self._lines.between(start, end) if line)


def open_sources(paths: Sequence[Path]) -> list[IndexSource]:
    """Open all indexes that *paths* name: files, clusters, and directories of either.

    Raises InputError where one is missing, holds no index or cannot be searched.
    """
    try:
        return [source for path in paths for source in _sources_of(path)]
    except InputError as error:
        if not isinstance(error.__cause__, OSError) or error.__cause__.errno != errno.EMFILE:
            raise
        raise InputError(
            "There are more indexes than this process may have open. Make one of them, with amicrawl "
            "cdx zipnum, or allow more open files (ulimit -n)."
        ) from error


def _sources_of(path: Path) -> Iterator[IndexSource]:
    if not path.exists():
        raise InputError(f"{path} is not there. Name a CDXJ file or a ZipNum directory.")
    if path.is_dir():
        yield from _sources_in(path)
    elif path.suffix in _IDX_SUFFIXES:
        yield Cluster(path)
    elif path.suffix == ".gz" and idx_path_of(path).exists():
        yield Cluster(idx_path_of(path))
    else:
        yield SortedFile(path)


def _sources_in(directory: Path) -> Iterator[IndexSource]:
    clusters = sorted(path for path in directory.iterdir() if path.suffix in _IDX_SUFFIXES)
    files = sorted(path for path in directory.iterdir() if path.name.endswith(_TEXT_SUFFIXES))
    if not clusters and not files:
        raise InputError(f"{directory} holds neither a ZipNum cluster nor a .cdxj file.")
    for path in clusters:
        yield Cluster(path)
    for path in files:
        if idx_path_of(path) not in clusters:
            yield SortedFile(path)


def looked_up(parameters: Mapping[str, Sequence[str]], paths: Sequence[Path]) -> Iterator[bytes]:
    """Return the lines in the indexes *paths* that *parameters* request, or how many pages they have.

    Raises UsageError for parameters that say nothing, InputError where there is no index.
    """
    request = request_of(parameters)
    sources = open_sources(paths)
    if not request.counts_pages:
        return response_lines(request, sources)
    found = count_pages(request, sources)
    said = {"pages": found.pages, "pageSize": found.page_size, "blocks": found.blocks}
    return iter([json.dumps(said).encode() + b"\n"])
