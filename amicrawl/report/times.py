"""Times as numbers of fourteen digits, a column at a time. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.index.lines.arrow_texts import numbers_of
from amicrawl.report.rows import LEAP_DAY, MONTH_DAYS

if TYPE_CHECKING:
    from amicrawl.report.batch import Flags, Numbers

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
    """Return *moments*, Arrow timestamps or Unix seconds, as fourteen digits; a null is any number."""
    unit: Any = moments.type.unit if pa.types.is_timestamp(moments.type) else "s"
    # Without the time zone, which is UTC in Parquet, Arrow needs no database of zones.
    plain = moments.cast(pa.timestamp(unit))
    digits = np.zeros(len(plain), np.int64)
    for part in _PARTS:
        digits = digits * 100 + numbers_of(part(plain))
    return digits
