"""A file of lines in byte order, made from lines in any order, in bounded memory.

Sorting takes lines as they are asked for (`sorting.py`); a reading that makes several products at once
gives them as they come. So lines that are too many to be held wait in a file without a name.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from amicrawl.disk import Disk, OutputFile, discard, explained
from amicrawl.index.lines.sorting import external_sort

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import IO

MEMORY = 48 << 20
"""Bytes of lines that are held at a time."""

_PIECE = 1 << 20
_OF_A_LINE = 64
"""Bytes that a line takes besides its own."""


class LineFile:
    """Such a file, being written."""

    def __init__(self, path: Path, *, disk: Disk, memory: int = MEMORY) -> None:
        """Begin *path*."""
        self._path = path
        self._disk = disk
        self._memory = memory
        self._lines: list[bytes] = []
        self._held = 0
        self._aside: IO[bytes] | None = None
        self._count = 0
        self._file = OutputFile.replacing(path, disk=disk)

    def add(self, line: bytes) -> None:
        """Take in *line*, which ends in its only line feed."""
        self._lines.append(line)
        self._held += len(line) + _OF_A_LINE
        self._count += 1
        if self._held >= self._memory:
            self._put_aside()

    def seal(self) -> tuple[int, int]:
        """Give the file its name; return its lines and its size in bytes."""
        if self._aside is None:
            self._lines.sort()
            self._write(self._lines)
        else:
            with self._aside as aside:
                aside.seek(0)
                lines = chain(aside, self._lines)
                self._write(
                    external_sort(lines, memory=self._memory, scratch=self._path.parent, disk=self._disk)
                )
        self._aside, self._lines = None, []
        size = self._file.tell()
        self._file.seal()
        return self._count, size

    def close(self) -> None:
        """Leave the file as it is; its name says that it is not whole."""
        if self._aside is not None:
            discard(self._aside)
        self._aside = None
        self._file.close()

    def _put_aside(self) -> None:
        with explained(self._path, "sorted"):
            if self._aside is None:
                self._aside = self._disk.temporary(self._path.parent)
            self._aside.writelines(self._lines)
            self._aside.flush()
        self._lines, self._held = [], 0

    def _write(self, lines: Iterable[bytes]) -> None:
        batch: list[bytes] = []
        size = 0
        for line in lines:
            batch.append(line)
            size += len(line)
            if size >= _PIECE:
                self._file.write(b"".join(batch))
                batch, size = [], 0
        self._file.write(b"".join(batch))
