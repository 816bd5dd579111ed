"""The names in a partition's directory, and which of them are there.

    super               which generation counts
    snap-<G>.meguri     the partition as it was when generation G began
    log-<G+1>           what changed since; logs with greater numbers follow where there are any
    log-<n>.tail        what was cut off that log, kept for inspection

What bears another name is not ours and is left alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from amicrawl.disk import OPEN_SUFFIX
from amicrawl.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

SUPERBLOCK_NAME: Final = "super"
TAIL_SUFFIX: Final = ".tail"

# Longer numbers are ignored; without a bound one file name could use up all that may follow it.
_SNAPSHOT: Final = re.compile(r"snap-([1-9][0-9]{0,14})\.meguri", re.ASCII)
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
    logs: dict[int, Path] = field(default_factory=dict)
    tails: dict[int, Path] = field(default_factory=dict)
    unfinished: list[Path] = field(default_factory=list)
    """Files that were being written when a process ended; never part of the state."""

    def logs_from(self, number: int) -> tuple[Path, ...]:
        """Return the logs of that number and greater ones, in order."""
        return tuple(self.logs[found] for found in sorted(self.logs) if found >= number)


def list_directory(directory: Path) -> Listing:
    """Return the files of *directory*; InputError where it cannot be read."""
    listing = Listing()
    try:
        paths = sorted(directory.iterdir())
    except OSError as error:
        raise InputError(f"{directory} cannot be read: {error.strerror}.") from error
    for path in paths:
        _enter(listing, path)
    return listing


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
    elif snapshot:
        listing.snapshots[int(snapshot[1])] = path
    elif name == SUPERBLOCK_NAME:
        listing.superblock = path
