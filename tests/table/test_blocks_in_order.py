"""Files that overlap are taken side by side, a few thousand lines at a time however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.archive.table.ordering import blocks_in_order

if TYPE_CHECKING:
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


def _unexpected(error: Exception) -> None:
    raise error
