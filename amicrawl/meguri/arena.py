"""The strings of a live partition: appended, never changed, found again by their offset.

Laid out as in a frontier file: a uvarint length and the octets, one behind the other, the first at
offset 1. They are in a file without a name; the latest are still in memory.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

from amicrawl.disk import explained
from amicrawl.errors import AmicrawlError
from amicrawl.meguri.format.schema import EMPTY_ARENA
from amicrawl.meguri.rows import drop_pages_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.disk import Disk

_WAITING = 1024**2
_LONGEST_HEAD = 10
_SHORT_HEADS = tuple(bytes((length,)) for length in range(0x80))


def entry_of(text: bytes) -> bytes:
    """Return *text* behind its length."""
    length = len(text)
    if length < 0x80:
        return _SHORT_HEADS[length] + text
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
        self._written = 0
        self._read_only: mmap.mmap | None = None
        """What was written out, mapped as far as strings have been read."""
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
        block: mmap.mmap | bytearray | None = self._read_only
        at = reference
        if reference >= self._written:
            # An entry is added in one piece, so it never lies partly in the file and partly in memory.
            block, at = self._waiting, reference - self._written
        elif block is None or reference >= len(block):
            block = self._map_written()
        # Nearly every string is shorter than 128 octets, and so is the length of the one behind it.
        try:
            end = at + 1 + block[at]
            behind = end + 1 + block[end]
            if block[at] < 0x80 and block[end] < 0x80 and behind <= len(block):
                return bytes(block[at + 1 : end]), bytes(block[end + 1 : behind])
        except IndexError:
            pass
        text, end = self._entry(reference)
        return text, b"" if end >= len(self) else self._entry(end)[0]

    def text_at(self, reference: int) -> bytes | None:
        """Return the string at *reference*, of a row that was not checked; None where there is none."""
        if not 0 < reference < len(self):
            return None
        try:
            return self._entry(reference)[0]
        except AmicrawlError:
            return None

    def drop_pages(self) -> None:
        """Take the strings out of the resident memory of the process; nothing is lost."""
        drop_pages_of(self._read_only)

    def mapped(self, length: int) -> mmap.mmap:
        """Return the first *length* octets, more than none and all written out, mapped read-only."""
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
        self._read_only = None
        self._file.close()

    def _entry(self, offset: int) -> tuple[bytes, int]:
        """Return the string at *offset* and the offset behind it."""
        if offset >= self._written:
            block: mmap.mmap | bytearray = self._waiting
            at = offset - self._written
        else:
            block, at = self._map_written(), offset
        head = _head(block[at : at + _LONGEST_HEAD])
        if head is None:
            raise AmicrawlError(f"No string of the frontier begins at offset {offset}.")
        length, size = head
        text = bytes(block[at + size : at + size + length])
        if len(text) < length:
            raise AmicrawlError(f"The string of the frontier at offset {offset} has no end.")
        return text, offset + size + length

    def _map_written(self) -> mmap.mmap:
        """Return all that was written out, mapped: a look into it takes a tenth of a system call."""
        if self._read_only is None or len(self._read_only) < self._written:
            self._read_only = self.mapped(self._written)
        return self._read_only


def _head(block: bytes | bytearray) -> tuple[int, int] | None:
    """Return the length that *block* begins with, and where that ends; None if it does not end there."""
    length = 0
    for at, octet in enumerate(block):
        length |= (octet & 0x7F) << 7 * at
        if octet < 0x80:
            return length, at + 1
    return None
