"""The claim on a directory of products, of which one process at a time may be the writer."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from amicrawl.disk import DirectoryLock
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def claimed(directory: Path) -> Iterator[None]:
    """Have *directory*, which is there, to oneself; UsageError while another process has it."""
    try:
        lock = DirectoryLock(directory)
    except UsageError as error:
        raise UsageError(
            f"Another process is writing to {directory}. Wait until it has ended, or choose another "
            "directory with -o."
        ) from error
    with lock:
        yield
