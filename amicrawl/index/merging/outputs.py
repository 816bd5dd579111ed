"""The outputs of a merge: decided lines as they come, undecided ones once all lines have been seen."""

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


class Undecided:
    """Lines on their way to a sink; from the first undecided one on, all wait on disk."""

    def __init__(self, sink: Sink, *, scratch: Path, disk: Disk) -> None:
        self._sink = sink
        self._scratch = scratch
        self._disk = disk
        self._aside: IO[bytes] | None = None
        self._size = 0
        self._places = array("q")
        # How many undecided lines come before the end of a file, and where it is.
        self._ends: list[tuple[int, int]] = []

    @property
    def are_there(self) -> bool:
        """Whether any line is undecided."""
        return bool(self._places)

    def add(self, octets: bytes | memoryview, places: NDArray[np.int64]) -> None:
        """Take lines, each ended by LF; at the offsets *places*, ascending, undecided ones begin."""
        if self._aside is None and not len(places):
            self._sink.write(octets)
            return
        with explained(self._scratch, "written to"):
            self._aside = self._aside or self._disk.temporary(self._scratch)
            self._places.extend((places + self._size).tolist())
            for piece in pieces(octets):
                self._aside.write(piece)
        self._size += len(octets)

    def end_file(self) -> None:
        """Take what follows for the next file's."""
        if self._aside is None:
            self._sink.end_file()
        else:
            self._ends.append((len(self._places), self._size))

    def lines(self) -> Iterator[bytes]:
        """Yield the undecided lines in order, without LF; may be called more than once."""
        assert self._aside is not None
        for place in self._places:
            with explained(self._scratch, "read from"):
                self._aside.seek(place)
                line = self._aside.readline()
            yield line[:-1]

    def replace(self, lines: Iterator[bytes]) -> None:
        """Hand on all that waits, with *lines* in place of the undecided ones."""
        if self._aside is None:
            return
        done = at = 0
        for count, end in self._ends:
            at = self._replace_until(self._aside, at, end, self._places[done:count], lines)
            done = count
            self._sink.end_file()
        self._replace_until(self._aside, at, self._size, self._places[done:], lines)
        self.close()

    def _replace_until(
        self, aside: IO[bytes], at: int, end: int, places: array[int], lines: Iterator[bytes]
    ) -> int:
        """Hand on the lines from *at* to *end*, those at *places* replaced by *lines*; return *end*."""
        held: list[bytes] = []
        size = 0
        for place in places:
            line = next(lines)
            with explained(self._scratch, "read from"):
                aside.seek(at)
                held += [aside.read(place - at), line, b"\n"]
                at = place + len(aside.readline())
            size += len(held[-3]) + len(line)
            if size >= _PIECE:
                self._sink.write(b"".join(held))
                held, size = [], 0
        self._sink.write(b"".join(held))
        while at < end:
            with explained(self._scratch, "read from"):
                aside.seek(at)
                piece = aside.read(min(_PIECE, end - at))
            self._sink.write(piece)
            at += len(piece)
        return end

    def close(self) -> None:
        """Discard what waits."""
        if self._aside is not None:
            discard(self._aside)
        self._aside = None
