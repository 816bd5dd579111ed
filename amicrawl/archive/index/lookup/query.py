"""CDX queries: the lines of a range, filtered, collapsed, ordered, limited. Reads only.

The order of these steps is that of other CDX servers: filters and times, collapsing, order, offset and
limit. Lines of several indexes are merged.

Work is bounded where bounds are given. A query that would need more is refused with `TooMuch`: a list
that ends early looks like one that is complete.

`resolveRevisits` adds to a revisit the capture that it repeats: within one response, the first line with
its digest that is not a revisit. The revisit takes over its `mime` and `status`, and gets its place as
`orig.length`, `orig.offset` and `orig.filename`. Other lines, and revisits whose original is not in the
response, have hyphens there.

A line is CDXJ, or CDX of 7, 9, 10 or 11 columns. Values are text here, whatever the JSON had. What comes
out is one line, however hostile the value: blanks and control characters of a text column are escaped.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import deque
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import orjson

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from amicrawl.archive.index.lookup.request import CdxRequest
    from amicrawl.archive.index.lookup.source import IndexSource


_FIRST = ("urlkey", "timestamp", "url", "mime", "status", "digest")
_COLUMNS: Final = {
    7: (*_FIRST, "length"),
    9: (*_FIRST, "redirect", "offset", "filename"),
    10: (*_FIRST, "redirect", "robotflags", "offset", "filename"),
    11: (*_FIRST, "redirect", "robotflags", "length", "offset", "filename"),
}
_ALIASES: Final = {
    "original": "url",
    "u": "url",
    "mimetype": "mime",
    "m": "mime",
    "statuscode": "status",
    "t": "timestamp",
    "k": "urlkey",
    "d": "digest",
    "o": "offset",
    "l": "length",
    "s": "length",
    "f": "filename",
}
_UNFIT = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]")


def field_name(name: str) -> str:
    """Return the name of the field that *name*, its own or one of other servers, stands for."""
    return _ALIASES.get(name, name)


class IndexRow:
    """A line of an index; its fields are read when they are requested."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        """The line as it is stored, without its LF."""

    @property
    def timestamp(self) -> str:
        """The second field: digits."""
        return self.line.partition(b" ")[2].partition(b" ")[0].decode("ascii", "replace")

    @cached_property
    def fields(self) -> dict[str, str]:
        """The fields by name, `urlkey` and `timestamp` first; those alone if the rest is unreadable."""
        key, timestamp, rest = ([*self.line.split(b" ", 2), b"", b""])[:3]
        first = {
            "urlkey": key.decode("utf-8", "replace"),
            "timestamp": timestamp.decode("ascii", "replace"),
        }
        if rest.startswith(b"{"):
            try:
                found = orjson.loads(rest)
            except orjson.JSONDecodeError:
                return first
            # An object may have those names, too, and values that would not stay on a line.
            return first | {name: _text(value) for name, value in found.items()} | first
        columns = self.line.decode("utf-8", "replace").split(" ")
        names = _COLUMNS.get(len(columns), ())
        return first | {name: value for name, value in zip(names, columns, strict=False) if value != "-"}


def _text(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _as_cdxj(row: IndexRow, names: Sequence[str]) -> bytes:
    if not names:
        return row.line + b"\n"
    fields = row.fields
    chosen = {name: fields[name] for name in names if name in fields}
    head = f"{fields['urlkey']} {fields['timestamp']} "
    return (head + json.dumps(chosen) + "\n").encode("utf-8", "replace")


def _as_json(row: IndexRow, names: Sequence[str]) -> bytes:
    fields = row.fields
    chosen = {name: fields[name] for name in names if name in fields} if names else fields
    return (json.dumps(chosen) + "\n").encode("utf-8", "replace")


def _as_text(row: IndexRow, names: Sequence[str]) -> bytes:
    if not names:
        return row.line + b"\n"
    fields = row.fields
    return (" ".join(_column(fields.get(name, "")) for name in names) + "\n").encode("utf-8", "replace")


def _column(value: str) -> str:
    return (
        _UNFIT.sub(lambda found: "".join(f"%{octet:02X}" for octet in found[0].encode()), value) or "-"
    )


FORMATS: Final[dict[str, tuple[str, Callable[[IndexRow, Sequence[str]], bytes]]]] = {
    "cdxj": ("text/x-cdxj", _as_cdxj),
    "json": ("application/x-ndjson", _as_json),
    "text": ("text/plain; charset=utf-8", _as_text),
}
"""Media type and writer of each form of output; a writer takes a row and the fields that are wanted."""


_BATCH = 512
_Kept = TypeVar("_Kept", list["IndexRow"], deque["IndexRow"])


class Bounds(NamedTuple):
    """How much one question may cost."""

    scanned: int
    """Lines that are looked at."""
    lines: int
    """Lines that are held, or sent, where the request sets no smaller limit."""
    octets: int
    """Bytes of the response."""


class PageCount(NamedTuple):
    """How many pages a range has."""

    pages: int
    page_size: int
    blocks: int


_TOO_LONG = "The response is too long. Request it page by page (page=), or less of it (limit=)."


class TooMuch(UsageError):  # noqa: N818  # it says what was requested
    """A question that costs more than its bounds allow."""


def count_pages(request: CdxRequest, sources: Sequence[IndexSource]) -> PageCount:
    """Return the pages of a request; filters are not looked at, so one may turn out to be empty."""
    counts = [source.block_count(*request.range) for source in sources]
    pages = sum(-(-count // request.page_size) for count in counts)
    return PageCount(pages, request.page_size, sum(counts))


def response_lines(
    request: CdxRequest, sources: Sequence[IndexSource], *, bounds: Bounds | None = None
) -> Iterator[bytes]:
    """Yield the lines of the response, each with its LF.

    Raises UsageError for a page that is not there, TooMuch as soon as *bounds* are passed; without
    bounds what has to be put in order is held in memory.
    """
    write = FORMATS[request.output][1]
    size = count = 0
    for row in _ordered(request, _chosen(request, sources, bounds), bounds):
        line = write(row, request.fields)
        size, count = size + len(line), count + 1
        if bounds is not None and (size > bounds.octets or count > bounds.lines):
            raise TooMuch(_TOO_LONG)
        yield line


def _chosen(
    request: CdxRequest, sources: Sequence[IndexSource], bounds: Bounds | None
) -> Iterator[IndexRow]:
    """Yield the rows that are wanted, in the order of the index."""
    rows: Iterator[IndexRow] = map(IndexRow, _scanned(_lines(request, sources), bounds))
    if request.resolves:
        rows = resolved(rows)
    rows = _in_time(request, rows)
    if request.filters:
        rows = _filtered(request, rows)
    for collapse in request.collapses:
        rows = _collapsed(collapse.fields, rows)
    return rows


def _lines(request: CdxRequest, sources: Sequence[IndexSource]) -> Iterator[bytes]:
    if request.page is not None:
        return _page(request, sources)
    found = [source.lines(*request.range) for source in sources]
    return found[0] if len(found) == 1 else heapq.merge(*found)


def _page(request: CdxRequest, sources: Sequence[IndexSource]) -> Iterator[bytes]:
    """Return the lines of one page; the pages of several indexes follow each other."""
    page = wanted = request.page or 0
    for source in sources:
        pages = -(-source.block_count(*request.range) // request.page_size)
        if page < pages:
            first = page * request.page_size
            return source.lines_of_blocks(*request.range, first=first, count=request.page_size)
        page -= pages
    if wanted == 0:
        return iter(())
    raise UsageError(f"There is no page {wanted}: the last one is {wanted - page - 1}.")


def _scanned(lines: Iterable[bytes], bounds: Bounds | None) -> Iterator[bytes]:
    if bounds is None:
        yield from lines
        return
    for count, line in enumerate(lines):
        if count >= bounds.scanned:
            raise TooMuch(
                f"More than {bounds.scanned} lines have to be looked at. Request them page by page "
                "(page=), or a smaller part of the index."
            )
        yield line


def _in_time(request: CdxRequest, rows: Iterator[IndexRow]) -> Iterator[IndexRow]:
    first, last = request.first, request.last
    if not first and not last:
        return rows
    return (
        row
        for row in rows
        if (not first or row.timestamp >= first) and (not last or row.timestamp[: len(last)] <= last)
    )


def _filtered(request: CdxRequest, rows: Iterator[IndexRow]) -> Iterator[IndexRow]:
    # Many at a time: a regular expression is set up for each call.
    while batch := list(islice(rows, _BATCH)):
        for each in request.filters:
            batch = [row for row, kept in zip(batch, each.keeps(batch), strict=True) if kept]
        yield from batch


def _collapsed(fields: Sequence[tuple[str, int | None]], rows: Iterator[IndexRow]) -> Iterator[IndexRow]:
    last: list[str] | None = None
    for row in rows:
        token = [row.fields.get(name, "")[:length] for name, length in fields]
        if token != last:
            last = token
            yield row


def _ordered(request: CdxRequest, rows: Iterator[IndexRow], bounds: Bounds | None) -> Iterator[IndexRow]:
    """Return *rows* in the order that is requested, as many as are requested."""
    limit = request.limit
    most = None if limit is None else abs(limit) + request.offset
    if bounds is not None:
        # One more than may be held, so that it shows when there are too many.
        most = min(bounds.lines + 1, most if most is not None else bounds.lines + 1)
    backwards = request.reverse != (limit is not None and limit < 0)
    if request.closest:
        ordered = iter(_held(_nearest(request.closest, rows, most), bounds))
    elif backwards:
        ordered = reversed(_held(deque(rows, maxlen=most), bounds))
    else:
        ordered = rows
    found = islice(ordered, request.offset, None if limit is None else request.offset + abs(limit))
    if limit is not None and limit < 0 and not request.closest:
        # The last lines, in the order that is wanted.
        return iter(list(found)[::-1])
    return found


def _held(kept: _Kept, bounds: Bounds | None) -> _Kept:
    """Return *kept*; TooMuch where it is more than may be held, so that some are not in it."""
    if bounds is not None and len(kept) > bounds.lines:
        raise TooMuch(_TOO_LONG)
    return kept


def _nearest(closest: str, rows: Iterator[IndexRow], most: int | None) -> list[IndexRow]:
    wanted = _seconds(closest)

    def distance(row: IndexRow) -> float:
        return abs(_seconds(row.timestamp) - wanted)

    # Both keep the order of the index between rows that are equally near.
    return sorted(rows, key=distance) if most is None else heapq.nsmallest(most, rows, key=distance)


def _seconds(timestamp: str) -> float:
    """Return when a timestamp, perhaps only the beginning of one, begins; 0 where it is none."""
    if not timestamp.isdecimal():
        return 0.0
    padded = (timestamp + "00000101000000"[len(timestamp) :])[:14]
    year, *rest = int(padded[:4]), *(int(padded[at : at + 2]) for at in range(4, 14, 2))
    month, day, hour, minute, second = rest
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        # No such day. It is near the months around it all the same.
        moment = datetime(min(max(year, 1), 9999), min(max(month, 1), 12), 1, tzinfo=UTC)
    return moment.timestamp()


_PLACE = ("length", "offset", "filename")


def resolved(rows: Iterator[IndexRow]) -> Iterator[IndexRow]:
    """Yield *rows* with what they repeat."""
    originals: dict[str, dict[str, str]] = {}
    for row in rows:
        fields = row.fields
        digest = fields.get("digest", "").rpartition(":")[2]
        original: dict[str, str] = {}
        if fields.get("mime") != "warc/revisit":
            if digest:
                originals.setdefault(digest, fields)
        elif digest in originals:
            original = originals[digest]
        taken = {name: original[name] for name in ("mime", "status") if name in original}
        places = {f"orig.{name}": original.get(name, "-") for name in _PLACE}
        yield _written(fields | taken | places)


def _written(fields: dict[str, str]) -> IndexRow:
    """Return a row of *fields*, its line as it would be stored."""
    written = {name: value for name, value in fields.items() if name not in {"urlkey", "timestamp"}}
    line = f"{fields['urlkey']} {fields['timestamp']} {json.dumps(written)}"
    return IndexRow(line.encode("utf-8", "replace"))
