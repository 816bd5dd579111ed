"""A path on the command line as a source of rows: a frontier file, or a directory that is loaded.

A directory is that of a crawl (`ami-out`, with `frontier` in it) or that of a frontier (a superblock,
snapshots, journals). Both kinds of source have the same methods.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import numpy as np

from amicrawl.errors import InputError
from amicrawl.frontier.format.reader import FrontierFile
from amicrawl.frontier.format.verification import read_partition
from amicrawl.frontier.opening import load
from amicrawl.frontier.states import RESTING, WAITING
from amicrawl.frontier.store.directory import list_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amicrawl.frontier.format.partition import Columns, Partition


class Source(Protocol):
    """Rows and strings that can be looked at, from a file or a directory."""

    @property
    def meta(self) -> Sequence[tuple[bytes, bytes]]:
        """Pairs of free text."""

    def url_column(self, name: str) -> np.ndarray:
        """Return a whole column of the URL table."""

    def host_column(self, name: str) -> np.ndarray:
        """Return a whole column of the host table."""

    def rows(self, indexes: np.ndarray, names: Sequence[str]) -> Columns:
        """Return some columns of some URL rows."""

    def arena(self) -> bytes | memoryview:
        """Return the strings."""


class LiveSource:
    """A directory, as it stands on disk."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition

    @property
    def meta(self) -> Sequence[tuple[bytes, bytes]]:
        """Pairs of free text."""
        return self.partition.meta

    def url_column(self, name: str) -> np.ndarray:
        """Return a whole column of the URL table."""
        return self.partition.urls[name]

    def host_column(self, name: str) -> np.ndarray:
        """Return a whole column of the host table."""
        return self.partition.hosts[name]

    def rows(self, indexes: np.ndarray, names: Sequence[str]) -> Columns:
        """Return some columns of some URL rows."""
        return {name: self.partition.urls[name][indexes] for name in names}

    def arena(self) -> bytes | memoryview:
        """Return the strings."""
        return self.partition.arena


def due_in_crawl(source: Source, hour: int) -> np.ndarray:
    """Return the rows that a crawl which starts at *hour* hands out, the earliest first."""
    status, due = source.url_column("status"), source.url_column("next_due")
    # A waiting row without a time is due; a settled one without a time never is.
    waits = np.isin(status, [*WAITING])
    rests = np.isin(status, [*RESTING]) & (due != 0)
    rows = np.flatnonzero((waits | rests) & (due <= hour))
    return rows[np.argsort(due[rows], kind="stable")]


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open *path*, a file or a directory; raises InputError where it is neither, or DamagedFileError."""
    if path.is_dir():
        yield LiveSource(load(frontier_directory(path)))
    else:
        with FrontierFile.open(path) as file:
            yield file


def partition_in(path: Path) -> Partition:
    """Read all of *path*, a file or a directory."""
    if path.is_dir():
        return load(frontier_directory(path))
    return read_partition(path)


def frontier_directory(directory: Path) -> Path:
    """Return where in *directory* the frontier lies: in its `frontier`, or there itself."""
    for place in (directory / "frontier", directory):
        if place.is_dir():
            listing = list_directory(place)
            if listing.superblock or listing.snapshots or listing.logs:
                return place
    raise InputError(
        f"{directory} has no frontier: neither superblock nor snapshots nor logs. Give a frontier file, "
        "the frontier's directory, or the output directory of a crawl."
    )
