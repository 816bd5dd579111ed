"""Disks of a live partition: they count their calls, fail or die at one of them, or lose their power."""

from __future__ import annotations

import errno
import mmap
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from faulty_disks import KilledError

from amicrawl.disk import Disk

if TYPE_CHECKING:
    import random


def resident(file: IO[bytes]) -> int:
    """Return how many bytes of *file* are mapped and resident in this process."""
    inode, pages = os.fstat(file.fileno()).st_ino, 0
    # Not smaps, whose figures are counted for each mapping that the process has.
    with Path("/proc/self/pagemap").open("rb") as pagemap:
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, _, _, _, mapped, *_ = line.split()
            if mapped == str(inode):
                begin, end = (int(at, 16) // mmap.PAGESIZE for at in span.split("-"))
                pagemap.seek(8 * begin)
                entries = np.frombuffer(pagemap.read(8 * (end - begin)), np.uint64)
                pages += int(np.count_nonzero(entries >> np.uint64(63)))
    return pages * mmap.PAGESIZE


class CountingDisk(Disk):
    """A disk that notes its calls. It forces nothing, and reserves room that it may not have."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.go_on = threading.Event()
        """While it is not set, no snapshot's file is begun."""
        self.go_on.set()

    def called(self, call: str) -> None:
        self.calls.append(call)

    def create(self, path: Path) -> int:
        if path.name.startswith("snap-"):
            assert self.go_on.wait(60)
        self.called(f"create {path.name}")
        return super().create(path)

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        self.called("write")
        return super().write(descriptor, block)

    def write_at(self, descriptor: int, block: bytes | memoryview, offset: int) -> int:
        self.called("write_at")
        return super().write_at(descriptor, block, offset)

    def sync(self, descriptor: int) -> None:
        self.called("sync")

    def truncate(self, path: Path, size: int) -> None:
        self.called(f"truncate {path.name}")
        super().truncate(path, size)

    def rename(self, source: Path, target: Path) -> None:
        self.called(f"rename {target.name}")
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self.called(f"remove {path.name}")
        super().remove(path)

    def sync_directory(self, directory: Path) -> None:
        self.called("sync_directory")

    def reserve(self, descriptor: int, at: int, length: int) -> None:
        self.called("reserve")
        os.ftruncate(descriptor, at + length)

    def temporary(self, directory: Path) -> IO[bytes]:
        self.called("temporary")
        return super().temporary(directory)


class FailingDisk(CountingDisk):
    """A disk whose call number *fatal* fails once with *code*, half of a write having been done."""

    def __init__(self, fatal: int, code: int = errno.ENOSPC) -> None:
        super().__init__()
        self._fatal = fatal
        self._code = code

    @property
    def has_failed(self) -> bool:
        return len(self.calls) >= self._fatal

    def called(self, call: str) -> None:
        super().called(call)
        if len(self.calls) == self._fatal:
            raise OSError(self._code, os.strerror(self._code))

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        if len(self.calls) + 1 == self._fatal:
            os.write(descriptor, block[: len(block) // 2])
        return super().write(descriptor, block)

    def write_at(self, descriptor: int, block: bytes | memoryview, offset: int) -> int:
        if len(self.calls) + 1 == self._fatal:
            os.pwrite(descriptor, block[: len(block) // 2], offset)
        return super().write_at(descriptor, block, offset)


class ShortDisk(CountingDisk):
    """A disk that is nearly full: of what is written over, half is done, every other time reported."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = 0

    def write_at(self, descriptor: int, block: bytes | memoryview, offset: int) -> int:
        self._turn += 1
        half = block[: max(1, len(block) // 2)]
        if self._turn % 2:
            return super().write_at(descriptor, half, offset)
        os.pwrite(descriptor, half, offset)  # done, and reported as failed
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class ReadOnlyDisk(CountingDisk):
    """A disk on which nothing can be made."""

    def called(self, call: str) -> None:
        super().called(call)
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))


class MortalDisk(CountingDisk):
    """A disk of a process that is killed at its call number *fatal*: no later call happens either."""

    def __init__(self, fatal: int) -> None:
        super().__init__()
        self._fatal = fatal

    @property
    def is_dead(self) -> bool:
        return len(self.calls) >= self._fatal

    def called(self, call: str) -> None:
        super().called(call)
        if self.is_dead:
            raise KilledError

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        if len(self.calls) + 1 == self._fatal:
            os.write(descriptor, block[: len(block) // 2])
        return super().write(descriptor, block)


@dataclass(eq=False)
class _File:
    """A file, whatever it is called."""

    forced: bytes = b""
    last: bytes | None = None
    """What it held when it lost its last name."""


class PowerDisk(MortalDisk):
    """A disk under a cache: what was not forced to it is lost when the power is cut.

    It outlives processes. Only the files of one directory are kept in mind.
    """

    def __init__(self, directory: Path, fatal: int = 10**9) -> None:
        super().__init__(fatal)
        self._directory = directory
        self._files: dict[int, _File] = {}
        """By inode."""
        self._durable: dict[str, _File] = {}
        """The names that were forced to disk."""
        self._changes: list[tuple[str, _File | None]] = []
        """What was done to names since; None for one that is gone."""

    def create(self, path: Path) -> int:
        descriptor = super().create(path)
        file = self._files[os.fstat(descriptor).st_ino] = _File()
        self._changes.append((path.name, file))
        return descriptor

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        inode = os.fstat(descriptor).st_ino
        for path in self._directory.iterdir():
            if path.stat().st_ino == inode:
                self._files[inode].forced = path.read_bytes()

    def truncate(self, path: Path, size: int) -> None:
        super().truncate(path, size)
        self._files[path.stat().st_ino].forced = path.read_bytes()

    def rename(self, source: Path, target: Path) -> None:
        file = self._files[source.stat().st_ino]
        self._bury(target)
        super().rename(source, target)
        self._changes += [(target.name, file), (source.name, None)]

    def remove(self, path: Path) -> None:
        self._bury(path)
        super().remove(path)
        self._changes.append((path.name, None))

    def sync_directory(self, directory: Path) -> None:
        super().sync_directory(directory)
        self._durable = self._names(len(self._changes))
        self._changes = []

    def cut_power(self, dice: random.Random | None = None) -> None:
        """Leave what was forced to disk and, with *dice*, some of the rest."""
        names = self._names(0 if dice is None else dice.randint(0, len(self._changes)))
        for path in list(self._directory.iterdir()):
            self._bury(path)
            path.unlink()
        contents = {name: _after_the_cut(file, dice) for name, file in names.items()}
        self._files, self._durable, self._changes = {}, {}, []
        for name, content in contents.items():
            path = self._directory / name
            path.write_bytes(content)
            self._durable[name] = self._files[path.stat().st_ino] = _File(content)

    def _names(self, changes: int) -> dict[str, _File]:
        names = dict(self._durable)
        for name, file in self._changes[:changes]:
            if file is None:
                names.pop(name, None)
            else:
                names[name] = file
        return names

    def _bury(self, path: Path) -> None:
        if path.exists():
            self._files[path.stat().st_ino].last = path.read_bytes()


def _after_the_cut(file: _File, dice: random.Random | None) -> bytes:
    if dice is None or file.last is None or len(file.last) <= len(file.forced):
        return file.forced
    kept = file.last[: dice.randint(len(file.forced), len(file.last))]
    # Some file systems grow the file first and fill it later.
    return dice.choice([kept, kept.ljust(len(file.last), b"\0")])
