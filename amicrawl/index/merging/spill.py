"""Lines set aside on disk while others are joined, so that memory stays flat.

The files have no name and are gone with the process. A line that has to wait for others carries its
number, so that runs of such lines can be read side by side, by number.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from amicrawl.disk import discard, explained

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.disk import Disk

_HELD = 1 << 16
_NUMBER = 12
"""Hexadecimal digits of a line's number: in byte order, lines are in the order of their numbers."""


class Spill:
    """Lines set aside, read back in the order in which they came."""

    def __init__(self, scratch: Path, *, disk: Disk) -> None:
        self.count = 0
        self._scratch = scratch
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._disk = disk
        self._file: IO[bytes] | None = None

    def add(self, line: bytes) -> None:
        """Set *line* aside; it has no LF."""
        self._held.append(line)
        self._held_bytes += len(line)
        self.count += 1
        if self._held_bytes >= _HELD:
            self._write()

    def add_numbered(self, number: int, line: bytes) -> None:
        """Set *line* aside with its *number*."""
        self.add(b"%012x%s" % (number, line))

    def lines(self) -> Iterator[bytes]:
        """Yield what was set aside, and let go of it at the end."""
        if self._file is None:
            held, self._held = self._held, []
            yield from held
            return
        self._write()
        with explained(self._scratch, "read from"), self._file as file:
            file.seek(0)
            for line in file:
                yield line[:-1]

    def close(self) -> None:
        """Let go of what was set aside."""
        if self._file is not None:
            discard(self._file)

    def _write(self) -> None:
        if self._held:
            self._held.append(b"")
            with explained(self._scratch, "written to"):
                self._file = self._file or self._disk.temporary(self._scratch)
                self._file.write(b"\n".join(self._held))
        self._held, self._held_bytes = [], 0


def number_and_line(numbered: bytes) -> tuple[int, bytes]:
    """Return what `Spill.add_numbered` put together."""
    return int(numbered[:_NUMBER], 16), numbered[_NUMBER:]
