"""Journal: the changes of a partition, appended to one log file.

A log is created and appended to by one process only: after a restart its torn tail is cut off, and the
next journal writes a log of its own. So no frame can follow torn bytes.

`append` is for one thread and touches no disk. `flush` and `sync` may be called from another thread
meanwhile; what is appended during one goes with the next. After the first OutputError every call raises
it again: it is not known how much was written, and nothing may be written behind a hole.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from amicrawl.disk import Trust, explained

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.disk import Disk


class Journal:
    """Writes one log of a partition."""

    def __init__(self, path: Path, *, disk: Disk, after: Journal | None = None) -> None:
        """Create the log *path*; OutputError where that fails, or where there is one.

        *after* is the journal of the log before, which nothing more is appended to. It is flushed before
        this one is, and synced before, and then closed: a log counts only if the one before is whole.
        """
        self.path = path
        self._disk = disk
        self._after = after
        self._buffer = bytearray()
        self._appended = 0
        self._written = 0
        self._forced = 0
        self._name_is_durable = False
        self._trust = Trust(path.parent)
        self._failed = False
        self._appending = Lock()  # held for the moment that the buffer is changed or exchanged
        self._writing = Lock()
        self._forcing = Lock()  # held while waiting for the disk; `flush` continues meanwhile
        with explained(path, "created"):
            self._descriptor = disk.create(path)

    @property
    def pending(self) -> int:
        """Bytes that were appended and are not yet written; without those of the journal before."""
        return self._appended - self._written

    @property
    def size(self) -> int:
        """Bytes that the log has with everything that was appended."""
        return self._appended

    def append(self, frame: bytes) -> None:
        """Take *frame*, or several in one, to be written by the next `flush`."""
        if self._failed:
            self._trust.check()
        with self._appending:
            self._buffer += frame
            self._appended += len(frame)

    def flush(self) -> None:
        """Write what was appended: from here on it outlives the process."""
        with self._writing, self._kept():
            if self._after is not None:
                self._after.flush()
            self._write()

    def sync(self) -> None:
        """Write what was appended and force it to disk: from here on it outlives the power too."""
        with self._forcing:
            self.flush()
            written = self._written
            with self._kept():
                self._force(written)

    def _force(self, written: int) -> None:
        if self._after is not None:
            self._after.sync()
        if not self._name_is_durable or self._forced < written:
            with explained(self.path, "forced to disk"):
                self._disk.sync(self._descriptor)
                if not self._name_is_durable:
                    self._disk.sync_directory(self.path.parent)
            self._name_is_durable = True
            self._forced = written
        if self._after is not None:
            with self._writing:
                after, self._after = self._after, None
            after.close()

    def close(self) -> None:
        """Let go of the log as it is; what was appended and not flushed is gone."""
        with self._forcing, self._writing:
            if self._after is not None:
                self._after.close()
            if self._descriptor >= 0:
                descriptor, self._descriptor = self._descriptor, -1
                os.close(descriptor)

    def _write(self) -> None:
        with self._appending:
            block, self._buffer = self._buffer, bytearray()
        rest = memoryview(block)
        with explained(self.path, "written to"):
            while rest:
                written = self._disk.write(self._descriptor, rest)
                self._written += written
                rest = rest[written:]

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Trust the journal no more if the block fails."""
        try:
            with self._trust.at_stake():
                yield
        except BaseException:
            self._failed = True
            raise
