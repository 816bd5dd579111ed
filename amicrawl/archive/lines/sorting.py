"""Lines in byte order, however many, in bounded memory; and files of lines, sorted or as they come.

What does not fit is sorted piece by piece, written to files without a name, and merged. Such a file
disappears with the process. The order is that of the bytes (`LC_ALL=C sort`): CDXJ lines by key, then by
timestamp.
"""

from __future__ import annotations

import io
import zlib
from bisect import bisect_right
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, NamedTuple

from amicrawl.disk import Disk, OutputFile, discard, explained

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Self


MEMORY = 48 << 20
"""Bytes of lines that are held at a time, where no other number is requested."""

_OF_A_LINE = 48
"""Bytes that a line takes in memory besides its own."""
_MOST_RUNS = 128
"""Files that are merged at a time: a process may have so many open, and more."""
_LEAST_PIECE = 4096


class LineSort:
    """Lines taken in any order and given in byte order; each ends in its only LF, equal ones are kept.

    About *memory* bytes are held. What does not fit goes to the directory *scratch*; OutputError where
    it cannot be written there, or read back.
    """

    def __init__(self, *, scratch: Path, disk: Disk | None = None, memory: int = MEMORY) -> None:
        self._scratch = scratch
        self._memory = memory
        self._held: list[bytes] = []
        self._size = 0
        self._runs = _Runs(scratch, memory=memory, disk=disk or Disk())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, line: bytes) -> None:
        """Take in *line*."""
        self._held.append(line)
        self._size += len(line) + _OF_A_LINE
        if self._size >= self._memory:
            self._put_held_aside()

    def add_block(self, octets: bytes) -> None:
        """Take in the lines of *octets*."""
        lines = io.BytesIO(octets).readlines()
        self._held += lines
        self._size += len(octets) + _OF_A_LINE * len(lines)
        if self._size >= self._memory:
            self._put_held_aside()

    def lines(self) -> Iterator[bytes]:
        """Yield all lines in order; to be read once."""
        if not self._runs.files:
            held, self._held = self._held, []
            held.sort()
            yield from held
            return
        self._put_held_aside()
        with explained(self._scratch, "read from"):
            yield from self._runs.lines()

    def close(self) -> None:
        """Let go of what was put aside."""
        self._held.clear()
        self._runs.open_files.close()

    def _put_held_aside(self) -> None:
        self._held.sort()
        self._runs.add(self._held)
        self._held.clear()
        self._size = 0
        if len(self._runs.files) >= _MOST_RUNS:
            self._runs.make_one()


def external_sort(
    lines: Iterable[bytes], *, memory: int = MEMORY, scratch: Path, disk: Disk | None = None
) -> Iterator[bytes]:
    """Yield *lines* in byte order, by a `LineSort`."""
    with LineSort(scratch=scratch, disk=disk, memory=memory) as sort:
        for line in lines:
            sort.add(line)
        yield from sort.lines()


def merged(runs: list[IO[bytes]], *, memory: int = MEMORY) -> Iterator[bytes]:
    """Yield the lines of *runs*, each of them sorted, in order; about *memory* bytes are held."""
    piece = max(_LEAST_PIECE, memory // (2 * len(runs) or 1))
    for file in runs:
        file.seek(0)
    held = [_Held(run, piece) for run in runs]
    while held := [run for run in held if run.has_lines()]:
        # Whatever is not greater than the last line that every run has at hand can go: what is still to
        # be read is not smaller. Sorting what was taken costs little: it is a few runs in a row.
        least = min(run.lines[-1] for run in held)
        taken: list[bytes] = []
        for run in held:
            taken += run.up_to(least)
        taken.sort()
        yield from taken


@contextmanager
def merged_files(paths: Sequence[Path], *, scratch: Path) -> Iterator[Iterator[bytes]]:
    """Give the lines of *paths*, files that are each in byte order, as one stream in byte order.

    However many they are, no more than 128 are open at a time; what that takes goes to *scratch*.
    """
    runs = _Runs(scratch, memory=MEMORY, disk=Disk())
    with runs.open_files:
        for path in paths:
            if len(runs.files) >= _MOST_RUNS:
                runs.make_one()
            runs.files.append(runs.open_files.enter_context(path.open("rb")))
        yield runs.lines()


def without_repeats(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield *lines* without those that equal the one before."""
    last = b""
    for line in lines:
        if line != last:
            yield line
            last = line


class _Held:
    """The lines of a run that are in memory."""

    def __init__(self, run: IO[bytes], piece: int) -> None:
        self.lines: list[bytes] = []
        self._run = run
        self._piece = piece

    def has_lines(self) -> bool:
        """Return whether there are lines left, and have some of them."""
        if not self.lines:
            self.lines = self._run.readlines(self._piece)
        return bool(self.lines)

    def up_to(self, line: bytes) -> list[bytes]:
        """Take the lines that are not greater than *line*."""
        end = bisect_right(self.lines, line)
        taken, self.lines = self.lines[:end], self.lines[end:]
        return taken


class _Runs:
    """Files of sorted lines without a name in the directory *scratch*, gone when they are closed."""

    def __init__(self, scratch: Path, *, memory: int, disk: Disk) -> None:
        self.files: list[IO[bytes]] = []
        self.open_files = ExitStack()
        self._scratch = scratch
        self._memory = memory
        self._disk = disk

    def add(self, lines: Iterable[bytes]) -> None:
        """Write *lines* to a file of their own."""
        with explained(self._scratch, "written to"):
            run = self._disk.temporary(self._scratch)
            self.open_files.callback(discard, run)
            run.writelines(lines)
            run.flush()
        self.files.append(run)

    def make_one(self) -> None:
        """Merge all files into one."""
        merging, self.files = self.files, []
        self.add(merged(merging, memory=self._memory))
        for run in merging:
            run.close()

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of all files in order."""
        return merged(self.files, memory=self._memory)


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


def write_lines(lines: Iterable[bytes], path: Path, *, packed: bool = False, disk: Disk) -> Written:
    """Write *lines* to *path*, which has its name only once it is whole."""
    file = OutputFile.replacing(path, disk=disk)
    try:
        return _write(file, lines, b"", packed=packed)
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
