"""The strings of a live partition: appended, never changed, found again by their offset.

Laid out as in a frontier file: a uvarint length and the octets, one behind the other, the first at
offset 1. They are in a file without a name; the latest are still in memory.
"""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

from amicrawl.disk import explained
from amicrawl.errors import AmicrawlError
from amicrawl.frontier.format.partition import EMPTY_ARENA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.disk import Disk

_WAITING = 1024**2
_GLANCE = 512
"""Octets read at first: most URLs, with what stands behind them, are shorter."""
_LONGEST_HEAD = 10


def entry_of(text: bytes) -> bytes:
    """Return *text* behind its length."""
    length = len(text)
    if length < 0x80:
        return bytes((length,)) + text
    if length < 0x4000:
        return bytes((length & 0x7F | 0x80, length >> 7)) + text
    head = bytearray()
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + text


class StringArena:
    """The arena of one partition."""

    def __init__(self, *, directory: Path, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        with explained(directory, "written to"):
            self._file = disk.temporary(directory)
        self._descriptor = self._file.fileno()
        self._written = 0
        self._waiting = bytearray(EMPTY_ARENA)

    def __len__(self) -> int:
        return self._written + len(self._waiting)

    def append(self, entries: bytes) -> int:
        """Add *entries*, whole ones, and return the offset of the first; OutputError on a full disk."""
        offset = self._written + len(self._waiting)
        self._waiting += entries
        if len(self._waiting) > _WAITING:
            self.write_out()
        return offset

    def load(self, copy: Callable[[Callable[[bytes], object]], object]) -> None:
        """Begin anew with the arena of a file; *copy* is given what takes its blocks."""
        self._waiting = bytearray()
        copy(self.append)
        # A block of a file may end within an entry; only what is written out is read across blocks.
        self.write_out()

    def texts_at(self, reference: int) -> tuple[bytes, bytes]:
        """Return the string at *reference* and the one behind it; empty where there is none.

        Raises AmicrawlError where *reference* leads nowhere: the rows were checked when they came in.
        """
        block = self._read(reference, _GLANCE)
        # Nearly every string is shorter than 128 octets, and so is the length of the one behind it.
        if (
            len(block) == _GLANCE
            and (length := block[0]) < 0x80
            and (behind := block[length + 1]) < 0x80
        ):
            end = length + 2
            return block[1 : length + 1], block[end : end + behind]
        text, end = self._entry(reference, block)
        if end >= len(self):
            return text, b""
        return text, self._entry(end, block[end - reference :])[0]

    def mapped(self, length: int) -> mmap.mmap:
        """Return the first *length* octets, all of which must be written out, mapped read-only."""
        return mmap.mmap(self._file.fileno(), length, access=mmap.ACCESS_READ)

    def write_out(self) -> None:
        """Write what waits in memory to the file."""
        # A copy is written: a view of the buffer that is still referenced, as by the traceback of a
        # failure does, would keep it from being cut and from growing.
        block, done = memoryview(bytes(self._waiting)), 0
        try:
            with explained(self._directory, "written to"):
                while done < len(block):
                    at = self._written + done
                    done += self._disk.write_at(self._file.fileno(), block[done:], at)
        finally:
            # What is written waits no longer, and what failed is written where it belongs the next time:
            # no offset may shift.
            self._written += done
            del self._waiting[:done]

    def close(self) -> None:
        """Give the file up."""
        # Its number may be that of another file from here on.
        self._descriptor = -1
        self._file.close()

    def _entry(self, offset: int, block: bytes) -> tuple[bytes, int]:
        """Return the string at *offset* and the offset behind it; *block* was read from there."""
        head = _head(block)
        if head is None:
            block = self._read(offset, _GLANCE)
            head = _head(block)
        if head is None:
            raise AmicrawlError(f"No string of the frontier begins at offset {offset}.")
        length, at = head
        if at + length > len(block):
            whole = at + length
            block = self._read(offset, whole) if whole <= len(self) - offset else b""
            if len(block) < whole:
                raise AmicrawlError(f"The string of the frontier at offset {offset} has no end.")
        return block[at : at + length], offset + at + length

    def _read(self, offset: int, length: int) -> bytes:
        if offset >= self._written:
            start = offset - self._written
            return bytes(self._waiting[start : start + length])
        # An entry is added in one piece, so it never lies partly here and partly there.
        return os.pread(self._descriptor, length, offset)


def _head(block: bytes) -> tuple[int, int] | None:
    """Return the length that *block* begins with, and where that ends; None if it does not end there."""
    length = 0
    for at, octet in enumerate(block[:_LONGEST_HEAD]):
        length |= (octet & 0x7F) << 7 * at
        if octet < 0x80:
            return length, at + 1
    return None
