"""Snapshots: a partition as it stands at one moment, written while the crawl goes on.

The moment costs the crawl no more than a few calls: it begins a new journal, and from then on its tables
put aside what they overwrite. A thread copies the rows in key order, lays over them what was put aside,
and writes the file from the copy. Numpy and the compressor let other threads run meanwhile; what they
do at a time is a page, so that none waits long.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.frontier.format.partition import Columns, Partition, columns_of
from amicrawl.frontier.format.schema import HOST_ROW, ROW, Codec
from amicrawl.frontier.format.writer import WriteOptions, write_partition
from amicrawl.frontier.seen.bloom import merged_blob
from amicrawl.frontier.table import RowTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Self

    from amicrawl.disk import Disk
    from amicrawl.frontier.state import PartitionState

_PAGE = 65_536
OPTIONS = WriteOptions(codec=Codec.ZSTD, schedule=True, max_page_rows=_PAGE)
"""How snapshots are written."""


@dataclass(frozen=True, slots=True)
class Moment:
    """How much of a partition there was when it was frozen."""

    rows: int
    hosts: int
    arena: int
    """Octets of the string arena."""
    removed: frozenset[int]
    """Numbers of rows to be left out."""
    created: int
    """Hours since 1970."""


def freeze(state: PartitionState, *, hour: int) -> Moment:
    """Freeze the tables of *state*; `partition_at` thaws them again, on whatever thread."""
    state.arena.write_out()
    return Moment(
        state.rows.freeze(), state.hosts.freeze(), len(state.arena), frozenset(state.removed), hour
    )


class Copies:
    """Tables that rows are copied to, in unnamed files of *directory*; closed together."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._tables: list[RowTable] = []

    def table(self, record: np.dtype, rows: int) -> RowTable:
        """Return a new table with room for *rows*."""
        self._tables.append(RowTable(record, directory=self._directory, disk=self._disk, rows=rows))
        return self._tables[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for table in self._tables:
            table.close()


def partition_at(state: PartitionState, moment: Moment, *, copies: Copies) -> Partition:
    """Return the partition that *state* was at *moment*, copied to *copies*, and thaw *state*."""
    rows = copies.table(ROW, moment.rows)
    order = _order(state.rows.view()[: moment.rows], state.base)
    if moment.removed:
        order = order[~np.isin(order, np.fromiter(moment.removed, np.uint32))]
    urls = _copied(state.rows, order, rows)
    host_view = state.hosts.view()[: moment.hosts]
    host_order = np.argsort(host_view["host_key"], kind="stable").astype(np.uint32)
    hosts = _copied(state.hosts, host_order, copies.table(HOST_ROW, moment.hosts))
    return Partition(
        urls=urls,
        hosts=hosts,
        arena=state.arena.mapped(moment.arena),
        partition_id=state.partition_id,
        created=moment.created,
        host_key_lo=int(hosts["host_key"][0]) if moment.hosts else 0,
        host_key_hi=int(hosts["host_key"][-1]) if moment.hosts else 0xFFFF_FFFF_FFFF_FFFF,
        meta=tuple(sorted(state.meta.items())),
        seen_filter=merged_blob(_key_pages(urls), len(order)) if len(order) else b"",
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


def write(partition: Partition, path: Path, *, disk: Disk) -> int:
    """Write *partition* as the snapshot *path*; return its bytes. OutputError where that fails."""
    return write_partition(partition, path, options=OPTIONS, disk=disk)


def _order(rows: np.ndarray, base: int) -> np.ndarray:
    """Return the numbers (u4) of *rows* in the order of keys; the first *base* are in order already."""
    new = rows[base:]
    hosts, paths = new["host_key"].copy(), new["path_key"].copy()
    ranks = np.lexsort((paths, hosts))
    if not base:
        return ranks.astype(np.uint32)
    if not len(new):
        return np.arange(base, dtype=np.uint32)
    return _merged(rows, base, hosts[ranks], paths[ranks], (ranks + base).astype(np.uint32))


def _merged(
    rows: np.ndarray, base: int, hosts: np.ndarray, paths: np.ndarray, numbers: np.ndarray
) -> np.ndarray:
    """Return the order of *base* sorted rows and of the new ones, sorted too, with their *numbers*."""
    old_hosts = rows["host_key"][:base].copy()
    # Where each new key falls among the old: between those of its host first, then by path among those.
    low = np.searchsorted(old_hosts, hosts, side="left")
    high = np.searchsorted(old_hosts, hosts, side="right")
    del old_hosts
    old_paths = rows["path_key"]
    while bool(np.any(low < high)):
        open_ = np.flatnonzero(low < high)
        middle = (low[open_] + high[open_]) // 2
        below = old_paths[middle] < paths[open_]
        low[open_[below]] = middle[below] + 1
        high[open_[~below]] = middle[~below]
    return np.insert(np.arange(base, dtype=np.uint32), low, numbers)


def _copied(table: RowTable, order: np.ndarray, target: RowTable) -> Columns:
    """Copy the rows of *table*, as they were when it was frozen, into *target* in *order*; thaw it."""
    source = table.view()
    copied = target.fill(len(order))
    for at in range(0, len(order), _PAGE):
        # Rows are copied whole, and other threads let run: by index, numpy copies field by field, which
        # takes twenty times as long. No number is out of range, so that nothing is clipped.
        np.take(source, order[at : at + _PAGE], out=copied[at : at + _PAGE], mode="clip")
    _lay_over(copied, order, table.thaw(), rows=len(source))
    return columns_of(copied)


def _lay_over(copied: np.ndarray, order: np.ndarray, before: dict[int, bytes], *, rows: int) -> None:
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
            copied[found] = np.frombuffer(packed, copied.dtype)


def _key_pages(urls: Columns) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    hosts, paths = urls["host_key"], urls["path_key"]
    for at in range(0, len(hosts), _PAGE):
        yield hosts[at : at + _PAGE].copy(), paths[at : at + _PAGE].copy()
