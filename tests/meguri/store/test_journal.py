"""Journal: what was acknowledged is in the log, and nothing lands behind a hole."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from faulty_disks import FaultyDisk, QuickDisk
from meguri.store.partitions import intern_frame, names_in

from amicrawl.errors import OutputError
from amicrawl.meguri.store.journal import Journal, read_frames

if TYPE_CHECKING:
    from pathlib import Path


class CountingDisk(QuickDisk):
    """A disk that keeps the list of what it was requested, and writes little at a time if told."""

    def __init__(self, *, at_once: int = 1 << 30) -> None:
        self.calls: list[str] = []
        self._at_once = at_once

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        self.calls.append("write")
        return super().write(descriptor, block[: self._at_once])

    def sync(self, descriptor: int) -> None:
        self.calls.append("sync")

    def sync_directory(self, directory: Path) -> None:
        self.calls.append("sync_directory")


def entries(path: Path) -> list[bytes]:
    block = path.read_bytes()
    found = list(read_frames(block))
    assert sum(frame.length for frame in found) == len(block)
    return [frame.body for frame in found]


def test_an_append_touches_no_disk_and_a_flush_writes_all_of_it_at_once(tmp_path: Path) -> None:
    disk = CountingDisk()
    journal = Journal(tmp_path / "log-1", disk=disk)
    for lsn in range(1, 4):
        journal.append(intern_frame(lsn, b"\1x"))
    assert (journal.pending, journal.size, disk.calls) == (60, 60, [])
    journal.flush()
    assert (journal.pending, journal.size, disk.calls) == (0, 60, ["write"])
    assert entries(tmp_path / "log-1") == [b"\1x"] * 3
    journal.close()


def test_the_first_sync_makes_the_name_durable_and_one_without_news_does_nothing(tmp_path: Path) -> None:
    disk = CountingDisk()
    journal = Journal(tmp_path / "log-1", disk=disk)
    journal.append(intern_frame(1, b"\1x"))
    journal.sync()
    assert disk.calls == ["write", "sync", "sync_directory"]
    journal.sync()
    assert len(disk.calls) == 3
    journal.append(intern_frame(2, b"\1x"))
    journal.sync()
    assert disk.calls[3:] == ["write", "sync"]
    journal.append(intern_frame(3, b"\1x"))
    journal.flush()
    journal.sync()
    assert disk.calls[5:] == ["write", "sync"]
    journal.close()


def test_a_disk_that_takes_a_little_at_a_time_gets_all_of_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log-1", disk=CountingDisk(at_once=7))
    journal.append(intern_frame(1, bytes(100)) + intern_frame(2, b"\1x"))
    journal.flush()
    journal.close()
    assert entries(tmp_path / "log-1") == [bytes(100), b"\1x"]


def test_what_was_not_flushed_is_gone_when_it_is_closed(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log-1", disk=QuickDisk())
    journal.append(intern_frame(1, b"\1x"))
    journal.close()
    journal.close()
    assert entries(tmp_path / "log-1") == []


def test_a_log_that_is_there_is_never_written_to(tmp_path: Path) -> None:
    (tmp_path / "log-1").write_bytes(b"old")
    with pytest.raises(OutputError, match="log-1 cannot be created: File exists"):
        Journal(tmp_path / "log-1", disk=QuickDisk())
    assert (tmp_path / "log-1").read_bytes() == b"old"


@pytest.mark.parametrize("call", ["flush", "sync"])
def test_after_a_failure_every_call_raises_it_again_and_nothing_is_written(
    tmp_path: Path, call: str
) -> None:
    seen = set()
    for fatal in range(2, 5):
        path = tmp_path / f"log-{fatal}"
        disk = FaultyDisk(fatal)
        journal = Journal(path, disk=disk)
        journal.append(intern_frame(1, bytes(100)))
        try:
            getattr(journal, call)()
        except OutputError as error:
            first = error
        else:
            assert not disk.failed_at
            journal.close()
            continue
        left = path.read_bytes()
        for attempt in (journal.flush, journal.sync, lambda: journal.append(b"more")):  # noqa: B023
            with pytest.raises(OutputError) as again:
                attempt()
            assert again.value is first
        journal.close()
        assert path.read_bytes() == left
        assert len(left) == (59 if disk.failed_at == "write" else 118)
        seen.add(disk.failed_at)
    assert seen == ({"write"} if call == "flush" else {"write", "sync", "sync_directory"})


def test_a_journal_whose_file_cannot_be_created_says_so(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="log-1 cannot be created: No space left"):
        Journal(tmp_path / "log-1", disk=FaultyDisk(1))


def test_the_journal_before_is_written_and_forced_first(tmp_path: Path) -> None:
    disk = CountingDisk()
    before = Journal(tmp_path / "log-1", disk=disk)
    before.append(intern_frame(1, b"\1a"))
    journal = Journal(tmp_path / "log-2", disk=disk, after=before)
    journal.append(intern_frame(2, b"\1b"))
    journal.flush()
    assert disk.calls == ["write", "write"]
    assert entries(tmp_path / "log-1") == [b"\1a"]
    assert entries(tmp_path / "log-2") == [b"\1b"]
    journal.sync()
    assert disk.calls[2:] == ["sync", "sync_directory", "sync", "sync_directory"]
    journal.close()


def test_a_failure_of_the_journal_before_keeps_the_next_from_being_written(tmp_path: Path) -> None:
    before = Journal(tmp_path / "log-1", disk=FaultyDisk(2))
    before.append(intern_frame(1, b"\1a"))
    journal = Journal(tmp_path / "log-2", disk=QuickDisk(), after=before)
    journal.append(intern_frame(2, b"\1b"))
    with pytest.raises(OutputError, match="log-1 cannot be written to"):
        journal.flush()
    with pytest.raises(OutputError, match="log-1 cannot be written to"):
        journal.append(b"")
    journal.close()
    assert (tmp_path / "log-2").stat().st_size == 0


def test_frames_appended_while_another_thread_flushes_come_once_and_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log-1", disk=CountingDisk(at_once=1000))
    over = threading.Event()

    def flush() -> None:
        while not over.is_set():
            journal.flush()
            journal.sync()

    threads = [threading.Thread(target=flush) for _ in range(2)]
    for thread in threads:
        thread.start()
    for lsn in range(1, 20_001):
        journal.append(intern_frame(lsn, lsn.to_bytes(4, "little")))
    over.set()
    for thread in threads:
        thread.join()
    journal.sync()
    journal.close()
    assert journal.pending == 0
    assert entries(tmp_path / "log-1") == [lsn.to_bytes(4, "little") for lsn in range(1, 20_001)]
    assert names_in(tmp_path) == ["log-1"]


def test_an_interrupted_write_ends_the_trust_too(tmp_path: Path) -> None:
    class InterruptedDisk(QuickDisk):
        def write(self, descriptor: int, block: bytes | memoryview) -> int:
            raise KeyboardInterrupt

    journal = Journal(tmp_path / "log-1", disk=InterruptedDisk())
    journal.append(intern_frame(1, b"\1a"))
    with pytest.raises(KeyboardInterrupt):
        journal.flush()
    with pytest.raises(OutputError, match="interrupted by KeyboardInterrupt"):
        journal.append(b"")
    journal.close()
