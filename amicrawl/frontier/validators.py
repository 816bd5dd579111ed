"""Validators of a page as the frontier keeps them: Last-Modified in hours.

An entity tag is kept as it was sent, and needs no rule.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_DAYS = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LONG_DAYS = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = "(?P<month>[A-Z][a-z]{2})"
_TIME = r"(?P<hour>[0-2][0-9]):(?P<minute>[0-5][0-9]):(?:[0-5][0-9]|60)"
_ZONE = "(?:GMT|UTC|(?P<sign>[+-])(?P<zone_hours>[0-9]{2})(?P<zone_minutes>[0-5][0-9]))"
_FORMS = (
    # IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
    re.compile(rf"{_DAYS}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} {_ZONE}"),
    # RFC 850: Sunday, 06-Nov-94 08:49:37 GMT
    re.compile(rf"{_LONG_DAYS}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} {_ZONE}"),
    # asctime: Sun Nov  6 08:49:37 1994
    re.compile(rf"{_DAYS} {_MONTH} (?P<day>[0-9 ][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)


def hours_of_http_date(text: str) -> int:
    """Return the hours since 1970 of *text*, the value of Last-Modified; 0 where it names no moment.

    The three forms of RFC 9110, section 5.6.7, are read. The day of the week may be the wrong one, as
    the date counts, and a numeric zone may stand for GMT. A year of two digits is one from 1969 to 2068.
    A zone of another name is not guessed at; what lies before 1970 cannot be told from no date at all.
    """
    for form in _FORMS:
        match = form.fullmatch(text)
        if match is not None:
            return _hours(match.groupdict())
    return 0


def _hours(fields: dict[str, str]) -> int:
    year = int(fields["year"])
    if len(fields["year"]) == 2:
        year += 1900 if year >= 69 else 2000
    zone = timedelta()
    if fields.get("sign"):
        zone = timedelta(hours=int(fields["zone_hours"]), minutes=int(fields["zone_minutes"]))
        zone = -zone if fields["sign"] == "-" else zone
    try:
        month = _MONTHS.index(fields["month"]) + 1
        # Seconds do not matter for the hour, and a leap second has no datetime.
        moment = datetime(
            year, month, int(fields["day"]), int(fields["hour"]), int(fields["minute"]), tzinfo=UTC
        )
    except ValueError:
        return 0
    return max((moment - _EPOCH - zone) // _HOUR, 0)
