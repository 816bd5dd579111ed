"""Two processes that write the same output: one of them is told, and nothing half made looks whole."""

from __future__ import annotations

import errno
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from faulty_disks import QuickDisk

from amicrawl.archive.index.merging.merge import Outputs
from amicrawl.archive.table.builder import NoRowsError, make_table
from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import OutputFile, explained
from amicrawl.errors import OutputError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_who_was_overtaken_names_no_file_of_another(tmp_path: Path) -> None:
    path = tmp_path / "x.cdxj"
    with closing(OutputFile.replacing(path, disk=QuickDisk())) as first:
        first.write(b"whole\n")
        with closing(OutputFile.replacing(path, disk=QuickDisk())) as second:
            second.write(b"half\n")
            with pytest.raises(OutputError, match="being written by another process, too"):
                first.seal()
            assert not path.exists()
            second.seal()
        assert path.read_bytes() == b"half\n"
        with pytest.raises(OutputError, match="being written by another process, too"):
            first.check_name()


def test_merging_names_no_file_of_another(tmp_path: Path) -> None:
    path = tmp_path / "x.cdxj"
    with (
        closing(Outputs([path], disk=QuickDisk())) as first,
        closing(Outputs([path], disk=QuickDisk())),
        pytest.raises(OutputError, match="being written by another process, too"),
    ):
        first.end_file()
    assert not path.exists()


def test_a_table_is_made_by_one_process_at_a_time(tmp_path: Path) -> None:
    index, out = tmp_path / "x.cdxj", tmp_path / "table"
    index.write_text('org,a)/ 20240101000000 {"url": "http://a.org/", "status": "200"}\n')
    out.mkdir()
    with (
        DirectoryLock(out),
        pytest.raises(
            UsageError, match=r"Another process is writing to .*choose another output directory"
        ),
    ):
        make_table([index], out, disk=QuickDisk())
    assert make_table([index], out, disk=QuickDisk()).rows == 1


def test_what_is_told_of_a_table_is_told_of_this_one(tmp_path: Path) -> None:
    index, out = tmp_path / "x.cdxj", tmp_path / "table"
    index.write_text("no line\n")
    with pytest.raises(NoRowsError, match="lines rejected: 1 of 1, mostly because"):
        make_table([index], out, disk=QuickDisk())
    assert out.with_name("table.rejects.txt").exists()
    index.write_text('org,a)/ 20240101000000 {"url": "http://a.org/", "status": "200"}\n')
    assert make_table([index], out, disk=QuickDisk()).rejects == 0
    assert not out.with_name("table.rejects.txt").exists()


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.EACCES, "Permit writing there, then"),
        (errno.EROFS, "Permit writing there, then"),
        (errno.EEXIST, "Name another place, then"),
        (errno.ENOTDIR, "Name another place, then"),
        (errno.ENOSPC, "Free disk space, or repair the disk, then"),
    ],
)
def test_what_is_to_be_done_follows_from_what_went_wrong(tmp_path: Path, code: int, remedy: str) -> None:
    with (
        pytest.raises(OutputError, match=remedy),
        explained(tmp_path, "written to"),
    ):
        raise OSError(code, "told by the system")
