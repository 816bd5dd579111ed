"""The due wheel: rows by the hour at which they are due.

Each row comes out once, in non-decreasing order of hours and, within an hour, in the order in which it
was put in. A row that is due before the hour which the wheel has reached is due in that hour. Rows
cannot be taken out: the caller that fires the wheel checks whether a row is still to be visited.

A row costs 4 bytes, a little over for growth, in an array that belongs to its hour; the hours that have
rows are a heap. A ring of slots with a heap of far-off rows behind it would behave alike, but the rows
of a year are mostly far off, and a heap of them is objects: some 100 bytes a row. Only what is due more
than seven years ahead lies aside, with its hour, in 8 bytes a row: otherwise a file full of hours
that are all different would be millions of arrays.
"""

from __future__ import annotations

from array import array
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.uint32]

# An hour within reach, counted from the one reached, fits 16 bits, which are sorted ten times as fast.
_REACH = 65_536
_PAGE = 262_144
"""Rows filed at a time: sorting them takes some milliseconds."""
_EMPTY: Numbers = np.empty(0, np.uint32)


class DueWheel:
    """Row numbers (32 bits) by hours since 1970 (32 bits)."""

    __slots__ = (
        "_beyond_hours",
        "_beyond_rows",
        "_count",
        "_cursor",
        "_edge",
        "_hours",
        "_slots",
    )

    def __init__(self, hour: int = 0) -> None:
        self._cursor = hour
        # Every row due before the edge is in a slot, every other one beyond; the edge is never more
        # than `_REACH` past the cursor.
        self._edge = hour + _REACH
        self._slots: dict[int, array[int]] = {}
        self._hours: list[int] = []
        self._beyond_rows: array[int] = array("I")
        self._beyond_hours: array[int] = array("I")
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, row: int, hour: int) -> None:
        """Put *row* in, due at *hour*."""
        if hour >= self._edge:
            self._beyond_rows.append(row)
            self._beyond_hours.append(hour)
        else:
            self._slot(max(hour, self._cursor)).append(row)
        self._count += 1

    def add_many(self, rows: Numbers, hours: Numbers) -> None:
        """Put each of *rows* in, due at the hour that stands at its place in *hours*."""
        for start in range(0, len(rows), _PAGE):
            page = slice(start, start + _PAGE)
            self._add_page(np.asarray(rows[page], np.uint32), np.asarray(hours[page], np.uint32))
        self._count += len(rows)

    def fire(self, now: int) -> Numbers:
        """Take out the rows that are due at the hour *now* or before, in order."""
        fired = []
        while self._hours and self._hours[0] <= now:
            slot = self._slots.pop(heappop(self._hours))
            fired.append(np.frombuffer(slot, np.uint32))
        self._cursor = max(self._cursor, now + 1)
        if self._cursor >= self._edge:
            fired.append(self._move_edge(now))
        rows = np.concatenate(fired) if fired else _EMPTY
        self._count -= len(rows)
        return rows

    def _slot(self, hour: int) -> array[int]:
        slot = self._slots.get(hour)
        if slot is None:
            slot = self._slots[hour] = array("I")
            heappush(self._hours, hour)
        return slot

    def _add_page(self, rows: Numbers, hours: Numbers) -> None:
        beyond = hours.astype(np.int64) >= self._edge
        if beyond.any():
            self._beyond_rows.frombytes(rows[beyond].tobytes())
            self._beyond_hours.frombytes(hours[beyond].tobytes())
            rows, hours = rows[~beyond], hours[~beyond]
        if not len(rows):
            return
        # Sorted stably, so that rows of one hour stay in the order in which they came.
        offsets = np.maximum(hours.astype(np.int64) - self._cursor, 0).astype(np.uint16)
        order = np.argsort(offsets, kind="stable")
        offsets, rows = offsets[order], rows[order]
        starts = np.flatnonzero(np.diff(offsets, prepend=offsets[0])).tolist()
        starts.insert(0, 0)
        firsts = offsets[starts].tolist()
        octets = memoryview(rows.tobytes())
        for offset, start, end in zip(firsts, starts, [*starts[1:], len(rows)], strict=True):
            self._slot(self._cursor + offset).frombytes(octets[4 * start : 4 * end])

    def _move_edge(self, now: int) -> Numbers:
        """Move the edge ahead of *now*, and return the rows from beyond it that are due by then."""
        rows = np.array(self._beyond_rows, np.uint32)
        hours = np.array(self._beyond_hours, np.uint32)
        self._beyond_rows, self._beyond_hours = array("I"), array("I")
        self._edge = self._cursor + _REACH
        due = hours <= now
        for start in range(0, len(rows), _PAGE):
            page = slice(start, start + _PAGE)
            kept = ~due[page]
            self._add_page(rows[page][kept], hours[page][kept])
        order = np.argsort(hours[due], kind="stable")
        return np.asarray(rows[due][order])
