"""What a crawl that runs did so far: its figures, its latest rows, its latest pages in a browser.

The index and the journals that are not in it yet are read again only where something is new. Nothing
here writes.
"""

from __future__ import annotations

from collections import deque
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from amicrawl.archive.report.crawl_figures import (
    COLUMNS,
    ROWS,
    CrawlFigures,
    add_batch,
    batch_of,
    without_nulls,
)
from amicrawl.record import opened_index_files, row_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.parquet import ParquetTable
    from amicrawl.record import CaptureIndex

_TAIL = (
    *("url", "status", "fetched_at", "error", "page", "resource_type", "meta_json"),
    *("warc_file", "warc_offset", "warc_length", "record_id"),
)
"""What is shown of the rows that came last."""
_SEARCHED = 5000
"""Rows of the end of a table among which pages are looked for."""
_BLOCK = 4 << 20
_LONGEST_LINE = 64 << 20
"""Bytes of the longest row that is read beyond a block: one may have megabytes of metadata."""


class LatestRows:
    """The rows of an index that came last, and the pages in a browser among them."""

    ROWS = 60
    PAGES = 24

    def __init__(self) -> None:
        self.rows: deque[dict[str, Any]] = deque(maxlen=self.ROWS)
        """The rows that came last, the newest at the end."""
        self.pages: deque[dict[str, Any]] = deque(maxlen=self.PAGES)
        """The pages in a browser that came last; `begins` is where the record before ends, or None."""
        self._ends: dict[str, int] = {}
        """By WARC file, where the last record ends that a row names."""

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Add *rows*, which came after those before."""
        self.rows.extend(rows)
        for row in rows:
            name = row["warc_file"]
            if row["resource_type"] == "document" and row["page"] == row["url"]:
                self.pages.append({**row, "begins": self._ends.get(name)})
            if name:
                self._ends[name] = row["warc_offset"] + row["warc_length"]

    def add_end_of(self, index: ParquetTable) -> None:
        """Add some thousand rows at the end of *index*."""
        for batch in index.batches(_TAIL, rows=ROWS, groups=[*range(index.groups)][-1:]):
            self.add(without_nulls(batch).slice(max(0, batch.num_rows - _SEARCHED)).to_pylist())


class LiveFigures:
    """The figures of a crawl that runs: each `update` reads what is new in its index, and no more.

    Of a crawl in several processes, those of all of them. Where the journals were made a part of
    `captures.parquet`, counting begins anew.
    """

    def __init__(self, directory: Path) -> None:
        """*directory* is the output directory of a crawl, which may still be empty."""
        self._directory = directory
        self._tables: list[tuple[int, int, int]] = []
        self._read_up_to: dict[Path, int] = {}
        self.figures = CrawlFigures()
        self.latest = LatestRows()

    def update(self) -> CrawlFigures:
        """Return the figures as they are now. Raises as `figures_of` does; an index may be missing."""
        with opened_index_files(self._directory) as (tables, unread):
            self._add_new(tables)
            for journal in unread:
                self._read(journal)
        return self.figures

    def _add_new(self, tables: Sequence[CaptureIndex]) -> None:
        """Count the rows of *tables*, unless they were counted and each journal then read is there."""
        stats = [table.stat() for table in tables]
        seen = [(each.st_mtime_ns, each.st_size, each.st_ino) for each in stats]
        if seen != self._tables or any(not path.exists() for path in self._read_up_to):
            self._tables, self.figures, self._read_up_to = [], CrawlFigures(), {}
            self.latest = LatestRows()
            for index in tables:
                for batch in index.batches(COLUMNS, rows=ROWS):
                    add_batch(self.figures, without_nulls(batch))
                self.latest.add_end_of(index)
            # Not before: what could not be read is read again.
            self._tables = seen

    def _read(self, stream: BinaryIO) -> None:
        """Count the lines of a journal that came since; one that is still being written comes later."""
        journal = Path(stream.name)
        while True:
            stream.seek(self._read_up_to.get(journal, 0))
            block = stream.read(_BLOCK) + stream.readline(_LONGEST_LINE)
            end = block.rfind(b"\n") + 1
            if not end:
                return
            self._read_up_to[journal] = self._read_up_to.get(journal, 0) + end
            rows = [row for line in block[:end].splitlines() if (row := row_in(line)) is not None]
            if rows:
                self.latest.add(rows)
                add_batch(self.figures, batch_of(rows))


def latest_pages(directory: Path) -> list[dict[str, Any]]:
    """Return the pages in a browser that came last in the crawl in *directory*, as `LatestRows.pages`.

    The end of the index and of each journal is read, and no more. Raises DamagedFileError where the
    index cannot be read.
    """
    rows = LatestRows()
    with opened_index_files(directory) as (tables, unread):
        for index in tables:
            rows.add_end_of(index)
        for journal in unread:
            journal.seek(max(0, journal.seek(0, SEEK_END) - _BLOCK))
            lines = journal.read(_BLOCK).splitlines()
            rows.add([row for line in lines if (row := row_in(line)) is not None])
    return list(rows.pages)
