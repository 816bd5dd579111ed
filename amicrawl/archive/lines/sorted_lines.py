"""Sorted lines in a file, found by binary search. Reads only.

Lines are in byte order (as `LC_ALL=C sort` leaves them) and end in LF. Nothing is read but what a search
touches, so a file larger than memory costs as little as a small one. Threads may share it: nothing here
has a position. There is no map of memory, which would end the process where the file is cut. Whether the
lines are in order is not checked as a whole; `is_in_order` looks at some of them.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from amicrawl.disk import readable, refuse_pipe
from amicrawl.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PROBES = 64
_STEP = 1 << 10
"""Bytes that are read to find one line."""
_BLOCK = 64 << 10
"""Bytes that are read of many."""


class SortedLines:
    """The lines of one file; each is addressed by the offset of its first byte."""

    def __init__(self, path: Path) -> None:
        """Open *path*; InputError where it cannot be read."""
        self.path = path
        with readable(path):
            refuse_pipe(path)
            with path.open("rb", buffering=0) as stream:
                self._descriptor = os.dup(stream.fileno())
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self.size = os.fstat(self._descriptor).st_size
        """Bytes of the file when it was opened."""

    def close(self) -> None:
        """Close the file."""
        self.size = 0
        self._close()

    def line_at(self, offset: int) -> bytes:
        """Return the line that begins at *offset*, without its LF; empty at the end of the file."""
        return self._lines_at(offset, _STEP).partition(b"\n")[0]

    def after(self, offset: int) -> int:
        """Return where the line behind the one at *offset* begins; at the last one, the file's size."""
        return min(offset + len(self.line_at(offset)) + 1, self.size)

    def before(self, offset: int) -> int:
        """Return where the line before the one at *offset* begins; 0 where there is none."""
        return self.start_of_line(max(0, offset - 1))

    def start_of_line(self, offset: int) -> int:
        """Return where the line that byte *offset* is part of begins."""
        step = _STEP
        while offset:
            begin = max(0, offset - step)
            found = self._bytes(begin, offset - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            offset, step = begin, 2 * step
        return 0

    def _lines_at(self, offset: int, size: int) -> bytes:
        """Return about *size* bytes from *offset* on, and as many more as one line takes."""
        data = self._bytes(offset, size)
        while b"\n" not in data and offset + len(data) < self.size:
            data += self._bytes(offset + len(data), len(data))
        return data

    def _bytes(self, offset: int, size: int) -> bytes:
        """Return *size* bytes, or those up to the end; DamagedFileError where that has come nearer."""
        size = min(size, self.size - offset)
        with readable(self.path):
            data = os.pread(self._descriptor, size, offset) if size > 0 else b""
        if len(data) < size:
            raise DamagedFileError(self.path, offset, "the file was cut while it was in use")
        return data

    def first_not(self, is_before: Callable[[bytes], bool], *, start: int = 0) -> int:
        """Return where the first line from *start* on is of which *is_before* is false.

        It has to be true of some first lines and false of all others. At the end of the file: its size.
        """
        low, high = start, self.size
        while low < high:
            line = max(low, self.start_of_line((low + high) // 2))
            if is_before(self.line_at(line)):
                low = self.after(line)
            else:
                high = line
        return low

    def first_from(self, key: bytes, *, start: int = 0) -> int:
        """Return where the first line that is not less than *key* begins."""
        return self.first_not(lambda line: line < key, start=start)

    def between(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield offset and line of the lines that begin in [*start*, *end*)."""
        while start < end:
            lines = self._lines_at(start, _BLOCK).split(b"\n")
            # What is behind the last LF is the beginning of a line, but for the last one of the file.
            cut = lines.pop() if len(lines) > 1 else b""
            if cut and start + sum(map(len, lines)) + len(lines) + len(cut) >= self.size:
                lines.append(cut)
            for line in lines:
                if start >= end:
                    return
                yield start, line
                start += len(line) + 1

    def is_in_order(self, *, up_to: bytes = b"\n", start: int = 0) -> bool:
        """Return whether some lines, taken from all over the file, and their neighbours are in order.

        The lines from *start* on, each up to the first *up_to* in it.
        """
        last = b""
        for probe in range(_PROBES):
            offset = self.start_of_line(start + (self.size - start) * probe // _PROBES)
            behind = self.after(offset)
            line, following = (self.line_at(each).partition(up_to)[0] for each in (offset, behind))
            # Nothing but blank lines may be at the end.
            if line < last or (
                following < line and (following or self._bytes(behind, _STEP).strip(b"\n"))
            ):
                return False
            last = line
        return True
