"""Lines through the records of sidecars: most are decided at once, others when all have been seen."""

from __future__ import annotations

import heapq
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.index.lines.blocks import Block
from amicrawl.index.merging.block_join import joined
from amicrawl.index.merging.join import Join
from amicrawl.index.merging.outputs import Gaps
from amicrawl.index.merging.side_table import rows_as_sides
from amicrawl.index.merging.spill import Spill, number_and_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

    from amicrawl.disk import Disk
    from amicrawl.index.merging.join import Counts
    from amicrawl.index.merging.outputs import Sink
    from amicrawl.index.merging.side_table import SideTable
    from amicrawl.index.merging.sides import Side

_MOST_SECONDS = 100_000
"""Seconds of lines that wait; beyond, all records are looked at for them."""


class Joining:
    """The records of some sidecars, and the way of lines through them to a sink."""

    def __init__(
        self,
        table: SideTable,
        sink: Sink,
        counts: Counts,
        *,
        by_key_only: bool = False,
        scratch: Path,
        disk: Disk,
    ) -> None:
        self._table = table
        self._counts = counts
        self._scratch = scratch
        self._disk = disk
        self._gaps = Gaps(sink, scratch=scratch, disk=disk)
        self._left = Spill(scratch, disk=disk)
        self._seconds: set[bytes] = set()
        # The rule of merge_cdxj writes every object anew, so that there is no way around reading each.
        self._by_key = Join(self._sides(), counts, by_key_only=True) if by_key_only else None
        counts.records += len(self._table)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._gaps.close()
        self._left.close()

    def add(self, octets: bytes) -> None:
        """Take lines, each ended by LF."""
        if self._by_key is not None:
            lines = [self._by_key.merged(line) or b"" for line in octets.split(b"\n")[:-1]]
            self._gaps.add(b"\n".join([*lines, b""]), np.empty(0, np.int64))
            return
        self.add_block(Block(octets))

    def add_block(self, block: Block) -> list[bytes]:
        """Take the lines of *block*, by all ties, and return those that are left for later."""
        found = joined(block, self._table, self._counts)
        self._gaps.add(found.octets, found.places)
        for line in found.left:
            self._left.add(line)
            if len(self._seconds) <= _MOST_SECONDS:
                self._seconds.update(second[:14] for second in line.split(b" ", 2)[1:2])
        return found.left

    def end_file(self) -> None:
        """Take what follows for the next file's."""
        self._gaps.end_file()

    def finish(self) -> None:
        """Decide what is left, and count the records that no line got anything from."""
        if self._by_key is not None:
            self._counts.records_unused += self._by_key.used.count(0)
            return
        if self._left.count:
            seconds = self._seconds if len(self._seconds) <= _MOST_SECONDS else None
            rows, numbers = self._table.of_seconds(seconds)
            used = self._table.used[numbers].tobytes()
            join = Join(rows_as_sides(rows), self._counts, used=used)
            with ExitStack() as stack:
                self._gaps.fill(self._decided(join, stack))
            self._table.used[numbers] = np.frombuffer(join.used, np.uint8)
        self._counts.records_unused += int(np.count_nonzero(self._table.used == 0))

    def _sides(self) -> Iterator[Side]:
        return rows_as_sides(self._table.rows)

    def _decided(self, join: Join, stack: ExitStack) -> Iterator[bytes]:
        """Yield the lines that are left, in order, each with what belongs to it."""
        done, waiting = (self._spill(stack) for _ in range(2))
        for number, line in enumerate(self._left.lines()):
            merged = join.merged(line)
            (waiting if merged is None else done).add_numbered(
                number, line if merged is None else merged
            )
        runs = [map(number_and_line, done.lines()), *self._later(join, waiting, stack)]
        for _, line in heapq.merge(*runs):
            yield line

    def _later(self, join: Join, waiting: Spill, stack: ExitStack) -> list[Iterator[tuple[int, bytes]]]:
        """Return the lines that had to wait, each with what belongs to it, in runs by number."""
        if not join.has_digests:
            return [_asked_again(join, waiting)]
        done, waiting_still = (self._spill(stack) for _ in range(2))
        for number, line in map(number_and_line, waiting.lines()):
            merged = join.merged_later(line, by_digest=True)
            (waiting_still if merged is None else done).add_numbered(
                number, line if merged is None else merged
            )
        return [map(number_and_line, done.lines()), _asked_again(join, waiting_still)]

    def _spill(self, stack: ExitStack) -> Spill:
        return stack.enter_context(closing(Spill(self._scratch, disk=self._disk)))


def _asked_again(join: Join, waiting: Spill) -> Iterator[tuple[int, bytes]]:
    for number, line in map(number_and_line, waiting.lines()):
        merged = join.merged_later(line, by_digest=False)
        assert merged is not None
        yield number, merged
