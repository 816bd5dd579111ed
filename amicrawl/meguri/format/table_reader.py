"""Reading the columns of a table: all of one, or only the pages that are wanted.

Each page is checked against its own checksum and against what the footer says of it, its least and
greatest value included; a column that is read whole against its checksum too.

`BlockReader` reads the bytes of a file where they are wanted and counts them. Everything above knows
offsets within a block at most; `placed` adds the file and the place.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import numpy as np

from amicrawl.disk import readable, refuse_pipe
from amicrawl.meguri.format.checksum import crc32c
from amicrawl.meguri.format.faults import FileFault, FrontierFileError, Malformed
from amicrawl.meguri.format.layout import page_extents
from amicrawl.meguri.format.page import HEADER_SIZE, Expected, decode_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from amicrawl.meguri.format.footer import ColumnEntry, Region
    from amicrawl.meguri.format.schema import Column

STEP: Final = 1 << 20
"""Bytes that are read at once where all that is wanted is to look at each of them."""


class BlockReader:
    """A file open for reading."""

    def __init__(self, path: Path) -> None:
        """Open *path*; InputError where that fails."""
        self.path = path
        self.reads = 0
        """Calls to the operating system so far."""
        self.bytes_read = 0
        with readable(self.path):
            refuse_pipe(path)
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self.size = os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def read(self, offset: int, length: int) -> bytes:
        """Return *length* bytes from *offset* on; Malformed where the file no longer has them."""
        with readable(self.path):
            block = os.pread(self._descriptor, length, offset)
            self.reads += 1
            while len(block) < length:  # more than 2 GiB are read in parts
                more = os.pread(self._descriptor, length - len(block), offset + len(block))
                self.reads += 1
                if not more:
                    raise Malformed(
                        f"{length - len(block)} bytes are gone since the file was opened", at=len(block)
                    )
                block += more
        self.bytes_read += length
        return block

    def blocks(self, offset: int, length: int) -> Iterator[bytes]:
        """Yield the *length* bytes from *offset* on in steps."""
        for first in range(offset, offset + length, STEP):
            yield self.read(first, min(STEP, offset + length - first))

    @contextmanager
    def placed(self, offset: int, region: str) -> Iterator[None]:
        """Turn a `Malformed` into the error that names file and place; it counts from *offset* on."""
        try:
            yield
        except Malformed as fault:
            raise FrontierFileError(
                self.path, offset + fault.at, region, fault.reason, fault=fault.fault
            ) from fault


_READ_TOGETHER: Final = 1 << 18
"""Neighbouring pages up to so many bytes are read at once."""


class TableReader:
    """The pages of one table."""

    def __init__(
        self,
        source: BlockReader,
        region: Region,
        schema: Sequence[Column],
        entries: Sequence[ColumnEntry],
    ) -> None:
        self._source = source
        self.name = region.name
        self._extents = dict(
            zip((column.name for column in schema), page_extents(entries, region), strict=True)
        )
        self.columns = {column.name: column for column in schema}
        self.entries = {column.name: entry for column, entry in zip(schema, entries, strict=True)}
        first = entries[0].pages
        self.rows = entries[0].rows
        self.page_rows = first["rows"].astype(np.int64)
        self.first_rows = first["first_row"].astype(np.int64)

    def page_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of the page that each of *rows* is in."""
        return np.searchsorted(self.first_rows, rows, side="right") - 1

    def zones(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the greatest value of each page of a column that has them."""
        pages = self.entries[name].pages
        return pages["zone_min"], pages["zone_max"]

    def only_or(self, wanted: np.ndarray) -> list[int]:
        """Return the numbers of the pages that are *wanted*, or that of the only one.

        Where there is one page it is read, so that a wrong least or greatest value cannot hide all rows.
        """
        return [0] if len(wanted) == 1 else np.flatnonzero(wanted).tolist()

    def pages(self, name: str, wanted: Iterable[int] | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first row and the values of the *wanted* pages of a column, ascending, or of all.

        Where all are read, the checksum of the column is compared behind the last.
        """
        entry, column = self.entries[name], self.columns[name]
        region = f"{self.name}.{name}"
        checksum = 0
        numbers = range(len(entry.pages)) if wanted is None else wanted
        for page, offset, block in self._blocks(name, list(numbers)):
            checksum = crc32c(block, checksum) if wanted is None else 0
            listed = entry.pages[page]
            expected = Expected(
                first_row=int(listed["first_row"]),
                rows=int(listed["rows"]),
                encoding=int(listed["encoding"]),
                codec=entry.codec,
                zone=entry.zone_of_page(page),
            )
            with self._source.placed(offset, region):
                values = decode_page(column, block, expected)
            yield expected.first_row, values
        if wanted is None:
            with self._source.placed(entry.first_page_offset, region):
                if checksum != entry.crc32c:
                    raise Malformed("the column has another checksum", fault=FileFault.CHECKSUM)
                compressed = self._extents[name] - HEADER_SIZE * len(entry.pages)
                if compressed != entry.total_compressed:
                    raise Malformed(
                        f"{compressed} compressed bytes, and {entry.total_compressed} in the footer"
                    )

    def _blocks(self, name: str, numbers: list[int]) -> Iterator[tuple[int, int, bytes]]:
        """Yield number, offset and bytes of pages, reading neighbours together."""
        entry = self.entries[name]
        # The length of an only page is not in the footer.
        lengths = (
            entry.pages["length"].astype(np.int64) if len(entry.pages) > 1 else [self._extents[name]]
        )
        lengths = np.asarray(lengths, np.int64)
        ends = entry.first_page_offset + np.cumsum(lengths)
        place = 0
        while place < len(numbers):
            last = place
            begin = int(ends[numbers[place]] - lengths[numbers[place]])
            while (
                last + 1 < len(numbers)
                and numbers[last + 1] == numbers[last] + 1
                and int(ends[numbers[last + 1]]) - begin <= _READ_TOGETHER
            ):
                last += 1
            with self._source.placed(begin, f"{self.name}.{name}"):
                block = self._source.read(begin, int(ends[numbers[last]]) - begin)
            for number in numbers[place : last + 1]:
                end = int(ends[number])
                offset = end - int(lengths[number])
                yield number, offset, block if place == last else block[offset - begin : end - begin]
            place = last + 1

    def read_into(self, name: str, target: np.ndarray) -> None:
        """Read a column into *target*, an array of its length that may be a view of something else."""
        for first, values in self.pages(name):
            target[first : first + len(values)] = values

    def column(self, name: str) -> np.ndarray:
        """Return all values of a column."""
        target = np.empty(self.rows, self.columns[name].dtype)
        self.read_into(name, target)
        return target

    def take(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Return the values of *rows* of a column, as ordered, reading only the pages that hold them."""
        taken = np.empty(len(rows), self.columns[name].dtype)
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        wanted = np.unique(self.page_of(ascending))
        for first, values in self.pages(name, wanted.tolist()):
            begin, end = np.searchsorted(ascending, (first, first + len(values)))
            taken[order[begin:end]] = values[ascending[begin:end] - first]
        return taken
