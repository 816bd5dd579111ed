"""A question costs the pages that its result stands in, counted in bytes and in calls to the system."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest
from meguri.format.frontier_files import encode_partition, made_up

from amicrawl.errors import InputError
from amicrawl.meguri.format.faults import FrontierFileError
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.verification import check_rows, inspect, verify
from amicrawl.meguri.format.writer import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = 40_000
PAGE_ROWS = 500


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 80 pages a column."""
    path = tmp_path_factory.mktemp("frontier") / "split.meguri"
    path.write_bytes(
        encode_partition(made_up(ROWS), WriteOptions(schedule=True, max_page_rows=PAGE_ROWS))
    )
    return path


@pytest.fixture
def file(path: Path) -> Iterator[FrontierFile]:
    with FrontierFile.open(path) as file:
        yield file


def lengths(file: FrontierFile, name: str) -> np.ndarray:
    return file.url_columns[name].pages["length"]


def test_opening_takes_two_reads_however_many_pages_there_are(
    tmp_path: Path, file: FrontierFile
) -> None:
    unsplit = tmp_path / "unsplit.meguri"
    unsplit.write_bytes(encode_partition(made_up(ROWS), WriteOptions()))
    with FrontierFile.open(unsplit) as short:
        assert (short.reads, short.bytes_read) == (2, 64 + short.size - short.header.footer_offset)
    assert file.size - file.header.footer_offset > 1 << 16
    assert (file.reads, file.bytes_read) == (2, 64 + file.size - file.header.footer_offset)


def test_a_summary_of_an_unsplit_file_takes_two_reads(tmp_path: Path) -> None:
    path = tmp_path / "unsplit.meguri"
    path.write_bytes(encode_partition(made_up(10), WriteOptions()))
    assert inspect(path)["urls"] == 10
    with FrontierFile.open(path) as file:
        assert file.reads == 2


def test_a_column_costs_its_pages(file: FrontierFile) -> None:
    before = file.bytes_read
    assert len(file.url_column("depth")) == ROWS
    assert file.bytes_read - before == int(lengths(file, "depth").sum())


def test_what_is_due_costs_the_schedule_and_the_pages_of_candidates(file: FrontierFile) -> None:
    due = file.url_column("next_due")
    at = file.stats.due_min
    wanted = np.flatnonzero((due != 0) & (due <= at))
    region = file.regions[2]
    before = file.bytes_read
    assert file.due(at).tolist() == wanted.tolist()
    pages = np.unique(wanted // PAGE_ROWS)
    assert len(pages) < 10
    assert file.bytes_read - before == region.length + int(lengths(file, "next_due")[pages].sum())


def test_nothing_is_read_where_nothing_can_be_found(file: FrontierFile) -> None:
    before = file.bytes_read, file.reads
    assert not len(file.due(file.stats.due_min - 1))
    assert (file.bytes_read, file.reads) == before


@pytest.mark.parametrize("hours", [0, 1, 170, 3000, 20_000, 40_000])
def test_schedule_and_scan_find_the_same_rows(path: Path, tmp_path: Path, hours: int) -> None:
    without = tmp_path / "without.meguri"
    without.write_bytes(encode_partition(made_up(ROWS), WriteOptions(max_page_rows=PAGE_ROWS)))
    with FrontierFile.open(path) as scheduled, FrontierFile.open(without) as scanned:
        at = scheduled.stats.due_min + hours
        assert scheduled.due(at).tolist() == scanned.due(at).tolist()


def test_rows_come_in_the_order_they_were_requested_and_cost_their_pages(file: FrontierFile) -> None:
    requested = np.array([ROWS - 1, 3, 3, 17_000, 0])
    before = file.bytes_read
    found = file.rows(requested, ["path_key", "status"])
    pages = np.unique(requested // PAGE_ROWS)
    assert file.bytes_read - before == sum(
        int(lengths(file, name)[pages].sum()) for name in ("path_key", "status")
    )
    assert found["path_key"].tolist() == file.url_column("path_key")[requested].tolist()
    assert not len(file.rows(np.empty(0, np.int64), ["status"])["status"])
    with pytest.raises(IndexError):
        file.rows(np.array([ROWS]), ["status"])


def test_damage_elsewhere_does_not_show(path: Path, tmp_path: Path) -> None:
    octets = bytearray(path.read_bytes())
    with FrontierFile.open(path) as sound:
        octets[sound.url_columns["simhash"].first_page_offset + 40] ^= 1
    damaged = tmp_path / "damaged.meguri"
    damaged.write_bytes(octets)
    with FrontierFile.open(damaged) as file:
        assert len(file.due(0xFFFF_FFFF))
        with pytest.raises(FrontierFileError):
            file.url_column("simhash")


def test_a_file_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        FrontierFile.open(tmp_path / "nothing.meguri")


def test_whatever_is_wrong_with_a_file_to_say_so_takes_the_memory_of_pages(tmp_path: Path) -> None:
    path = tmp_path / "alike.meguri"
    rows = made_up(ROWS * 2)
    path.write_bytes(encode_partition(rows, WriteOptions(max_page_rows=PAGE_ROWS)))
    with FrontierFile.open(path) as file:
        tracemalloc.start()
        try:
            check_rows(file)
            verify(file)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    # As a whole, they take 8.2 MB; pages take 2.1 however many rows there are.
    assert most < 3e6
