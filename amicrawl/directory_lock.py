"""The lock of a directory, so that one process writes there at a time (flock)."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from amicrawl.disk import explained
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self


class DirectoryLock:
    """A claim on a directory, so that one process writes there at a time; a killed one gives it up."""

    def __init__(
        self,
        directory: Path,
        *,
        by: str = "crawl",
        instead: str = "directory with AMICRAWL_OUT or AMICRAWL_RUN_ID",
    ) -> None:
        """Take the claim; UsageError while another process, or another crawl of this one, has it.

        The error says *by* what, and which other place is chosen *instead*.
        """
        with explained(directory, "opened"):
            self._descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise UsageError(
                f"Another {by} is writing to {directory}. Wait until it has ended, or choose another "
                f"{instead}."
            ) from error
        except OSError:
            # Some network file systems have no locks. Their users are not kept from crawling.
            pass

    def release(self) -> None:
        """Give the claim up."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_locked(directory: Path) -> bool:
    """Return whether a process holds *directory* by a `DirectoryLock`."""
    try:
        DirectoryLock(directory).release()
    except UsageError:
        return True
    return False
