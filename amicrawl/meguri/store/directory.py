"""A partition's directory as found: its files, and the states it can be opened in.

    super               which generation counts: see `superblock`
    snap-<G>.meguri     the partition as it was when generation G began; where its strings are more than
                        one file holds, they go on in snap-<G>.strings-1.meguri, and so on
    log-<G+1>           what changed since; logs with greater numbers follow where there are any
    log-<n>.tail        what was cut off that log, kept for inspection

What bears another name is not ours and is left alone.

The superblock says which generation counts. Where it is damaged or gone, or a snapshot is, the next
best state (a `Candidate`) is found from the files themselves; it is the same state wherever this
software wrote the directory, since the logs are kept from the older generation on. What was wrong is in
the notes. A directory that has ever had a snapshot never counts as empty, and one that lacks a log which
the superblock names is refused: without it an older state would pass for the newest.

This module reads; `generations` changes the directory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

from amicrawl.disk import OPEN_SUFFIX, readable
from amicrawl.errors import DamagedFileError, InputError
from amicrawl.meguri.format.strings import NAMED
from amicrawl.meguri.store.journal import FIRST_LSN, TAIL_SUFFIX
from amicrawl.meguri.store.logs import replay_logs
from amicrawl.meguri.store.superblock import SUPERBLOCK_NAME, SUPERBLOCK_SIZE, decode_superblock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from amicrawl.meguri.store.superblock import Slot

_T = TypeVar("_T")

# Longer numbers are ignored; without a bound one file name could use up all that may follow it.
_SNAPSHOT: Final = re.compile(rf"snap-([1-9][0-9]{{0,14}})({NAMED})?\.meguri", re.ASCII)
_LOG: Final = re.compile(r"log-([1-9][0-9]{0,14})", re.ASCII)


def snapshot_name(generation: int) -> str:
    """Return the name of the snapshot that begins *generation*."""
    return f"snap-{generation}.meguri"


def log_name(number: int) -> str:
    """Return the name of log *number*; the first log of generation G is number G + 1."""
    return f"log-{number}"


@dataclass(slots=True)
class Listing:
    """The files of a partition's directory, by number."""

    superblock: Path | None = None
    snapshots: dict[int, Path] = field(default_factory=dict)
    further: dict[int, list[Path]] = field(default_factory=dict)
    """Files in which the strings of a snapshot go on, by the number of that."""
    logs: dict[int, Path] = field(default_factory=dict)
    tails: dict[int, Path] = field(default_factory=dict)
    unfinished: list[Path] = field(default_factory=list)
    """Files that were being written when a process ended, or lack their first: no part of the state."""

    def logs_from(self, number: int) -> tuple[Path, ...]:
        """Return the logs of that number and greater ones, in order."""
        return tuple(self.logs[found] for found in sorted(self.logs) if found >= number)

    def files(self) -> Iterator[Path]:
        """Return all files."""
        named = [] if self.superblock is None else [self.superblock]
        snapshots = chain(self.snapshots.values(), *self.further.values())
        return chain(named, snapshots, self.logs.values(), self.tails.values(), self.unfinished)


def list_directory(directory: Path) -> Listing:
    """Return the files of *directory*; InputError where it cannot be read."""
    listing = Listing()
    with readable(directory):
        paths = sorted(directory.iterdir())
    for path in paths:
        _enter(listing, path)
    for number in listing.further.keys() - listing.snapshots.keys():
        listing.unfinished += listing.further.pop(number)
    return listing


_LOOKS: Final = 5


def undisturbed(
    directory: Path, read: Callable[[Listing], _T], *, failed: Callable[[_T], bool] = lambda _: False
) -> _T:
    """Return what *read* makes of the files of *directory*, which may be that of a running crawl.

    A snapshot takes the place of an older one and of its logs: where *read* raised InputError or
    DamagedFileError, or what it returned has *failed*, and files have come or gone meanwhile, it reads
    once more, five times in all.
    """
    for _ in range(_LOOKS - 1):
        listing = list_directory(directory)
        try:
            found = read(listing)
        except (InputError, DamagedFileError):
            if list_directory(directory) == listing:
                raise
        else:
            if not failed(found) or list_directory(directory) == listing:
                return found
    return read(list_directory(directory))


def _enter(listing: Listing, path: Path) -> None:
    name = path.name
    finished = name.removesuffix(OPEN_SUFFIX)
    log = _LOG.fullmatch(finished.removesuffix(TAIL_SUFFIX))
    snapshot = _SNAPSHOT.fullmatch(finished)
    if name != finished:
        if log or snapshot or finished == SUPERBLOCK_NAME:
            listing.unfinished.append(path)
    elif log:
        (listing.tails if name.endswith(TAIL_SUFFIX) else listing.logs)[int(log[1])] = path
    elif snapshot and snapshot[2]:
        listing.further.setdefault(int(snapshot[1]), []).append(path)
    elif snapshot:
        listing.snapshots[int(snapshot[1])] = path
    elif name == SUPERBLOCK_NAME:
        listing.superblock = path


@dataclass(frozen=True, slots=True)
class Candidate:
    """One state that a directory can be opened in: a snapshot and the logs behind it."""

    generation: int
    """0 for the state before the first snapshot."""
    snapshot: Path | None
    logs: tuple[Path, ...]
    """To be replayed in this order."""
    lsn: int | None
    """The LSN of the first frame to replay; None where no slot names it, and the first frame counts."""
    arena_length: int | None
    """Octets of the string arena in the snapshot; None where no slot names it."""
    notes: tuple[str, ...] = ()
    """What was wrong with better candidates, a sentence each."""


def candidates(directory: Path, *, incomplete: bool = False) -> Iterator[Candidate]:
    """Yield the states of *directory*, the best first.

    With *incomplete*, also those that lack a log: what they say was true once. Raises DamagedFileError
    at the end of the candidates, and so at once if there is none; InputError where the directory or a
    file cannot be read.
    """
    listing = list_directory(directory)
    if listing.superblock is None and not listing.snapshots:
        yield _without_snapshot(directory, listing)
        return
    notes: list[str] = []
    slots = _slots(directory, listing, notes)
    missing = _missing(listing, slots)
    if missing and not incomplete:
        raise DamagedFileError(directory / missing, 0, f"the log is missing. {way_out(directory)}")
    for generation in _ranked(directory, listing, slots, notes):
        slot = slots.get(generation)
        logs = listing.logs_from(generation + 1)
        if slot is None and logs and generation + 1 not in listing.logs and not incomplete:
            notes.append(
                f"{listing.snapshots[generation]} was passed over: {log_name(generation + 1)} is "
                f"missing while {logs[0].name} is there, so what happened in between is unknown."
            )
            continue
        lsn, arena_length = (None, None) if slot is None else (slot.lsn, slot.arena_length)
        snapshot = listing.snapshots[generation]
        yield Candidate(generation, snapshot, logs, lsn, arena_length, tuple(notes))
    if _logs_tell_all(listing, slots):
        yield Candidate(0, None, listing.logs_from(1), FIRST_LSN, None, tuple(notes))
    notes.append(f"Nothing in {directory} can be opened. {way_out(directory)}")
    raise DamagedFileError(listing.superblock or max(listing.snapshots.items())[1], 0, " ".join(notes))


def _without_snapshot(directory: Path, listing: Listing) -> Candidate:
    """Return the state of a directory that is new, or that no snapshot was made of yet."""
    if listing.logs and 1 not in listing.logs:
        first = listing.logs[min(listing.logs)]
        raise DamagedFileError(
            first, 0, f"the snapshot that it follows is missing from {directory}. {way_out(directory)}"
        )
    return Candidate(0, None, listing.logs_from(1), FIRST_LSN, None)


def way_out(directory: Path) -> str:
    """Return the sentence that says what to do where the partition in *directory* cannot be opened."""
    return (
        "Restore the files from a copy, or rebuild the frontier from what was archived: "
        f"amicrawl frontier rebuild {directory}"
    )


def _missing(listing: Listing, slots: dict[int, Slot]) -> str:
    """Return the name of the oldest log that must be there by *slots* and is not; empty for none."""
    if not slots:
        return ""
    newest = max(slots)
    if any(generation > newest for generation in listing.snapshots):
        # Its slot is damaged, or it was never committed: what counts is decided by its own log.
        return ""
    # Where no slot says it, other software wrote them, which begins the log with the first change.
    last = max(slot.newest_log for slot in slots.values())
    missing = (number for number in range(newest + 1, last + 1) if number not in listing.logs)
    return next(map(log_name, missing), "")


def _slots(directory: Path, listing: Listing, notes: list[str]) -> dict[int, Slot]:
    """Return the slots that are whole by generation; what is wrong with the others goes to *notes*."""
    if listing.superblock is None:
        notes.append(
            f"{directory / SUPERBLOCK_NAME} is missing: it was lost, or a process ended while it made "
            "the first snapshot. The snapshots and logs were looked at."
        )
        return {}
    with readable(listing.superblock), listing.superblock.open("rb") as file:
        found, faults = decode_superblock(file.read(SUPERBLOCK_SIZE))
    notes += [
        f"{listing.superblock}, byte {fault.at}: a slot is damaged, {fault.reason}; it was passed over."
        for fault in faults
    ]
    if not found and not faults:
        notes.append(
            f"{listing.superblock} holds nothing but zeros; the snapshots and logs were looked at."
        )
    slots = {}
    for slot in found:
        if slot.snapshot == snapshot_name(slot.generation) and slot.log == log_name(slot.generation + 1):
            slots[slot.generation] = slot
        else:
            # The names are never followed anywhere: the superblock may be an attacker's.
            notes.append(
                f"{listing.superblock}: the slot of generation {slot.generation} names the files of "
                "another; it was passed over."
            )
    return slots


def _ranked(directory: Path, listing: Listing, slots: dict[int, Slot], notes: list[str]) -> list[int]:
    """Return the generations whose snapshot is there, the best first."""
    newest_file = max([0, *listing.snapshots, *(number - 1 for number in listing.logs)])

    def has_its_log(generation: int) -> bool:
        return generation + 1 in listing.logs or generation >= newest_file

    newest = max(slots, default=0)
    if newest and newest not in listing.snapshots:
        notes.append(f"{directory / snapshot_name(newest)} is missing though the superblock names it.")
    # A slot whose log is gone while later files are there is of a generation that was given up: there
    # only because its successor's slot is damaged. The files of the successor know more.
    return sorted(
        listing.snapshots,
        key=lambda number: (number in slots and has_its_log(number), number),
        reverse=True,
    )


def _logs_tell_all(listing: Listing, slots: dict[int, Slot]) -> bool:
    """Return whether the logs alone, from the first frame on, say all that the lost snapshots said."""
    newest = max((slot.lsn for slot in slots.values()), default=0)
    if newest <= FIRST_LSN or 1 not in listing.logs:
        return False
    chain = replay_logs(
        listing.logs_from(1),
        first_lsn=FIRST_LSN,
        on_url=_not_looked_at,
        on_host=_not_looked_at,
        on_intern=_not_looked_at,
        on_tombstone=_not_looked_at,
    )
    return chain.next_lsn >= newest


def _not_looked_at(_: bytes) -> None:
    pass
