"""Blocks of lines put in byte order, however many, in bounded memory.

Lines are moved as octets in a buffer, never as objects. What does not fit is sorted piece by piece, put
aside in files without a name, and merged. Such a file is gone when the process is, however that ends.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.disk import Disk, discard, explained, pieces
from amicrawl.index.lines.arrow_texts import octets_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Self

MEMORY = 64 << 20
"""Bytes of lines that are held at a time, where no other number is asked for."""

_MOST_RUNS = 128
"""Files that are merged at a time: a process may have so many open, and more."""
_LEAST_PIECE = 4096
_LINES = 4096
"""Lines that are handed on at a time."""
_LF = ord("\n")


class LineSort:
    """Lines taken in any order and given in byte order; equal ones are all kept."""

    def __init__(self, *, scratch: Path, disk: Disk, memory: int = MEMORY) -> None:
        """Hold about *memory* bytes of lines; put others aside in the directory *scratch*."""
        self._scratch = scratch
        self._disk = disk
        self._memory = memory
        # One buffer for all pieces: memory that is asked for anew has to be filled with zeros.
        self._held = np.empty(memory, np.uint8)
        self._size = 0
        self._runs: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._runs:
            discard(run)

    def add(self, octets: bytes) -> None:
        """Take lines, each ended by LF; OutputError where they cannot be put aside."""
        if self._size + len(octets) > len(self._held):
            self._put_aside()
        if len(octets) > len(self._held):
            self._held = np.empty(len(octets), np.uint8)
        self._held[self._size : self._size + len(octets)] = np.frombuffer(octets, np.uint8)
        self._size += len(octets)

    def blocks(self) -> Iterator[bytes]:
        """Yield all lines in order, some at a time; OutputError where they cannot be read back."""
        if not self._runs:
            yield from _sorted(self._held[: self._size])
            return
        self._put_aside()
        self._held = np.empty(0, np.uint8)
        with explained(self._scratch, "read from"):
            yield from _merged(self._runs, memory=self._memory)

    def _put_aside(self) -> None:
        """Write what is held to a file of its own, in order."""
        if not self._size:
            return
        if len(self._runs) >= _MOST_RUNS:
            merged = self._written(_merged(self._runs, memory=self._memory))
            for run in self._runs:
                run.close()
            self._runs = [merged]
        self._runs.append(self._written(_sorted(self._held[: self._size])))
        self._size = 0

    def _written(self, blocks: Iterator[bytes]) -> IO[bytes]:
        with explained(self._scratch, "written to"):
            run = self._disk.temporary(self._scratch)
            try:
                for block in blocks:
                    for piece in pieces(block):
                        run.write(piece)
                run.seek(0)
            except BaseException:
                discard(run)
                raise
        return run


class _Run:
    """Lines of a file that are in memory, in order."""

    def __init__(self, file: IO[bytes], piece: int) -> None:
        self._file = file
        self._piece = piece
        self._block = b""
        self._at = 0
        self._is_read = False

    def has_lines(self) -> bool:
        """Tell whether there are lines left, and have some of them at hand, half a piece at least."""
        if not self._is_read and len(self._block) - self._at < self._piece // 2:
            more = self._file.read(self._piece) + self._file.readline()
            self._block, self._at = self._block[self._at :] + more, 0
            self._is_read = not more
        return self._at < len(self._block)

    def last_line(self) -> bytes:
        """Return the last line at hand; there is one."""
        return self._block[self._block.rfind(b"\n", 0, -1) + 1 :]

    def up_to(self, line: bytes) -> memoryview:
        """Take the lines that are not greater than *line*."""
        low, high = self._at, len(self._block)
        while low < high:
            # A line begins behind the last LF before the middle.
            start = self._block.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = self._block.index(b"\n", start) + 1
            if self._block[start:end] <= line:
                low = end
            else:
                high = start
        taken = memoryview(self._block)[self._at : low]
        self._at = low
        return taken


def _merged(files: Sequence[IO[bytes]], *, memory: int) -> Iterator[bytes]:
    """Yield the lines of *files*, each of which is in order, in order; about *memory* bytes are held."""
    # Of a piece and a half of each at hand, half a piece at least can go at a time. Were a run read on
    # only when it is empty, one of many nearly is, always, and hardly anything could go.
    piece = max(_LEAST_PIECE, memory // (6 * len(files)))
    runs = [_Run(file, piece) for file in files]
    while runs := [run for run in runs if run.has_lines()]:
        # Whatever is not greater than the least last line at hand can go: what is still to be read is
        # not smaller.
        least = min(run.last_line() for run in runs)
        taken = b"".join([run.up_to(least) for run in runs])
        yield from _sorted(np.frombuffer(taken, np.uint8))


def _sorted(octets: Any) -> Iterator[bytes]:
    """Yield the lines of *octets*, an array, in order, some at a time."""
    cuts = np.concatenate(([0], np.flatnonzero(octets == _LF) + 1)).astype(np.int32)
    lines = texts_of(octets, cuts, kind=pa.binary())
    order = pc.sort_indices(lines)
    for first in range(0, len(order), _LINES):
        written, places = octets_of(lines.take(order.slice(first, _LINES)))
        yield written[: places[-1]].tobytes()
