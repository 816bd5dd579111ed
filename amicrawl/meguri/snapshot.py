"""Snapshots: a partition as it stands at one moment, written while the crawl goes on.

The moment costs the crawl no more than a few calls: it begins a new journal, and from then on its tables
put aside what they overwrite. A thread copies the rows in key order, one column behind the other, lays
over them what was put aside, and writes the file from the copy. Numpy and the compressor let other
threads run meanwhile; what they do at a time is a page, so that none waits long.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from amicrawl.meguri.arena import StringArena
from amicrawl.meguri.format.schema import HOST_ROW, ROW, Codec, Columns, Partition
from amicrawl.meguri.format.writer import WriteOptions
from amicrawl.meguri.rows import RowTable, drop_pages_of
from amicrawl.meguri.seen import merged_blob

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from amicrawl.disk import Disk
    from amicrawl.meguri.state import PartitionState

_PAGE = 65_536
_BLOCK = 262_144
"""Rows that are put in order at once at least; they take 27 MB."""
_PASSES = 32
"""In so many passes at most a table is copied: each maps most of it anew, in pieces of some 600 rows."""
_CACHED = 4096
"""Rows whose columns are taken apart at once: they fit into the cache of a core."""
OPTIONS = WriteOptions(codec=Codec.ZSTD, schedule=True, max_page_rows=_PAGE)
"""How snapshots are written."""


@dataclass(frozen=True, slots=True)
class FrozenCounts:
    """How much of a partition there was when it was frozen."""

    rows: int
    hosts: int
    arena: int
    """Octets of the string arena."""
    removed: frozenset[int]
    """Numbers of rows to be left out."""
    created: int
    """Hours since 1970."""


def freeze(state: PartitionState, *, hour: int) -> FrozenCounts:
    """Freeze the tables of *state*; `partition_at` thaws them again, on whatever thread."""
    state.arena.write_out()
    return FrozenCounts(
        state.rows.freeze(), state.hosts.freeze(), len(state.arena), frozenset(state.removed), hour
    )


class Copies:
    """What a partition is written from: tables in unnamed files of *directory*, and mapped blobs."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._tables: list[RowTable[Any]] = []
        self._blobs: list[mmap.mmap] = []

    def table(self, record: np.dtype, rows: int) -> RowTable[Any]:
        """Return a new table with room for *rows*."""
        self._tables.append(
            RowTable(record, tuple, directory=self._directory, disk=self._disk, rows=rows)
        )
        return self._tables[-1]

    def mapped(self, arena: StringArena, length: int) -> memoryview | bytes:
        """Return the first *length* octets of *arena*, whose pages are dropped with the others."""
        if not length:  # which cannot be mapped
            return b""
        blob = arena.mapped(length)
        self._blobs.append(blob)
        return memoryview(blob)

    def blob(self, pieces: Iterable[bytes]) -> memoryview | bytes:
        """Return *pieces* joined, in a file of their own."""
        arena = StringArena(directory=self._directory, disk=self._disk)
        try:
            arena.load(lambda append: deque(map(append, pieces), maxlen=0))
            return self.mapped(arena, len(arena))
        finally:
            arena.close()

    def drop_pages(self) -> None:
        """Take all of it out of the resident memory of the process."""
        for table in self._tables:
            table.drop_pages()
        for blob in self._blobs:
            drop_pages_of(blob)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for table in self._tables:
            table.close()


def partition_at(state: PartitionState, moment: FrozenCounts, *, copies: Copies) -> Partition:
    """Return the partition that *state* was at *moment*, copied to *copies*, and thaw *state*."""
    order = _order(state.rows, moment.rows, state.base)
    if moment.removed:
        order = order[~np.isin(order, np.fromiter(moment.removed, np.uint32))]
    urls = _copied(state.rows, order, copies.table(ROW, moment.rows))
    host_keys = state.hosts.columns("host_key")["host_key"][: moment.hosts]
    host_order = np.argsort(host_keys, kind="stable").astype(np.uint32)
    hosts = _copied(state.hosts, host_order, copies.table(HOST_ROW, moment.hosts))
    return Partition(
        urls=urls,
        hosts=hosts,
        arena=copies.mapped(state.arena, moment.arena),
        partition_id=state.partition_id,
        created=moment.created,
        host_key_lo=int(hosts["host_key"][0]) if moment.hosts else 0,
        host_key_hi=int(hosts["host_key"][-1]) if moment.hosts else 0xFFFF_FFFF_FFFF_FFFF,
        meta=tuple(sorted(state.meta.items())),
        seen_filter=merged_blob(_key_pages(urls, copies), len(order)) if len(order) else b"",
    )


class SnapshotTask:
    """Writes one snapshot on a thread of its own."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._fault: BaseException | None = None
        self._thread = Thread(target=self._run, name="amicrawl-snapshot", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it is still being written."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Wait for it, failed or not."""
        self._thread.join()

    def join(self) -> None:
        """Wait for it; raises what went wrong."""
        self.wait()
        if self._fault is not None:
            raise self._fault

    def _run(self) -> None:
        try:
            self._write()
        except BaseException as fault:  # noqa: BLE001  # it is raised where the task is joined
            self._fault = fault


def _order(table: RowTable[Any], rows: int, base: int) -> np.ndarray:
    """Return the numbers (u4) of the first *rows* in the order of keys; *base* of them are in order."""
    if rows == base:
        return np.arange(base, dtype=np.uint32)
    keys = table.columns("host_key", "path_key")
    hosts, paths = keys["host_key"][:rows], keys["path_key"][:rows]
    ranks = np.lexsort((paths[base:], hosts[base:]))
    if not base:
        return ranks.astype(np.uint32)
    ranks += base
    # Where each new key falls among the old: between those of its host first, then by path among those.
    low = np.searchsorted(hosts[:base], hosts[ranks], side="left")
    high = np.searchsorted(hosts[:base], hosts[ranks], side="right")
    while bool(np.any(low < high)):
        open_ = np.flatnonzero(low < high)
        middle = (low[open_] + high[open_]) // 2
        below = paths[middle] < paths[ranks[open_]]
        low[open_[below]] = middle[below] + 1
        high[open_[~below]] = middle[~below]
    return np.insert(np.arange(base, dtype=np.uint32), low, ranks)


def _copied(table: RowTable[Any], order: np.ndarray, target: RowTable[Any]) -> Columns:
    """Copy the rows of *table*, as they were when it was frozen, to *target* in *order*; thaw it.

    What is in *target* then is columns: a file is written column by column, and each would go through
    all rows.
    """
    copied = _columns_in(target, len(order))
    step = max(_BLOCK, len(order) // _PASSES)
    block = np.empty(min(len(order), step), table.record)
    for at in range(0, len(order), step):
        numbers = order[at : at + step]
        # Read from front to back, so that little of the table is mapped at a time.
        ascending = np.argsort(numbers)
        table.copy(numbers[ascending], block, ascending)
        for first in range(0, len(numbers), _CACHED):
            rows = block[first : min(first + _CACHED, len(numbers))]
            for name, column in copied.items():
                column[at + first : at + first + len(rows)] = rows[name]
        target.drop_pages()
    _lay_over(copied, order, table.thaw(), table.record, rows=len(table))
    target.drop_pages()
    return copied


def _columns_in(table: RowTable[Any], rows: int) -> Columns:
    """Return the room of *table*, which is for so many *rows*, as columns."""
    octets, record, at = table.fill(rows).view(np.uint8), table.record, 0
    columns = dict.fromkeys(record.names or (), octets)
    # The widest first, so that all values are aligned.
    for name in sorted(columns, key=lambda name: -record[name].itemsize):
        end = at + rows * record[name].itemsize
        columns[name] = octets[at:end].view(record[name])
        at = end
    return columns


def _lay_over(
    copied: Columns, order: np.ndarray, before: dict[int, bytes], record: np.dtype, *, rows: int
) -> None:
    """Put rows right that were written to while they were copied in *order*, some of them perhaps half.

    *before* has, by number, what they were; the table has *rows*.
    """
    if not before:
        return
    numbers = np.fromiter(before, np.uint32, len(before))
    written = np.zeros(rows, np.bool_)
    written[numbers] = True
    for at in range(0, len(order), _PAGE):
        found = np.flatnonzero(written[order[at : at + _PAGE]]) + at
        if len(found):
            packed = b"".join([before[number] for number in order[found].tolist()])
            earlier = np.frombuffer(packed, record)
            for name, column in copied.items():
                column[found] = earlier[name]


def _key_pages(urls: Columns, copies: Copies) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    hosts, paths = urls["host_key"], urls["path_key"]
    for at in range(0, len(hosts), _PAGE):
        yield hosts[at : at + _PAGE].copy(), paths[at : at + _PAGE].copy()
        copies.drop_pages()
