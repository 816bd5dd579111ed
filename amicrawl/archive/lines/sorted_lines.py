"""Sorted lines in a file, found by binary search over a memory map. Reads only.

Lines are in byte order (as `LC_ALL=C sort` leaves them) and end in LF. Nothing is read but what a search
touches, so a file larger than memory costs as little as a small one. Threads may share a map: nothing
here has a position. Whether the lines are in order is not checked as a whole; `is_in_order` looks at
some of them.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

from amicrawl.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PROBES = 64


class SortedLines:
    """The lines of one file; each is addressed by the offset of its first byte."""

    def __init__(self, path: Path) -> None:
        """Map *path*; InputError where it cannot be read."""
        self.path = path
        self._bytes: mmap.mmap | bytes = b""
        try:
            with path.open("rb") as stream:
                # A map of no bytes is an error of the system's.
                if stream.seek(0, 2):
                    self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise InputError(f"{path} cannot be read: {reason}. Check path and permissions.") from error
        self.size = len(self._bytes)
        """Bytes of the file."""

    def close(self) -> None:
        """Give the map up."""
        if isinstance(self._bytes, mmap.mmap):
            self._bytes.close()
        self._bytes, self.size = b"", 0

    def line_at(self, offset: int) -> bytes:
        """Return the line that begins at *offset*, without its LF; empty at the end of the file."""
        return bytes(self._bytes[offset : self.after(offset)]).removesuffix(b"\n")

    def after(self, offset: int) -> int:
        """Return where the line behind the one at *offset* begins; at the last one, the file's size."""
        end = self._bytes.find(b"\n", offset)
        return self.size if end < 0 else end + 1

    def before(self, offset: int) -> int:
        """Return where the line before the one at *offset* begins; 0 where there is none."""
        return self._bytes.rfind(b"\n", 0, max(0, offset - 1)) + 1

    def start_of_line(self, offset: int) -> int:
        """Return where the line that byte *offset* is part of begins."""
        return self._bytes.rfind(b"\n", 0, offset) + 1

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
            line = self.line_at(start)
            yield start, line
            start += len(line) + 1

    def is_in_order(self, *, up_to: bytes = b"\n", start: int = 0) -> bool:
        """Return whether some lines, taken from all over the file, and their neighbours are in order.

        The lines from *start* on, each up to the first *up_to* in it.
        """
        last = b""
        for probe in range(_PROBES):
            offset = self.start_of_line(start + (self.size - start) * probe // _PROBES)
            line, following = (
                self.line_at(each).partition(up_to)[0] for each in (offset, self.after(offset))
            )
            if line < last or (following and following < line):
                return False
            last = line
        return True
