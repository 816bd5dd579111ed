"""Files larger than memory: a partition of mapped records is written and read with little memory."""

from __future__ import annotations

import errno
import os
import tracemalloc
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from meguri.format.frontier_files import encode_partition, made_up, same_partition

from amicrawl.disk import Disk
from amicrawl.errors import InputError, OutputError
from amicrawl.meguri.format.checksum import crc32c, joined_crc32c
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.schema import ROW, Codec, Partition, columns_of
from amicrawl.meguri.format.verification import read_partition, verify
from amicrawl.meguri.format.writer import WriteOptions, write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 200_000
PAGE_ROWS = 8192
ARENA = 16_000_000
BUDGET = 6_000_000
"""Bytes that may be allocated at any time: of 20 MB of rows and 16 MB of strings."""

OPTIONS = WriteOptions(schedule=True, max_page_rows=PAGE_ROWS)


def peak_of(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> Partition:
    """A partition of records and strings that lie in mapped files."""
    directory = tmp_path_factory.mktemp("mapped")
    source = made_up(ROWS)
    records = np.memmap(directory / "rows", ROW, "w+", shape=(ROWS,))
    for name in ROW.names or ():
        records[name] = source.urls[name]
    strings = np.memmap(directory / "strings", np.uint8, "w+", shape=(ARENA,))
    strings[:] = np.tile(np.arange(200, dtype=np.uint8), ARENA // 200)
    return Partition(
        urls=columns_of(np.asarray(records)),
        hosts=source.hosts,
        arena=strings.data,
        partition_id=3,
    )


@pytest.mark.parametrize("codec", Codec)
def test_writing_and_reading_take_little_memory(mapped: Partition, tmp_path: Path, codec: Codec) -> None:
    path = tmp_path / "large.meguri"
    options = WriteOptions(codec, schedule=True, max_page_rows=PAGE_ROWS)
    write = peak_of(lambda: write_partition(mapped, path, options=options, disk=Disk()))
    assert write < BUDGET
    assert read_partition(path).urls["path_key"].tolist() == mapped.urls["path_key"].tolist()
    with FrontierFile.open(path) as file:
        target = np.memmap(tmp_path / "again", ROW, "w+", shape=(ROWS,))

        def fill(name: str) -> None:
            for at, values in file.url_pages(name):
                target[name][at : at + len(values)] = values

        for name in file.url_columns:
            assert peak_of(partial(fill, name)) < BUDGET
        assert all(np.array_equal(target[name], mapped.urls[name]) for name in mapped.urls)
        pieces: list[int] = []
        assert peak_of(lambda: file.copy_arena(lambda piece: pieces.append(len(piece)))) < BUDGET
        assert sum(pieces) == ARENA
        assert peak_of(partial(verify, file)) < BUDGET


def test_streamed_strings_are_those_that_were_written(mapped: Partition, tmp_path: Path) -> None:
    path = tmp_path / "large.meguri"
    write_partition(mapped, path, options=OPTIONS, disk=Disk())
    with FrontierFile.open(path) as file, (tmp_path / "strings").open("wb") as strings:
        file.copy_arena(strings.write)
        assert file.arena() == bytes(mapped.arena)
    assert (tmp_path / "strings").read_bytes() == bytes(mapped.arena)


def test_the_file_on_disk_and_the_one_in_memory_are_the_same(tmp_path: Path) -> None:
    partition = made_up(5000)
    for options in (
        WriteOptions(),
        WriteOptions(Codec.NONE),
        WriteOptions(schedule=True, max_page_rows=999),
    ):
        path = tmp_path / "file.meguri"
        size = write_partition(partition, path, options=options, disk=Disk())
        assert path.read_bytes() == encode_partition(partition, options)
        assert size == path.stat().st_size
        assert same_partition(read_partition(path), partition)


def test_views_of_records_are_written_like_columns_of_their_own() -> None:
    partition = made_up(3000)
    copied = Partition(
        urls={name: np.ascontiguousarray(column) for name, column in partition.urls.items()},
        hosts=partition.hosts,
        arena=partition.arena,
        partition_id=partition.partition_id,
        created=partition.created,
        meta=partition.meta,
    )
    assert encode_partition(copied, OPTIONS) == encode_partition(partition, OPTIONS)


def test_writing_calls_back_after_each_page(tmp_path: Path) -> None:
    calls: list[None] = []
    options = WriteOptions(max_page_rows=1000)
    partition = made_up(5000)
    write_partition(
        partition, tmp_path / "f", options=options, disk=Disk(), after_page=lambda: calls.append(None)
    )
    assert len(calls) >= 23 * 5 + 20


def test_unsorted_rows_and_keys_that_come_twice_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "file.meguri"
    for order, message in (([*range(99, -1, -1)], "lower key"), ([0, *range(99)], "same key")):
        partition = made_up(100, hosts=1)
        partition.urls = {name: column[order] for name, column in partition.urls.items()}
        with pytest.raises(InputError, match=message):
            write_partition(partition, path, options=OPTIONS, disk=Disk())
    assert not list(tmp_path.iterdir())


class FullDisk(Disk):
    """A disk that takes so many writes, at the end of a file or over it, and no more."""

    def __init__(self, writes: int) -> None:
        self.left = writes

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        self.spend()
        return super().write(descriptor, block)

    def write_at(self, descriptor: int, block: bytes | memoryview, offset: int) -> int:
        self.spend()
        return super().write_at(descriptor, block, offset)


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file.meguri"
    before, after = made_up(50), made_up(60, seed=2)
    write_partition(before, path, options=OPTIONS, disk=Disk())
    for writes in (0, 1, 40, 87, 92, 93, 94, 95):
        try:
            write_partition(after, path, options=OPTIONS, disk=FullDisk(writes))
        except OutputError:
            assert same_partition(read_partition(path), before)
        else:
            assert writes >= 93
            assert same_partition(read_partition(path), after)
            write_partition(before, path, options=OPTIONS, disk=Disk())


@pytest.mark.parametrize("length", [0, 1, 5, 300, 70_000])
def test_checksums_of_joined_blocks_are_known_without_the_blocks(length: int) -> None:
    first, second = b"first block", bytes(i * 7 % 256 for i in range(length))
    assert joined_crc32c(crc32c(first), crc32c(second), length) == crc32c(first + second)
