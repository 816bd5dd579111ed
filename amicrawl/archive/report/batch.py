"""Batches: some thousand captures of an index as an Arrow record batch, which is what is counted. Pure.

key, url, digest, mime   binary; null or empty where there is none, also a hyphen but for keys
time                     int64, fourteen digits
status, size             int64, -1 where the input has none
any of `FACETS`          binary or string, null where there is none
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.archive.arrow_texts import numbers_from, numbers_of, octets_from, truths, whole_numbers
from amicrawl.archive.report.rows import LEAP_DAY, MONTH_DAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from amicrawl.archive.arrow_texts import Spans
    from amicrawl.archive.report.rows import Row

    Numbers = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]


_DAYS_OF_MONTHS = np.zeros(10_000, np.bool_)
"""Which numbers of four digits are a month and a day of it."""
for _month, _days in enumerate(MONTH_DAYS, 1):
    _DAYS_OF_MONTHS[_month * 100 + 1 : _month * 100 + _days + 1] = True
_PARTS = (pc.year, pc.month, pc.day, pc.hour, pc.minute, pc.second)


def are_dates(times: Numbers) -> Flags:
    """Return which numbers of fourteen digits are a day of the calendar and a second of it."""
    dates = times // 10**6
    years = dates // 10_000
    days = dates - years * 10_000
    seconds = times - dates * 10**6
    fit: Flags = _DAYS_OF_MONTHS[days]
    fit = fit & (years > 0) & (seconds < 240000) & (seconds % 10**4 < 6000) & (seconds % 100 < 60)
    if (leap := days == LEAP_DAY).any():
        fit &= ~leap | (years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0))
    return fit


def digits_of(moments: Any) -> Numbers:
    """Return *moments*, Arrow timestamps or Unix seconds, as fourteen digits; a null is any number.

    One in a year that four digits cannot say is 0.
    """
    unit: Any = moments.type.unit if pa.types.is_timestamp(moments.type) else "s"
    # Without the time zone, which is UTC in Parquet, Arrow needs no database of zones.
    plain = moments.cast(pa.timestamp(unit))
    digits = np.zeros(len(plain), np.int64)
    for part in _PARTS:
        digits = digits * 100 + numbers_of(part(plain))
    years = numbers_of(pc.year(plain))
    return np.where((years > 0) & (years < 10_000), digits, 0)


_HYPHEN = ord("-")


class Lines(NamedTuple):
    """What some lines of an index hold."""

    batch: pa.RecordBatch
    skipped: Counter[str]
    """Lines that are not captures, by reason."""


def batch_of(columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Return *columns*, Arrow arrays or arrays of numbers, as a batch."""
    arrays = [numbers_from(one) if isinstance(one, np.ndarray) else one for one in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def batch_of_rows(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return *rows* as a batch."""
    facets = sorted({name for row in rows for name in row.facets})
    return batch_of(
        {
            "key": octets_from([row.key for row in rows]),
            "time": np.array([row.time for row in rows], np.int64),
            "mime": octets_from([row.mime for row in rows]),
            "status": np.array([row.status for row in rows], np.int64),
            "size": np.array([row.size for row in rows], np.int64),
            "url": octets_from([row.url for row in rows]),
            "digest": octets_from([row.digest for row in rows]),
            **{name: octets_from([row.facets.get(name) for row in rows]) for name in facets},
        }
    )


class Ruled(NamedTuple):
    """The lines of a block, and what was read of those that have the usual form."""

    lines: Sequence[tuple[int, bytes]]
    """The other lines, with their numbers."""
    batch: pa.RecordBatch | None
    numbers: Numbers
    """Of the lines in `batch`."""


def with_odd_lines(ruled: Ruled, row_of: Callable[[bytes], Row]) -> Lines:
    """Return the captures of a block in the order of its lines; *row_of* reads one odd line."""
    at: list[int] = []
    rows: list[Row] = []
    skipped: Counter[str] = Counter()
    for number, line in ruled.lines:
        try:
            rows.append(row_of(line))
        except ValueError as error:
            skipped[str(error)] += 1
        else:
            at.append(number)
    others = batch_of_rows(rows)
    if ruled.batch is None or not rows:
        return Lines(ruled.batch or others, skipped)
    order = np.argsort(np.concatenate([ruled.numbers, np.array(at, np.int64)]), kind="stable")
    both = pa.concat_tables(
        [pa.Table.from_batches([one]) for one in (ruled.batch, others)], promote_options="default"
    )
    return Lines(both.take(numbers_from(order)).combine_chunks().to_batches()[0], skipped)


def chosen(values: Any, rows: Flags) -> Any:
    """Return the *rows* of *values*, a batch or a column."""
    return values if rows.all() else values.take(numbers_from(np.flatnonzero(rows)))


def have_hosts(key: Any) -> Flags:
    """Return which keys have a host: something before a closing parenthesis."""
    found: Flags = numbers_of(pc.find_substring(key, ")")) > 0
    return found


def are_uniform(key: Any) -> Flags:
    """Return which keys surely are in SURT form: those with a host, and those of DNS records."""
    fit = have_hosts(key)
    return fit if fit.all() else fit | truths(pc.starts_with(key, "dns:"))


def are_hyphens(spans: Spans) -> Flags:
    """Return which of *spans*, each followed by another octet, is a hyphen."""
    hyphens: Flags = (spans.lengths == 1) & (spans.octets.view[spans.starts] == _HYPHEN)
    return hyphens


def numbers_in(spans: Spans, *, longest: int) -> tuple[Numbers, Flags]:
    """Return *spans* as numbers, -1 for a hyphen or nothing, and which of them are one.

    A number is decimal digits only, at most *longest* of them, which may be 16.
    """
    numbers, fit = whole_numbers(spans)
    unknown = are_hyphens(spans) | (spans.lengths == 0)
    return np.where(unknown, -1, numbers), unknown | (fit & (spans.lengths <= longest))


def statuses_in(spans: Spans) -> tuple[Numbers, Flags]:
    """Return *spans* as HTTP statuses, -1 for a hyphen or nothing, and which of them are one."""
    status, fit = numbers_in(spans, longest=3)
    return status, fit & ((status < 0) | (spans.lengths == 3))
