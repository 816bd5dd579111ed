"""Files of lines: as the lines come, or in byte order from lines in any order, in bounded memory."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.disk import Disk, OutputFile
from amicrawl.index.lines.sorting import LineSort

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MEMORY = 48 << 20
"""Bytes of lines that are held at a time."""

_PIECE = 1 << 20


class LineFile:
    """A file in byte order, being made."""

    def __init__(
        self,
        path: Path,
        *,
        disk: Disk,
        memory: int = MEMORY,
        legend: bytes = b"",
        packed: bool = False,
    ) -> None:
        """Begin *path*, with *legend* before all lines, *packed* with gzip."""
        self._legend = legend
        self._packed = packed
        self._file = OutputFile.replacing(path, disk=disk)
        self._sort = LineSort(scratch=path.parent, disk=disk, memory=memory)
        self.add = self._sort.add
        """Takes in a line, which ends in its only line feed."""

    def seal(self) -> tuple[int, int]:
        """Give the file its name; return its lines and its size in bytes."""
        written = _write(self._file, self._sort.lines(), self._legend, packed=self._packed)
        self._sort.close()
        return written

    def close(self) -> None:
        """Leave the file as it is; its name says that it is not whole."""
        self._sort.close()
        self._file.close()


class Written(NamedTuple):
    """A file of lines."""

    lines: int
    size: int
    """In bytes."""


def write_lines(
    lines: Iterable[bytes], path: Path, *, legend: bytes = b"", packed: bool = False, disk: Disk
) -> Written:
    """Write *lines* behind *legend* to *path*, which has its name only once it is whole."""
    file = OutputFile.replacing(path, disk=disk)
    try:
        return _write(file, lines, legend, packed=packed)
    finally:
        file.close()


def _write(file: OutputFile, lines: Iterable[bytes], legend: bytes, *, packed: bool) -> Written:
    packer = zlib.compressobj(wbits=31) if packed else None
    count, size = 0, len(legend)
    batch = [legend]

    def flush() -> None:
        data = b"".join(batch)
        file.write(packer.compress(data) if packer is not None else data)
        batch.clear()

    for line in lines:
        batch.append(line)
        count += 1
        size += len(line)
        if size >= _PIECE:
            flush()
            size = 0
    flush()
    if packer is not None:
        file.write(packer.flush())
    written = file.tell()
    file.seal()
    return Written(count, written)
