"""Shipping: the state of a partition copied to a bucket for its next owner, and fetched from there.

    PLACE/NAME-part-NNN-TOKEN/    frontier and outbox, as a checkpoint (`checkpoint.py`)

TOKEN is the fencing token under which it was crawled: no later owner writes to that path. Captures stay
where they were made. On the receiving side the frontier is completed beside the old one, and replaces
it by renaming.
"""

from __future__ import annotations

import shutil
import uuid
from typing import TYPE_CHECKING

from amicrawl.disk import explained
from amicrawl.jobs.checkpoint import frontier_files, restore_checkpoint, save
from amicrawl.jobs.job_bucket import path_of
from amicrawl.jobs.sharing.outbox import FILE_NAME, MARK_NAME
from amicrawl.jobs.sharing.share_record import directory_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.disk import Disk

_OUTBOX = (FILE_NAME, MARK_NAME)


def shipped_to(place: str, name: str, number: int, token: str) -> str:
    """Return the URL to which partition *number* of the crawl *name* is shipped under *token*."""
    return path_of(place, f"{name}-{directory_of(number)}-{token}")


def ship(directory: Path, url: str, *, disk: Disk, stopped: Callable[[], bool] = lambda: False) -> None:
    """Copy the sealed state of the partition in *directory* to *url*, and read it back.

    Raises AmicrawlError where that fails.
    """
    save(directory, url, disk=disk, stopped=stopped, files=_state_files, is_read_back=True)


def fetch(directory: Path, url: str, *, disk: Disk) -> None:
    """Replace the state of the partition in *directory* by what was shipped to *url*.

    Raises AmicrawlError where what is there is not whole, and as the disk does; then the old state
    stays.
    """
    incoming = directory / "frontier.incoming"
    with explained(incoming, "made"):
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir(parents=True)
    restore_checkpoint(incoming, url, disk=disk)
    with explained(directory, "exchanged for what was shipped"):
        old = directory / f"frontier.before-{uuid.uuid4().hex[:8]}"
        if (directory / "frontier").exists():
            disk.rename(directory / "frontier", old)
        for name in _OUTBOX:
            if (incoming / name).exists():
                disk.rename(incoming / name, directory / name)
        # Last of all: without a frontier, what is here is not taken for the partition.
        disk.rename(incoming / "frontier", directory / "frontier")
        disk.sync_directory(directory)
        for left in (incoming, *directory.glob("frontier.before-*")):
            shutil.rmtree(left, ignore_errors=True)


def _state_files(directory: Path) -> list[str]:
    return [*frontier_files(directory), *(name for name in _OUTBOX if (directory / name).exists())]
