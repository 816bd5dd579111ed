"""A partition on disk dealt to several directories by host, and the partitions of several made one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.disk import explained
from amicrawl.meguri.format.operations import deal, gather
from amicrawl.meguri.format.writer import write_partition
from amicrawl.meguri.opening import load
from amicrawl.meguri.snapshot import OPTIONS
from amicrawl.meguri.state import INDEX_ROWS
from amicrawl.meguri.store.directory import snapshot_name
from amicrawl.meguri.store.generations import begin_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.meguri.format.partition import Partition


def deal_frontier(source: Path, targets: Sequence[Path], *, disk: Disk) -> None:
    """Write the rows of the frontier in *source* to as many new directories as *targets* names, by host.

    Raises DamagedFileError where *source* cannot be read, and OutputError where a target cannot be made.
    """
    for part, target in zip(deal(load(source), len(targets)), targets, strict=True):
        with explained(target, "made"):
            target.mkdir()
        _begin(part, target, index_rows=0, disk=disk)


def gather_frontiers(sources: Iterable[Path], target: Path, *, index_rows: int, disk: Disk) -> None:
    """Write the frontiers in *sources* as one to *target*, an empty directory.

    It knows *index_rows* rows of the index. Raises like `deal_frontier`.
    """
    _begin(gather(*map(load, sources)), target, index_rows=index_rows, disk=disk)


def _begin(partition: Partition, directory: Path, *, index_rows: int, disk: Disk) -> None:
    """Make *partition* the first state of *directory*."""
    kept = {name: value for name, value in partition.meta if name != INDEX_ROWS}
    partition.meta = tuple(sorted({**kept, INDEX_ROWS: b"%d" % index_rows}.items()))
    write_partition(partition, directory / snapshot_name(1), options=OPTIONS, disk=disk)
    begin_with(directory, arena_length=len(partition.arena), disk=disk)
