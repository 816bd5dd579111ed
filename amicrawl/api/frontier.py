"""A frontier, to look at: every URL that a crawl knows, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from amicrawl.errors import InputError
from amicrawl.meguri import LiveSource, find_url, partition_in, status_name, string_at

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from amicrawl.meguri import RowSource

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = (
    *("url_ref", "status", "depth", "priority", "first_seen", "last_crawled", "last_changed"),
    *("next_due", "crawl_count", "change_count", "http_status", "error_count"),
)
_BATCH = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontierRow:
    """A URL and where it stands. Moments have the frontier's precision, an hour; None is never."""

    url: str
    """Empty where the frontier holds its key alone."""
    status: str
    """As `amicrawl frontier ls` shows it: discovered, crawled, gone ..."""
    depth: int
    """Links from a start URL."""
    priority: float
    first_seen: datetime | None
    last_crawled: datetime | None
    last_changed: datetime | None
    next_due: datetime | None
    crawl_count: int
    change_count: int
    http_status: int
    """The last one; 0 where no response came."""
    error_count: int


class Frontier:
    """A frontier as it stood when it was opened: iterate over its rows, or look up one."""

    def __init__(self, path: Path, source: RowSource) -> None:
        """*source* are the rows at *path*; `amicrawl.open_frontier` opens them."""
        self.path = path
        self._source = source

    def __len__(self) -> int:
        return len(self._source.url_column("status"))

    def __iter__(self) -> Iterator[FrontierRow]:
        for start in range(0, len(self), _BATCH):
            yield from self._rows(np.arange(start, min(start + _BATCH, len(self))))

    def __repr__(self) -> str:
        return f"amicrawl.open_frontier({str(self.path)!r})"

    def get(self, url: str) -> FrontierRow | None:
        """Return the row of *url*, in any spelling of its canonical form; None where there is none."""
        match = find_url(self._source, url)
        return None if match is None else next(self._rows(np.array([match.row])))

    def counts(self) -> dict[str, int]:
        """Return how many rows have each status, the most frequent first."""
        states, numbers = np.unique(self._source.url_column("status"), return_counts=True)
        found = {status_name(int(state)): int(n) for state, n in zip(states, numbers, strict=True)}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _rows(self, indexes: np.ndarray) -> Iterator[FrontierRow]:
        columns = self._source.rows(indexes, _COLUMNS)
        arena = self._source.arena()
        for values in zip(*(columns[name].tolist() for name in _COLUMNS), strict=True):
            row: dict[str, Any] = dict(zip(_COLUMNS, values, strict=True))
            url = string_at(arena, row.pop("url_ref")) or b""
            row |= {name: _moment(row[name]) for name in _COLUMNS[4:8]}
            status = status_name(row.pop("status"))
            yield FrontierRow(url=url.decode("utf-8", "replace"), status=status, **row)


def open_frontier(path: str | os.PathLike[str]) -> Frontier:
    """Open the frontier of the crawl in the directory *path*, a frontier's directory or its file.

    It is read whole, and may be that of a running crawl. Raises InputError where there is none,
    DamagedFileError where it cannot be read.
    """
    place = Path(path)
    if not place.exists():
        raise InputError(f"{place} is not there. Give a crawl's output directory or a frontier file.")
    return Frontier(place, LiveSource(partition_in(place)))


def _moment(hours: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(hours=hours) if hours else None
    except OverflowError:
        return None
