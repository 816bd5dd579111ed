"""Rows of a live partition are in files: of a large one, the process keeps little in resident memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from frontier.live.crawls import HOUR, META, frontier_on, opened
from frontier.live.disks import CountingDisk, resident

from amicrawl.crawl.reconciling import Reconciled
from amicrawl.crawl.resumed import resumed
from amicrawl.meguri import Cause, LivePartition, Status
from amicrawl.meguri.arena import entry_of
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.schema import ROW
from amicrawl.meguri.format.writer import write_partition
from amicrawl.meguri.snapshot import OPTIONS, Copies, freeze, partition_at
from amicrawl.meguri.state import PartitionState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.meguri.rows import RowTable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are counted in /proc")

ROWS = 200_000
WHOLE = ROWS * ROW.itemsize
STRINGS = 8 << 20


def state_of_rows(directory: Path) -> PartitionState:
    """Return a state of ROWS rows in no order, whose first half a snapshot could have had."""
    state = PartitionState(directory=directory, disk=CountingDisk(), rows=ROWS)
    state.arena.append(entry_of(bytes(STRINGS)))
    rows = state.rows.fill(ROWS)
    draw = np.random.default_rng(1)
    rows["host_key"] = draw.integers(0, 1000, ROWS, np.uint64)
    rows["path_key"] = draw.permutation(ROWS)
    rows["url_ref"] = 1
    del rows
    return state


def test_writing_a_snapshot_maps_a_page_of_rows_at_a_time(tmp_path: Path) -> None:
    state, disk, most = state_of_rows(tmp_path), CountingDisk(), [0, 0]
    moment = freeze(state, hour=HOUR)
    state.drop_pages()
    with Copies(tmp_path, disk) as copies:
        partition = partition_at(state, moment, copies=copies)
        (rows, _), strings = copies._tables, state.arena._file

        def after_page() -> None:
            most[:] = max(most[0], resident(rows._file)), max(most[1], resident(strings))
            copies.drop_pages()

        assert resident(rows._file) + resident(state.rows._file) < WHOLE // 4
        write_partition(
            partition, tmp_path / "snapshot", options=OPTIONS, disk=disk, after_page=after_page
        )
    assert 0 < most[0] < WHOLE // 2
    assert 0 < most[1] < STRINGS // 2
    state.close()
    opened = PartitionState.of_file(tmp_path / "snapshot", directory=tmp_path, disk=disk)
    assert resident(opened.rows._file) == 0
    assert len(opened.rows) == ROWS
    with FrontierFile.open(tmp_path / "snapshot") as file:
        numbers = range(0, ROWS, 9_973)
        hosts, paths = (file.url_column(name)[numbers].tolist() for name in ("host_key", "path_key"))
        assert [opened.find(*key) for key in zip(hosts, paths, strict=True)] == [*numbers]
    opened.close()


def test_rows_are_looked_through_a_page_at_a_time(tmp_path: Path) -> None:
    state = state_of_rows(tmp_path)
    state.drop_pages()
    most, paths = 0, np.zeros(0, np.uint64)
    for rows in state.rows.pages():
        paths = np.append(paths, rows["path_key"])
        most = max(most, resident(state.rows._file))
    assert sorted(paths.tolist()) == [*range(ROWS)]
    assert 0 < most < WHOLE // 4
    state.close()


def test_what_a_resumed_crawl_found_is_counted_a_page_of_rows_at_a_time(tmp_path: Path) -> None:
    partition = opened(tmp_path / "frontier")
    for path, (status, cause) in enumerate(
        [(Status.WITHHELD, Cause.RULE)] * 40_000 + [(Status.WITHHELD, Cause.ADDRESS)] * 2
    ):
        number = partition.claim(1, path)
        assert number is not None
        partition.fill(
            number, (1, path, status, 0.0, 0, 0), entry_of(b"http://a.test/"), first_seen=HOUR
        )
        partition.put(number, partition.get(number)._replace(http_status=cause))
    for path, due in ((50_000, HOUR + 9), (50_001, HOUR + 7), (50_002, 0)):
        number = partition.claim(1, path)
        assert number is not None
        row = (1, path, Status.CRAWLED, 0.0, 0, 0)
        partition.fill(number, row, entry_of(b"http://a.test/"), first_seen=HOUR)
        partition.put(number, partition.get(number)._replace(next_due=due))
    partition.close(HOUR)
    partition = opened(tmp_path / "frontier")
    watched = partition.state.rows = WatchedTable(partition.state.rows)  # type: ignore[assignment]
    found = resumed(frontier_on(partition), Reconciled(), recrawls=True)
    assert found.standing == {"captured": 3, "withheld for the address": 2, "withheld by a rule": 40_000}
    assert found.next_due == HOUR + 7
    assert watched.most < 20_000
    partition.abandon()


class WatchedTable:
    """A table that notes how many rows it has shown at once; apart from that, it is *table*."""

    def __init__(self, table: RowTable[Any]) -> None:
        self._table = table
        self.most = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._table, name)

    def __len__(self) -> int:
        return len(self._table)

    def pages(self) -> Iterator[np.ndarray]:
        for page in self._table.pages():
            self.most = max(self.most, len(page))
            yield page

    def view(self) -> np.ndarray:
        self.most = len(self)
        return self._table.view()


def test_rows_that_are_offered_and_settled_do_not_stay_in_resident_memory(tmp_path: Path) -> None:
    partition = LivePartition(tmp_path / "frontier", disk=CountingDisk(), hour=HOUR, meta=META)
    count, url = 40_000, entry_of(b"http://a.test/")
    for path in range(count):
        number = partition.claim(1, path)
        assert number is not None
        row = (1, path, Status.SCHEDULED, 0.0, 0, 0)
        partition.fill(number, row, url, first_seen=HOUR)
    assert resident(partition.state.rows._file) < count * ROW.itemsize // 3
    for number in range(count):
        partition.put(number, partition.get(number).with_status(Status.CRAWLED))
        if not number % 1000:
            partition.flush()
    assert resident(partition.state.rows._file) < count * ROW.itemsize // 2
    partition.abandon()
