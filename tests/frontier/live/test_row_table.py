"""A table of rows: it gives back what it was given, grows, and can be copied while it changes."""

from __future__ import annotations

import os
import struct
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from frontier.live.disks import CountingDisk, FailingDisk, ReadOnlyDisk, resident
from hypothesis import given, settings
from hypothesis import strategies as st

from amicrawl.disk import Disk
from amicrawl.errors import OutputError
from amicrawl.meguri.rows import RowTable

if TYPE_CHECKING:
    from pathlib import Path

RECORD = np.dtype([("number", "<u4"), ("first", "<u8"), ("second", "<u8"), ("third", "u1")])
WIDTH = RECORD.itemsize
MANY = 40_000


def packed(number: int, version: int = 0) -> bytes:
    return np.array((number, version, version, version % 256), RECORD).tobytes()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def table_in(directory: Path, rows: int = 0, *, disk: Disk | None = None) -> RowTable[Any]:
    table = RowTable(RECORD, tuple, directory=directory, disk=disk or CountingDisk())
    for number in range(rows):
        assert table.append(packed(number)) == number
    return table


def test_a_new_table_has_no_rows_and_no_name(directory: Path) -> None:
    table = table_in(directory)
    assert len(table) == len(table.view()) == 0
    assert list(directory.iterdir()) == []
    table.close()


@settings(max_examples=60)
@given(steps=st.lists(st.tuples(st.integers(0, 30), st.binary(min_size=WIDTH, max_size=WIDTH))))
def test_rows_read_as_they_were_written(directory: Path, steps: list[tuple[int, bytes]]) -> None:
    table, model = table_in(directory), list[bytes]()
    for number, octets in steps:
        if number < len(model):
            table.write(number, octets)
            model[number] = octets
        else:
            assert table.append(octets) == len(model)
            model.append(octets)
    assert [table.read(number) for number in range(len(model))] == model
    assert table.view().tobytes() == b"".join(model)
    table.close()


def test_a_table_grows_and_keeps_what_it_has(directory: Path) -> None:
    disk = CountingDisk()
    table = table_in(directory, MANY, disk=disk)
    assert 1 < disk.calls.count("reserve") < 40
    assert np.array_equal(table.view()["number"], np.arange(MANY))
    table.close()


def test_a_table_can_have_room_from_the_start(directory: Path) -> None:
    disk = CountingDisk()
    table = RowTable(RECORD, tuple, directory=directory, disk=disk, rows=MANY)
    table.fill(MANY)["number"] = np.arange(MANY)
    assert disk.calls.count("reserve") == 1
    assert table.read(MANY - 1) == packed(MANY - 1)
    assert table.append(packed(7)) == MANY
    assert table.read(MANY - 1) == packed(MANY - 1)
    table.close()


def test_a_view_sees_what_is_written_and_outlives_growth_and_the_table(directory: Path) -> None:
    table = table_in(directory, 3)
    view = table.view()
    table.write(1, packed(1, 9))
    for number in range(3, MANY):
        table.append(packed(number))
    table.write(2, packed(2, 8))
    assert view["first"].tolist() == [0, 9, 8]
    table.close()
    assert view["first"].tolist() == [0, 9, 8]


def test_a_view_cannot_be_written_to(directory: Path) -> None:
    table = table_in(directory, 1)
    with pytest.raises(ValueError, match="read-only"):
        table.view()["first"] = 1
    table.close()


def test_of_a_frozen_table_the_first_state_of_each_row_is_put_aside(directory: Path) -> None:
    table = table_in(directory, 3)
    table.write(0, packed(0, 1))
    assert table.freeze() == 3
    table.write(0, packed(0, 2))
    table.write(0, packed(0, 3))
    table.append(packed(3))
    table.write(3, packed(3, 4))
    assert table.thaw() == {0: packed(0, 1)}
    assert table.read(0) == packed(0, 3)
    assert table.read(3) == packed(3, 4)
    table.close()


def test_a_row_that_is_marked_while_it_is_copied_is_put_aside_as_it_was(directory: Path) -> None:
    table = table_in(directory, 3)
    table.freeze()
    for octet in (7, 8):
        table.marked(1, WIDTH - 1, octet)
    assert table.read(1) == packed(1)[:-1] + b"\x08"
    assert table.thaw() == {1: packed(1)}
    table.marked(2, WIDTH - 1, 9)
    assert table.thaw() == {}
    table.close()


def test_nothing_is_put_aside_before_and_after(directory: Path) -> None:
    table = table_in(directory, 3)
    table.write(0, packed(0, 1))
    table.freeze()
    assert table.thaw() == {}
    table.write(1, packed(1, 1))
    table.freeze()
    table.write(2, packed(2, 2))
    assert table.freeze() == 3  # a snapshot that failed thaws nothing
    assert table.thaw() == {}
    table.close()


def test_another_thread_copies_a_frozen_table_as_it_was(directory: Path) -> None:
    """Row by row it may see either state, or half of both; what was put aside makes up for that."""
    rows, rounds = 5000, 12
    table = table_in(directory, rows)
    for version in range(1, rounds + 1):
        copies: list[np.ndarray] = []
        frozen = table.freeze()
        begun = threading.Event()

        def copy(
            frozen: int = frozen, begun: threading.Event = begun, into: list[np.ndarray] = copies
        ) -> None:
            view = table.view()
            begun.set()
            copied = np.concatenate([view[at : at + 100].copy() for at in range(0, frozen, 100)])
            for number, octets in table.thaw().items():
                copied[number] = np.frombuffer(octets, RECORD)[0]
            into.append(copied)

        thread = threading.Thread(target=copy)
        thread.start()
        begun.wait()
        for number in range(rows):
            table.write(number, packed(number, version))
        table.append(packed(0, version))
        thread.join()
        assert np.array_equal(copies[0]["number"][:rows], np.arange(rows))
        for name in ("first", "second", "third"):
            assert set(copies[0][name][:rows].tolist()) == {version - 1}
        assert len(copies[0]) == rows + version - 1
    table.close()


def test_rows_and_columns_can_be_copied_out(directory: Path) -> None:
    table = table_in(directory, MANY)
    table.write(5, packed(5, 9))
    numbers = np.arange(3, MANY, 7, dtype=np.uint32)
    copied = np.empty(len(numbers), RECORD)
    table.copy(numbers, copied, np.arange(len(numbers))[::-1])
    assert np.array_equal(copied, table.view()[numbers[::-1]])
    columns = table.columns("third", "number")
    assert list(columns) == ["third", "number"]
    assert np.array_equal(columns["number"], np.arange(MANY))
    assert np.flatnonzero(columns["third"]).tolist() == [5]
    assert table.key(5) == struct.unpack_from("<QQ", packed(5, 9))
    table.close()


@pytest.mark.skipif(sys.platform != "linux", reason="resident pages are counted in /proc")
def test_rows_leave_resident_memory_and_are_there_when_read_again(directory: Path) -> None:
    table = table_in(directory, MANY)
    assert resident(table._file) > MANY * WIDTH // 2
    table.drop_pages()
    assert resident(table._file) == 0
    table.write(1, packed(1, 4))
    assert [table.read(number) for number in (0, 1, MANY - 1)] == [
        *(packed(0), packed(1, 4), packed(MANY - 1)),
    ]
    assert 0 < resident(table._file) < MANY * WIDTH // 4
    table.close()


def test_where_the_disk_is_full_a_table_keeps_what_it_has_and_grows_later(directory: Path) -> None:
    table = table_in(directory, disk=FailingDisk(3))
    with suppress(OutputError):
        for number in range(MANY):
            table.append(packed(number))
    rows = len(table)
    assert 0 < rows < MANY
    assert [table.read(number) for number in range(rows)] == [packed(each) for each in range(rows)]
    assert table.append(packed(rows)) == rows
    assert table.read(rows) == packed(rows)
    table.close()


@pytest.mark.parametrize("disk", [ReadOnlyDisk(), FailingDisk(1), FailingDisk(2)])
def test_a_table_that_cannot_be_made_leaves_nothing_open(directory: Path, disk: Disk) -> None:
    with pytest.raises(OutputError, match=str(directory)):
        table_in(directory, disk=disk)


def test_space_is_really_reserved(directory: Path) -> None:
    table = RowTable(RECORD, tuple, directory=directory, disk=Disk(), rows=MANY)
    assert os.fstat(table._file.fileno()).st_blocks * 512 >= MANY * WIDTH
    table.close()
