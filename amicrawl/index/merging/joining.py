"""Lines through the records of sidecars: most are decided at once, others when all have been seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from amicrawl.index.lines.blocks import Block
from amicrawl.index.merging.block_join import joined
from amicrawl.index.merging.join import Join
from amicrawl.index.merging.outputs import Undecided
from amicrawl.index.merging.side_table import rows_as_sides

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from amicrawl.disk import Disk
    from amicrawl.index.merging.join import MergeCounts
    from amicrawl.index.merging.outputs import Sink
    from amicrawl.index.merging.side_table import SideTable

_MOST_SECONDS = 100_000
"""Timestamps of undecided lines that are held; beyond, the rules are given all records."""
_NONE = np.empty(0, np.int64)


class Joining:
    """The records of some sidecars, and the way of lines through them to a sink."""

    def __init__(
        self,
        table: SideTable,
        sink: Sink,
        counts: MergeCounts,
        *,
        by_key_only: bool = False,
        scratch: Path,
        disk: Disk,
    ) -> None:
        self._table = table
        self._counts = counts
        self._undecided = Undecided(sink, scratch=scratch, disk=disk)
        self._seconds: set[bytes] = set()
        # merge_cdxj's rule writes every object anew, so each line has to be parsed.
        self._by_key = Join(rows_as_sides(table.rows), counts, by_key_only=True) if by_key_only else None
        counts.records += len(self._table)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undecided.close()

    def add(self, octets: bytes) -> None:
        """Take lines, each ended by LF."""
        if self._by_key is not None:
            lines = octets.split(b"\n")[:-1]
            self._undecided.add(b"\n".join([*self._by_key.decided(lambda: lines), b""]), _NONE)
            return
        block = Block(octets)
        found = joined(block, self._table, self._counts)
        self._undecided.add(found.octets, found.places)
        for number in found.left.tolist():
            if len(self._seconds) <= _MOST_SECONDS:
                self._seconds.update(part[:14] for part in block.line(number).split(b" ", 2)[1:2])

    def end_file(self) -> None:
        """Take what follows for the next file's."""
        self._undecided.end_file()

    def finish(self) -> None:
        """Decide what is left, and count the records that no line got anything from."""
        if self._by_key is not None:
            self._counts.records_unused += self._by_key.used.count(0)
            return
        if self._undecided.are_there:
            seconds = self._seconds if len(self._seconds) <= _MOST_SECONDS else None
            rows, numbers = self._table.of_seconds(seconds)
            used = self._table.used[numbers].tobytes()
            join = Join(rows_as_sides(rows), self._counts, used=used)
            self._undecided.replace(join.decided(self._undecided.lines))
            self._table.used[numbers] = np.frombuffer(join.used, np.uint8)
        self._counts.records_unused += int(np.count_nonzero(self._table.used == 0))
