"""Rebuilding: a frontier made anew from what was archived, in place of one that cannot be opened.

    what can be read of the old one    its rows, whatever is missing since
    the index, or without it the       every capture settles its URL, redirects are followed
    records of the WARC files
    seeds                              are offered

It is made beside the old one and put in its place when it is whole, in steps that the next start
completes; the old one is kept under another name. Links of pages are read from their records by the next
crawl that follows links (`resuming.read_again`). How many links lead to a page is only known for rows
that could be read: the others count as starts do.
"""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from amicrawl.config import Identity
from amicrawl.crawl.index_rows import index_rows, rows_from, rows_of_ami
from amicrawl.crawl.reconciling import UNREAD_LINKS, Look
from amicrawl.disk import explained, rename_durably
from amicrawl.errors import DamagedFileError, InputError
from amicrawl.frontier import Offer, Source
from amicrawl.listing import SUFFIX
from amicrawl.meguri import IDENTITY, WAITING, LivePartition, Status, best_state
from amicrawl.reading import Members
from amicrawl.record import rebuilt, row_of
from amicrawl.record.read_back import RECORD_TYPES
from amicrawl.seed import earlier_indexes
from amicrawl.urls import Refused, UrlKey, fetchable, url_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.meguri import PartitionState
    from amicrawl.seed import Seed

logger = logging.getLogger(__name__)

NAME = "frontier"
_MADE, _MAKING = "frontier.rebuilt", "frontier.rebuilding"
_KEPT = "frontier.damaged-{}"
_SETTLED = frozenset({Status.CRAWLED, Status.GONE})
_BATCH = 4096


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a frontier was made of."""

    urls: int
    """URLs in it."""
    found: int
    """Of these, URLs that could be read from the old one."""
    captures: int
    """Captures that were looked at."""
    settled: int
    """URLs that are settled."""
    waiting: int
    """URLs that are still to be fetched."""
    kept: str
    """The name of the directory that the old one is kept as; empty where there was none."""

    def sentence(self) -> str:
        """Say what was made, for the operator."""
        old = f" The old one is kept as {self.kept}." if self.kept else ""
        return (
            f"The frontier was made anew: {self.urls:,} URLs ({self.found:,} read from the old one, "
            f"{self.settled:,} settled by {self.captures:,} captures, {self.waiting:,} to fetch).{old}"
        )


def rebuild(
    directory: Path,
    *,
    disk: Disk,
    identity: Identity,
    seeds: Iterable[Seed] = (),
    ours: Callable[[int], bool] = lambda _: True,
) -> Rebuilt:
    """Make the frontier of the crawl in *directory* anew; the caller holds the directory's lock.

    *identity* is for a frontier of which nothing can be read. Raises OutputError where the disk fails;
    then the old one is still there.
    """
    complete(directory, disk=disk)
    making = directory / _MAKING
    with explained(making, "made"):
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
    state = _readable(directory / NAME, making, disk=disk)
    found = len(state.rows) - len(state.removed) if state is not None else 0
    if state is not None:
        identity = Identity(state.meta[IDENTITY].decode("ascii"))
    partition = LivePartition(
        making,
        disk=disk,
        hour=int(time.time() // 3600),
        meta={IDENTITY: identity.value.encode("ascii"), UNREAD_LINKS: b"1"},
        begin_with=state,
    )
    try:
        made = _fill(partition, directory, identity, seeds, ours, found=found)
    except BaseException:
        partition.abandon()
        raise
    _keep_what_stands_beside(directory / NAME, making)
    rename_durably(making, directory / _MADE, disk=disk)
    kept = complete(directory, disk=disk)
    return Rebuilt(*made, kept)


def complete(directory: Path, *, disk: Disk) -> str:
    """Put a frontier that was made anew in its place, if there is one that is whole.

    Returns the name that the old one is kept under; empty where there was none.
    """
    made, place, kept = directory / _MADE, directory / NAME, ""
    if not made.exists():
        return kept
    if place.exists():
        number = 1
        while (directory / _KEPT.format(number)).exists():
            number += 1
        kept = _KEPT.format(number)
        rename_durably(place, directory / kept, disk=disk)
    rename_durably(made, place, disk=disk)
    return kept


def _readable(frontier: Path, work: Path, *, disk: Disk) -> PartitionState | None:
    """Return what can be read of *frontier*, whatever is missing there; None for nothing of ours."""
    if not frontier.is_dir():
        return None
    try:
        state, opened = best_state(frontier, work, disk=disk)
    except (DamagedFileError, InputError) as error:
        logger.warning("Of the old frontier nothing can be read: %s", error)
        return None
    for note in opened.notes:
        logger.warning("Old frontier: %s", note)
    if IDENTITY not in state.meta:
        state.close()
        return None
    return state


def _fill(
    partition: LivePartition,
    directory: Path,
    identity: Identity,
    seeds: Iterable[Seed],
    ours: Callable[[int], bool],
    *,
    found: int,
) -> tuple[int, int, int, int, int]:
    """Bring everything that is known into *partition*, close it, and return the counts."""

    def key_of(url: str) -> UrlKey | Refused:
        target = fetchable(url)
        return target if isinstance(target, Refused) else url_key(url, identity)

    rows = index_rows(directory)
    look = Look(partition, directory, key_of=key_of, ours=ours, is_made_anew=True)
    frontier = look.frontier
    earlier = earlier_indexes(directory)
    look.at(rows_of_ami(earlier), total=0)
    look.at(rows_from(directory, 0) if rows or earlier else _rows_of_records(directory), total=rows)
    look.offer_targets(range(len(partition.state.rows)))
    for seed in seeds:
        key = key_of(seed.url)
        if not isinstance(key, Refused) and ours(key.host):
            frontier.offer(Offer(seed, key, Source.SEED))
    partition.note_index(rows, all_known=True)
    counts = frontier.counts
    settled = sum(counts[status] for status in _SETTLED)
    # Not those that are queued: what was offered first and settled then is still in it.
    waiting = sum(counts[status] for status in WAITING)
    made = len(frontier), found, look.looked_at, settled, waiting
    frontier.close()
    return made


def _rows_of_records(directory: Path) -> Iterator[Any]:
    """Yield the rows of an index that is gone, from the records of the WARC files, in batches."""
    import pyarrow as pa  # noqa: PLC0415  # it takes longer to load than all the rest

    rows = map(row_of, _records(directory))
    while batch := list(islice(rows, _BATCH)):
        yield pa.RecordBatch.from_pylist(batch)


def _records(directory: Path) -> Iterator[Any]:
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        with path.open("rb") as stream:
            for member in Members(stream):
                if member.fields.get("warc-type") in RECORD_TYPES:
                    yield rebuilt(path, member, warc_file=path.name)


def _keep_what_stands_beside(old: Path, new: Path) -> None:
    """Copy what is known of robots.txt and of the policy that was in force."""
    for path in old.glob("*.json*"):
        shutil.copy2(path, new / path.name)
