"""Rows of a frontier that lies on disk, to look at: of a file, or of a directory as it stands.

A directory is that of a crawl (`ami-out`, with `frontier` in it) or that of a frontier (a superblock,
snapshots, journals). Both sources have the same methods. Nothing here changes what is read.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np

from amicrawl.config import Identity
from amicrawl.errors import InputError
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.verification import read_partition
from amicrawl.meguri.opening import load
from amicrawl.meguri.state import IDENTITY
from amicrawl.meguri.store.directory import list_directory
from amicrawl.urls import UrlKey, seed_key, url_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amicrawl.meguri.format.schema import Columns, Partition

STATUSES = (
    "discovered",
    "scheduled",
    "ready",
    "in_flight",
    "crawled",
    "due_recrawl",
    "gone",
    "excluded_robots",
    "trapped",
    "withheld",
)
"""The names of the states, as other software prints them."""


def status_name(status: int) -> str:
    """Return the name of a row's state."""
    return STATUSES[status] if status < len(STATUSES) else f"status({status})"


class RowSource(Protocol):
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


@contextmanager
def open_rows(path: Path) -> Iterator[RowSource]:
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


_DIVIDED = "processes/plan.json"
"""The file of a crawl in several processes that is there until theirs are made one frontier again."""


def frontier_directory(directory: Path) -> Path:
    """Return where in *directory* the frontier lies: in its `frontier`, or there itself.

    InputError where there is none, and where it is older than those that the processes of a crawl have.
    """
    crawl = directory.parent if directory.name == "frontier" else directory
    is_divided = (crawl / _DIVIDED).is_file()
    for place in () if is_divided else (directory / "frontier", directory):
        if place.is_dir():
            listing = list_directory(place)
            if listing.superblock or listing.snapshots or listing.logs:
                return place
    # Those of the processes of one crawl, or of the crawls in one directory.
    within = min(chain(crawl.glob("*/frontier"), crawl.glob("*/*/frontier")), default=None)
    advice = "Give a frontier file, the frontier's directory, or the output directory of a crawl."
    raise InputError(
        (
            f"The crawl in {crawl} has not ended, and each of its processes has a part of the frontier. "
            if is_divided
            else f"{directory} has no frontier: neither superblock nor snapshots nor logs. "
        )
        + (f"Give one of those in it, such as {within.parent}." if within is not None else advice)
    )


@dataclass(frozen=True, slots=True)
class Match:
    """Where a URL was found."""

    row: int
    key: UrlKey
    convention: str
    """By which reading of the URL: the words that finish "matched by its ..."."""


def conventions(source: RowSource, url: str) -> list[tuple[str, UrlKey]]:
    """Return the keys under which *url* may be found, likeliest first, and what each is made of."""
    said = dict(source.meta).get(IDENTITY, b"")
    exact, canonical = (
        ("URL as written", url_key(url, Identity.EXACT)),
        ("canonical form", url_key(url, Identity.CANONICAL)),
    )
    first = [exact, canonical] if said == b"exact" else [canonical, exact]
    return [*first, ("host and remainder, cut but not normalised", seed_key(url))]


def find_url(source: RowSource, url: str) -> Match | None:
    """Return the row of *url* by the first convention that leads to one."""
    hosts = source.url_column("host_key")
    paths: np.ndarray | None = None
    for convention, key in conventions(source, url):
        first = int(np.searchsorted(hosts, np.uint64(key.host)))
        end = int(np.searchsorted(hosts, np.uint64(key.host), "right"))
        if first == end:
            continue
        paths = source.url_column("path_key") if paths is None else paths
        row = first + int(np.searchsorted(paths[first:end], np.uint64(key.path)))
        if row < end and int(paths[row]) == key.path:
            return Match(row, key, convention)
    return None
