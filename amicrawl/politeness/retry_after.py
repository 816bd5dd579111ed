"""Retry-After: how long a server asks to be left alone (RFC 9110, section 10.2.3).

Read strictly: a number of seconds in digits, or one of the three forms of a date that HTTP knows
(section 5.6.7). Anything else names no moment and is ignored; an exaggerated one is cut to what the
caller bears. The caller decides with which statuses the field counts.
"""

from __future__ import annotations

import re
from calendar import timegm
from datetime import UTC, datetime

_LONGEST_VALUE = 64
"""Octets; the longest date has 33."""
_DIGITS = re.compile(rb"[0-9]+")
_DAYS = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LONG_DAYS = rb"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = rb"(?P<month>[A-Z][a-z]{2})"
_TIME = rb"(?P<hour>[0-2][0-9]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9]|60)"
_ZONE = rb"(?:GMT|UTC)"
_FORMS = (
    # IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
    re.compile(
        _DAYS + rb", (?P<day>[0-9]{2}) " + _MONTH + rb" (?P<year>[0-9]{4}) " + _TIME + b" " + _ZONE
    ),
    # RFC 850: Sunday, 06-Nov-94 08:49:37 GMT
    re.compile(
        _LONG_DAYS + rb", (?P<day>[0-9]{2})-" + _MONTH + rb"-(?P<year>[0-9]{2}) " + _TIME + b" " + _ZONE
    ),
    # asctime: Sun Nov  6 08:49:37 1994
    re.compile(_DAYS + b" " + _MONTH + rb" (?P<day>[0-9 ][0-9]) " + _TIME + rb" (?P<year>[0-9]{4})"),
)
_MONTHS = (
    b"Jan",
    b"Feb",
    b"Mar",
    b"Apr",
    b"May",
    b"Jun",
    b"Jul",
    b"Aug",
    b"Sep",
    b"Oct",
    b"Nov",
    b"Dec",
)


def retry_after_seconds(value: bytes | str, *, now: float, cap: float) -> float:
    """Return how many seconds from *now* on *value* asks for; 0 where it asks for none, *cap* at most.

    *now* is in Unix seconds: a date is measured against our clock, not the server's. A moment that has
    passed, a sign, a fraction, a list, another zone than GMT, and whatever is longer than any date are
    no wait.
    """
    text = value.encode("utf-8", "replace") if isinstance(value, str) else value
    if len(text) > _LONGEST_VALUE:
        return 0.0
    text = text.strip(b" \t")
    if _DIGITS.fullmatch(text):
        return min(float(int(text)), cap)
    for form in _FORMS:
        match = form.fullmatch(text)
        if match is not None:
            moment = _unix(match.groupdict(), now)
            return 0.0 if moment is None else min(max(moment - now, 0.0), cap)
    return 0.0


def _unix(fields: dict[str, bytes], now: float) -> int | None:
    """Return the Unix seconds of a date, or None where the calendar has no such day or hour."""
    if fields["month"] not in _MONTHS:
        return None
    year, month = int(fields["year"]), _MONTHS.index(fields["month"]) + 1
    if len(fields["year"]) == 2:
        year = _full_year(year, now)
    try:
        minute = datetime(
            year, month, int(fields["day"]), int(fields["hour"]), int(fields["minute"]), tzinfo=UTC
        )
    except ValueError:
        return None
    # A leap second has no datetime; it is the first second of the next minute.
    return timegm(minute.timetuple()) + int(fields["second"])


def _full_year(two_digits: int, now: float) -> int:
    """Return the latest year with these digits that is not more than fifty years ahead."""
    latest = datetime.fromtimestamp(now, tz=UTC).year + 50
    return latest - (latest - two_digits) % 100
