"""Figures: the counters of a job, from the rows of its index. The same rows give the same figures.

They are absolute: what the directory already holds when the crawl begins, and what this process adds.
So a crawl that is resumed anywhere tells the right ones, and telling them twice changes nothing.

    r1xx .. r5xx       rows with that status; `runk`: rows that were asked for and got no answer
    error_count        rows with 500 and above, without an answer, or cut off in the middle
    bytes_downloaded   payloads as received: transfer coding removed, content coding kept
    items_downloaded   rows, those included that were left out by a rule without asking anybody
    items_queued       that, and what waits; requests in flight are in neither

Two things differ from ArchiveBot, which counts attempts: a fetch that is to be tried again has no row
yet, so it counts once it is settled; and content coding is not undone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.capture import Failure, Truncation
from amicrawl.parquet import ParquetTable

if TYPE_CHECKING:
    from amicrawl.record import CaptureItem

_CLASSES = {1: "r1xx", 2: "r2xx", 3: "r3xx", 4: "r4xx", 5: "r5xx"}
_BROKEN_OFF = frozenset({Truncation.DISCONNECT, Truncation.TIME, Truncation.UNSPECIFIED})
_NEVER_ASKED = frozenset(failure.value for failure in Failure if failure.never_asked)
_COLUMNS = ["status", "error", "body_length", "truncated"]


@dataclass(slots=True)
class Figures:
    """Sums over rows of the index."""

    r1xx: int = 0
    r2xx: int = 0
    r3xx: int = 0
    r4xx: int = 0
    r5xx: int = 0
    runk: int = 0
    error_count: int = 0
    bytes_downloaded: int = 0
    items_downloaded: int = 0

    def count(self, item: CaptureItem) -> None:
        """Add the row of *item*."""
        capture = item.capture
        never_asked = capture.failure is not None and capture.failure.never_asked
        broken = capture.failure is not None or capture.truncated in _BROKEN_OFF
        self.add(capture.status, never_asked=never_asked, is_broken=broken, size=item.body_length)

    def add(self, status: int, *, never_asked: bool, is_broken: bool, size: int, rows: int = 1) -> None:
        """Add *rows* rows alike, of *size* bytes together."""
        self.items_downloaded += rows
        self.bytes_downloaded += size
        if never_asked:
            return
        name = _CLASSES.get(status // 100, "runk")
        setattr(self, name, getattr(self, name) + rows)
        if is_broken or status >= 500:
            self.error_count += rows

    def plus(self, other: Figures) -> Figures:
        """Return the sums over both."""
        names = [each.name for each in fields(self)]
        return Figures(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def as_fields(self, *, waiting: int) -> dict[str, str | int]:
        """Return the fields of the job record, given how many URLs are *waiting*."""
        counted: dict[str, str | int] = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**counted, "items_queued": self.items_downloaded + waiting}


def figures_in(index: BinaryIO) -> Figures:
    """Return the figures of an index, `captures.parquet`; reads all of it, some columns only."""
    found = Figures()
    for batch in ParquetTable(index, "captures.parquet").batches(_COLUMNS):
        kinds = batch.column("error")
        # The details of an error are worth nothing here, and nearly all are different.
        failure = pc.list_element(pc.split_pattern(kinds, ":", max_splits=1), 0)
        place = batch.schema.get_field_index("error")
        table = pa.Table.from_batches([batch.set_column(place, "error", failure)])
        grouped = table.group_by(["status", "error", "truncated"])
        for row in grouped.aggregate([("body_length", "sum"), ("body_length", "count")]).to_pylist():
            found.add(
                row["status"],
                never_asked=row["error"] in _NEVER_ASKED,
                is_broken=not row["status"] or row["truncated"] in _BROKEN_OFF,
                size=row["body_length_sum"],
                rows=row["body_length_count"],
            )
    return found
