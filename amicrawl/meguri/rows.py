"""The rows of URLs and of hosts: as tuples, as packed octets, and in a table mapped into memory.

The octets are those of a frontier file's journal: a key and its value, little-endian, without gaps; they
are also what a table holds. Fields and units are those of `format.schema`.

A table is in a file that has no name and is freed with the process: what a crawl needs after a crash is
in the snapshots and journals. The system keeps in memory what is in use and may write out the rest, so a
table may be larger than memory. `drop_pages` takes rows out of the resident memory of the process; those
in use are mapped again one page at a time. A row keeps its number for as long as the table lives.

While a table is frozen, the octets of a row are copied before it is first written to, so that another
thread can copy the table as it was.
"""

from __future__ import annotations

import mmap
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from amicrawl.disk import explained
from amicrawl.meguri.format.schema import HOST_ROW, ROW, packing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from amicrawl.disk import Disk

_URL = packing_of(ROW)
_OFFERED = Struct("<QQBfHBQI67x")
STATUS_OFFSET = 16
"""Where in the octets of a URL's row its status is."""
_HOST = packing_of(HOST_ROW)
assert _OFFERED.size == _URL.size
assert ROW.fields is not None
assert ROW.fields["status"][1] == STATUS_OFFSET
packed_row = _URL.pack
"""Pack the fields of a `UrlRow`."""
offered_row = _OFFERED.pack
"""Pack the row of a URL that was never requested: `host`, `path` and so on up to `first_seen`."""
_STEP = 1024
"""Rows by which a table grows at least."""
_PAGE = 16_384
"""Rows that are copied at once: so many stay mapped, and other threads wait no longer."""
_key = Struct("<QQ").unpack_from
Row = TypeVar("Row", bound=tuple[Any, ...])


class UrlRow(NamedTuple):
    """What the frontier knows of one URL."""

    host: int
    path: int
    status: int
    priority: float = 0.0
    depth: int = 0
    source: int = 0
    url_ref: int = 0
    first_seen: int = 0
    last_crawled: int = 0
    last_changed: int = 0
    next_due: int = 0
    rate: float = 0.0
    """Changes an hour, estimated; the format calls it lambda."""
    crawl_count: int = 0
    change_count: int = 0
    no_change_streak: int = 0
    etag_ref: int = 0
    last_modified: int = 0
    content_fp: int = 0
    simhash: int = 0
    http_status: int = 0
    redirect_ref: int = 0
    retry_count: int = 0
    error_count: int = 0

    def packed(self) -> bytes:
        """Return the row as octets."""
        return _URL.pack(*self)

    def with_status(self, status: int) -> UrlRow:
        """Return the row with another status; `_replace` takes three times as long."""
        return UrlRow(self[0], self[1], status, *self[3:])

    def with_reference(self, reference: int) -> UrlRow:
        """Return the row with another `url_ref`."""
        return UrlRow._make((*self[:6], reference, *self[7:]))


PLACES = {name: place for place, name in enumerate(UrlRow._fields)}
"""Where in a `UrlRow` each field is."""
priority_and_reference = Struct("<17xf3xQ").unpack_from
"""Unpack `priority` and `url_ref` from the octets of a URL's row: all that its place depends on."""


class HostRow(NamedTuple):
    """What the frontier knows of one host group."""

    host: int
    host_ref: int = 0
    grouping: int = 0
    registrable_ref: int = 0
    resolved_ip: bytes = bytes(16)
    ip_expiry: int = 0
    robots_fetched: int = 0
    robots_expiry: int = 0
    robots_ref: int = 0
    crawl_delay: int = 0
    host_next_eligible: int = 0
    ip_next_eligible: int = 0
    url_budget: int = 0
    url_count: int = 0
    depth_cap: int = 0
    host_score: float = 0.0
    crawl_total: int = 0
    error_total: int = 0
    avg_latency: int = 0
    flags: int = 0

    def packed(self) -> bytes:
        """Return the row as octets."""
        return _HOST.pack(*self)

    def changed(self, **fields: object) -> HostRow:
        """Return the row with other *fields*; `_replace` takes twice as long."""
        values: list[object] = [*self]
        for name, value in fields.items():
            values[_HOST_PLACES[name]] = value
        return tuple.__new__(HostRow, values)


_HOST_PLACES = {name: place for place, name in enumerate(HostRow._fields)}


class RowTable(Generic[Row]):
    """Rows of type *record*, tuples of the class *kind*, numbered from 0."""

    def __init__(
        self, record: np.dtype, kind: type[Row], *, directory: Path, disk: Disk, rows: int = 0
    ) -> None:
        """Make a table with room for *rows*, in *directory*; OutputError where that is full."""
        self.record = record
        self._width = record.itemsize
        self._unpack = packing_of(record).unpack_from
        # Their `_make` would count the fields once more.
        self._made: Callable[[tuple[Any, ...]], Row] = partial(tuple.__new__, kind)
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
        """Return the octets of row *number*."""
        at = number * self._width
        assert self._map is not None
        return self._map[at : at + self._width]

    def get(self, number: int) -> Row:
        """Return row *number*."""
        assert self._map is not None
        return self._made(self._unpack(self._map, number * self._width))

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

    def marked(self, number: int, offset: int, octet: int) -> Row:
        """Return row *number*, and replace its *octet* at *offset*."""
        at = number * self._width
        rows = self._map
        assert rows is not None
        if number < self._frozen_rows and number not in self._before:
            self._before[number] = rows[at : at + self._width]
        row = self._made(self._unpack(rows, at))
        rows[at + offset] = octet
        return row

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
