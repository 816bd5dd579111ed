"""Generations: which files of a partition's directory are its state, and how one state follows another.

    open      candidates, best first; read its snapshot, replay its logs, cut what is torn, begin a log
    snapshot  begin the next log; write the snapshot while that one is written; commit
    commit    sync the journal; superblock as `super.open`, fsync, rename, fsync of the directory; then
              older files go

A log is never extended after a restart: the next one is begun, and named in the superblock, so that a
lost log is noticed. Numbers of logs have no gaps. The superblock names the last two
generations, and their snapshots stay, as do all logs since the older: if the newer snapshot is damaged
the older and its logs say the same. For that to hold, everything that a snapshot says must have been
in the logs since the one before, at the same offsets of the string arena. A snapshot of which that is
not true must leave out one LSN before its log, so that no older state is ever replayed into it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from amicrawl.disk import OutputFile, explained, replace_file
from amicrawl.errors import AmicrawlError, DamagedFileError, InputError
from amicrawl.meguri.store.directory import candidates, list_directory, log_name, snapshot_name
from amicrawl.meguri.store.journal import TAIL_SUFFIX
from amicrawl.meguri.store.superblock import (
    SUPERBLOCK_NAME,
    SUPERBLOCK_SIZE,
    Slot,
    decode_superblock,
    encode_superblock,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.meguri.store.directory import Candidate
    from amicrawl.meguri.store.journal import Journal
    from amicrawl.meguri.store.logs import ReplayedLog, ReplayedLogs

_READ_SIZE: Final = 1 << 20
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class NextGeneration:
    """The names of a generation that is being made."""

    generation: int
    snapshot: Path
    """Where its snapshot goes, complete and forced to disk before the commit."""
    log: Path
    """The log to begin at the cut: its first frame is the first that the snapshot does not hold."""


class Generations:
    """The state of the partition in one directory; for one thread at a time."""

    def __init__(self, directory: Path, *, disk: Disk) -> None:
        """Nothing is read or changed yet; *directory* must exist."""
        self.directory = directory
        self._disk = disk
        self._current = 0
        self._slot: Slot | None = None

    def choose(
        self, read: Callable[[Path], _T], *, incomplete: bool = False
    ) -> tuple[Candidate, _T | None]:
        """Return the best state whose snapshot *read* can read, and what it returned.

        None stands for a state without a snapshot. *read* raises DamagedFileError for a file that is
        not to be trusted; the notes then say so. DamagedFileError where nothing is left, never an empty
        state; InputError where a file cannot be read. Nothing is changed on disk. With *incomplete*, a
        state that lacks a log will do.
        """
        refusals: list[str] = []
        try:
            for candidate in candidates(self.directory, incomplete=incomplete):
                try:
                    found = None if candidate.snapshot is None else read(candidate.snapshot)
                except DamagedFileError as error:
                    refusals.append(f"{error}; the snapshot was passed over.")
                    continue
                except OSError as error:
                    raise InputError(
                        f"{candidate.snapshot} cannot be read: {error.strerror or error}."
                    ) from error
                self._settle_on(candidate)
                return _told(candidate, refusals), found
        except DamagedFileError as error:
            if not refusals:
                raise
            raise DamagedFileError(
                error.path, error.offset, f"{' '.join(refusals)} {error.reason}"
            ) from error
        raise AssertionError("the candidates end with an error")

    def _settle_on(self, candidate: Candidate) -> None:
        self._current = candidate.generation
        self._slot = None
        if candidate.snapshot is not None and candidate.lsn is not None:
            assert candidate.arena_length is not None
            self._slot = _slot(candidate.generation, candidate.lsn, candidate.arena_length)

    def repair(self, replayed: ReplayedLogs) -> None:
        """Cut off each log what does not count, and remove what was never finished.

        What is cut off is kept beside the log, under its name with `.tail` behind it.
        """
        for log in replayed.logs:
            if log.intact_bytes < log.size:
                self._cut(log)
            elif log.size:
                # Who wrote it may have been killed before it was forced to disk, and what is in the logs
                # to come counts only behind it.
                with explained(log.path, "forced to disk"):
                    self._disk.truncate(log.path, log.size)
        self._remove(list_directory(self.directory).unfinished)

    def _cut(self, log: ReplayedLog) -> None:
        tail = OutputFile.replacing(log.path.with_name(log.path.name + TAIL_SUFFIX), disk=self._disk)
        try:
            with log.path.open("rb") as file:
                file.seek(log.intact_bytes)
                while block := file.read(_READ_SIZE):
                    tail.write(block)
            tail.seal()
        finally:
            tail.close()
        with explained(log.path, "cut"):
            self._disk.truncate(log.path, log.intact_bytes)

    def begin_log(self) -> Path:
        """Return where the next log goes: behind every log and generation there is."""
        listing = list_directory(self.directory)
        taken = max([0, self._current, *listing.snapshots, *listing.logs])
        return self.directory / log_name(taken + 1)

    def name_log(self, log: Path) -> None:
        """Have the superblock say that *log*, which was begun behind its generation, must be there."""
        if self._slot is None:
            # Another generation follows at once, and names the logs behind it.
            return
        with explained(self.directory, "forced to disk"):
            # A log that is named and lost its name in a power cut would be missed for nothing.
            self._disk.sync_directory(self.directory)
        self._slot = replace(self._slot, newest_log=int(log.name.removeprefix("log-")))
        path = self.directory / SUPERBLOCK_NAME
        slots, _ = decode_superblock(path.read_bytes()[:SUPERBLOCK_SIZE])
        others = [slot for slot in slots if slot.generation % 2 != self._slot.generation % 2]
        self._write_superblock([self._slot, *others])

    def begin_generation(self) -> NextGeneration:
        """Return the names of the next generation; its log follows every log there is."""
        listing = list_directory(self.directory)
        generation = max([1, self._current + 1, *(n + 1 for n in listing.snapshots), *listing.logs])
        if generation % 2 == self._current % 2:
            # The slot of the current one must stay until the next is whole.
            generation += 1
            if generation not in listing.logs:
                self._begin_empty(log_name(generation))
        return NextGeneration(
            generation,
            self.directory / snapshot_name(generation),
            self.directory / log_name(generation + 1),
        )

    def commit(self, begun: NextGeneration, journal: Journal, *, lsn: int, arena_length: int) -> None:
        """Make *begun* the state; its snapshot must be complete and forced to disk under its name.

        *journal* writes the log of *begun*. It is synced first, and so are those before it: what only
        the snapshot held would be lost with the snapshot. *lsn* is that of the first frame in its log,
        written or not; *arena_length* counts the octets of the string arena in the snapshot. After an
        OutputError the state is the old or the new one, both are complete; unless it was the journal's,
        another generation may be begun.
        """
        if not begun.snapshot.exists():
            raise AmicrawlError(f"{begun.snapshot} is to be committed and is not there.")
        journal.sync()
        slot = _slot(begun.generation, lsn, arena_length)
        slot = replace(slot, newest_log=begun.generation + 1)
        self._write_superblock([slot, *([] if self._slot is None else [self._slot])])
        previous, self._current, self._slot = self._current, begun.generation, slot
        self._remove_before(previous)

    def _write_superblock(self, slots: Iterable[Slot]) -> None:
        replace_file(self.directory / SUPERBLOCK_NAME, encode_superblock(slots), disk=self._disk)

    def _begin_empty(self, name: str) -> None:
        """Begin the log *name*, which nothing is written to, so that the numbers have no gap."""
        with explained(self.directory / name, "created"):
            os.close(self._disk.create(self.directory / name))

    def _remove_before(self, generation: int) -> None:
        """Remove what *generation* and later ones do not need."""
        listing = list_directory(self.directory)
        logs = [*listing.logs.items(), *listing.tails.items()]
        further = ((number, path) for number, paths in listing.further.items() for path in paths)
        snapshots = [*listing.snapshots.items(), *further]
        self._remove(
            [
                *(path for number, path in logs if number <= generation),
                *(path for number, path in snapshots if number < generation),
            ]
        )

    def _remove(self, paths: Iterable[Path]) -> None:
        removed = False
        for path in paths:
            with explained(path, "removed"):
                self._disk.remove(path)
                removed = True
        if removed:
            with explained(self.directory, "forced to disk"):
                self._disk.sync_directory(self.directory)


def begin_with(directory: Path, *, arena_length: int, disk: Disk) -> None:
    """Make the snapshot of generation 1 in *directory*, complete and forced to disk, its first state.

    Its first log is begun, empty. *arena_length* is that of the snapshot's string arena.
    """
    first = _slot(1, 1, arena_length)
    for name, content in ((first.log, b""), (SUPERBLOCK_NAME, encode_superblock([first]))):
        replace_file(directory / name, content, disk=disk)


def _slot(generation: int, lsn: int, arena_length: int) -> Slot:
    return Slot(generation, lsn, arena_length, snapshot_name(generation), log_name(generation + 1))


def _told(candidate: Candidate, refusals: list[str]) -> Candidate:
    """Return *candidate* with notes that end with what was done, if anything was wrong."""
    notes = (*candidate.notes, *refusals)
    if not notes:
        return candidate
    names = [path.name for path in (candidate.snapshot, *candidate.logs) if path is not None]
    return replace(candidate, notes=(*notes, f"The partition was opened from {' + '.join(names)}."))
