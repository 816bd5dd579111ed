"""What one crawl did, counted from its index: when, how fast, what came, what failed, of which hosts.

Batches of columns are counted with numpy, so that ten million rows take well below a minute, and memory
depends on hosts and directories up to a limit, not on rows. Nothing here writes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.archive.report.crawl_change import UrlHashes, change_between
from amicrawl.capture import Failure
from amicrawl.errors import DamagedFileError, InputError
from amicrawl.listing import TABLE_NAME, CrawlHistory, read_crawl_json, read_history
from amicrawl.record import NAMES, opened_index_files, rows_in, unkept_sentences

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from amicrawl.archive.report.crawl_change import Change

CLASSES = ("2XX", "3XX", "4XX", "5XX", "no response", "not requested")
"""What each row of the index is one of."""
EXAMPLES = 3
"""URLs that are kept for each reason of a failure."""

_BIN = 1000
"""Milliseconds of the finest bin of time."""
_MOST_BINS = 4096
_YEAR_10000 = 253_402_300_800_000
"""Unix milliseconds; Python knows no dates from then on."""
_MOST_DIRECTORIES = 20_000
_MOST_HOSTS = 200_000
_MOST_NAMES = 10_000
"""Media types, and reasons, that are distinguished: a server may say another type each time."""
_NOT_REQUESTED = frozenset(str(failure) for failure in Failure if failure.never_requested)
_DIRECTORY = r"^[a-zA-Z][a-zA-Z0-9+.-]*://(?:[^/?#@]*@)?(?P<host>[^/?#]*)(?P<path>(?:/[^/?#]*){0,2}/)?"
ELSEWHERE = "(other)"
"""What hosts, directories, types and reasons beyond the first many thousands are counted as."""


@dataclass(slots=True)
class HostFigures:
    """What was fetched of one host."""

    rows: int = 0
    bytes: int = 0
    failed: int = 0
    first: int = 0
    """Unix milliseconds of the first fetch."""
    last: int = 0


@dataclass(slots=True)
class FailureReason:
    """Rows without a response for one reason."""

    rows: int = 0
    examples: list[str] = field(default_factory=list)
    """A few of the URLs."""


@dataclass(slots=True)
class CrawlFigures:
    """Everything that the report of a crawl shows."""

    crawl: dict[str, Any] = field(default_factory=dict)
    """`crawl.json`; empty where there is none."""
    rows: int = 0
    bytes: int = 0
    first: int = 0
    """Unix milliseconds of the first fetch; 0 without rows."""
    last: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    revisits: int = 0
    """Rows whose payload is stored under another URL."""
    statuses: Counter[int] = field(default_factory=Counter)
    types: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Rows and bytes by media type."""
    sizes: Counter[int] = field(default_factory=Counter)
    """Responses by the number of bits of their size in bytes."""
    hosts: dict[str, HostFigures] = field(default_factory=dict)
    failures: dict[str, FailureReason] = field(default_factory=dict)
    """By reason, requests that had no response."""
    withheld: dict[str, FailureReason] = field(default_factory=dict)
    """By reason, URLs that were not requested."""
    truncated: Counter[str] = field(default_factory=Counter)
    directories: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """Rows and bytes by host and directory, two levels deep."""
    bins: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Rows by class and by bin of time."""
    bin_ms: int = _BIN
    """Milliseconds of a bin."""
    change: Change | None = None
    notes: list[str] = field(default_factory=list)
    history: CrawlHistory = field(default_factory=lambda: CrawlHistory([], []))

    def coarsen(self) -> None:
        """Make bins of time so long that there are at most a few thousand."""
        while len(self.bins) > _MOST_BINS:
            self.bin_ms *= 4
            coarser: dict[int, Counter[str]] = defaultdict(Counter)
            for number, counts in self.bins.items():
                coarser[number // 4].update(counts)
            self.bins = coarser


def figures_of(directory: Path, *, older: Path | None = None) -> CrawlFigures:
    """Return the figures of the crawl in *directory*, compared with that in *older* if it is given.

    Raises InputError where a directory holds no crawl, DamagedFileError where its index cannot be read.
    """
    figures = CrawlFigures()
    try:
        figures.crawl = read_crawl_json(directory)
        figures.notes += unkept_sentences(figures.crawl.get("unkept"), str(directory))
    except DamagedFileError as error:
        figures.notes.append(f"crawl.json is {error.reason}; what it says is missing here")
    figures.history = read_history(directory)
    before = None
    if older is not None:
        read = UrlHashes()
        for batch in index_batches(older, figures.notes):
            read.add(batch)
        before = read.sorted()
        del read
    hashes = UrlHashes() if before is not None else None
    for batch in index_batches(directory, figures.notes):
        add_batch(figures, batch)
        if hashes is not None:
            hashes.add(batch)
    figures.coarsen()
    if hashes is not None and before is not None:
        figures.change = change_between(hashes.sorted(), before)
    return figures


def add_batch(figures: CrawlFigures, batch: pa.RecordBatch) -> None:
    """Count *batch*, one of those of `index_batches`, into *figures*."""
    status = _numbers(batch, "status")
    fetched = _numbers(batch, "fetched_at")
    sizes = _numbers(batch, "body_length")
    reasons = _reasons(batch, status)
    kinds = _classes(status, reasons)
    figures.rows += batch.num_rows
    figures.bytes += int(sizes.sum())
    figures.unchanged += pc.sum(batch.column("unchanged")).as_py() or 0
    moved: Any = pc.not_equal(batch.column("original_url"), pa.scalar(""))
    figures.revisits += pc.sum(moved).as_py() or 0
    _count(figures.statuses, status[status > 0])
    _count(figures.sizes, np.frexp(sizes[status > 0].astype(np.float64))[1])
    for number, count in zip(*np.unique(kinds, return_counts=True), strict=True):
        figures.classes[CLASSES[number]] += int(count)
    _add_times(figures, fetched, kinds)
    _add_hosts(figures, batch, fetched, sizes, failed=kinds == CLASSES.index("no response"))
    _add_types(figures, batch, status, sizes)
    _add_reasons(figures, batch, reasons)
    _add_directories(figures, batch, status, sizes)
    for each in _value_counts(batch.column("truncated")):
        if each["values"]:
            figures.truncated[_kept(each["values"], figures.truncated)] += each["counts"]


def _numbers(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    filled: Any = pc.cast(batch.column(name).fill_null(0), pa.int64())
    numbers: NDArray[np.int64] = np.frombuffer(filled.buffers()[1], np.int64)[filled.offset :]
    return numbers[: len(filled)]


def _reasons(batch: pa.RecordBatch, status: NDArray[np.int64]) -> dict[str, list[int]]:
    """Return the places of the rows without a response, by the first word of `error`."""
    places = np.flatnonzero(status == 0)
    chosen: Any = pa.array(places, pa.int64())
    errors = batch.column("error").take(chosen).to_pylist()
    found: dict[str, list[int]] = defaultdict(list)
    for place, error in zip(places.tolist(), errors, strict=True):
        found[(error or str(Failure.OTHER)).partition(":")[0][:60]].append(place)
    return found


def _classes(status: NDArray[np.int64], reasons: dict[str, list[int]]) -> NDArray[np.int64]:
    """Return the place in `CLASSES` of each row."""
    kinds = np.clip(status // 100 - 2, 0, 3)
    kinds[status == 0] = CLASSES.index("no response")
    for reason, places in reasons.items():
        if reason in _NOT_REQUESTED:
            kinds[places] = CLASSES.index("not requested")
    return kinds


def _add_times(figures: CrawlFigures, fetched: NDArray[np.int64], kinds: NDArray[np.int64]) -> None:
    are_known = _are_times(fetched)
    known = fetched[are_known]
    if not len(known):
        return
    first, last = int(known.min()), int(known.max())
    figures.first = min(figures.first or first, first)
    figures.last = max(figures.last, last)
    cells = known // figures.bin_ms * len(CLASSES) + kinds[are_known]
    for cell, count in zip(*map(np.ndarray.tolist, np.unique(cells, return_counts=True)), strict=True):
        number, kind = divmod(cell, len(CLASSES))
        figures.bins[number][CLASSES[kind]] += count
    figures.coarsen()


def _are_times(fetched: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which are times: 0 stands for an unknown one, and a damaged index may say anything."""
    return (fetched > 0) & (fetched < _YEAR_10000)


def _add_hosts(
    figures: CrawlFigures,
    batch: pa.RecordBatch,
    fetched: NDArray[np.int64],
    sizes: NDArray[np.int64],
    *,
    failed: NDArray[np.bool_],
) -> None:
    coded: Any = batch.column("host").dictionary_encode()
    names, codes = coded.dictionary.to_pylist(), _codes(coded)
    rows = np.bincount(codes, minlength=len(names))
    octets = np.bincount(codes, weights=sizes, minlength=len(names))
    failures = np.bincount(codes, weights=failed, minlength=len(names))
    firsts = np.full(len(names), np.iinfo(np.int64).max)
    lasts = np.zeros(len(names), np.int64)
    are_known = _are_times(fetched)
    np.minimum.at(firsts, codes[are_known], fetched[are_known])
    np.maximum.at(lasts, codes[are_known], fetched[are_known])
    # A line of a list that is not a URL has no host.
    for place, name in ((place, name) for place, name in enumerate(names) if name):
        kept = _kept(name, figures.hosts, _MOST_HOSTS)
        host = figures.hosts.setdefault(kept, HostFigures(first=int(firsts[place])))
        host.rows += int(rows[place])
        host.bytes += int(octets[place])
        host.failed += int(failures[place])
        host.first = min(host.first, int(firsts[place]))
        host.last = max(host.last, int(lasts[place]))


def _add_types(
    figures: CrawlFigures, batch: pa.RecordBatch, status: NDArray[np.int64], sizes: NDArray[np.int64]
) -> None:
    for name, rows, octets in _sums(batch.column("content_type"), sizes, status > 0):
        kind = name.partition(";")[0].strip().lower()[:100] or "(not stated)"
        _grow(figures.types, _kept(kind, figures.types), rows, octets)


def _add_reasons(figures: CrawlFigures, batch: pa.RecordBatch, reasons: dict[str, list[int]]) -> None:
    urls = batch.column("url")
    for name, places in reasons.items():
        group = figures.withheld if name in _NOT_REQUESTED else figures.failures
        reason = group.setdefault(_kept(name, group), FailureReason())
        reason.rows += len(places)
        for place in places[: EXAMPLES - len(reason.examples)]:
            reason.examples.append(str(urls[place]))


def _add_directories(
    figures: CrawlFigures, batch: pa.RecordBatch, status: NDArray[np.int64], sizes: NDArray[np.int64]
) -> None:
    parts: Any = pc.extract_regex(batch.column("url"), _DIRECTORY)
    joined: Any = pc.binary_join_element_wise(
        parts.field("host").fill_null(""), parts.field("path").fill_null("/"), "\t"
    )
    for name, rows, octets in _sums(joined, sizes, status > 0):
        host, _, path = name.partition("\t")
        key = (host, path or "/")
        if key not in figures.directories and len(figures.directories) >= _MOST_DIRECTORIES:
            key = (ELSEWHERE, "/")
        _grow(figures.directories, key, rows, octets)


def _sums(
    texts: Any, sizes: NDArray[np.int64], are_counted: NDArray[np.bool_]
) -> Iterator[tuple[str, int, int]]:
    """Yield each of *texts*, in how many of the rows that *are_counted* it is, and their bytes."""
    coded = texts.dictionary_encode()
    codes, names = _codes(coded)[are_counted], coded.dictionary.to_pylist()
    rows = np.bincount(codes, minlength=len(names))
    octets = np.bincount(codes, weights=sizes[are_counted], minlength=len(names))
    for place in np.flatnonzero(rows).tolist():
        yield names[place], int(rows[place]), int(octets[place])


def _grow(sums: dict[Any, tuple[int, int]], key: object, rows: int, octets: int) -> None:
    """Add *rows* and *octets* to what *sums* has of *key*."""
    before = sums.get(key, (0, 0))
    sums[key] = (before[0] + rows, before[1] + octets)


def _kept(name: str, known: Collection[str], most: int = _MOST_NAMES) -> str:
    """Return *name*, or what it counts as where *most* others are *known*."""
    return name if name in known or len(known) < most else ELSEWHERE


def _codes(coded: Any) -> NDArray[np.int32]:
    codes: NDArray[np.int32] = np.frombuffer(coded.indices.buffers()[1], np.int32)[coded.offset :]
    return codes[: len(coded)]


def _count(counter: Counter[int], numbers: NDArray[Any]) -> None:
    for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
        counter[int(number)] += int(count)


def _value_counts(column: Any) -> list[dict[str, Any]]:
    counted: Any = pc.value_counts(column)
    listed: list[dict[str, Any]] = counted.to_pylist()
    return listed


COLUMNS = (
    *("url", "host", "status", "fetched_at", "content_type", "body_length", "unchanged", "error"),
    *("truncated", "original_url", "digest"),
)
"""What is read of an index."""
ROWS = 65_536
"""Rows of a batch."""


def index_batches(directory: Path, notes: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the index in *directory*, and of journals that are not in it yet.

    Each batch has COLUMNS and no nulls. What could not be read is said in *notes* at the end. Raises
    InputError where *directory* holds no index, DamagedFileError where it cannot be read.
    """
    damaged: list[object] = []
    with opened_index_files(directory) as (tables, unread):
        if not tables and not unread:
            raise InputError(
                f"{directory} has no {TABLE_NAME}: it is not the output directory of a crawl. Give one."
            )
        for index in tables:
            yield from map(without_nulls, index.batches(COLUMNS, rows=ROWS))
        for journal in unread:
            rows = rows_in(journal, on_damage=damaged.append)
            while block := list(islice(rows, ROWS)):
                yield batch_of([dict(zip(NAMES, row, strict=True)) for row in block])
    if damaged:
        notes.append(f"{len(damaged):,} damaged lines of journals in {directory} are not counted")


def without_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return *batch* with what stands for unknown values; an index of ours has none but in `ttfb_ms`."""
    unknown: dict[pa.DataType, Any] = {pa.string(): "", pa.bool_(): False}
    columns: list[Any] = [
        column.fill_null(unknown.get(column.type, 0)) if column.null_count else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Return COLUMNS of *rows*, as a journal has them."""
    from amicrawl.record import CAPTURES  # noqa: PLC0415  # Arrow's schema, where a journal is read

    columns = [pa.array([row[name] for row in rows], CAPTURES.field(name).type) for name in COLUMNS]
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))
