"""Which crawl, segment and subset a capture belongs to, as the name of its WARC file tells.

    crawl-data/CRAWL/segments/SEGMENT/SUBSET/FILE      End of Term and Common Crawl
    crawl-data/CC-NEWS/YYYY/MM/CC-NEWS-REST.warc.gz    its news: CC-NEWS-YYYY-MM, REST, news-warc
    */PROJECT/CC-SUPPLEMENTAL-*/segments/DIGITS/SUBSET/FILE

A capture that no pattern fits belongs to the crawl `captures-YYYY-MM`, by its month, and the subset
`warc`, unless the caller names them. Rows are kept in directories named `crawl=.../subset=...` as Hive
has them; a value becomes a name by percent-escapes. A value is never missing: of a directory with
`__HIVE_DEFAULT_PARTITION__` alone, pyarrow and pandas cannot find the type, and Spark makes it void.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MONTH_PREFIX = "captures-"
"""Begins the crawl of captures that nothing else names; behind it stands their month, `YYYY-MM`.

With letters in front, no reader takes the value for a number or a date."""
DEFAULT_SUBSET = "warc"

_NAME = r"[^/\x00-\x1f]{1,80}"
_SUBSETS = "warc|robotstxt|crawldiagnostics|wat|wet"
_PREFIX = r"(?:.*/)?"
_MAIN = re.compile(rf"{_PREFIX}crawl-data/({_NAME})/segments/({_NAME})/({_SUBSETS})/[^/]+")
_NEWS = re.compile(
    rf"{_PREFIX}crawl-data/(CC-NEWS)/([0-9]{{4}})/([0-9]{{2}})/CC-NEWS-({_NAME})\.warc(?:\.gz)?"
)
_SUPPLEMENTAL = re.compile(
    rf"{_PREFIX}{_NAME}/(CC-SUPPLEMENTAL-{_NAME})/segments/([0-9]{{1,20}})/({_SUBSETS})/[^/]+"
)
_PLAIN = re.compile(r"[^A-Za-z0-9_.~+ \-]")


class Place(NamedTuple):
    """Where a capture belongs; None where neither the caller nor the file name says it."""

    crawl: str | None = None
    segment: str | None = None
    subset: str | None = None

    def over(self, other: Place) -> Place:
        """Return this place, with what it leaves open taken from *other*."""
        return Place(*[mine if mine is not None else its for mine, its in zip(self, other, strict=True)])

    def directory(self) -> str:
        """Return the path of its rows below the table's directory."""
        return f"crawl={_escaped(self.crawl or '')}/subset={_escaped(self.subset or '')}"


NOWHERE = Place()


def place_of(warc_filename: str | None) -> Place:
    """Return where a capture in the file *warc_filename*, a path with slashes, belongs."""
    name = warc_filename or ""
    if found := _MAIN.fullmatch(name):
        return Place(*found.groups())
    if found := _NEWS.fullmatch(name):
        return Place(f"{found[1]}-{found[2]}-{found[3]}", found[4], "news-warc")
    if found := _SUPPLEMENTAL.fullmatch(name):
        return Place(*found.groups())
    return NOWHERE


def _escaped(value: str) -> str:
    return _PLAIN.sub(lambda found: "".join(f"%{octet:02X}" for octet in found[0].encode()), value)
