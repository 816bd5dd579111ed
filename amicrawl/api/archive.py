"""An archive read: its captures as typed rows, and the responses behind them.

Rows come from `captures.parquet` and from the journals of a crawl that is running or was killed; a batch
of them is in memory at a time. Messages are read from the WARC files when they are requested.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.api.messages import Response
from amicrawl.api.revisited import RevisitedRecords
from amicrawl.disk import OPEN_SUFFIX
from amicrawl.errors import InputError, UsageError
from amicrawl.listing import TABLE_NAME, read_history
from amicrawl.record import CAPTURES, capture_batches, stored
from amicrawl.urls import Fetchable, fetchable

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    import pandas as pd
    import polars as pl

    from amicrawl.listing import CrawlHistory


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


def _installed(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415  # for two methods

    try:
        return import_module(name)
    except ImportError:
        raise UsageError(
            f"This needs {name}. Run: pip install 'amicrawl[dataframes]', or use to_arrow()."
        ) from None
