"""What of a row stands in the string arena: what was offered, and what the last capture brought."""

from __future__ import annotations

import re
from datetime import date
from email.utils import formatdate
from functools import lru_cache
from typing import TYPE_CHECKING

from amicrawl.frontier.annex import found, found_entries, offered
from amicrawl.frontier.arena import entry_of
from amicrawl.frontier.row import Found, Offer, Source
from amicrawl.urls import UrlKey, octets

if TYPE_CHECKING:
    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.revisits import Revisits
    from amicrawl.frontier.row import Outcome
    from amicrawl.frontier.url_row import UrlRow
    from amicrawl.seed import Seed

_DAYS = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LONG_DAYS = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = "(?P<month>[A-Z][a-z]{2})"
_TIME = r"(?P<hour>[0-2][0-9]):(?P<minute>[0-5][0-9]):(?:[0-5][0-9]|60)"
_ZONE = "(?:GMT|UTC|(?P<zone>[+-][0-9]{2}[0-5][0-9]))"
_FORMS = (
    # IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
    re.compile(rf"{_DAYS}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} {_ZONE}"),
    # RFC 850: Sunday, 06-Nov-94 08:49:37 GMT
    re.compile(rf"{_LONG_DAYS}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} {_ZONE}"),
    # asctime: Sun Nov  6 08:49:37 1994
    re.compile(rf"{_DAYS} {_MONTH} (?P<day>[0-9 ][0-9]) {_TIME} (?P<year>[0-9]{{4}})(?P<zone>)"),
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MINUTE_AND_SECOND = re.compile("[0-5][0-9]:(?:[0-5][0-9]|60)")
_FIXDATE = len("Sun, 06 Nov 1994 08:49:37 GMT")
_EPOCH = date(1970, 1, 1).toordinal()


def hours_of_http_date(text: str) -> int:
    """Return the hours since 1970 of *text*, the value of Last-Modified; 0 where it is not a date.

    The three forms of RFC 9110, section 5.6.7, are read. The day of the week is not compared with the
    date, and a numeric zone may replace GMT; a zone of another name makes the date invalid. A year of
    two digits is one from 1969 to 2068. Dates before 1970 are 0 as well.
    """
    if len(text) == _FIXDATE and _is_clock(text[20:25]):
        # The usual form: minutes and seconds do not matter, and what is left is seen again and again.
        text = f"{text[:20]}00:00{text[25:]}"
    return _hours(text)


@lru_cache(maxsize=4096)
def _is_clock(text: str) -> bool:
    return _MINUTE_AND_SECOND.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _hours(text: str) -> int:
    for form in _FORMS:
        match = form.fullmatch(text)
        if match is not None:
            day, month, year, hour, minute, zone = match.group(
                *("day", "month", "year", "hour", "minute", "zone")
            )
            days = _days(year, month, day)
            if days is None or hour > "23":
                return 0
            minutes = 60 * int(hour) + int(minute)
            if zone:
                minutes -= int(zone[0] + "60") * int(zone[1:3]) + int(zone[0] + zone[3:])
            return max(24 * days + minutes // 60, 0)
    return 0


def _days(year: str, month: str, day: str) -> int | None:
    """Return the days from 1970 to a date; None where the calendar does not have it."""
    century = 0 if len(year) == 4 else 1900 if year >= "69" else 2000
    try:
        number = _MONTHS.index(month) + 1
        return date(century + int(year), number, int(day)).toordinal() - _EPOCH
    except ValueError:
        return None


_HOUR = 3600
_SOURCES = {int(source): source for source in Source}


def offer_of(partition: LivePartition, row: UrlRow, revisits: Revisits) -> Offer:
    """Return what was offered as *row*; by *revisits*, its seed knows of the last capture."""
    seed, extra = offered(*partition.texts_at(row.url_ref))
    if row.etag_ref:
        last = found(*partition.texts_at(row.etag_ref))
        seed = revisits.seed_with(seed, last if last.last_modified else _dated(row, last))
    elif row.last_modified and row.last_crawled and not seed.last_modified:
        seed = revisits.seed_with(seed, _dated(row, Found()))
    priority = int(row.priority) if row.priority.is_integer() else row.priority
    return Offer(seed, UrlKey(row.host, row.path), _SOURCES[row.source], priority, row.depth, extra)


def _dated(row: UrlRow, last: Found) -> Found:
    """Return *last* with the hour that other software noted in *row* as the date of its `Last-Modified`.

    Rounded up, unless the page may have been changed again within that hour and after its capture.
    """
    if not row.last_modified:
        return last
    hour = row.last_modified + (row.last_modified < row.last_crawled)
    return last._replace(last_modified=formatdate(hour * _HOUR, usegmt=True))


def keep_found(partition: LivePartition, row: UrlRow, known: Seed, outcome: Outcome) -> dict[str, float]:
    """Keep the validators and the redirect of *outcome*, if they are new; return the fields they change.

    *known* is the seed that *row* was handed out with.
    """
    changed: dict[str, float] = {}
    what = outcome.found
    if what is not None and (
        not row.etag_ref
        or (what.digest, what.etag, what.last_modified)
        != (known.digest, known.etag, known.last_modified)
    ):
        changed["etag_ref"] = partition.intern(found_entries(what))
        changed["last_modified"] = hours_of_http_date(what.last_modified)
    if outcome.redirect:
        target = octets(outcome.redirect)
        if not row.redirect_ref or partition.texts_at(row.redirect_ref)[0] != target:
            changed["redirect_ref"] = partition.intern(entry_of(target))
    elif row.redirect_ref:
        changed["redirect_ref"] = 0
    return changed
