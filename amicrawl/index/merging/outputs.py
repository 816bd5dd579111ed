"""The outputs of a merge: lines as they come, and lines that come later into gaps left for them."""

from __future__ import annotations

from array import array
from typing import IO, TYPE_CHECKING, Protocol

from amicrawl.disk import OutputFile, discard, explained, pieces, rename_durably

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from amicrawl.disk import Disk

_PIECE = 1 << 20


class Sink(Protocol):
    """What takes whole lines, file by file."""

    def write(self, octets: bytes | memoryview) -> object:
        """Take lines, each ended by LF."""

    def end_file(self) -> None:
        """Take what follows for the next file's."""


class Outputs:
    """Files that are written one after the other, and get their names when all are whole."""

    def __init__(self, paths: Sequence[Path], *, disk: Disk) -> None:
        """Begin the first of *paths*; there is one at least."""
        self._paths = paths
        self._disk = disk
        self._files: list[OutputFile] = []
        self._begin()

    def write(self, octets: bytes | memoryview) -> None:
        """Take lines of the file that is being written."""
        self._files[-1].write(octets)

    def end_file(self) -> None:
        """Force it to disk and begin the next, if there is one."""
        self._files[-1].sync()
        self._files[-1].check_name()
        self._files[-1].close()
        if len(self._files) < len(self._paths):
            self._begin()

    def seal(self) -> None:
        """Give all files, each of which was ended, their names."""
        for file in self._files:
            rename_durably(file.open_path, file.path, disk=self._disk)

    def close(self) -> None:
        """Let go of them; those that have no name keep their `.open`."""
        for file in self._files:
            file.close()

    def _begin(self) -> None:
        self._files.append(OutputFile.replacing(self._paths[len(self._files)], disk=self._disk))


class Gaps:
    """Lines on their way to a sink; from the first gap on they wait on disk until gaps are filled."""

    def __init__(self, sink: Sink, *, scratch: Path, disk: Disk) -> None:
        self._sink = sink
        self._scratch = scratch
        self._disk = disk
        self._aside: IO[bytes] | None = None
        self._size = 0
        self._gaps = array("q")
        # A file ends between two gaps; how many come before it, and where.
        self._ends: list[tuple[int, int]] = []

    def add(self, octets: bytes | memoryview, gaps: NDArray[np.int64]) -> None:
        """Take lines, and where between them others will come, as offsets that ascend."""
        if self._aside is None and not len(gaps):
            self._sink.write(octets)
            return
        with explained(self._scratch, "written to"):
            self._aside = self._aside or self._disk.temporary(self._scratch)
            self._gaps.extend((gaps + self._size).tolist())
            for piece in pieces(octets):
                self._aside.write(piece)
        self._size += len(octets)

    def end_file(self) -> None:
        """Take what follows for the next file's."""
        if self._aside is None:
            self._sink.end_file()
        else:
            self._ends.append((len(self._gaps), self._size))

    def fill(self, lines: Iterator[bytes]) -> None:
        """Hand all that waits on, with *lines*, without LF, in the gaps."""
        if self._aside is None:
            return
        with explained(self._scratch, "read from"), self._aside as aside:
            aside.seek(0)
            filled = at = 0
            for count, end in self._ends:
                at = self._fill_until(aside, at, end, self._gaps[filled:count], lines)
                filled = count
                self._sink.end_file()
            self._fill_until(aside, at, self._size, self._gaps[filled:], lines)
        self._aside = None

    def _fill_until(
        self, aside: IO[bytes], at: int, end: int, gaps: array[int], lines: Iterator[bytes]
    ) -> int:
        """Hand on what stands from *at* to *end*, with a line in each gap between; return *end*."""
        held: list[bytes] = []
        size = 0
        for gap in gaps:
            held += [aside.read(gap - at), next(lines), b"\n"]
            size += gap - at + len(held[-2])
            at = gap
            if size >= _PIECE:
                self._sink.write(b"".join(held))
                held, size = [], 0
        self._sink.write(b"".join(held))
        while at < end:
            piece = aside.read(min(_PIECE, end - at))
            self._sink.write(piece)
            at += len(piece)
        return end

    def close(self) -> None:
        """Let go of what waits."""
        if self._aside is not None:
            discard(self._aside)
