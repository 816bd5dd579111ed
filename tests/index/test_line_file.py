"""Lines in, a sorted file out, also when the lines do not fit into the memory that is given."""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from faulty_disks import FullDisk

from amicrawl.archive.lines.sorting import LineFile
from amicrawl.disk import Disk
from amicrawl.errors import OutputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("memory", [500, 100_000, 1 << 30])
def test_lines_come_out_in_byte_order_whatever_memory_there_is(tmp_path: Path, memory: int) -> None:
    chance = random.Random(5)
    lines = [b"com,example)/%d 2020 {}\n" % chance.randrange(500) for _ in range(2000)]
    lines += ["com,example)/é\n".encode(), b"com,example)/\xff\n", b"com\n"]
    path = tmp_path / "lines.cdxj"
    file = LineFile(path, disk=Disk(), memory=memory)
    for line in lines:
        file.add(line)
    assert not path.exists(), "half a file looks whole"
    assert file.seal() == (len(lines), sum(map(len, lines)))
    assert path.read_bytes() == b"".join(sorted(lines))
    assert [entry.name for entry in tmp_path.iterdir()] == ["lines.cdxj"]


def test_a_file_that_is_given_up_does_not_get_its_name(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "lines.cdxj", disk=Disk(), memory=1)
    file.add(b"a\n")
    file.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["lines.cdxj.open"]


def test_a_disk_that_is_full_is_told_when_lines_are_put_aside(tmp_path: Path) -> None:
    def write() -> None:
        with closing(LineFile(tmp_path / "x.cdxj", disk=FullDisk(), memory=20_000)) as file:
            for number in range(1000):
                file.add(b"%099d\n" % number)

    with pytest.raises(OutputError, match="No space left"):
        write()
