"""A disk that is only written to while the lease is good, and the fence that a newer owner puts up.

The lease is looked at before every single change, not once at the beginning: a process that is frozen
between two writes, past its lease, wakes up in the middle of its work. What is left is the moment
between the look and the call of the operating system. A newer owner of the same directory writes its
token into `fence.json`, so that an older one stops even where it cannot reach Redis.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from typing import TYPE_CHECKING

import orjson

from amicrawl.disk import Disk, explained, replace_file
from amicrawl.errors import AmicrawlError, ExitCode

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

    from amicrawl.fleet.leases.lease_time import HeldLease

FENCE = "fence.json"
_FENCE_LIMIT = 10_000
_LOOK_AGAIN = 0.05
_LARGEST = 4096


class LeaseLost(AmicrawlError):  # noqa: N818  # a state of the world, named as such
    """The job is another owner's: this crawl writes nothing any more."""

    exit_code = ExitCode.OUR_ERROR


class Fence:
    """`fence.json`: which claim is the newest that has written into a directory."""

    def __init__(self, directory: Path, unit: str, token: int) -> None:
        self._directory = directory
        self._path = directory / FENCE
        self._unit = unit
        self._token = token
        self._seen: tuple[int, ...] = ()

    def put_up(self, *, disk: Disk) -> None:
        """Write our token; raises LeaseLost where a newer one is there, OutputError as the disk does."""
        if not raise_fence(self._directory, self._unit, self._token, disk=disk):
            raise LeaseLost(self.newer() or f"{self._path} belongs to another job.")

    def newer(self) -> str:
        """Return a sentence about the newer owner whose token is there; empty where it is not."""
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen == self._seen:
                return ""
            with self._path.open("rb") as file:
                fence = orjson.loads(file.read(_LARGEST))
            token = int(fence["token"]) if fence["unit"] == self._unit else 0
        except (OSError, ValueError, KeyError, TypeError):
            # Not there, or no fence: that excludes no owner, and our own is written over it.
            return ""
        if token > self._token:
            return f"{self._path} says that a newer owner has this directory"
        self._seen = seen
        return ""


def raise_fence(directory: Path, unit: str, token: int, *, disk: Disk) -> bool:
    """Have the claim *token* on *unit* be the one that may write to *directory*.

    False, and nothing changed, where a higher token holds it. Raises OutputError.
    """
    if fenced(directory) > token:
        return False
    path = directory / FENCE
    with explained(path, "written"):
        replace_file(path, orjson.dumps({"unit": unit, "token": token}) + b"\n", disk=disk)
    return True


def fenced(directory: Path) -> int:
    """Return the token in the fence of *directory*; 0 where there is none that can be read."""
    try:
        with (directory / FENCE).open("rb") as file:
            read = orjson.loads(file.read(_FENCE_LIMIT))
        token = read["token"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return token if isinstance(token, int) else 0


class LeasedDisk(Disk):
    """Another disk, on which nothing is changed unless *lease* is held and no newer fence is up.

    While the lease is not held, who is *patient* waits; on the event loop, which must not, and for who
    is not, the change fails with an OSError. Once it is lost, every change fails.
    """

    is_leased = True

    def __init__(
        self,
        lease: HeldLease,
        fence: Fence,
        *,
        patient: bool,
        disk: Disk | None = None,
    ) -> None:
        self._lease = lease
        self._fence = fence
        self._patient = patient
        self._disk = disk or Disk()

    def create(self, path: Path) -> int:
        """Open the new file *path* for writing and return its descriptor."""
        self.permit()
        return self._disk.create(path)

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        """Write some of *block* and return how much."""
        self.permit()
        return self._disk.write(descriptor, block)

    def write_at(self, descriptor: int, block: bytes | memoryview, offset: int) -> int:
        """Write some of *block* over what lies at *offset* and return how much."""
        self.permit()
        return self._disk.write_at(descriptor, block, offset)

    def open_special(self, path: Path) -> int:
        """Open the device or FIFO *path* for writing and return its descriptor."""
        return self._disk.open_special(path)

    def sync(self, descriptor: int) -> None:
        """Force what was written to disk."""
        self._disk.sync(descriptor)

    def sync_directory(self, directory: Path) -> None:
        """Force the names in *directory* to disk."""
        self._disk.sync_directory(directory)

    def temporary(self, directory: Path) -> IO[bytes]:
        """Return a file in *directory* that has no name and is gone once it is closed."""
        return self._disk.temporary(directory)

    def truncate(self, path: Path, size: int) -> None:
        """Cut *path* to *size* bytes and force that to disk."""
        self.permit()
        self._disk.truncate(path, size)

    def rename(self, source: Path, target: Path) -> None:
        """Give *source* the name *target*, replacing what bears it."""
        self.permit()
        self._disk.rename(source, target)

    def link(self, source: Path, target: Path) -> None:
        """Give the file *source* the name *target* as well."""
        self.permit()
        self._disk.link(source, target)

    def remove(self, path: Path) -> None:
        """Remove the file *path*."""
        self.permit()
        self._disk.remove(path)

    def reserve(self, descriptor: int, at: int, length: int) -> None:
        """See to it that *length* bytes from *at* on can be written without running out of space."""
        self.permit()
        self._disk.reserve(descriptor, at, length)

    def permit(self) -> None:
        """Return once the lease is held; OSError where that is not to be waited for, or never again."""
        lease = self._lease
        while not lease.is_held:
            if lease.lost:
                raise OSError(errno.EPERM, f"the lease was lost: {lease.lost}")
            on_loop = threading.current_thread() is threading.main_thread()
            if not self._patient or (on_loop and not lease.in_grace):
                raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN) + ": the lease has run out")
            time.sleep(_LOOK_AGAIN)
        newer = self._fence.newer()
        if newer:
            lease.lose(newer)
            raise OSError(errno.EPERM, newer)
