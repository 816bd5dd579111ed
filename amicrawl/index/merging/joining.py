"""Lines joined with records of sidecars and written: most at once, others when all have been seen."""

from __future__ import annotations

from array import array
from typing import IO, TYPE_CHECKING, Protocol

import numpy as np

from amicrawl.disk import OutputFile, discard, explained, pieces, rename_durably
from amicrawl.index.lines.blocks import Block
from amicrawl.index.merging.block_join import joined
from amicrawl.index.merging.join import Join
from amicrawl.index.merging.sides import rows_as_sides

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from amicrawl.disk import Disk
    from amicrawl.index.merging.join import MergeCounts
    from amicrawl.index.merging.sides import SideTable


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


_MOST_SECONDS = 100_000
"""Timestamps of undecided lines that are held; beyond, the rules are given all records."""
_NONE = np.empty(0, np.int64)


class Joining:
    """The records of some sidecars, and the way of lines through them to a sink."""

    def __init__(
        self,
        table: SideTable,
        sink: Sink,
        counts: MergeCounts,
        *,
        by_key_only: bool = False,
        scratch: Path,
        disk: Disk,
    ) -> None:
        self._table = table
        self._counts = counts
        self._undecided = Undecided(sink, scratch=scratch, disk=disk)
        self._seconds: set[bytes] = set()
        # merge_cdxj's rule writes every object anew, so each line has to be parsed.
        self._by_key = Join(rows_as_sides(table.rows), counts, by_key_only=True) if by_key_only else None
        counts.records += len(self._table)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undecided.close()

    def add(self, octets: bytes) -> None:
        """Take lines, each ended by LF."""
        if self._by_key is not None:
            lines = octets.split(b"\n")[:-1]
            self._undecided.add(b"\n".join([*self._by_key.decided(lambda: lines), b""]), _NONE)
            return
        block = Block(octets)
        found = joined(block, self._table, self._counts)
        self._undecided.add(found.octets, found.places)
        for number in found.left.tolist():
            if len(self._seconds) <= _MOST_SECONDS:
                self._seconds.update(part[:14] for part in block.line(number).split(b" ", 2)[1:2])

    def end_file(self) -> None:
        """Take what follows for the next file's."""
        self._undecided.end_file()

    def finish(self) -> None:
        """Decide what is left, and count the records that no line got anything from."""
        if self._by_key is not None:
            self._counts.records_unused += self._by_key.used.count(0)
            return
        if self._undecided.are_there:
            seconds = self._seconds if len(self._seconds) <= _MOST_SECONDS else None
            rows, numbers = self._table.of_seconds(seconds)
            used = self._table.used[numbers].tobytes()
            join = Join(rows_as_sides(rows), self._counts, used=used)
            self._undecided.replace(join.decided(self._undecided.lines))
            self._table.used[numbers] = np.frombuffer(join.used, np.uint8)
        self._counts.records_unused += int(np.count_nonzero(self._table.used == 0))
