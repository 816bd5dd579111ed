"""Earlier: requisites that the archive has of before, or of another process of the crawl.

Their rows are read from the index of each directory once, and from its journals as they grow.
A row is in a journal when its record is in its file, so that what is found here is never lost by a kill.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.browser.archived_responses import LARGEST, KnownResponse, is_requisite
from amicrawl.browser.proxy import BrowserRequest, ProxyReply
from amicrawl.disk import OPEN_SUFFIX
from amicrawl.errors import AmicrawlError
from amicrawl.listing import TABLE_NAME
from amicrawl.message import header_fields
from amicrawl.record import opened_index, request_before, row_in, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

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
