"""The lines of many files as one stream in byte order, in bounded memory.

Files are looked through once before: most are in order already, and those of a sharded index follow each
other, so that nothing has to be sorted or merged at all. What is not in order is sorted outside memory,
what overlaps is merged. In byte order a line comes by key, then by timestamp, as long as no key holds an
octet below the space that ends it; a survey says whether one does.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain, islice, pairwise, starmap
from operator import le
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from amicrawl.errors import DamagedFileError
from amicrawl.index.lines.line_reader import BLOCK_BYTES, line_blocks
from amicrawl.index.lines.sorting import external_sort

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SORTING_MEMORY = 128 << 20
"""Bytes of lines that sorting holds at a time."""
MOST_MERGED = 64
"""Files that are read side by side."""
BATCH_LINES = 16_384
_MERGED_BLOCK = 1 << 20

_SPACE = 0x20


class Survey(NamedTuple):
    """What a first look at a file said."""

    path: Path
    lines: int
    first: bytes
    last: bytes
    in_order: bool
    odd: bool
    """Whether an octet below the space is in a key."""
    damage: DamagedFileError | None
    """What ends the file before its end."""


def surveyed(path: Path) -> Survey:
    """Return what the file *path* holds; InputError where it cannot be read."""
    count, first, last, in_order, odd, damage = 0, b"", b"", True, False, None
    try:
        for block in line_blocks(path):
            first = first if count else block[0]
            in_order = in_order and block[0] >= last and all(starmap(le, pairwise(block)))
            # A line has such octets in its key or not at all: in JSON they are escaped.
            odd = odd or bool((np.frombuffer(b" ".join(block), np.uint8) < _SPACE).any())
            last = block[-1]
            count += len(block)
    except DamagedFileError as error:
        damage = error
    return Survey(path, count, first, last, in_order, odd, damage)


def batches_in_order(
    surveys: Sequence[Survey], *, scratch: Path, memory: int = SORTING_MEMORY
) -> Iterator[list[bytes]]:
    """Yield all lines of the files in *surveys* in byte order, some thousand at a time."""
    files = sorted((survey for survey in surveys if survey.lines), key=lambda survey: survey.first)
    in_order = all(survey.in_order for survey in files)
    if in_order and all(one.last <= following.first for one, following in pairwise(files)):
        yield from chain.from_iterable(whole_blocks(survey.path) for survey in files)
    elif in_order and len(files) <= MOST_MERGED:
        yield from _merged([whole_blocks(survey.path, block_bytes=_MERGED_BLOCK) for survey in files])
    else:
        lines = (
            line + b"\n" for survey in files for block in whole_blocks(survey.path) for line in block
        )
        in_turn = iter(external_sort(lines, memory=memory, scratch=scratch))
        while batch := list(islice(in_turn, BATCH_LINES)):
            yield [line[:-1] for line in batch]


def whole_blocks(path: Path, *, block_bytes: int = BLOCK_BYTES) -> Iterator[list[bytes]]:
    """Yield the lines of *path* that can be read; that and where it is damaged, its survey has told."""
    try:
        yield from line_blocks(path, block_bytes=block_bytes)
    except DamagedFileError:
        return


class _Held:
    """The lines of one file that are in memory."""

    def __init__(self, blocks: Iterator[list[bytes]]) -> None:
        self.lines: list[bytes] = []
        self._blocks = blocks

    def has_lines(self) -> bool:
        """Tell whether there are lines left, and have some of them."""
        if not self.lines:
            self.lines = next(self._blocks, [])
        return bool(self.lines)

    def up_to(self, line: bytes) -> list[bytes]:
        """Take the lines that are not greater than *line*."""
        end = bisect_right(self.lines, line)
        taken, self.lines = self.lines[:end], self.lines[end:]
        return taken


def _merged(files: Sequence[Iterator[list[bytes]]]) -> Iterator[list[bytes]]:
    """Yield the lines of *files*, each in order, in order.

    What is not greater than the last line that every file has at hand can go: what is still to be read
    is not smaller. Sorting it costs little, since it is a few runs in a row.
    """
    held = [_Held(blocks) for blocks in files]
    while held := [file for file in held if file.has_lines()]:
        least = min(file.lines[-1] for file in held)
        taken = [line for file in held for line in file.up_to(least)]
        taken.sort()
        yield taken
