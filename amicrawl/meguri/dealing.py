"""A partition on disk dealt to several directories by host, and the partitions of several made one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from amicrawl.disk import explained
from amicrawl.meguri.format.operations import deal
from amicrawl.meguri.format.schema import HOST_REFERENCES, URL_REFERENCES
from amicrawl.meguri.format.writer import write_partition
from amicrawl.meguri.opening import load
from amicrawl.meguri.snapshot import OPTIONS, Copies, freeze, partition_at
from amicrawl.meguri.state import INDEX_ROWS, PartitionState
from amicrawl.meguri.store.directory import snapshot_name
from amicrawl.meguri.store.generations import begin_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.meguri.format.schema import Partition

_ROWS = 65_536
_PIECE = 1 << 20


def deal_frontier(source: Path, targets: Sequence[Path], *, disk: Disk, salt: int = 0) -> None:
    """Write the rows of the frontier in *source* to as many new directories as *targets* names, by host.

    *salt* is that of `shard_of`.
    Raises DamagedFileError where *source* cannot be read, and OutputError where a target cannot be made.
    """
    for part, target in zip(deal(load(source), len(targets), salt=salt), targets, strict=True):
        with explained(target, "made"):
            target.mkdir()
        _begin(part, target, index_rows=0, disk=disk)


def gather_frontiers(sources: Iterable[Path], target: Path, *, index_rows: int, disk: Disk) -> None:
    """Write the frontiers in *sources*, of distinct hosts, as one to *target*, an empty directory.

    It knows *index_rows* rows of the index, and says of the whole what the first says. Working files are
    in *target* meanwhile, so that the frontiers may be larger than memory. Raises like `deal_frontier`.
    """
    whole = PartitionState(directory=target, disk=disk)
    try:
        for part in map(load, sources):
            if not whole.meta:
                whole.partition_id, whole.created = part.partition_id, part.created
                whole.meta = dict(part.meta)
            _add(whole, part)
        with Copies(target, disk) as copies:
            partition = partition_at(whole, freeze(whole, hour=whole.created), copies=copies)
            _begin(partition, target, index_rows=index_rows, disk=disk)
    finally:
        whole.close()


def _add(whole: PartitionState, part: Partition) -> None:
    """Add rows and strings of *part* behind those of *whole*; what leads nowhere becomes 0."""
    strings, shift = memoryview(part.arena), np.uint64(len(whole.arena) - 1)
    # Nothing is at offset 0 of either.
    for at in range(1, len(strings), _PIECE):
        whole.arena.append(bytes(strings[at : at + _PIECE]))
    whole.arena.write_out()
    for table, columns, references in (
        (whole.rows, part.urls, URL_REFERENCES),
        (whole.hosts, part.hosts, HOST_REFERENCES),
    ):
        for at in range(0, len(columns["host_key"]), _ROWS):
            page = {name: column[at : at + _ROWS] for name, column in columns.items()}
            rows = np.empty(len(page["host_key"]), table.record)
            for name, values in page.items():
                rows[name] = values
            for name in references:
                leads = (page[name] != 0) & (page[name] < len(strings))
                rows[name] = np.where(leads, page[name] + shift, 0)
            table.extend(rows.tobytes())
        table.drop_pages()


def _begin(partition: Partition, directory: Path, *, index_rows: int, disk: Disk) -> None:
    """Make *partition* the first state of *directory*."""
    kept = {name: value for name, value in partition.meta if name != INDEX_ROWS}
    partition.meta = tuple(sorted({**kept, INDEX_ROWS: b"%d" % index_rows}.items()))
    write_partition(partition, directory / snapshot_name(1), options=OPTIONS, disk=disk)
    begin_with(directory, arena_length=len(partition.arena), disk=disk)
