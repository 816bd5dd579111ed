"""Frontiers of finished crawls whose captures have become older."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.disk import Disk
from amicrawl.meguri import LivePartition

if TYPE_CHECKING:
    from pathlib import Path


def grow_old(out: Path, *, hours: int) -> None:
    """Have every row of the frontier of the crawl in *out* be settled that many hours earlier."""
    partition = LivePartition(out / "frontier", disk=Disk(), hour=500_000, meta={})
    for number in range(len(partition.state.rows)):
        row = partition.get(number)
        # That of a row that was never captured says when it was settled.
        names = ("first_seen", "last_crawled", "next_due")
        fields = {name: max(0, getattr(row, name) - hours) for name in names}
        partition.put(number, row._replace(**fields))
    partition.close(500_000)
