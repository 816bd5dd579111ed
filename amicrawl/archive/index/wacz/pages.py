"""The list of pages of a WACZ package: which records are pages, and their titles.

A page is a response with status 200 that holds HTML; of a crawl, one that its `captures.parquet` has
uncut. A line of the list is JSON: `id`, of no other line, and the same for a record whenever the list is
made; `url`; `ts`, when it was captured; `title`, where there is one. Of a page that a browser has shown
there are further records before the response: its title and its `text` are those that a reader saw, and
`screenshot` names the record of the picture.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter, OrderedDict
from contextlib import contextmanager
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from amicrawl.archive.index.derivatives.page import decoded_page, tags
from amicrawl.discovery import in_text
from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from amicrawl.parquet import ParquetTable
    from amicrawl.reading import Record


_HEAD = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
_WITH_TEXT = json.dumps({**_HEAD, "hasText": True}).encode() + b"\n"
HEAD = json.dumps(_HEAD).encode().ljust(len(_WITH_TEXT) - 1) + b"\n"
"""First line of the list, as long as that of a list with texts, which takes its place."""
TEXT, SCREENSHOT = "urn:text:", "urn:screenshot:"
"""What the URLs of records made of a page begin with; that of the page follows."""
LONGEST_TITLE = 1_000
"""Characters of a title; the rest is cut."""

_LONGEST_TEXT = 1 << 20
"""Bytes of a page's text; the rest is cut."""
_MOST_WAITING = 64
"""Pages whose further records were met, and not yet their response, which follows at once."""
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
    text: str = ""
    """What a reader saw."""
    screenshot: str = ""
    """URL of the record that has a picture of it."""

    def line(self, name: str) -> bytes:
        """Return its line, LF included; *name* is its `id`."""
        fields = {"id": name, "url": self.url, "ts": self.moment, "title": self.title}
        fields |= {"text": self.text, "screenshot": self.screenshot}
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
    text, _ = decoded_page(content[:_LOOKED_AT], content_type)
    pictures = 0
    for _, end, _, name, written, raw in tags(text):
        element = (name or end or "").lower()
        if element == "svg":
            pictures += name is not None and not (written or "").endswith("/")
            pictures -= end is not None
        elif element == "title" and raw is not None and pictures <= 0:
            return " ".join(in_text(raw[: 4 * LONGEST_TITLE]).split())[:LONGEST_TITLE]
    return ""


def _moment(date: str) -> str:
    """Return the date of a record by RFC 3339; empty where it is none, such as that of a 13th month."""
    if not _MOMENT.fullmatch(date):
        parts = _DIGITS.match(date)
        date = "{}-{}-{}T{}:{}:{}Z".format(*parts.groups()) if parts else ""
    try:
        datetime.fromisoformat(date[:19])
    except ValueError:
        return ""
    return date


def _digest(said: str) -> int:
    return int.from_bytes(hashlib.sha256(said.encode("utf-8", "replace")).digest()[:10])


class PageList:
    """The list of pages, being written to a file."""

    def __init__(self, file: IO[bytes], is_page: Callable[[Record], bool], *, main_page: str) -> None:
        """List in *file* the pages that *is_page* is true of; *main_page* is a URL, or empty."""
        self.count = 0
        self._file = file
        self._is_page = is_page
        self._main_page = main_page
        self._main: PageLine | None = None
        self._made: OrderedDict[str, dict[str, str]] = OrderedDict()
        """What further records say of pages, by the record ID of the response."""
        self._has_text = False
        self._names: set[int] = set()
        """Of all pages, as numbers of 80 bits, which take the least memory."""
        self._repeats: Counter[int] = Counter()
        """How often each name was met again."""
        file.write(HEAD)

    def add(self, record: Record) -> None:
        """List *record* where it is a page; note what it says where it is made of one."""
        if not record.seekable:
            return  # the index has no line of it, so that a reader could not open the page
        if record.type == "resource":
            self._note(record)
            return
        made = self._made.pop(record.record_id, {})
        # Pages that scripts make have one document in common, so that all but the first are revisits.
        is_revisit = bool(made) and record.type == "revisit" and bool(_moment(record.date))
        page = PageLine(record.uri, _moment(record.date), "") if is_revisit else page_line(record)
        if page is None or not self._is_page(record):
            return
        page = page._replace(**made)
        self.count += 1
        self._has_text = self._has_text or bool(page.text)
        self._file.write(page.line(self._name(page, record.record_id)))
        if page.url == self._main_page and self._main is None:
            self._main = page

    def _name(self, page: PageLine, record_id: str) -> str:
        """Return the `id` of *page*, of the record *record_id*.

        A date may be whole seconds, within which a URL is captured more than once. Nor are record IDs
        unique in every archive: further pages with the same one are numbered.
        """
        said = f"{page.moment} {page.url} {record_id}"
        name = _digest(said)
        while name in self._names:
            self._repeats[name] += 1
            name = _digest(f"{said} {self._repeats[name]}")
        self._names.add(name)
        return f"{name:020x}"

    def _note(self, record: Record) -> None:
        found: dict[str, str] = {}
        if record.uri.startswith(TEXT):
            written = record.content(_LONGEST_TEXT).decode("utf-8", "replace")
            title, _, text = written.partition("\n\n")
            found = {"title": title[:LONGEST_TITLE], "text": text}
        elif record.uri.startswith(SCREENSHOT):
            found = {"screenshot": record.uri}
        response = record.fields.get("warc-concurrent-to", "")
        if found and response:
            self._made[response] = self._made.get(response, {}) | found
            if len(self._made) > _MOST_WAITING:
                self._made.popitem(last=False)

    def finish(self) -> None:
        """Have the first line say whether pages have texts; the file is at its end then."""
        if self._has_text:
            self._file.seek(0)
            self._file.write(_WITH_TEXT)
            self._file.seek(0, os.SEEK_END)

    def main(self) -> PageLine | None:
        """Return the main page; None where none is wanted, UsageError where it was not listed."""
        if self._main_page and self._main is None:
            raise UsageError(f"{self._main_page!a} is none of the {self.count} pages. Name one of them.")
        return self._main


_COLUMNS = ["warc_file", "warc_offset", "record_id", "status", "truncated"]


def pages_in_table(table: Path) -> Callable[[Record], bool]:
    """Return a predicate: whether *table*, a `captures.parquet`, has a record with status 200, uncut.

    Each crawl begins with a file of the same name, so the record has to be that of the row by its ID,
    too. The rows of one WARC file are held at a time. InputError where *table* is not a capture index.
    """
    if not table.is_file():
        raise InputError(f"{table} is not a file. Name the captures.parquet of a crawl.")
    with _opened(table) as opened:
        missing = set(_COLUMNS) - set(opened.schema.names)
    if missing:
        raise InputError(f"{table} is not a capture index: it has no column {min(missing)}.")
    name, places = "", frozenset[tuple[object, object]]()

    def is_page(record: Record) -> bool:
        nonlocal name, places
        if record.path.name != name:
            name, places = record.path.name, _places(table, record.path.name)
        return (record.offset, record.record_id) in places

    return is_page


def _places(table: Path, name: str) -> frozenset[tuple[object, object]]:
    """Return offset and record ID of each whole capture with status 200 in the WARC file *name*."""
    import pyarrow.compute as pc  # noqa: PLC0415  # most packages are made without a table

    wanted: Any = (
        (pc.field("warc_file") == name) & (pc.field("status") == 200) & (pc.field("truncated") == "")
    )
    places = set[tuple[object, object]]()
    with _opened(table) as opened:
        for batch in opened.batches(_COLUMNS):
            rows: Any = batch
            found = rows.filter(wanted)
            places.update(
                zip(found["warc_offset"].to_pylist(), found["record_id"].to_pylist(), strict=True)
            )
    return frozenset(places)


@contextmanager
def _opened(table: Path) -> Iterator[ParquetTable]:
    """Open *table*; InputError where it, or what is read of it, is not Parquet."""
    import pyarrow as pa  # noqa: PLC0415  # most packages are made without a table

    from amicrawl.parquet import NotWholeError, ParquetTable  # noqa: PLC0415

    try:
        with ParquetTable(table, str(table)) as opened:
            yield opened
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (OSError, pa.ArrowException, NotWholeError) as error:
        raise InputError(f"{table} cannot be read as a capture index: {error}") from error
