"""Sorting of lines: in the order of their bytes, whatever memory there is, and nothing left behind."""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING

import pytest
from faulty_disks import FullDisk
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.archive.lines.sorting import LineSort, external_sort, merged_files, without_repeats
from amicrawl.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINES = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b" ") + b"\n"))


@given(LINES, st.integers(1, 2000))
def test_lines_come_in_the_order_of_their_bytes(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], memory: int
) -> None:
    scratch = tmp_path_factory.getbasetemp()
    assert list(external_sort(lines, memory=memory, scratch=scratch)) == sorted(lines)


@pytest.mark.slow
@given(st.lists(LINES), st.integers(1, 2000))
def test_lines_that_come_in_blocks_are_cut_at_line_feeds_only(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[list[bytes]], memory: int
) -> None:
    scratch = tmp_path_factory.mktemp("sort")
    with LineSort(scratch=scratch, memory=memory) as sort:
        for lines in blocks:
            sort.add_block(b"".join(lines))
        assert list(sort.lines()) == sorted(line for lines in blocks for line in lines)
    assert not list(scratch.iterdir())


def test_more_pieces_than_may_be_open_are_merged_in_turns(tmp_path: Path) -> None:
    lines = [f"{number * 7919 % 1000:04d} {number}\n".encode() for number in range(1000)]
    assert list(external_sort(lines, memory=1, scratch=tmp_path)) == sorted(lines)


def test_files_in_order_become_one(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.cdxj" for number in range(300)]
    for number, path in enumerate(paths):
        path.write_bytes(
            b"".join(f"{step * 300 + number:06d}\n".encode() for step in range(5)) + b"same\n"
        )
    with merged_files(paths, scratch=tmp_path) as lines:
        found = list(without_repeats(lines))
    assert found == [f"{number:06d}\n".encode() for number in range(1500)] + [b"same\n"]


def test_nothing_is_left_behind_even_if_nobody_reads_to_the_end(tmp_path: Path) -> None:
    ordered = external_sort((b"%d\n" % n for n in range(2000)), memory=4096, scratch=tmp_path)
    assert list(islice(ordered, 2)) == [b"0\n", b"1\n"]
    ordered.close()  # type: ignore[attr-defined]  # it is a generator
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind_where_the_lines_end_in_an_error(tmp_path: Path) -> None:
    def lines() -> Iterator[bytes]:
        for number in count():
            if number == 2000:
                raise ZeroDivisionError
            yield b"%d\n" % number

    with pytest.raises(ZeroDivisionError):
        list(external_sort(lines(), memory=4096, scratch=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    with LineSort(scratch=tmp_path / "gone", memory=4) as sort, pytest.raises(OutputError):
        sort.add(b"abc\n")


@pytest.mark.parametrize("memory", [100, 40_000])
def test_a_full_disk_is_told_as_one(tmp_path: Path, memory: int) -> None:
    lines = [b"%099d\n" % number for number in range(1000)]
    with pytest.raises(OutputError, match=f"{tmp_path} cannot be written to: No space left"):
        list(external_sort(lines, memory=memory, scratch=tmp_path, disk=FullDisk()))
