"""A partition small enough to check by eye, kept in a directory as a crawl would keep it; and its disks.

Its snapshots are lines of text with a checksum: which format they have is no affair of the store.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from typing import TYPE_CHECKING

from faulty_disks import QuickDisk

from amicrawl.disk import Disk, OutputFile
from amicrawl.errors import DamagedFileError
from amicrawl.meguri.format.checksum import crc32c
from amicrawl.meguri.store.generations import Generations
from amicrawl.meguri.store.journal import (
    HOST_CHANGE,
    TOMBSTONE,
    URL_CHANGE,
    FrameKind,
    Journal,
    frames_of,
    intern_change,
)
from amicrawl.meguri.store.logs import replay_logs

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable
    from pathlib import Path


def url_frame(lsn: int, packed: bytes) -> bytes:
    return frames_of([URL_CHANGE + packed], lsn)


def host_frame(lsn: int, packed: bytes) -> bytes:
    return frames_of([HOST_CHANGE + packed], lsn)


def intern_frame(lsn: int, entries: bytes) -> bytes:
    return frames_of([intern_change(len(entries)) + entries], lsn)


def frame(lsn: int, kind: int, body: bytes, *, key_length: int) -> bytes:
    """Return any frame; *body* is key and value in one, *kind* may have the `TOMBSTONE` bit."""
    covered = struct.pack("<QBBI", lsn, kind, key_length, len(body) - key_length) + body
    return covered + struct.pack("<I", crc32c(covered))


def tombstone_frame(lsn: int, key: bytes) -> bytes:
    """Return the frame with which other software removes a URL (*key* of 16 octets) or a host (of 8)."""
    kind = FrameKind.URL if len(key) == 16 else FrameKind.HOST
    return frame(lsn, kind | TOMBSTONE, key, key_length=len(key))


class PowerCutDisk(Disk):
    """A disk that knows what was forced to it, and forgets some of the rest when the power fails."""

    def __init__(self) -> None:
        self._paths: dict[int, Path] = {}
        self._forced: dict[Path, int] = {}

    def create(self, path: Path) -> int:
        descriptor = super().create(path)
        self._paths[descriptor] = path
        self._forced[path] = 0
        return descriptor

    def sync(self, descriptor: int) -> None:
        self._forced[self._paths[descriptor]] = os.fstat(descriptor).st_size

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self._forced[target] = self._forced.pop(source)

    def cut_power(self, dice: random.Random) -> None:
        for path, forced in self._forced.items():
            if not path.exists():
                continue
            size = path.stat().st_size
            kept = dice.randint(forced, size)
            with path.open("r+b") as file:
                file.truncate(kept)
                # Some file systems grow the file first and fill it later.
                file.truncate(dice.choice([kept, size]))


def key(number: int) -> bytes:
    return (number % 7).to_bytes(8, "little") + number.to_bytes(8, "little")


def row(number: int, arena: bytearray) -> bytes:
    """Return the row of URL *number*, whose string is next in *arena*."""
    return key(number) + len(arena).to_bytes(87, "little")


def entry(number: int) -> bytes:
    text = f"http://example.com/{number}".encode()
    return bytes([len(text)]) + text


def write_snapshot(path: Path, rows: dict[bytes, bytes], arena: bytes, *, disk: Disk) -> None:
    text = json.dumps([{k.hex(): v.hex() for k, v in rows.items()}, arena.hex()]).encode()
    file = OutputFile.replacing(path, disk=disk)
    try:
        file.write(b"%08x" % zlib.crc32(text) + text)
        file.seal()
    finally:
        file.close()


def read_snapshot(path: Path) -> tuple[dict[bytes, bytes], bytearray]:
    block = path.read_bytes()
    if block[:8] != b"%08x" % zlib.crc32(block[8:]):
        raise DamagedFileError(path, 0, "the checksum is wrong")
    rows, arena = json.loads(block[8:])
    return {bytes.fromhex(k): bytes.fromhex(v) for k, v in rows.items()}, bytearray.fromhex(arena)


class SmallPartition:
    """The live partition of a test: everything in memory, everything in the journal."""

    def __init__(self, directory: Path, *, disk: Disk | None = None) -> None:
        self.disk = disk or QuickDisk()
        self.generations = Generations(directory, disk=self.disk)
        self.candidate, found = self.generations.choose(read_snapshot)
        self.rows, self.arena = ({}, bytearray(b"\0")) if found is None else found
        replayed = replay_logs(
            self.candidate.logs,
            first_lsn=self.candidate.lsn,
            on_url=lambda row: self.rows.__setitem__(row[:16], row),
            on_host=lambda row: None,
            on_intern=self.arena.extend,
            on_tombstone=lambda gone: self.rows.pop(gone, None),
        )
        self.notes = (*self.candidate.notes, *replayed.notes)
        self.generations.repair(replayed)
        self.next_lsn = replayed.next_lsn
        self.journal = Journal(self.generations.begin_log(), disk=self.disk)
        self.generations.name_log(self.journal.path)

    def put(self, numbers: Iterable[int]) -> None:
        """Add or change URLs; each has its string in the arena, so that offsets are checked too."""
        for number in numbers:
            new = row(number, self.arena)
            self.journal.append(intern_frame(self.next_lsn, entry(number)))
            self.journal.append(url_frame(self.next_lsn + 1, new))
            self.arena += entry(number)
            self.rows[key(number)] = new
            self.next_lsn += 2

    def drop(self, number: int) -> None:
        self.journal.append(tombstone_frame(self.next_lsn, key(number)))
        del self.rows[key(number)]
        self.next_lsn += 1

    def begin_snapshot(self) -> Snapshot:
        """Cut the journal here; from now on changes go to the next log."""
        return Snapshot(self)

    def snapshot(self) -> None:
        begun = self.begin_snapshot()
        begun.write()
        begun.commit()

    def close(self) -> None:
        self.journal.close()


class Snapshot:
    """A snapshot in the making, as of the moment it was begun."""

    def __init__(self, partition: SmallPartition) -> None:
        self._partition = partition
        self.begun = partition.generations.begin_generation()
        self._rows, self._arena = dict(partition.rows), bytes(partition.arena)
        self._lsn = partition.next_lsn
        partition.journal = Journal(self.begun.log, disk=partition.disk, after=partition.journal)

    def write(self) -> None:
        write_snapshot(self.begun.snapshot, self._rows, self._arena, disk=self._partition.disk)

    def commit(self) -> None:
        partition = self._partition
        partition.generations.commit(
            self.begun, partition.journal, lsn=self._lsn, arena_length=len(self._arena)
        )


def numbers_in(partition: SmallPartition) -> list[int]:
    """Return which URLs are in *partition*, each with its string where its row says."""
    found = []
    for state in partition.rows.values():
        number, at = int.from_bytes(state[8:16], "little"), int.from_bytes(state[16:], "little")
        assert partition.arena[at : at + len(entry(number))] == entry(number)
        found.append(number)
    return sorted(found)


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())
