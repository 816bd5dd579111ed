"""What the disk says is told with its cause and its remedy."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from amicrawl.disk import Disk, OutputFile, explained
from amicrawl.errors import OutputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EMFILE, r"Permit more open files \(ulimit -n 4096\)"),
        (errno.ENFILE, "Permit more open files"),
        (errno.ENOSPC, "Make room"),
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
