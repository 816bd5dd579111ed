"""Files that overlap are taken side by side, a few thousand lines at a time however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amicrawl.archive.lines import octet_blocks
from amicrawl.archive.table.ordering import MOST_MERGED, NotInOrderError, blocks_in_order

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_LINES = 4096


def test_lines_of_files_side_by_side_come_in_blocks_that_do_not_grow_with_the_files(
    tmp_path: Path,
) -> None:
    lines = [b"org,a)/%06d 20200101000000 {}" % number for number in range(30_000)]
    paths = [tmp_path / f"{number}.cdxj" for number in range(13)]
    for number, path in enumerate(paths[:12]):
        path.write_bytes(b"\n".join(lines[:24_000][number::12]) + b"\n")
    # The last follows the others: what is held of them comes before it.
    paths[12].write_bytes(b"\n".join(lines[24_000:]) + b"\n")
    blocks = list(blocks_in_order(paths, damaged=_unexpected))
    assert b"".join(blocks) == b"\n".join([*lines, b""])
    counts = [block.count(b"\n") for block in blocks]
    assert max(counts[:-1]) <= _MOST_LINES
    assert counts[-1] == 6000
    assert len(blocks) <= 24_000 // _MOST_LINES + 3


def test_no_more_files_are_open_than_are_read_side_by_side(tmp_path: Path) -> None:
    """All that overlap were opened before they were counted: a thousand are more than a process may."""
    paths = [tmp_path / f"{number}.cdxj" for number in range(2 * MOST_MERGED)]
    for path in paths:
        path.write_bytes(b"org,a)/ 20200101000000 {}\norg,b)/ 20200101000000 {}\n")
    begun: list[Path] = []

    def read(path: Path, *, block_bytes: int) -> Iterator[bytes]:
        begun.append(path)
        return octet_blocks(path, block_bytes=block_bytes)

    with pytest.raises(NotInOrderError):
        list(blocks_in_order(paths, damaged=_unexpected, read=read))
    assert len(begun) == MOST_MERGED


def _unexpected(error: Exception) -> None:
    raise error
