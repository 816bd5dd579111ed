"""Lines are sorted as `sorted` does, in pieces or at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from faulty_disks import FullDisk
from hypothesis import given, settings
from hypothesis import strategies as st

from amicrawl.disk import Disk
from amicrawl.errors import OutputError
from amicrawl.table.line_sort import LineSort

if TYPE_CHECKING:
    from pathlib import Path

_LINES = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"") + b"\n"), max_size=12)


@settings(max_examples=150, deadline=None)
@given(blocks=st.lists(_LINES, max_size=12), memory=st.integers(1, 120))
def test_lines_come_in_byte_order_and_none_is_lost(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[list[bytes]], memory: int
) -> None:
    scratch = tmp_path_factory.mktemp("sort")
    with LineSort(scratch=scratch, disk=Disk(), memory=memory) as sort:
        for lines in blocks:
            sort.add(b"".join(lines))
        given_back = b"".join(sort.blocks())
    assert given_back == b"".join(sorted(line for lines in blocks for line in lines))
    assert not list(scratch.iterdir())


def test_more_pieces_than_files_may_be_open_are_merged_on_the_way(tmp_path: Path) -> None:
    lines = [b"%06d\n" % (number * 7919 % 1000) for number in range(1000)]
    with LineSort(scratch=tmp_path, disk=Disk(), memory=28) as sort:
        for line in lines:
            sort.add(line)
        assert b"".join(sort.blocks()) == b"".join(sorted(lines))


def test_of_many_pieces_much_is_given_at_a_time(tmp_path: Path) -> None:
    """Half of what is at hand of each can go, so that blocks do not get small with their number."""
    lines = [b"%06d%90d\n" % (number * 7919 % 10_007, number) for number in range(10_000)]
    with LineSort(scratch=tmp_path, disk=Disk(), memory=25_000) as sort:
        for line in lines:
            sort.add(line)
        blocks = list(sort.blocks())
    assert b"".join(blocks) == b"".join(sorted(lines))
    assert len(blocks) < 80, "a megabyte of some forty pieces, of each of which 2 kB go at a time"


def test_a_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    with LineSort(scratch=tmp_path / "gone", disk=Disk(), memory=4) as sort:
        sort.add(b"abc\n")
        with pytest.raises(OutputError):
            sort.add(b"abd\n")


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    def take() -> None:
        with LineSort(scratch=tmp_path, disk=FullDisk(), memory=20_000) as sort:
            for number in range(1000):
                sort.add(b"%099d\n" % number)

    with pytest.raises(OutputError, match="No space left"):
        take()
