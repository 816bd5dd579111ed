"""The account of a job: what its index says of it, and how that gets into the record and the log.

The index has a row for every fetch, so figures and download entries follow from it. A crawl counts both
as it goes and reports them; what did not arrive, because Redis was away at the end or the machine of an
earlier attempt died, is settled from here by the process that reports the end of the job.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.capture import Failure, Truncation
from amicrawl.fleet.database import hash_at
from amicrawl.fleet.logs import MOST_ENTRIES, Download, Entry, encoded, entries_after, parsed, say
from amicrawl.listing import TABLE_NAME
from amicrawl.parquet import ParquetTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from amicrawl.fleet.database import JobStore
    from amicrawl.record import CaptureItem

BROKEN_OFF = frozenset({Truncation.DISCONNECT, Truncation.TIME, Truncation.UNSPECIFIED})
"""Why a body may have ended too soon, other than by a limit of the crawl."""

_CLASSES = {1: "r1xx", 2: "r2xx", 3: "r3xx", 4: "r4xx", 5: "r5xx"}
_NEVER_REQUESTED = frozenset(failure.value for failure in Failure if failure.never_requested)
_COUNTED = ["status", "error", "body_length", "truncated"]
_LOGGED = ["url", "status", "fetched_at", "error", "truncated"]
_STEP = 0.000_001
_LONGEST_WORD = 300
_LONGEST_NUMBER = 19
_COMPARED = 1000
"""Characters by which the URLs of two entries are compared: a log may have cut a longer one."""
_ENTRIES_A_CALL = 500
_MOST_PAGES = 20


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
        never_requested = capture.failure is not None and capture.failure.never_requested
        broken = capture.failure is not None or capture.truncated in BROKEN_OFF
        self.add(
            capture.status, never_requested=never_requested, is_broken=broken, size=item.body_length
        )

    def add(
        self, status: int, *, never_requested: bool, is_broken: bool, size: int, rows: int = 1
    ) -> None:
        """Add *rows* rows alike, of *size* bytes together."""
        self.items_downloaded += rows
        self.bytes_downloaded += size
        if never_requested:
            return
        name = _CLASSES.get(status // 100, "runk")
        setattr(self, name, getattr(self, name) + rows)
        if is_broken or status >= 500:
            self.error_count += rows

    @property
    def requested(self) -> int:
        """Requests that have ended, with a response or without one."""
        return self.r1xx + self.r2xx + self.r3xx + self.r4xx + self.r5xx + self.runk

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
    for batch in ParquetTable(index, "captures.parquet").batches(_COUNTED):
        kinds = batch.column("error")
        # The details of an error are worth nothing here, and nearly all are different.
        failure = pc.list_element(pc.split_pattern(kinds, ":", max_splits=1), 0)
        place = batch.schema.get_field_index("error")
        table = pa.Table.from_batches([batch.set_column(place, "error", failure)])
        grouped = table.group_by(["status", "error", "truncated"])
        for row in grouped.aggregate([("body_length", "sum"), ("body_length", "count")]).to_pylist():
            found.add(
                row["status"],
                never_requested=row["error"] in _NEVER_REQUESTED,
                is_broken=not row["status"] or row["truncated"] in BROKEN_OFF,
                size=row["body_length_sum"],
                rows=row["body_length_count"],
            )
    return found


@dataclass(frozen=True, slots=True)
class Account:
    """What the index of one job says."""

    figures: Figures
    downloads: list[Download] = field(default_factory=list)
    """The last rows that were requested, as many as a log keeps, in the order of the index."""


def account_of(directory: Path) -> Account | None:
    """Return the account of the job whose crawl into *directory* has ended; None without an index.

    Reads all of the index. Raises InputError where it cannot be read as one, and OSError.
    """
    path = directory / TABLE_NAME
    if not path.exists():
        return None
    with path.open("rb") as index:
        figures = figures_in(index)
        index.seek(0)
        return Account(figures, _last_downloads(index, MOST_ENTRIES))


def settle(store: JobStore, ident: str, token: int, account: Account, unsent: Sequence[str] = ()) -> int:
    """Write the figures of *account* into the record, and the entries that its log lacks behind it.

    *unsent* are entries, as texts, that the crawl could not send. Nothing is written unless the claim
    *token* holds the job. May be repeated. Return how many entries were added. Raises RedisUnavailable.
    """
    record = hash_at(store, store.keys.job(ident))
    counted = account.figures.as_fields(waiting=0)
    queued = record.get("items_queued", "")
    if queued.isascii() and queued.isdigit() and len(queued) < _LONGEST_NUMBER:
        # A crawl that has reached a limit leaves URLs in its queue, which the index does not have.
        counted["items_queued"] = max(int(queued), account.figures.items_downloaded)
    missing = _missing(store, ident, record, account, unsent)
    entries = [*map(encoded, missing), *unsent]
    for first in range(0, max(len(entries), 1), _ENTRIES_A_CALL):
        say(store, ident, token, entries[first : first + _ENTRIES_A_CALL], figures=counted)
    return len(entries)


def _last_downloads(index: BinaryIO, most: int) -> list[Download]:
    table = ParquetTable(index, TABLE_NAME)
    groups: list[list[Download]] = []
    left = most
    for group in reversed(range(table.groups)):
        found = [
            entry for batch in table.batches(_LOGGED, groups=[group]) for entry in _downloads(batch)
        ]
        groups.append(found[-left:])
        left -= len(groups[-1])
        if left <= 0:
            break
    return [entry for found in reversed(groups) for entry in found]


def _downloads(batch: pa.RecordBatch) -> Iterator[Download]:
    columns = [batch.column(name).to_pylist() for name in _LOGGED]
    for url, status, fetched_at, error, truncated in zip(*columns, strict=True):
        if error.partition(":")[0] in _NEVER_REQUESTED:
            continue
        word = error[:_LONGEST_WORD] or "OK"
        if not error and truncated in BROKEN_OFF:
            word = f"truncated: {truncated}"
        yield Download(fetched_at / 1000, url, status, word)


def _missing(
    store: JobStore, ident: str, record: Mapping[str, str], account: Account, unsent: Sequence[str]
) -> Iterator[Download]:
    """Yield the downloads of *account* that are not in the log and were not trimmed from it."""
    there: Counter[tuple[str, int]] = Counter()
    begins, score = 0.0, float("-inf")
    for number in range(_MOST_PAGES):
        page = entries_after(store, ident, score)
        if not number and page.entries and record.get("last_trimmed_log_entry", "0") not in {"", "0"}:
            begins = page.entries[0].entry.ts
        there.update(_names(logged.entry for logged in page.entries))
        if page.last == score:
            break
        score = page.last
    there.update(_names(map(parsed, unsent)))
    for number, entry in enumerate(account.downloads):
        if entry.ts < begins:
            continue
        if there[_name(entry)]:
            there[_name(entry)] -= 1
        else:
            # The index has milliseconds, and of two entries that differ in nothing a log keeps one.
            yield replace(entry, ts=round(entry.ts + number % 1000 * _STEP, 6))


def _names(entries: Iterable[Entry]) -> Iterator[tuple[str, int]]:
    return (_name(entry) for entry in entries if isinstance(entry, Download))


def _name(entry: Download) -> tuple[str, int]:
    return entry.url[:_COMPARED], entry.response_code
