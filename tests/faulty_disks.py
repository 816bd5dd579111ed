"""Disks that are quick, or fail: doubles that are handed to whatever writes."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO

from amicrawl.disk import Disk


class QuickDisk(Disk):
    """A disk that forces nothing to it, for tests in which no power is cut."""

    def sync(self, descriptor: int) -> None:
        pass

    def sync_directory(self, directory: Path) -> None:
        pass

    def truncate(self, path: Path, size: int) -> None:
        os.truncate(path, size)


class KilledError(BaseException):
    """The process is gone: nothing that comes after it happens."""


class FaultyDisk(Disk):
    """A disk whose call number *fatal* fails, half of a write having been done; with 0, none does.

    As *killed*, every later call fails too, as none would come from a process that is gone.
    """

    def __init__(self, fatal: int, *, killed: bool = False) -> None:
        self._left = fatal
        self._killed = killed
        self.failed_at = ""
        self.calls: list[str] = []

    def _count(self, call: str) -> None:
        self._left -= 1
        self.calls.append(call)
        if self._left == 0 or (self._killed and self._left < 0):
            self.failed_at = self.failed_at or call
            raise KilledError if self._killed else OSError(errno.ENOSPC, "No space left on device")

    def create(self, path: Path) -> int:
        self._count(f"create {path.name}")
        return super().create(path)

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        if self._left == 1:
            super().write(descriptor, block[: len(block) // 2])
        self._count("write")
        return super().write(descriptor, block)

    def sync(self, descriptor: int) -> None:
        self._count("sync")

    def truncate(self, path: Path, size: int) -> None:
        self._count(f"truncate {path.name}")
        super().truncate(path, size)

    def rename(self, source: Path, target: Path) -> None:
        self._count(f"rename {target.name}")
        super().rename(source, target)

    def link(self, source: Path, target: Path) -> None:
        self._count(f"link {target.name}")
        super().link(source, target)

    def remove(self, path: Path) -> None:
        self._count(f"remove {path.name}")
        super().remove(path)

    def sync_directory(self, directory: Path) -> None:
        self._count("sync_directory")

    def temporary(self, directory: Path) -> IO[bytes]:
        self._count("temporary")
        return super().temporary(directory)


def fatal_calls(disk: FaultyDisk) -> list[int]:
    """Return which of the calls to *disk* to have fail: all, but of writes in a row one in five.

    The first and the last of such a row are among them. What Arrow writes of a table comes in dozens.
    """
    calls = disk.calls
    around = zip(["", *calls], calls, [*calls[1:], ""], strict=False)
    return [
        number
        for number, neighbours in enumerate(around, 1)
        if set(neighbours) != {"write"} or number % 5 == 0
    ]


class FullDisk(QuickDisk):
    """A disk on which files without a name find no room; those that have one do."""

    def temporary(self, directory: Path) -> IO[bytes]:
        return Path("/dev/full").open("r+b")
