"""The list of pages of a WACZ package: which records are pages, and what they are titled. Pure.

A page is a response with status 200 that holds HTML. A line of the list is JSON: `id`, the same for the
same capture whenever the list is made; `url`; `ts`, when it was captured; `title`, where there is one.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.index.derivatives.page import END, RAW, START, characters, decoded_page, tokens

if TYPE_CHECKING:
    from amicrawl.index.reading.records import Record


HEAD = json.dumps({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}).encode() + b"\n"
"""First line of the list."""
LONGEST_TITLE = 1_000
"""Characters of a title; the rest is cut."""

_LOOKED_AT = 512 * 1024
"""Bytes of a page in which a title is looked for."""
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z", re.ASCII)
_DIGITS = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)", re.ASCII)


class PageLine(NamedTuple):
    """A page of the list."""

    url: str
    moment: str
    """When it was captured, by RFC 3339."""
    title: str

    def text(self) -> bytes:
        """Return its line, LF included."""
        name = hashlib.sha256(f"{self.moment} {self.url}".encode("utf-8", "replace")).hexdigest()[:20]
        fields = {"id": name, "url": self.url, "ts": self.moment, "title": self.title}
        return json.dumps({key: value for key, value in fields.items() if value}).encode() + b"\n"


def page_line(record: Record) -> PageLine | None:
    """Return the page that *record* holds; None where it is none, or has no URL or date."""
    if record.type != "response" or record.http_status != 200:
        return None
    content_type = (record.http_field(b"content-type") or b"").decode("latin-1")
    if content_type.partition(";")[0].strip().lower() not in _HTML:
        return None
    moment = _moment(record.date)
    if not moment or not record.uri:
        return None
    return PageLine(record.uri, moment, title_of(record.content(_LOOKED_AT), content_type))


def title_of(content: bytes, content_type: str = "") -> str:
    """Return the title of an HTML page, white space collapsed; empty where it has none.

    The first `title` that is not one of a picture within the page.
    """
    pictures = 0
    for kind, name, written in tokens(decoded_page(content[:_LOOKED_AT], content_type)[0]):
        if name == "svg":
            pictures += kind is START and not written.endswith("/")
            pictures -= kind is END
        elif kind is RAW and name == "title" and pictures <= 0:
            return " ".join(characters(written[: 4 * LONGEST_TITLE]).split())[:LONGEST_TITLE]
    return ""


def _moment(date: str) -> str:
    """Return the date of a record by RFC 3339; empty where it is none."""
    if _MOMENT.fullmatch(date):
        return date
    parts = _DIGITS.match(date)
    return "{}-{}-{}T{}:{}:{}Z".format(*parts.groups()) if parts else ""
