"""The lines of many files as one stream in byte order, in bounded memory.

Most files are in order already, and those of a sharded index follow each other, so `blocks_in_order`
takes them as they are, merges what overlaps, and has to be given up only where lines are not in order.
Then all of them are sorted outside memory (`archive/lines/sorting.py`). In byte order a line comes by
key, then by timestamp, as long as no key holds an octet below the space that ends it; `sort_lines` says
whether one does.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice, pairwise, starmap
from operator import le
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from amicrawl.archive.arrow_texts import octets_of
from amicrawl.archive.lines import octet_blocks
from amicrawl.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from amicrawl.archive.lines import LineSort

MOST_MERGED = 64
"""Files that are read side by side."""
_HELD_BLOCK = 2 << 20
"""Bytes of a file that are read at a time; of files side by side fewer, so that all take some 32 MiB."""
_HELD_BLOCKS = 8 << 20
_LEAST_BLOCK = 1 << 18
_FIRST_BLOCK = 1 << 16
_LINES = 4096
"""Lines of several files that are handed on at a time."""

_SPACE = 0x20


class NotInOrderError(Exception):
    """Lines that were taken to be in order are not."""


def sort_lines(
    paths: Sequence[Path],
    sort: LineSort,
    *,
    damaged: Callable[[DamagedFileError], None],
    read: Callable[..., Iterator[bytes]] = octet_blocks,
) -> bool:
    """Give *sort* all lines of *paths*; return whether byte order is the order of key and time.

    Truncated files are reported to *damaged*. InputError where one cannot be read.
    """
    in_order = True
    for path in paths:
        try:
            for octets in read(path):
                sort.add_block(octets)
                # A line has such octets in its key or not at all: in JSON they are escaped.
                is_low = np.frombuffer(octets, np.uint8) < _SPACE
                in_order = in_order and np.count_nonzero(is_low) == octets.count(b"\n")
        except DamagedFileError as error:
            damaged(error)
    return in_order


def sorted_blocks(sort: LineSort) -> Iterator[bytes]:
    """Yield the lines of *sort*, many at a time."""
    lines = sort.lines()
    while some := list(islice(lines, _LINES)):
        yield b"".join(some)


def blocks_in_order(
    paths: Sequence[Path],
    *,
    damaged: Callable[[DamagedFileError], None],
    read: Callable[..., Iterator[bytes]] = octet_blocks,
) -> Iterator[bytes]:
    """Yield all lines of *paths*, each ended by LF, many at a time, in order if those of each file are.

    NotInOrderError where it is noticed that they are not; who takes the lines has to look too. Files
    that are truncated are reported to *damaged*. InputError where one cannot be read.
    """
    first = [(_first_line(path, damaged), path) for path in paths]
    waiting = sorted(((line, path) for line, path in first if line is not None), reverse=True)
    active: list[_HeldFile] = []

    def begin(beside: int) -> list[_HeldFile]:
        """Begin the last file of those waiting, where there is one, so many being read *beside* it."""
        size = min(_HELD_BLOCK, max(_LEAST_BLOCK, _HELD_BLOCKS // (beside + 1)))
        return [_HeldFile(read(waiting.pop()[1], block_bytes=size), damaged)] if waiting else []

    merged: list[bytes] = []
    while active := [file for file in active if file.has_lines()] or begin(0):
        least = min(file.last_line() for file in active)
        while waiting and waiting[-1][0] < least:
            if len(active) == MOST_MERGED:
                raise NotInOrderError
            active += begin(len(active))
            least = min(least, active[-1].last_line())
        if len(active) > 1:
            merged += _up_to(least, active)
        # What a few lines take to be read as a block is more than what the lines take.
        ready = len(merged) if len(active) == 1 else len(merged) // _LINES * _LINES
        yield from (_block_of(merged[first : first + _LINES]) for first in range(0, ready, _LINES))
        del merged[:ready]
        if len(active) == 1:
            yield active[0].block()
    if merged:
        yield _block_of(merged)


def last_in_order(rows: pa.RecordBatch, before: tuple[str, Any] | None) -> tuple[str, Any] | None:
    """Return key and time of the last of *rows*; NotInOrderError where a row comes before another.

    *before* is what was returned for the rows that came before. Keys that hold an octet below the space
    are not in order either: lines, by which files are merged, come in another order than such keys.
    """
    if not rows.num_rows:
        return before
    keys, times = rows["url_surtkey"], rows["fetch_time"]
    octets, places = octets_of(keys)
    if (octets[places[0] : places[-1]] < _SPACE).any():
        raise NotInOrderError
    first, last = ((keys[at].as_py(), times[at].as_py()) for at in (0, rows.num_rows - 1))
    same = pc.equal(keys[1:], keys[:-1])
    back = pc.or_(pc.less(keys[1:], keys[:-1]), pc.and_(same, pc.less(times[1:], times[:-1])))
    if (before is not None and first < before) or pc.any(back).as_py():
        raise NotInOrderError
    return last


def _first_line(path: Path, damaged: Callable[[DamagedFileError], None]) -> bytes | None:
    """Return the first line of *path*; None where it has none, which is reported if it is damage."""
    try:
        block = next(octet_blocks(path, block_bytes=_FIRST_BLOCK), b"")
    except DamagedFileError as error:
        damaged(error)
        return None
    return block[: block.index(b"\n")] if block else None


def _up_to(least: bytes, files: Sequence[_HeldFile]) -> list[bytes]:
    """Take the lines of *files* that are not greater than *least*, the least last line at hand.

    What is still to be read is not smaller. Sorting costs little, since it is a few runs in a row.
    """
    taken = [line for file in files for line in file.up_to(least)]
    taken.sort()
    return taken


def _block_of(lines: list[bytes]) -> bytes:
    """Return *lines*, each ended by LF."""
    return b"\n".join([*lines, b""])


class _HeldFile:
    """The lines of one file that are in memory: as a block until single ones are requested."""

    def __init__(self, blocks: Iterator[bytes], damaged: Callable[[DamagedFileError], None]) -> None:
        self._blocks = blocks
        self._damaged = damaged
        self._block = b""
        self._lines: list[bytes] = []
        self._last = b""
        self.has_lines()

    def has_lines(self) -> bool:
        """Return whether there are lines left, and have some of them at hand."""
        if not self._lines and not self._block:
            try:
                self._block = next(self._blocks, b"")
            except DamagedFileError as error:
                self._damaged(error)
        return bool(self._lines or self._block)

    def last_line(self) -> bytes:
        """Return the last line at hand; there is one."""
        block = self._block
        return self._lines[-1] if self._lines else block[block.rfind(b"\n", 0, -1) + 1 : -1]

    def block(self) -> bytes:
        """Take all lines at hand, each ended by LF."""
        block = _block_of(self._lines) if self._lines else self._block
        self._block, self._lines = b"", []
        return block

    def up_to(self, line: bytes) -> list[bytes]:
        """Take the lines that are not greater than *line*; NotInOrderError where order is broken."""
        if not self._lines:
            self._lines, self._block = self._block.split(b"\n"), b""
            self._lines.pop()
            if not all(starmap(le, pairwise([self._last, *self._lines]))):
                raise NotInOrderError
            self._last = self._lines[-1]
        end = bisect_right(self._lines, line)
        taken, self._lines = self._lines[:end], self._lines[end:]
        return taken
