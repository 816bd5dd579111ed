"""ZipNum clusters read: the lines between two keys, from as few and as large reads as possible.

The index of blocks is searched in a memory map; the blocks that can hold a line are neighbours, and up
to ten of them are read at once. A shard has to lie in the directory of the index or below it: an index
from elsewhere cannot make us open other files. Locations on other machines are not followed.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from amicrawl.errors import DamagedFileError, InputError
from amicrawl.index.lines.sorted_lines import SortedLines
from amicrawl.index.zipnum.cluster import (
    META,
    Block,
    parse_idx_line,
    parse_json_idx_head,
    parse_json_idx_line,
    unpack,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BLOCKS_AT_ONCE = 10
"""Blocks that are read with one call."""
_BYTES_AT_ONCE = 16 * 1024**2
_LONGEST_LOC = 64 * 1024**2

_T = TypeVar("_T")


class _Span(NamedTuple):
    """The lines of the index of blocks that a range of keys concerns."""

    first: int
    """Where the first of them begins."""
    end: int
    """Where the last of them ends."""


class Cluster:
    """A ZipNum cluster, or a `cdxj-gzip-1.0` file with its index; threads may share it."""

    def __init__(self, idx: Path) -> None:
        """Open the index of blocks *idx*; InputError or DamagedFileError where it cannot be followed."""
        self.path = idx
        self._idx = SortedLines(idx)
        self._parse: Callable[[bytes], Block] = parse_idx_line
        self._start = 0
        self._shards: dict[str, Path] | None
        head = self._idx.line_at(0)
        if head.startswith(META):
            self._parse = parse_json_idx_line
            self._start = self._idx.after(0)
            self._shards = {"": self._inside(_or_damaged(idx, 0, lambda: parse_json_idx_head(head)))}
        else:
            self._shards = self._located()

    def close(self) -> None:
        """Give the index of blocks up."""
        self._idx.close()

    def lines(self, start: bytes, end: bytes) -> Iterator[bytes]:
        """Yield the lines in [*start*, *end*), in order and without their LF."""
        return self._lines(self._span(start, end), start, end)

    def block_count(self, start: bytes, end: bytes) -> int:
        """Return how many blocks [*start*, *end*) concerns; 0 where no line is in it."""
        span = self._span(start, end)
        count = self._count(span)
        # Of two blocks, the second begins inside the range. One may as well begin before and end before.
        if count == 1 and next(self._lines(span, start, end), None) is None:
            return 0
        return count

    def lines_of_blocks(self, start: bytes, end: bytes, *, first: int, count: int) -> Iterator[bytes]:
        """Yield the lines in [*start*, *end*) of *count* of its blocks, from the *first*, from 0, on."""
        span = self._span(start, end)
        begin = self._skip(span.first, first)
        return self._lines(_Span(begin, min(span.end, self._skip(begin, count))), start, end)

    def _span(self, start: bytes, end: bytes) -> _Span:
        """Return the blocks of a range: those that begin in it, and the one before."""
        if start >= end:
            return _Span(self._start, self._start)
        first = self._idx.first_from(start, start=self._start)
        last = self._idx.first_from(end, start=first)
        return _Span(max(self._start, self._idx.before(first)), last)

    def _count(self, span: _Span) -> int:
        if span.first >= span.end:
            return 0
        first = self._block(span.first, self._idx.line_at(span.first))
        offset = self._idx.before(span.end)
        last = self._block(offset, self._idx.line_at(offset))
        if first.number is not None and last.number is not None:
            return last.number - first.number + 1
        return sum(1 for _ in self._idx.between(span.first, span.end))

    def _skip(self, offset: int, blocks: int) -> int:
        """Return where the line that is *blocks* lines behind the one at *offset* begins."""
        if blocks and offset < self._idx.size:
            number = self._block(offset, self._idx.line_at(offset)).number
            if number is not None:
                wanted = number + blocks
                return self._idx.first_not(
                    lambda line: (self._parse_or_damaged(line).number or 0) < wanted, start=offset
                )
        for _ in range(blocks):
            offset = self._idx.after(offset)
        return offset

    def _lines(self, span: _Span, start: bytes, end: bytes) -> Iterator[bytes]:
        for run in _runs(self._block(*place) for place in self._idx.between(*span)):
            for lines in self._read(run):
                # Only the first block can begin before the range, and only the last end behind it.
                first = bisect_left(lines, start) if lines[0] < start else 0
                last = bisect_left(lines, end) if lines[-1] >= end else len(lines)
                yield from lines[first:last]

    def _read(self, run: list[Block]) -> Iterator[list[bytes]]:
        path = self._shard(run[0].shard)
        begin = run[0].offset
        packed = _bytes_of(path, begin, sum(block.length for block in run))
        for block in run:
            member = packed[block.offset - begin : block.offset - begin + block.length]
            yield _or_damaged(path, block.offset, partial(unpack, member))

    def _block(self, offset: int, line: bytes) -> Block:
        return _or_damaged(self.path, offset, lambda: self._parse(line))

    def _parse_or_damaged(self, line: bytes) -> Block:
        return _or_damaged(self.path, 0, lambda: self._parse(line))

    def _shard(self, name: str) -> Path:
        if self._shards is None:
            return self._inside(name)
        path = self._shards.get(name)
        if path is None:
            loc = self.path.with_suffix(".loc").name
            raise InputError(
                f"{self.path} speaks of a shard {name!a}, but {loc} does not. Add its line."
            )
        return path

    def _located(self) -> dict[str, Path] | None:
        """Return the path of each shard, as the file `.loc` says; None without one: beside the index."""
        loc = self.path.with_suffix(".loc")
        if not loc.exists():
            return None
        with loc.open("rb") as stream:
            text = stream.read(_LONGEST_LOC).decode("utf-8", "replace")
        shards: dict[str, Path] = {}
        for number, line in enumerate(text.splitlines(), 1):
            name, *locations = line.split("\t")
            local = [location for location in locations if "://" not in location]
            if not local:
                raise InputError(
                    f"{loc}, line {number}: no location on this machine. Copy the shard here."
                )
            shards[name] = self._inside(local[0])
        return shards

    def _inside(self, location: str) -> Path:
        """Return the file *location*, seen from the index; InputError where that leads out of there."""
        # Links are followed: who may put one there may put there what it leads to.
        root = self.path.parent.absolute()
        path = Path(os.path.normpath(root / location))
        if "\0" in location or path == root or root not in path.parents:
            raise InputError(
                f"{self.path} leads to {location!a}, which is not in its directory. Move it there."
            )
        return path


def _runs(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Yield blocks that lie side by side, as many as are read at once."""
    run: list[Block] = []
    size = 0
    for block in blocks:
        if run and (
            block.shard != run[-1].shard
            or block.offset != run[-1].offset + run[-1].length
            or len(run) >= BLOCKS_AT_ONCE
            or size + block.length > _BYTES_AT_ONCE
        ):
            yield run
            run, size = [], 0
        run.append(block)
        size += block.length
    if run:
        yield run


def _bytes_of(path: Path, offset: int, length: int) -> bytes:
    try:
        with path.open("rb") as stream:
            found = os.pread(stream.fileno(), length, offset)
    except (OSError, OverflowError) as error:
        raise InputError(f"{path} cannot be read: {error}. Check path and permissions.") from error
    if len(found) < length:
        raise DamagedFileError(path, offset, f"the file ends inside a block of {length} bytes")
    return found


def _or_damaged(path: Path, offset: int, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except ValueError as error:
        raise DamagedFileError(path, offset, str(error)) from error
