"""Times of captures as numbers of fourteen digits: read from text, made from seconds, checked. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from amicrawl.report.rows import LEAP_DAY, MONTH_DAYS
from amicrawl.report.words import are_digits, numbers_of_eight, words_of

if TYPE_CHECKING:
    from amicrawl.report.texts import Texts
    from amicrawl.report.words import Flags, Numbers

_MOST_DAYS = 1 << 16
_DAYS_OF_MONTHS = np.zeros(10_000, np.bool_)
"""Which numbers of four digits are a month and a day of it."""
for _month, _days in enumerate(MONTH_DAYS, 1):
    _DAYS_OF_MONTHS[_month * 100 + 1 : _month * 100 + _days + 1] = True


def times_of(texts: Texts) -> tuple[Numbers, Flags]:
    """Return *texts* as numbers, and which of them are fourteen digits."""
    fit = texts.lengths == 14
    begins = np.where(fit, texts.begins, 0)
    words = words_of(texts.octets)
    date, rest = words[begins], words[begins + 6]
    fit &= are_digits(date) & are_digits(rest)
    dates, rests = numbers_of_eight(date), numbers_of_eight(rest)
    return dates * 10**6 + (rests - rests // 10**6 * 10**6), fit


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


def times_of_seconds(seconds: Numbers) -> Numbers:
    """Return Unix *seconds* as numbers of fourteen digits."""
    days, of_day = np.divmod(seconds, 86_400)
    if len(days) and days.min() >= 0 and days.max() - days.min() < _MOST_DAYS:
        # A crawl lasts some hundred days: their dates are worked out once each.
        begin = int(days.min())
        dates = _dates(np.arange(begin, int(days.max()) + 1))[days - begin]
    else:
        dates = _dates(days)
    minutes, second = np.divmod(of_day, 60)
    hour, minute = np.divmod(minutes, 60)
    times: Numbers = dates * 10**6 + hour * 10_000 + minute * 100 + second
    return times


def _dates(days: Numbers) -> Numbers:
    """Return days since 1970 as numbers of eight digits."""
    date = days.astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    months = month.astype(np.int64) + 1970 * 12
    day = (date - month.astype("datetime64[D]")).astype(np.int64) + 1
    digits: Numbers = months // 12 * 10_000 + (months % 12 + 1) * 100 + day
    return digits
