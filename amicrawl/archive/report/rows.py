"""One line of an index as one row, or the reason why it is not a capture. Pure.

`line_batches` does the same for whole blocks; what does not fit its fast path comes here. Two sets of
rules: ours, which take every capture and refuse with a reason, and those of cdx-summary, which take what
one expression matches and skip the rest in silence.

The columns of a CDX file are known by its legend, or by their number:

    CDX-11   N b a m s k r M S V g
    CDX-9    N b a m s k r V g         no size
    CDX-10   N b a m s k r M V g       no size
    CDX-7    N b a m s k S             responses of the Internet Archive's CDX server

Three further columns behind 9, 10 or 11 (length, offset and file of the original of a revisit) are
allowed. A legend is obeyed on any line, with or without the space before it, so files can be
concatenated; so is the order that Wget uses.
"""

from __future__ import annotations

import re
from calendar import isleap
from typing import TYPE_CHECKING, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping


_KNOWN = {
    7: "NbamskS",
    9: "NbamskrVg",
    10: "NbamskrMVg",
    11: "NbamskrMSVg",
    12: "NbamskrVg...",
    13: "NbamskrMVg...",
    14: "NbamskrMSVg...",
}
_NAMES = {"cdx7": 7, "cdx9": 9, "cdx10": 10, "cdx11": 11}


class ColumnLayout(NamedTuple):
    """Where the columns are, counted from 0; -1 where there is none."""

    columns: int
    key: int
    time: int
    url: int
    mime: int
    status: int
    digest: int
    size: int
    offset: int = -1
    """Known only where no legend was there; the one number beside the time by which to check a guess."""


def layout_of_letters(letters: str) -> ColumnLayout:
    """Return the layout that *letters* name; ValueError where it has no time, URL or neither key."""
    at = {letter: index for index, letter in reversed(list(enumerate(letters)))}
    layout = ColumnLayout(
        columns=len(letters),
        key=at.get("N", -1),
        time=at.get("b", -1),
        url=at.get("a", -1),
        mime=at.get("m", -1),
        status=at.get("s", -1),
        digest=at.get("k", -1),
        size=at.get("S", -1),
    )
    if layout.time < 0 or (layout.key < 0 and layout.url < 0):
        raise ValueError("the legend names no time (b), or neither key (N) nor URL (a)")
    return layout


def layout_of_count(columns: int) -> ColumnLayout | None:
    """Return the layout of lines of that many columns and no legend, if there is one."""
    letters = _KNOWN.get(columns)
    return layout_of_letters(letters)._replace(offset=letters.find("V")) if letters else None


def layout_named(name: str) -> ColumnLayout | None:
    """Return the layout called *name* (cdx7, cdx9, cdx10, cdx11), if there is one."""
    return layout_of_count(_NAMES[name]) if name in _NAMES else None


def legend(line: bytes) -> str | None:
    """Return the letters of a legend line, or None where *line* is something else."""
    words = line.split()
    if not words or words[0] != b"CDX" or any(len(word) != 1 for word in words[1:]):
        return None
    return b"".join(words[1:]).decode("latin-1")


UNKNOWN = -1
"""A size or status that the line does not have."""

MOST_DIGITS = 13
"""Digits of the largest size that is believed: ten terabytes in one record."""

NOT_A_DATE = "a time that is not a date"
NOT_OF_CDX_SUMMARY = "not in the form that cdx-summary counts"

CDXJ_FACETS = {
    "mime-detected": "mime-detected",
    "puid": "puid",
    "charset": "charset",
    "languages": "languages",
    "soft-404-detected": "soft-404",
    "truncated": "truncated",
}
"""JSON names of a CDXJ line, and the facet that each counts for."""

_LIKE_CDX_SUMMARY = re.compile(
    rb"([^)\s]+\)[^?\s]*(?:\?\S*)?)\s+(\d{14})\s+(\S+)\s+(\S+)\s+(-|\d{3})\s+(\S+)"
    rb"(?:\s+[^\d\s]+(?=\s|$))?(?:\s+[^\d\s]+(?=\s|$))?(?:\s+(\d+)(?=\s|$))?"
)
_NUMBER = re.compile(rb"-|\d+")
_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*:(?!\d{1,5}/)")
"""How a key without a host begins; before a port is a host."""
MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""The most days that each month has."""
LEAP_DAY = 229
"""Month and day, in four digits, that few years have."""


class Row(NamedTuple):
    """One capture as a summary sees it."""

    key: bytes
    time: int
    """Fourteen digits as a number."""
    url: bytes
    mime: bytes
    status: int
    size: int
    digest: bytes
    facets: Mapping[str, bytes] = {}


def row_like_cdx_summary(line: bytes) -> Row:
    """Return the row that cdx-summary sees in *line*; ValueError where it skips it."""
    match = _LIKE_CDX_SUMMARY.match(line)
    if match is None:
        raise ValueError(NOT_OF_CDX_SUMMARY)
    key, time, url, mime, status, digest, size = match.groups()
    number = UNKNOWN if status == b"-" else int(status)
    length = int(size) if size and len(size) <= MOST_DIGITS else 0
    return Row(key, int(time), url, mime, number, length, digest)


def row_of_cdx(line: bytes, layout: ColumnLayout | None) -> Row:
    """Return the row that is *line* of a CDX file; ValueError with the reason where it is none.

    Without a *layout* the number of columns decides.
    """
    words = line.split()
    found = layout or layout_of_count(len(words))
    if found is None:
        raise ValueError("a number of columns that no layout has")
    if len(words) not in (found.columns, found.columns + 3):
        raise ValueError("more or fewer columns than the layout has")
    if found.offset >= 0 and not _NUMBER.fullmatch(words[found.offset]):
        raise ValueError("an offset that is not a number: other columns than those of the layout")
    url = words[found.url] if found.url >= 0 else b""
    key = words[found.key] if found.key >= 0 else _key_of(url)
    return Row(
        key=uniform_key(key),
        time=time_of(words[found.time]),
        url=url,
        mime=words[found.mime] if found.mime >= 0 else b"-",
        status=_status(words[found.status] if found.status >= 0 else b"-"),
        size=_size(words[found.size] if found.size >= 0 else b"-"),
        digest=words[found.digest] if found.digest >= 0 else b"-",
    )


def _key_of(url: bytes) -> bytes:
    # Few legends are without keys, and to load what makes them takes as long as all else of a summary.
    from amicrawl.urls.surt import surt  # noqa: PLC0415

    return surt(url).encode("utf-8", "surrogateescape")


def row_of_cdxj(line: bytes) -> Row:
    """Return the row that is *line* of a CDXJ file; ValueError with the reason where it is none."""
    words = line.split(b" ", 2)
    if len(words) < 3 or not words[0]:
        raise ValueError("not key, time and JSON")
    try:
        fields = orjson.loads(words[2])
    except orjson.JSONDecodeError as error:
        raise ValueError("JSON that does not parse") from error
    if not isinstance(fields, dict):
        raise ValueError("JSON that is not an object")  # noqa: TRY004  # a fault of the line like the others
    facets = {facet: _octets(fields[name]) for name, facet in CDXJ_FACETS.items() if name in fields}
    return Row(
        key=uniform_key(words[0]),
        time=time_of(words[1]),
        url=_octets(fields.get("url")),
        mime=_octets(fields.get("mime")) or b"-",
        status=_named_status(_octets(fields.get("status"))),
        size=_size(_octets(fields.get("length")) or b"-"),
        digest=_octets(fields.get("digest")) or b"-",
        facets=facets,
    )


def time_of(text: bytes) -> int:
    """Return the first fourteen of 14 or 17 digits that are a date; ValueError where *text* is none."""
    if not (text.isdigit() and len(text) in (14, 17)):
        raise ValueError("a time that is not 14 digits")
    time = int(text[:14])
    year, month, day = time // 10**10, time // 10**8 % 100, time // 10**6 % 100
    is_date = year and 1 <= month <= 12 and 1 <= day <= MONTH_DAYS[month - 1]
    is_date = is_date and (month * 100 + day != LEAP_DAY or isleap(year))
    if not (is_date and time % 10**6 < 240000 and time % 10**4 < 6000 and time % 100 < 60):
        raise ValueError(NOT_A_DATE)
    return time


def uniform_key(key: bytes) -> bytes:
    """Return *key* with its host reversed where it is an old `host/path`, else as it is."""
    if b")" in key or _SCHEME.match(key) or b"/" not in key:
        return key
    authority, _, path = key.partition(b"/")
    host, colon, port = authority.partition(b":")
    return b",".join(reversed(host.split(b"."))) + colon + port + b")/" + path


def _named_status(text: bytes) -> int:
    """Return the status that a line names as *text*; where it is none, the rest of the line counts."""
    return int(text) if len(text) == 3 and text.isdigit() else UNKNOWN


def _status(text: bytes) -> int:
    if text == b"-":
        return UNKNOWN
    if len(text) != 3 or not text.isdigit():
        raise ValueError("a status that is neither three digits nor a hyphen")
    return int(text)


def _size(text: bytes) -> int:
    if text == b"-":
        return UNKNOWN
    if not text.isdigit() or len(text) > MOST_DIGITS:
        raise ValueError("a size that is not a number")
    return int(text)


def _octets(value: object) -> bytes:
    """Return a JSON value as the text that a CDX would hold; indexers disagree on numbers and null."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return str(value).encode() if is_number else b""
