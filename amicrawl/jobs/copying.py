"""Copying: a thread that copies a job's directory to the bucket, as it was left or as a checkpoint.

The pipeline goes on meanwhile. What fails is said, and tried again with the next checkpoint; a job that
was stopped is given back in any case.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError
from amicrawl.jobs.checkpoint import checkpoint_path, save
from amicrawl.jobs.shelf import path_of, ship

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.disk import Disk

logger = logging.getLogger(__name__)


class Copying:
    """A thread that copies one directory to the bucket: as it is left, or as a checkpoint."""

    def __init__(
        self, directory: Path, bucket: str, *, disk: Disk, slot: int | None = None, serial: int = 0
    ) -> None:
        """Begin to copy *directory* to the URL *bucket*; a checkpoint has a *slot* and a *serial*."""
        self.fault = "it has not come to its end"
        """Why it failed; empty once it has not."""
        self.slot = slot
        self.is_told = False
        """Whether Redis knows of it."""
        self.seconds = 0.0
        """How long it took."""
        self._serial = serial
        self._directory = directory
        self._bucket = bucket
        self._disk = disk
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._copy, name="copying", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, well or not."""
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Leave it at what has arrived."""
        self._stop.set()

    def _copy(self) -> None:
        directory, began = self._directory, time.monotonic()
        name = directory.name if self.slot is None else checkpoint_path(directory.name, self.slot)
        url = path_of(self._bucket, name)
        copy = ship if self.slot is None else partial(save, serial=self._serial)
        try:
            copy(directory, url, disk=self._disk, stopped=self._stop.is_set)
        except Exception as error:  # noqa: BLE001  # whatever the store does: the job must be given back
            self.fault = str(error) if isinstance(error, AmicrawlError) else repr(error)
            if not self._stop.is_set():
                logger.warning("%s cannot be gone on with elsewhere: %s", directory.name, self.fault)
        else:
            self.seconds = time.monotonic() - began
            self.fault = ""
