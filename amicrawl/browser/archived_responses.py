"""Archived responses: what this crawl has archived and gives to the browser in place of a server.

A GET gets its response from here where the server's caching rules allow it (RFC 9111: `max-age`,
`Vary`), or where what it brought is a requisite: a script, a style sheet, a font or an image is
requested once in a crawl. What is under way is waited for. Memory is bounded; what was used longest ago
goes first, and is read from the archive again, as is what was there before.

Rows of before, or of another process of the crawl, are read from the index of each directory once, and
from its journals as they grow. A row is in a journal when its record is in its file, so that what is
found here is never lost by a kill.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.browser.proxy import BrowserRequest, ProxyReply
from amicrawl.disk import OPEN_SUFFIX
from amicrawl.errors import AmicrawlError
from amicrawl.listing import TABLE_NAME
from amicrawl.message import header_fields
from amicrawl.record import opened_index, request_before, row_in, stored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

MOST_BYTES = 128 * 1024**2
"""Bytes of all responses that are kept, in memory: a picture of one pixel is more fields than body."""
LARGEST = 16 * 1024**2
"""Bytes of one."""
_REQUISITES = frozenset({"stylesheet", "script", "font", "image"})
_REQUISITE_TYPE = re.compile(
    rb"(?:text/css|(?:text|application)/(?:x-)?(?:java|ecma)script|image/|font/|"
    rb"application/(?:x-)?font|application/vnd\.ms-fontobject|application/wasm)",
    re.IGNORECASE,
)
_MAX_AGE = re.compile(rb"(?:^|[,\s])max-age=([0-9]{1,9})")
_EACH, _EACH_FIELD = 900, 130
"""Bytes that Python takes for a response, and for a field of it, besides their words; measured."""
_EVENTS = b"text/event-stream"
_LASTING = frozenset({200, 301, 308, 404, 410})


class KnownResponse(NamedTuple):
    """A response that is in the archive."""

    request: BrowserRequest
    """The request that it was a response to."""
    reply: ProxyReply
    content: bytes
    kind: str
    """Chromium's word for what was requested."""


class _KeptResponse(NamedTuple):
    reply: ProxyReply
    content: bytes
    varies: dict[bytes, bytes]
    """The request's values of the fields that `Vary` names."""
    until: float
    """The moment up to which it is fresh; infinite for a requisite."""
    size: int
    """Bytes that it takes."""


class ArchivedResponses:
    """The responses of one crawl; *clock* gives monotonic seconds.

    *earlier* returns what the archive has of a URL besides; None for nothing.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        most_bytes: int = MOST_BYTES,
        earlier: Callable[[str], Awaitable[KnownResponse | None]] | None = None,
    ) -> None:
        self._clock = clock
        self._earlier = earlier
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, _KeptResponse] = OrderedDict()
        self._bytes = 0
        self._under_way: dict[str, asyncio.Future[None]] = {}

    async def find(self, request: BrowserRequest) -> ProxyReply | None:
        """Return the response to *request*, waiting for one that is under way; None where none is.

        Then a server is contacted, and `done` has to be called afterwards, whatever came of it.
        """
        # A stream of events does not end: a second one would wait for as long as its page is open.
        if request.method != "GET" or _EVENTS in request.field(b"accept"):
            return None
        while (waiting := self._under_way.get(request.url)) is not None:
            await asyncio.shield(waiting)
            if (reply := self._known(request)) is not None:
                return reply
        if (reply := self._known(request)) is not None:
            return reply
        self._under_way[request.url] = asyncio.get_running_loop().create_future()
        if self._earlier is None:
            return None
        try:
            if (found := await self._earlier(request.url)) is not None:
                self.keep(found.request, found.reply, found.content, kind=found.kind)
            reply = self._known(request)
        except BaseException:
            self.done(request)
            raise
        if reply is not None:
            self.done(request)
        return reply

    def done(self, request: BrowserRequest) -> None:
        """Let those go on who wait for the response to *request*."""
        waiting = self._under_way.pop(request.url, None) if request.method == "GET" else None
        if waiting is not None:
            waiting.set_result(None)

    def keep(self, request: BrowserRequest, reply: ProxyReply, content: bytes, *, kind: str) -> None:
        """Keep *reply*, with the body *content*, where it may serve a later request.

        *kind* is Chromium's word for what was requested.
        """
        until = self._fresh_until(reply, kind)
        names = _varying(reply.fields)
        if request.method != "GET" or len(content) > LARGEST or until <= self._clock() or b"*" in names:
            return
        self._drop(request.url)
        varies = {name: request.field(name) for name in names}
        size = len(request.url) + len(content) + _size_of(reply.fields)
        self._kept[request.url] = _KeptResponse(reply._replace(body=()), content, varies, until, size)
        self._bytes += size
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._kept)))

    def _known(self, request: BrowserRequest) -> ProxyReply | None:
        kept = self._kept.get(request.url)
        if kept is None:
            return None
        if kept.until != _ALWAYS and b"no-cache" in request.field(b"cache-control"):
            return None
        if kept.until <= self._clock():
            self._drop(request.url)
            return None
        if any(request.field(name) != value for name, value in kept.varies.items()):
            return None
        self._kept.move_to_end(request.url)
        return kept.reply._replace(body=(kept.content,))

    def _drop(self, url: str) -> None:
        kept = self._kept.pop(url, None)
        if kept is not None:
            self._bytes -= kept.size

    def _fresh_until(self, reply: ProxyReply, kind: str) -> float:
        """Return the moment up to which *reply* may be given again; long past where it may not."""
        if reply.status not in _LASTING:
            return 0.0
        fields = {name.lower(): value for name, value in reply.fields}
        if is_requisite(kind, fields.get(b"content-type", b"")):
            return _ALWAYS
        control = fields.get(b"cache-control", b"").lower()
        age = fields.get(b"age", b"")
        found = _MAX_AGE.search(control)
        if found is None or b"no-store" in control or b"no-cache" in control:
            return 0.0
        passed = int(age) if age.isdigit() and len(age) < 10 else 0
        return self._clock() + int(found[1]) - passed


_ALWAYS = float("inf")


def is_requisite(kind: str, type_: bytes) -> bool:
    """Return whether what was requested as *kind*, and came as Content-Type *type_*, is a requisite."""
    return kind in _REQUISITES or _REQUISITE_TYPE.match(type_) is not None


def _size_of(fields: Sequence[tuple[bytes, bytes]]) -> int:
    """Return how many bytes a response without a body, and with *fields*, takes in memory."""
    return _EACH + sum(_EACH_FIELD + len(name) + len(value) for name, value in fields)


def _varying(fields: Sequence[tuple[bytes, bytes]]) -> set[bytes]:
    names = b",".join(value for name, value in fields if name.lower() == b"vary").lower().split(b",")
    # The codings that Chromium accepts differ between http and https alone, and the URL says which.
    return {name.strip() for name in names} - {b"", b"accept-encoding"}


_MOST_URLS = 100_000
_COLUMNS = (
    "url", "status", "fetched_at", "content_type", "body_length", "warc_file", "warc_offset",
    "original_url", "page", "resource_type",
)  # fmt: skip


class _WhereKept(NamedTuple):
    """Where the record of a requisite is, and what it was requested as."""

    directory: Path
    warc_file: str
    offset: int
    kind: str


class EarlierResponses:
    """The requisites in the archives of the directories that *directories* returns.

    What was fetched before *since* (Unix milliseconds) is left out.
    """

    def __init__(self, directories: Callable[[], list[Path]], *, since: int = 0) -> None:
        self._directories = directories
        self._since = since
        self._places: OrderedDict[str, _WhereKept] = OrderedDict()
        self._tables: set[Path] = set()
        self._read: dict[Path, int] = {}
        """How far each journal was read, in bytes."""
        self._reading = asyncio.Lock()

    async def find(self, url: str) -> KnownResponse | None:
        """Return what the archive has of *url*; None for nothing."""
        async with self._reading:
            return await asyncio.to_thread(self._found, url)

    def _found(self, url: str) -> KnownResponse | None:
        for directory in self._directories():
            try:
                self._look(directory)
            except (AmicrawlError, OSError):
                # It is sealed, or taken in, at this moment: a server can still be contacted.
                continue
        place = self._places.get(url)
        return None if place is None else _known_response(url, place)

    def _look(self, directory: Path) -> None:
        """Note the requisites in *directory* that are new since the last look."""
        table = directory / TABLE_NAME
        if directory not in self._tables:
            self._tables.add(directory)
            if table.exists():
                with opened_index(table) as index:
                    there = [name for name in _COLUMNS if name in index.schema.names]
                    for batch in index.batches(there):
                        for row in batch.to_pylist():
                            self._note(directory, row)
        for journal in sorted(directory.glob(f"captures-*{OPEN_SUFFIX}")):
            for line in self._lines(journal):
                if (noted := row_in(line)) is not None:
                    self._note(directory, noted)

    def _lines(self, journal: Path) -> Iterator[bytes]:
        """Yield the whole lines of *journal* that were not read yet."""
        with journal.open("rb") as stream:
            stream.seek(self._read.get(journal, 0))
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                self._read[journal] = self._read.get(journal, 0) + len(line)
                yield line

    def _note(self, directory: Path, row: Mapping[str, Any]) -> None:
        is_usable = (
            row.get("page")
            and row["status"] == 200
            and not row.get("original_url")
            and row["body_length"] <= LARGEST
            and row["fetched_at"] >= self._since
        )
        type_ = row["content_type"].encode("latin-1", "replace")
        if is_usable and is_requisite(row["resource_type"], type_):
            place = _WhereKept(directory, row["warc_file"], row["warc_offset"], row["resource_type"])
            self._places[row["url"]] = place
            if len(self._places) > _MOST_URLS:
                self._places.popitem(last=False)


def _known_response(url: str, place: _WhereKept) -> KnownResponse | None:
    """Return what the record at *place* is for *url*; None where it cannot be read any more."""
    item = stored(place.directory, place.warc_file, place.offset)
    if item is None or item.capture.status != 200 or item.capture.url != url:
        return None
    try:
        content = b"".join(item.capture.payload())
    except OSError:
        return None
    path = place.directory / place.warc_file
    if not path.exists():
        path = path.with_name(path.name + OPEN_SUFFIX)
    block = request_before(path, place.offset) or b""
    request = BrowserRequest("GET", url, header_fields(block))
    return KnownResponse(
        request, ProxyReply(200, item.capture.fields, (), len(content)), content, place.kind
    )
