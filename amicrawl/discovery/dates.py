"""Dates in URLs, and calendars that run away from today. Pure.

A calendar has a page for each month, week or day, without end in both directions. It is recognised by
what it does:

    its pages have URLs that differ in their dates alone
    each is linked from one that is nearer to today
    none shows anything new: no link that is more than a date, no file, no words but those of the others

`Calendars.most` such pages in a row, in one part of a host and one direction, end it there: links that
lead further away from today are left out until a page shows something new. An archive of news does.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_plus

from amicrawl.clock import from_unix_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_LONGEST = 2048
"""Characters of a URL that are looked at."""
_MOST_ARGUMENTS = 24
_YEAR = r"(?P<y>1[5-9][0-9]{2}|2[0-2][0-9]{2})"
_MONTH = r"(?P<m>1[0-2]|0?[1-9])"
_DAY = r"(?P<d>3[01]|[12][0-9]|0?[1-9])"
_NAME = (
    r"(?P<name>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"(?:uary|ruary|ch|il|e|y|ust|t|tember|ober|ember)?"
)
_BLANK = r"[-/_. ,]{1,2}"
_OTHER_DAY = _DAY.replace("<d>", "<d2>")
_FORMS = tuple(
    re.compile(rf"(?<![0-9]){form}(?![0-9])")
    for form in (
        rf"{_YEAR}(?P<s>[-/._~]){_MONTH}(?:(?P=s){_DAY})?",
        rf"{_YEAR}[-/_]?w(?:eek)?[-/_]?(?P<w>[0-5]?[0-9])",
        rf"{_YEAR}(?P<m>1[0-2]|0[1-9])(?P<d>3[01]|[12][0-9]|0[1-9])?",
        rf"{_DAY}(?P<s>[-/._~]){_MONTH}(?P=s){_YEAR}",
        rf"{_MONTH}(?P<s>[-/._~])(?P<d>3[01]|[12][0-9])(?P=s){_YEAR}",
        rf"{_MONTH}[-/._~]{_YEAR}",
        rf"{_YEAR}{_BLANK}{_NAME}(?:{_BLANK}{_DAY})?(?![a-z])",
        rf"(?<![a-z])(?:{_DAY}{_BLANK})?{_NAME}(?:{_BLANK}{_OTHER_DAY})?{_BLANK}{_YEAR}",
        r"(?:date|time|timestamp|ts)[~:=](?P<epoch>-?[0-9]{8,13})",
        rf"(?<![a-z]){_YEAR}(?![a-z])",
    )
)
"""What a date looks like, the most exact first; in lower case, escapes undone."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PARTS = {
    "y": re.compile(r"(?:[a-z0-9_.\-\[\]]*(?:year|yr|yyyy)|y)\]?"),
    "m": re.compile(r"(?:[a-z0-9_.\-\[\]]*(?:month|mon|mo|mm)|m)\]?"),
    "d": re.compile(r"(?:[a-z0-9_.\-\[\]]*(?:day|dy|dd)|d)\]?"),
    "w": re.compile(r"(?:[a-z0-9_.\-\[\]]*(?:week|wk)|w)\]?"),
    "epoch": re.compile(r"[a-z0-9_.\-\[\]]*(?:time|stamp|date|day|month|week|start|end|when|ts)\]?|t|d"),
}
"""Names of arguments that each are a part of a date."""
_EPOCH = re.compile(r"-?[0-9]{7,13}")
_SMALL = re.compile(r"0?[0-9]|[1-5][0-9]")
_WHOLE_YEAR = re.compile(_YEAR)
_FOUR_DIGITS = re.compile(r"[0-9]{4}")
_RANDOM = re.compile(r"(?<![0-9a-z])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}(?![0-9a-z])")
_ESCAPES = re.compile(r"%[0-9A-Fa-f]{2}")
_DATE = "*"


class DatedUrl(NamedTuple):
    """A URL that has a date in its path or query."""

    year: int
    month: int
    """From 1; 0 where the URL has a year only."""
    day: int
    """0 where the URL has none."""
    rest: str
    """The URL with a star for each date: what else it says."""

    @property
    def part(self) -> str:
        """The part of its host that it is in: the host and the first segment of its path."""
        return "/".join(self.rest.partition("?")[0].split("/")[2:4])

    def beyond(self, other: tuple[int, int, int]) -> int:
        """Return by how much it is later than *other*: in days, or what coarser unit both have."""
        if not (self.month and other[1]):
            return self.year - other[0]
        if not (self.day and other[2]):
            return (self.year - other[0]) * 12 + self.month - other[1]
        return _ordinal(*self[:3]) - _ordinal(*other)


def date_in(url: str) -> DatedUrl | None:
    """Return what date is in the path or the query of *url*; None where there is none."""
    start = url.find("/", url.find("://") + 3)
    if start < 0 or len(url) > _LONGEST or _FOUR_DIGITS.search(url, start) is None:
        return None
    path, mark, query = url[start:].lower().partition("?")
    if query.count("&") >= _MOST_ARGUMENTS:
        return None
    if _ESCAPES.search(path):
        path = unquote_plus(path)
    found, rest = _in_arguments(query) if mark else (None, "")
    path_found, path = _in_text(path)
    # Arguments are what calendars go by; a year in the path may be that of the site.
    found = found or path_found
    if found is None:
        return None
    return DatedUrl(*found, f"{url[:start].lower()}{path}{mark}{_RANDOM.sub('', rest)}")


def _in_text(text: str) -> tuple[tuple[int, int, int] | None, str]:
    """Return the first of the most exact dates in *text*, and it with a star for each."""
    found = None
    for form in _FORMS:
        match = form.search(text)
        if match is not None:
            found = found or _read(match)
            text = form.sub(_DATE, text)
            if _FOUR_DIGITS.search(text) is None:
                break
    return found, text


def _read(match: re.Match[str]) -> tuple[int, int, int] | None:
    parts = match.groupdict()
    if parts.get("epoch"):
        return _of_epoch(parts["epoch"])
    month = parts.get("m") or 0
    if parts.get("name"):
        month = _MONTHS.index(parts["name"]) + 1
    elif parts.get("w"):
        month = min(int(parts["w"]) * 7 // 30 + 1, 12)
    return int(parts["y"]), int(month), int(parts.get("d") or parts.get("d2") or 0)


def _in_arguments(query: str) -> tuple[tuple[int, int, int] | None, str]:
    """Do what `_in_text` does for a query, whose arguments may each have one part of a date."""
    parts: dict[str, int] = {}
    found, rest = None, []
    for piece in query.split("&"):
        name, equals, value = piece.partition("=")
        if "%" in value or "+" in value:
            value = unquote_plus(value)
        if "%" in name:
            name = unquote_plus(name)
        kind = _part_of(name, value)
        if kind == "epoch":
            found, value = found or _of_epoch(value), _DATE
        elif kind:
            parts.setdefault(kind, int(value))
            value = _DATE
        elif value:
            in_value, value = _in_text(value)
            found = found or in_value
        rest.append(f"{name}{equals}{value}")
    if "y" in parts:
        month = parts.get("m", 0)
        if not month and "w" in parts:
            month = parts["w"] * 7 // 30 + 1
        found = parts["y"], min(month, 12), min(parts.get("d", 0), 31)
    return found, "&".join(rest)


def _part_of(name: str, value: str) -> str:
    """Return which part of a date the argument *name* with *value* is; empty for none."""
    if _WHOLE_YEAR.fullmatch(value):
        return "y" if _PARTS["y"].fullmatch(name) else ""
    if _SMALL.fullmatch(value):
        return next((kind for kind in "mdw" if _PARTS[kind].fullmatch(name)), "")
    if _EPOCH.fullmatch(value) and _PARTS["epoch"].fullmatch(name):
        # Eight digits with a date in them are that date.
        return "" if len(value) == 8 and _in_text(value)[0] else "epoch"
    return ""


def _of_epoch(text: str) -> tuple[int, int, int] | None:
    seconds = int(text) // (1000 if len(text.lstrip("-")) > 10 else 1)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return moment.year, moment.month, moment.day


def _ordinal(year: int, month: int, day: int) -> int:
    return date(year, month, 1).toordinal() + day - 1


@dataclass(slots=True)
class _DatedPages:
    """What one part of a host has shown under URLs with dates."""

    pages: set[int] = field(default_factory=set)
    links: set[int] = field(default_factory=set)
    words: set[int] = field(default_factory=set)
    in_vain: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    """Pages in a row without anything new; True for dates to come."""


class Calendars:
    """What one crawl has seen of pages by date.

    *most*: pages in a row that show nothing new and end a calendar; 0 for any number. In memory are at
    most 256 parts of hosts, those used last, with 50,000 hashes of each kind; what is beyond that counts
    as new.
    """

    _PARTS_AT_MOST = 256
    _AT_MOST = 50_000
    _NEW_WORDS = 5
    """Words that no other page of its part has, from which on a page is a page of its own."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.ended = 0
        """How many calendars have shown enough so far, each direction by itself."""
        self._parts: OrderedDict[str, _DatedPages] = OrderedDict()
        self._today = (1970, 1, 1)

    def read(
        self,
        url: str,
        steps: int,
        *,
        links: Iterable[str],
        words: Callable[[], Iterable[bytes]],
        at_ms: int,
    ) -> DatedUrl | None:
        """Note what the page at *url* shows; return it where it is one by date.

        It was requested at *at_ms*, Unix milliseconds.
        *steps* is what `steps` gave for it, *links* are those that are new to the crawl, files included,
        *words* those that it shows; both are read where the URL has nothing of its own but dates.
        """
        dated = date_in(url) if self.most else None
        if dated is None:
            return None
        today = from_unix_ms(at_ms)
        self._today = (today.year, today.month, today.day)
        part = self._parts.setdefault(dated.part, _DatedPages())
        self._parts.move_to_end(dated.part)
        if len(self._parts) > self._PARTS_AT_MOST:
            self._parts.popitem(last=False)
        is_to_come = dated.beyond(self._today) > 0
        if self._is_new(part, dated, links, words):
            part.in_vain[is_to_come] = 0
        elif steps:
            part.in_vain[is_to_come] += 1
            self.ended += part.in_vain[is_to_come] == self.most
        return dated

    def steps(self, page: DatedUrl, steps: int, url: str) -> int:
        """Return how many steps away from today led to *url*, a link of *page*, to which *steps* led."""
        dated = date_in(url)
        if dated is None:
            return 0
        moved, ahead = dated.beyond(page[:3]), page.beyond(self._today)
        # A page of today itself has dates on both sides.
        is_away = moved * ahead > 0 if ahead else moved != 0
        return steps + is_away

    def has_ended(self, url: str, steps: int) -> bool:
        """Return whether *url*, to which so many *steps* led, is of a calendar that has shown enough."""
        if not (steps and self.ended) or (dated := date_in(url)) is None:
            return False
        part = self._parts.get(dated.part)
        return part is not None and part.in_vain[dated.beyond(self._today) > 0] >= self.most

    def _is_new(
        self,
        part: _DatedPages,
        dated: DatedUrl,
        links: Iterable[str],
        words: Callable[[], Iterable[bytes]],
    ) -> bool:
        # From the cheapest on: most URLs with a date are those of articles, with a name or number each.
        return (
            self._adds(part.pages, [hash(dated.rest)]) > 0
            or self._adds(part.links, map(hash, _rests(links))) > 0
            or self._adds(part.words, map(hash, words())) >= self._NEW_WORDS
        )

    def _adds(self, known: set[int], more: Iterable[int]) -> int:
        """Add *more* to *known*, and return how many were not."""
        new = {number for number in more if number not in known}
        if len(known) + len(new) <= self._AT_MOST:
            known |= new
        return len(new)


def _rests(links: Iterable[str]) -> Iterator[str]:
    """Yield what *links* say besides dates."""
    for link in links:
        dated = date_in(link)
        yield dated.rest if dated is not None else _RANDOM.sub("", link)
