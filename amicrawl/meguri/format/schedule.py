"""Schedule region: the rows that are to be fetched again, in buckets by when.

    u32 base | u32 covered rows | uvarint 283 | 283 uvarints: rows of each bucket | row numbers

Hours after the base (the earliest `next_due` of the file) fall into buckets of an hour for a week, of a
day for 90 days, of 30 days for two years, and the rest into a last one. A bucket lists its rows in
ascending order, each as a uvarint distance from the one before, the first from 0. Every row with a
`next_due` is in it, whatever its status.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.varints import (
    LONGEST,
    decode_uvarints,
    encode_uvarints,
    read_uvarint,
    write_uvarint,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BUCKETS: Final = 283

_HEAD: Final = struct.Struct("<II")
_ROWS_AT_ONCE: Final = 1 << 16


def bucket_starts() -> np.ndarray:
    """Return the hours after the base at which each of the 283 buckets begins, as uint32."""
    hours = np.arange(168)
    days = 168 + 24 * np.arange(90)
    months = 2328 + 720 * np.arange(24)
    return np.concatenate((hours, days, months, [19608])).astype(np.uint32)


_STARTS: Final = bucket_starts()
_OVERFLOW: Final = int(_STARTS[-1])
_BUCKET_OF_HOUR: Final = np.repeat(
    np.arange(BUCKETS, dtype=np.uint16), np.diff(np.append(_STARTS, _OVERFLOW + 1))
)


def bucket_of(offsets: np.ndarray) -> np.ndarray:
    """Return the bucket of each of *offsets*, unsigned hours after the base, as uint16."""
    buckets: np.ndarray = _BUCKET_OF_HOUR.take(np.minimum(offsets, _OVERFLOW))
    return buckets


class Schedule(NamedTuple):
    """The rows of each bucket."""

    base: int
    """Hours since 1970."""
    covered: int
    """Rows of the URL table."""
    buckets: list[np.ndarray]
    """283 arrays of row numbers, each ascending."""

    def candidates(self, at: int) -> np.ndarray:
        """Return the rows of all buckets that begin at hour *at* or before, bucket by bucket."""
        if at < self.base:
            return np.empty(0, np.int64)
        begun = int(np.searchsorted(_STARTS, at - self.base, side="right"))
        return np.concatenate(self.buckets[:begun]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class PlannedSchedule:
    """A schedule that is about to be written."""

    base: int
    covered: int
    counts: np.ndarray
    rows: np.ndarray
    """Row numbers by bucket, ascending in each, as uint32: four bytes for each row that is scheduled."""

    def blocks(self) -> Iterator[bytes]:
        """Yield the payload of the region's page, piece by piece."""
        head = _HEAD.pack(self.base, self.covered) + write_uvarint(BUCKETS)
        yield head + encode_uvarints(self.counts.astype(np.uint64))
        starts = np.cumsum(self.counts)[:-1]
        for first in range(0, len(self.rows), _ROWS_AT_ONCE):
            rows = self.rows[first : first + _ROWS_AT_ONCE].astype(np.uint64)
            before = np.empty_like(rows)
            before[0] = self.rows[first - 1] if first else 0
            before[1:] = rows[:-1]
            inside = starts[(starts >= first) & (starts < first + len(rows))]
            before[inside - first] = 0
            yield encode_uvarints(rows - before)


def plan_schedule(
    pages: Callable[[], Iterable[tuple[int, np.ndarray]]], *, base: int, covered: int
) -> PlannedSchedule:
    """Sort rows into buckets; *pages* begins anew the pages of `next_due`, each with its first row."""
    counts = np.zeros(BUCKETS, np.int64)
    for _, due in pages():
        counts += np.bincount(bucket_of(due[due != 0] - due.dtype.type(base)), minlength=BUCKETS)
    rows = np.empty(int(counts.sum()), np.uint32)
    free = np.cumsum(counts) - counts
    for first, due in pages():
        found = np.flatnonzero(due)
        buckets = bucket_of(due[found] - due.dtype.type(base))
        order = np.argsort(buckets, kind="stable")
        here = np.bincount(buckets, minlength=BUCKETS)
        starts = np.cumsum(here) - here
        buckets = buckets[order]
        rows[free[buckets] + np.arange(len(buckets)) - starts[buckets]] = found[order] + first
        free += here
    return PlannedSchedule(base, covered, counts, rows)


def most_schedule_bytes(rows: int) -> int:
    """Return how long the payload can be for a table of *rows*."""
    return _HEAD.size + LONGEST * (1 + BUCKETS) + 5 * rows


def decode_schedule(payload: bytes, *, rows: int) -> Schedule:
    """Return the schedule of a table of *rows*; Malformed for anything else.

    Each row is in one bucket at most by the count of all, and the rows of a bucket ascend; that they
    are the right ones is for `verify` to say, which knows the times.
    """
    if len(payload) < _HEAD.size:
        raise Malformed("too short for a schedule")
    base, covered = _HEAD.unpack_from(payload)
    if covered != rows:
        raise Malformed(f"made for {covered} rows instead of {rows}", at=4)
    buckets, at = read_uvarint(payload, _HEAD.size)
    if buckets != BUCKETS:
        raise Malformed(f"{buckets} buckets instead of {BUCKETS}", at=_HEAD.size)
    counts, used = decode_uvarints(payload, BUCKETS, at=at)
    at += used
    # One by one, since a sum of hostile counts would wrap around.
    if any(int(count) > rows for count in counts) or int(counts.sum()) > rows:
        raise Malformed(f"more than {rows} rows in the buckets", at=at - used)
    total = int(counts.sum())
    distances, used = decode_uvarints(payload, total, at=at)
    if at + used != len(payload):
        raise Malformed(f"{len(payload) - at - used} bytes too many", at=at + used)
    if total and int(distances.max()) >= rows:
        raise Malformed(f"a row past the {rows} of the table", at=at)
    return Schedule(base, covered, _rows_of(distances, counts.astype(np.int64), rows, at))


def _rows_of(distances: np.ndarray, counts: np.ndarray, rows: int, at: int) -> list[np.ndarray]:
    buckets = []
    end = 0
    for count in counts.tolist():
        begin, end = end, end + count
        steps = distances[begin:end]
        if count > 1 and int(steps[1:].min()) == 0:
            raise Malformed("a row twice in a bucket", at=at)
        # Each distance and their count are below 2^32, so the sums fit 64 bits.
        numbers = np.cumsum(steps)
        if count and int(numbers[-1]) >= rows:
            raise Malformed(f"a row past the {rows} of the table", at=at)
        buckets.append(numbers)
    return buckets


class ScheduleCheck:
    """Compares a schedule with the times it was made from, page by page."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._bucket_of_row = np.full(schedule.covered, BUCKETS, np.uint16)
        self._twice = False
        for number, rows in enumerate(schedule.buckets):
            self._twice |= bool((self._bucket_of_row[rows] != BUCKETS).any())
            self._bucket_of_row[rows] = number

    def add(self, first_row: int, due: np.ndarray) -> None:
        """Compare a page of `next_due`; Malformed where a row is in a wrong bucket, or none, or two."""
        base = due.dtype.type(self._schedule.base)
        scheduled = due != 0
        wanted = np.where(scheduled, bucket_of(due - base), np.uint16(BUCKETS))
        early = scheduled & (due < base)
        wrong = (wanted != self._bucket_of_row[first_row : first_row + len(due)]) | early
        if self._twice or wrong.any():
            row = first_row + int(wrong.argmax())
            raise Malformed(f"row {row} is not in the bucket of its time")
