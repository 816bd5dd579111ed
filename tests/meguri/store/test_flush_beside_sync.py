"""A crawl does not wait for the disk: a flush goes on while a sync on another thread is under way."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from faulty_disks import QuickDisk
from meguri.store.partitions import intern_frame

from amicrawl.meguri.store.journal import Journal, read_frames

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 60.0


class SlowDisk(QuickDisk):
    """A disk that takes until `go_on` to force anything."""

    def __init__(self) -> None:
        self.requested = threading.Event()
        self.go_on = threading.Event()
        self.forced: list[int] = []

    def sync(self, descriptor: int) -> None:
        self.requested.set()
        assert self.go_on.wait(PATIENCE)
        self.forced.append(descriptor)


def frames_in(path: Path) -> int:
    return len(list(read_frames(path.read_bytes())))


def test_a_flush_does_not_wait_for_a_sync(tmp_path: Path) -> None:
    disk = SlowDisk()
    before = Journal(tmp_path / "log-1", disk=disk)
    before.append(intern_frame(1, b"\1x"))
    journal = Journal(tmp_path / "log-2", disk=disk, after=before)
    journal.append(intern_frame(2, b"\1y"))
    syncing = threading.Thread(target=journal.sync)
    syncing.start()
    assert disk.requested.wait(PATIENCE)
    journal.append(intern_frame(3, b"\1z"))
    journal.flush()
    assert disk.forced == []
    assert (frames_in(tmp_path / "log-1"), frames_in(tmp_path / "log-2")) == (1, 2)
    disk.go_on.set()
    syncing.join(PATIENCE)
    # What was flushed meanwhile is not taken for forced: the next sync calls the disk again.
    assert len(disk.forced) == 2
    journal.sync()
    assert len(disk.forced) == 3
    journal.sync()
    assert len(disk.forced) == 3
    journal.close()
