"""Lines joined with records while both go by in byte order, a window at a time.

What is decided so is what `join.py` decides with all records at hand. That takes two things: both sides
are in the order of key and second, so that what weaker ties decide is in one window; and what no record
in its window has, an identifier or a place, no record of another has, as it can be with the line of a
POST. Where either does not hold, NotInOrder is raised, once it is seen, and what was handed on is void.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from amicrawl.index.lines.blocks import Block
from amicrawl.index.merging.joining import Joining
from amicrawl.index.merging.side_table import Known
from amicrawl.index.merging.side_window import SideWindow
from amicrawl.index.merging.strays import Strays
from amicrawl.index.merging.windows import (
    MOST_RECORDS,
    NotInOrder,
    are_in_order,
    known_of,
    when_of,
    windows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from amicrawl.disk import Disk
    from amicrawl.index.merging.join import Counts
    from amicrawl.index.merging.outputs import Sink
    from amicrawl.index.merging.windows import Window


def join_in_order(
    blocks: Iterable[bytes],
    batches: Iterable[pa.RecordBatch],
    sink: Sink,
    counts: Counts,
    *,
    scratch: Path,
    disk: Disk,
    most_records: int = MOST_RECORDS,
) -> None:
    """Join lines, in *blocks*, with records, and hand them to *sink*; raises NotInOrder."""
    batches = iter(batches)
    first = next(batches, None)
    known = known_of(first) if first is not None else Known(ids=False, places=False)
    records = _checked(chain([first] if first is not None else [], batches), known)
    with Strays(scratch=scratch, disk=disk) as strays:
        joins = _Joins(sink, counts, known, strays, scratch=scratch, disk=disk)
        check = 1
        for number, window in enumerate(windows(blocks, records, most_records=most_records)):
            joins.add(window)
            # A few looks on the way: what is in vain is given up early.
            if number == check:
                check *= 4
                if strays.are_there():
                    raise NotInOrder
        if strays.are_there():
            raise NotInOrder


class _Joins:
    """Windows, each joined for itself."""

    def __init__(
        self, sink: Sink, counts: Counts, known: Known, strays: Strays, *, scratch: Path, disk: Disk
    ) -> None:
        self._sink = sink
        self._counts = counts
        self._known = known
        self._strays = strays
        self._scratch = scratch
        self._disk = disk
        self._last = b""

    def add(self, window: Window) -> None:
        """Join the lines of *window* with its records."""
        table = SideWindow(window.records, known=self._known)
        with Joining(table, self._sink, self._counts, scratch=self._scratch, disk=self._disk) as joining:
            if window.lines:
                block = Block(window.lines)
                if not are_in_order(block, self._last):
                    raise NotInOrder
                self._last = when_of(block.line(block.lines - 1))
                table.seek(joining.add_block(block))
            joining.finish()
        self._strays.add(table.sought, table.ties)


def _checked(batches: Iterable[pa.RecordBatch], known: Known) -> Iterator[pa.RecordBatch]:
    """Yield *batches* while their records are known by nothing but what the first are *known* by."""
    for batch in batches:
        its = known_of(batch)
        if (its.ids and not known.ids) or (its.places and not known.places):
            raise NotInOrder
        yield batch
