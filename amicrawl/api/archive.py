"""An archive read: its captures as typed rows, and the messages behind them.

Rows come from `captures.parquet` and from the journals of a crawl that is running or was killed; a batch
of them is in memory at a time. Messages are read from the WARC files when they are requested. All that
comes from servers is untrusted; bodies have a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.api.revisited import RevisitedRecords
from amicrawl.discovery import charset_of, decoded
from amicrawl.disk import OPEN_SUFFIX
from amicrawl.errors import InputError, UsageError
from amicrawl.listing import TABLE_NAME, read_history
from amicrawl.message import final_head, status_of
from amicrawl.record import CAPTURES, capture_batches, request_before, stored
from amicrawl.urls import Fetchable, fetchable

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd
    import polars as pl

    from amicrawl.listing import CrawlHistory
    from amicrawl.record import CaptureItem

BODY_LIMIT = 64 << 20
"""Bytes of a body, and of a decoded one, that are kept in memory; a longer one is read in blocks."""


class Headers(Mapping[str, str]):
    """Header fields in their order; names are found in any case, and of repeated ones the first."""

    def __init__(self, fields: Sequence[tuple[bytes, bytes]]) -> None:
        self.fields: list[tuple[str, str]] = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in fields
        ]
        """Names as sent and values, repeated ones included; bytes as Latin-1."""
        self._first = {name.lower(): value for name, value in reversed(self.fields)}

    def __getitem__(self, name: str) -> str:
        return self._first[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)

    def all(self, name: str) -> list[str]:
        """Return all values of the field *name*, in their order."""
        return [value for known, value in self.fields if known.lower() == name.lower()]

    def __repr__(self) -> str:
        return f"Headers({self.fields!r})"


@dataclass(frozen=True)
class Request:
    """A request as it was sent."""

    raw: bytes
    """Head and body, byte for byte."""

    @property
    def method(self) -> str:
        """The method, as `GET`."""
        return self._first_line[0]

    @property
    def target(self) -> str:
        """The target of the request line."""
        return self._first_line[1]

    @cached_property
    def headers(self) -> Headers:
        """The header fields."""
        from amicrawl.message import header_fields  # noqa: PLC0415  # most readers look at responses

        return Headers(header_fields(self._head))

    @property
    def body(self) -> bytes:
        """Everything behind the head."""
        return self.raw[len(self._head) :]

    @property
    def _head(self) -> bytes:
        head, blank, _ = self.raw.partition(b"\r\n\r\n")
        return head + blank

    @property
    def _first_line(self) -> tuple[str, str]:
        words = self.raw.partition(b"\r\n")[0].decode("latin-1").split(" ")
        return words[0], words[1] if len(words) > 1 else ""


class Response:
    """A response as it was received. Of a revisit, the payload is that of the capture it refers to."""

    def __init__(self, item: CaptureItem, path: Path, payload_of: Response | None = None) -> None:
        self._capture = item.capture
        self._path = path
        self._item = item
        self._payload_of = payload_of
        self.status: int = item.capture.status
        """The status code; 200 for an HTTP/0.9 response."""

    @cached_property
    def headers(self) -> Headers:
        """The header fields of the final response."""
        return Headers(self._capture.fields)

    @property
    def reason(self) -> str:
        """The reason phrase of the status line; empty where there is none."""
        line = final_head(self._capture.head).partition(b"\n")[0].strip()
        words = line.decode("latin-1").split(" ", 2)
        return words[2] if len(words) > 2 and status_of(line + b"\r\n") is not None else ""

    @cached_property
    def raw(self) -> bytes:
        """The bytes as received: interim responses, head and body with its transfer coding.

        Raises InputError where the body is longer than 64 MiB; `blocks` reads it whole.
        """
        return self._capture.head + _limited(self._capture.body.blocks(), self._capture.url)

    def blocks(self) -> Iterator[bytes]:
        """Yield the payload, without transfer coding and with content coding, of any length."""
        source = self if self._payload_of is None else self._payload_of
        yield from source._capture.payload()  # noqa: SLF001  # of its own class

    @cached_property
    def content(self) -> bytes:
        """The payload without transfer coding and content coding; a broken coding ends it early.

        Raises InputError where it is longer than 64 MiB.
        """
        source = self._payload_of or self
        codings = ",".join(source.headers.all("content-encoding")).encode("latin-1")
        if not codings:
            return _limited(self.blocks(), self._capture.url)
        content = decoded(self.blocks(), codings, limit=BODY_LIMIT + 1)
        return _limited(iter([content]), self._capture.url)

    @property
    def text(self) -> str:
        """The content decoded by its byte order mark, Content-Type or own declaration, else as UTF-8.

        What does not decode becomes U+FFFD. Raises as `content`.
        """
        source = self._payload_of or self
        charset = charset_of(self.content, source.headers.get("content-type", ""))
        return self.content.decode(charset, "replace").removeprefix("\ufeff")

    @cached_property
    def request(self) -> Request | None:
        """The request that was sent for it; None where the archive has none."""
        assert self._item.location is not None
        raw = request_before(self._path, self._item.location.offset)
        return None if raw is None else Request(raw)

    def __repr__(self) -> str:
        return f"<Response {self.status} {self._capture.url}>"


@dataclass(frozen=True, kw_only=True, slots=True)
class Capture:
    """A row of the index of captures: one request, and what came of it.

    Every column has the meaning of docs/output.md; text that is not known is empty.
    """

    url: str
    host: str
    status: int
    """0 where no response came; then `error` says why."""
    fetched_at: int
    """When the response was complete, in Unix milliseconds."""
    content_type: str
    body_length: int
    """Bytes."""
    digest: str
    """SHA-1 of the payload, hex."""
    unchanged: bool
    warc_file: str
    warc_offset: int
    warc_length: int
    error: str
    meta_json: str
    etag: str
    last_modified: str
    final_url: str
    ip_address: str
    protocol: str
    ttfb_ms: int | None
    duration_ms: int
    truncated: str
    record_id: str
    attempts: int
    payload_digest: str
    original_url: str
    original_at: int
    via: str
    link: str
    hops: int
    page: str
    resource_type: str
    _archive: Archive = field(repr=False, compare=False)

    @property
    def fetched(self) -> datetime:
        """When the response was complete; aware, UTC."""
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.fetched_at)

    @property
    def is_revisit(self) -> bool:
        """Whether the payload is stored with an earlier capture."""
        return bool(self.original_url or self.original_at)

    @property
    def response(self) -> Response | None:
        """The response, read from its WARC file; None where none came.

        Raises InputError where the file is not there, or has no such record.
        """
        return self._archive.response_of(self)


class Archive:
    """What a crawl left in a directory: iterate over its captures, or look some up."""

    def __init__(self, directory: Path) -> None:
        """*directory* is the output directory of a crawl; `amicrawl.open` checks that."""
        self.path = directory
        self._revisited = RevisitedRecords(directory)

    def __iter__(self) -> Iterator[Capture]:
        return self.query()

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in capture_batches(self.path, columns=["status"]))

    def __repr__(self) -> str:
        return f"amicrawl.open({str(self.path)!r})"

    @property
    def history(self) -> CrawlHistory:
        """How the crawl went: its starts and ends, and a moment in so many seconds of each.

        Of a crawl that runs, up to now; empty where `history.jsonl` is not there.
        """
        return read_history(self.path)

    def by_url(self, url: str) -> list[Capture]:
        """Return the captures of *url*, the oldest first.

        A URL is found as it was requested, or as it would be: `http://example.org` is
        `http://example.org/`, too.
        """
        requested = fetchable(url)
        names = {url, requested.url, requested.wire_url} if isinstance(requested, Fetchable) else {url}
        wanted = pc.field("url").isin(sorted(name for name in names if _is_text(name)))
        return sorted(self.query(wanted), key=lambda capture: capture.fetched_at)

    def query(self, condition: pc.Expression | None = None, **equal: object) -> Iterator[Capture]:
        """Yield the captures of which *condition* is true, an expression of Arrow, and *equal* columns.

        For example `archive.query(pc.field("body_length") > 10_000, status=200)`. Raises UsageError for
        an unknown column, or a value that cannot be compared with it.
        """
        for batch in self._batches(condition, equal):
            for row in batch.to_pylist():
                yield Capture(**row, _archive=self)

    def to_arrow(self, condition: pc.Expression | None = None, **equal: object) -> pa.Table:
        """Return the captures, all or those of `query`, as a table of Arrow."""
        return pa.Table.from_batches(list(self._batches(condition, equal)), schema=CAPTURES)

    def to_pandas(self, condition: pc.Expression | None = None, **equal: object) -> pd.DataFrame:
        """Return the captures, all or those of `query`, as a DataFrame of pandas, if it is installed."""
        frame: pd.DataFrame = _installed("pandas") and self.to_arrow(condition, **equal).to_pandas()
        return frame

    def to_polars(self, condition: pc.Expression | None = None, **equal: object) -> pl.DataFrame:
        """Return the captures, all or those of `query`, as a DataFrame of polars, if it is installed."""
        frame: pl.DataFrame = _installed("polars").from_arrow(self.to_arrow(condition, **equal))
        return frame

    def response_of(self, capture: Capture) -> Response | None:
        """Return the response of *capture*; as `Capture.response`."""
        if not capture.warc_file:
            return None
        payload_of = None
        if capture.is_revisit and capture.original_url:
            place = self._revisited.find(capture.original_url, capture.original_at)
            if place is not None:
                payload_of = self._stored(place.file, place.offset, place.is_of)
        return self._stored(
            capture.warc_file, capture.warc_offset, capture.record_id.strip("<>").__eq__, payload_of
        )

    def _stored(
        self,
        file: str,
        offset: int,
        is_it: Callable[[str], bool],
        payload_of: Response | None = None,
    ) -> Response:
        """Return the response in *file* at *offset*, whose record ID without brackets *is_it*."""
        item = stored(self.path, file, offset)
        if item is None or not is_it(item.record_id.strip("<>")):
            raise InputError(
                f"{self.path / file} has no response at byte {offset}. "
                "Put the file back beside captures.parquet, or wait until the crawl has written it."
            )
        path = self.path / file
        return Response(item, path if path.exists() else Path(f"{path}{OPEN_SUFFIX}"), payload_of)

    def _batches(
        self, condition: pc.Expression | None, equal: Mapping[str, object]
    ) -> Iterator[pa.RecordBatch]:
        if unknown := equal.keys() - set(CAPTURES.names):
            raise UsageError(f"There is no column {', '.join(sorted(unknown))} in an index of captures.")
        for name, value in equal.items():
            try:
                condition = _both(condition, pc.field(name) == value)
            except (ValueError, TypeError, NotImplementedError, OverflowError) as error:
                raise UsageError(f"{value!a} cannot be compared with {name}: {error}") from error
        for batch in capture_batches(self.path):
            if condition is None:
                yield batch
                continue
            try:
                chosen: Any = batch.filter(condition)
            except MemoryError:  # Arrow's is an ArrowException, too
                raise
            except (pa.ArrowException, TypeError) as error:
                raise UsageError(f"The condition does not fit the columns: {error}") from error
            if chosen.num_rows:
                yield chosen


def open_archive(path: str | os.PathLike[str]) -> Archive:
    """Open the archive in the directory *path*, or beside the `captures.parquet` at *path*.

    A crawl that is running is read as it stands. Raises InputError where there is no crawl.
    """
    place = Path(path)
    directory = place.parent if place.name == TABLE_NAME and place.is_file() else place
    if not directory.is_dir():
        raise InputError(f"{place} is not there. Give the output directory of a crawl.")
    if not (directory / TABLE_NAME).exists() and next(directory.glob("captures-*.open"), None) is None:
        raise InputError(
            f"{place} has no {TABLE_NAME}. Give the output directory of a crawl; for other WARC files "
            "there is amicrawl.index."
        )
    return Archive(directory)


def _both(one: pc.Expression | None, other: pc.Expression) -> pc.Expression:
    return other if one is None else one & other


def _is_text(name: str) -> bool:
    """Return whether *name* is without half a surrogate pair, which no index has."""
    return name.encode(errors="ignore").decode() == name


def _limited(blocks: Iterator[bytes], url: str) -> bytes:
    """Return *blocks* as one; InputError where they are more than `BODY_LIMIT` bytes."""
    whole = bytearray()
    for block in blocks:
        whole += block
        if len(whole) > BODY_LIMIT:
            raise InputError(
                f"The body of {url!a} has more than {BODY_LIMIT >> 20} MiB. Read it with blocks()."
            )
    return bytes(whole)


def _installed(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415  # for two methods

    try:
        return import_module(name)
    except ImportError:
        raise UsageError(f"{name} is not installed. Install it, or use to_arrow().") from None
