"""What the disk says is told with its cause and its remedy."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from amicrawl.disk import Disk, OutputFile, explained, remove_durably
from amicrawl.errors import OutputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EMFILE, r"Permit more open files \(ulimit -n 4096\)"),
        (errno.ENFILE, "Permit more open files"),
        (errno.ENOSPC, "Free disk space"),
        (errno.EROFS, "Permit writing there"),
        (errno.ENOENT, r"Put .* back where it was"),
    ],
)
def test_the_remedy_is_that_of_the_cause(tmp_path: Path, number: int, remedy: str) -> None:
    with pytest.raises(OutputError, match=remedy), explained(tmp_path / "file", "written to"):
        raise OSError(number, "as the system says")


def test_a_directory_that_was_moved_is_not_taken_for_another_process(tmp_path: Path) -> None:
    directory = tmp_path / "out"
    directory.mkdir()
    file = OutputFile(directory / "table", disk=Disk())
    file.write(b"rows")
    directory.rename(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="moved or removed while"):
        file.seal()
    file.close()


class RacedDisk(Disk):
    """A disk on which another process removes each file a moment before."""

    def remove(self, path: Path) -> None:
        path.unlink()
        super().remove(path)


def test_what_another_process_removed_first_keeps_no_file_from_its_next_version(tmp_path: Path) -> None:
    (tmp_path / "x.open").write_bytes(b"given up")
    file = OutputFile.replacing(tmp_path / "x", disk=RacedDisk())
    file.write(b"new")
    file.seal()
    assert (tmp_path / "x").read_bytes() == b"new"


class ListedDisk(Disk):
    """A disk that lists which calls force something to it, and in which order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def sync(self, descriptor: int) -> None:
        self.calls.append("sync")
        super().sync(descriptor)

    def sync_directory(self, directory: Path) -> None:
        self.calls.append(f"sync_directory {directory.name}")
        super().sync_directory(directory)

    def rename(self, source: Path, target: Path) -> None:
        self.calls.append("rename")
        super().rename(source, target)


def test_the_first_sync_of_a_new_file_forces_its_name_to_disk_too(tmp_path: Path) -> None:
    disk = ListedDisk()
    file = OutputFile(tmp_path / "table", disk=disk)
    file.write(b"rows")
    file.sync()
    assert disk.calls == ["sync", f"sync_directory {tmp_path.name}"]
    file.sync()
    assert disk.calls[2:] == ["sync"]
    file.seal()
    assert disk.calls[3:] == ["sync", "rename", f"sync_directory {tmp_path.name}"]


def test_a_removed_file_stays_removed_after_a_power_cut(tmp_path: Path) -> None:
    disk = ListedDisk()
    (tmp_path / "table").touch()
    remove_durably(tmp_path / "table", disk=disk)
    assert disk.calls == [f"sync_directory {tmp_path.name}"]


def test_a_file_that_was_removed_while_it_was_written_is_not_sealed(tmp_path: Path) -> None:
    """Nor does what another process has put there get its name."""
    for content in (None, b"of another"):
        file = OutputFile(tmp_path / "table", disk=Disk())
        file.write(b"rows")
        file.open_path.unlink()
        if content is not None:
            file.open_path.write_bytes(content)
        with pytest.raises(OutputError, match="is being written by another process"):
            file.seal()
        file.close()
        assert not (tmp_path / "table").exists()
