"""A table of packed rows in a file that is mapped into memory.

The file has no name and is freed with the process: what a crawl needs after a crash is in the snapshots
and journals. The system keeps in memory what is in use and may write out the rest, so a table may be
larger than memory. `drop_pages` takes rows out of the resident memory of the process; those in use are
mapped again one page at a time. A row keeps its number for as long as the table lives.

While a table is frozen, the octets of a row are copied before it is first written to, so that another
thread can copy the table as it was.
"""

from __future__ import annotations

import mmap
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

from amicrawl.disk import explained
from amicrawl.meguri.format.schema import packing_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.disk import Disk

_STEP = 1024
"""Rows by which a table grows at least."""
_PAGE = 16_384
"""Rows that are copied at once: so many stay mapped, and other threads wait no longer."""
_key = Struct("<QQ").unpack_from


class RowTable:
    """Rows of type *record*, numbered from 0."""

    def __init__(self, record: np.dtype, *, directory: Path, disk: Disk, rows: int = 0) -> None:
        """Make a table with room for *rows*, in *directory*; OutputError where that is full."""
        self.record = record
        self._width = record.itemsize
        self._unpack = packing_of(record).unpack_from
        self._directory = directory
        self._disk = disk
        with explained(directory, "written to"):
            self._file = disk.temporary(directory)
        self.count = 0
        """How many rows there are."""
        self._capacity = 0
        self._map: mmap.mmap | None = None
        self._frozen_rows = 0
        self._before: dict[int, bytes] = {}
        try:
            self._reserve(max(_STEP, rows))
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return self.count

    def append(self, packed: bytes) -> int:
        """Add a row and return its number; OutputError where the disk is full."""
        number = self.count
        if number == self._capacity:
            self._reserve(max(_STEP, number // 4))
        at = number * self._width
        assert self._map is not None
        self._map[at : at + self._width] = packed
        self.count = number + 1
        return number

    def extend(self, packed: bytes) -> None:
        """Add rows, one behind the other; OutputError where the disk is full."""
        more = len(packed) // self._width
        if self.count + more > self._capacity:
            self._reserve(max(_STEP, self.count // 4, more))
        at = self.count * self._width
        assert self._map is not None
        self._map[at : at + len(packed)] = packed
        self.count += more

    def read(self, number: int) -> bytes:
        """Return row *number*."""
        at = number * self._width
        assert self._map is not None
        return self._map[at : at + self._width]

    def unpacked(self, number: int) -> tuple[Any, ...]:
        """Return the fields of row *number*."""
        assert self._map is not None
        return self._unpack(self._map, number * self._width)

    def key(self, number: int) -> tuple[int, int]:
        """Return the first 16 octets of row *number* as two numbers: the key, in a table of URLs."""
        assert self._map is not None
        key: tuple[int, int] = _key(self._map, number * self._width)
        return key

    def write(self, number: int, packed: bytes) -> None:
        """Put *packed* in the place of row *number*."""
        at = number * self._width
        rows = self._map
        assert rows is not None
        if number < self._frozen_rows and number not in self._before:
            self._before[number] = rows[at : at + self._width]
        rows[at : at + self._width] = packed

    def write_octet(self, number: int, offset: int, octet: int) -> None:
        """Replace the *octet* at *offset* of row *number*."""
        at = number * self._width
        rows = self._map
        assert rows is not None
        if number < self._frozen_rows and number not in self._before:
            self._before[number] = rows[at : at + self._width]
        rows[at + offset] = octet

    def fill(self, rows: int) -> np.ndarray:
        """Make the table *rows* long and return them, to be written to and let go of at once."""
        assert self._map is not None
        assert rows <= self._capacity
        self.count = rows
        return np.frombuffer(self._map, self.record, rows)

    def pages(self) -> Iterator[np.ndarray]:
        """Yield the rows, read-only, some at a time; on any thread, with little of the table mapped.

        What was yielded is to be let go of before the next is requested.
        """
        view, mapped = self._mapped()
        for at in range(0, len(view), _PAGE):
            yield view[at : at + _PAGE]
            drop_pages_of(mapped)

    def view(self) -> np.ndarray:
        """Return the rows as they are and will be, read-only, in a mapping of their own."""
        return self._mapped()[0]

    def columns(self, *names: str) -> dict[str, np.ndarray]:
        """Return copies of the columns *names*; on any thread, with little of the table mapped."""
        view, pages = self._mapped()
        copies = {name: np.empty(len(view), self.record[name]) for name in names}
        for at in range(0, len(view), _PAGE):
            page = slice(at, at + _PAGE)
            for name, copy in copies.items():
                copy[page] = view[name][page]
            drop_pages_of(pages)
        return copies

    def copy(self, numbers: np.ndarray, target: np.ndarray, places: np.ndarray) -> None:
        """Copy each of the rows *numbers*, ascending, to its place in *target*; on any thread."""
        view, pages = self._mapped()
        # Octets instead of fields: numpy copies those one by one, which takes twenty times as long.
        octets = np.dtype((np.void, self._width))
        rows, copied = view.view(octets), target.view(octets)
        for at in range(0, len(numbers), _PAGE):
            page = slice(at, at + _PAGE)
            copied[places[page]] = rows[numbers[page]]
            drop_pages_of(pages)

    def drop_pages(self) -> None:
        """Take the rows out of the resident memory of the process; nothing that was written is lost."""
        drop_pages_of(self._map)

    def freeze(self) -> int:
        """Begin to put aside what is about to be overwritten; return how many rows there are."""
        self._before = {}
        self._frozen_rows = self.count
        return self.count

    def thaw(self) -> dict[int, bytes]:
        """End that; return the rows that were overwritten since, as they were when it began."""
        self._frozen_rows = 0
        before, self._before = self._before, {}
        return before

    def close(self) -> None:
        """Close the file; its space is freed with the last view of its rows."""
        self._map = None
        self._file.close()

    def _mapped(self) -> tuple[np.ndarray, mmap.mmap | None]:
        """Return the rows, read-only, and the mapping that they are in; None where there are none."""
        rows = self.count  # read once: another thread may append meanwhile
        if not rows:
            return np.empty(0, self.record), None
        mapped = mmap.mmap(self._file.fileno(), rows * self._width, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, self.record, rows), mapped

    def _reserve(self, more: int) -> None:
        # Space is reserved before it is mapped: writing to a page that has none would kill the process.
        at, length = self._capacity * self._width, more * self._width
        with explained(self._directory, "written to"):
            self._disk.reserve(self._file.fileno(), at, length)
            if self._map is None:
                self._map = mmap.mmap(self._file.fileno(), length)
            else:
                self._map.resize(at + length)
        self._capacity += more


def drop_pages_of(mapped: mmap.mmap | None) -> None:
    """Take the pages of a mapped file out of the resident memory; they stay in the system's cache."""
    if mapped is not None:
        mapped.madvise(mmap.MADV_DONTNEED)
