"""FrontierWriter: the frontier's changes written to disk while the crawl runs.

What was written survives the process, what was forced to disk survives a power failure. Writing is
cheap and happens many times a second; forcing is slow and happens on a thread.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from amicrawl.config import Durability
from amicrawl.crawl.extension import CrawlExtension
from amicrawl.errors import AmicrawlError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run

_WRITE_EVERY = 0.05
_NOTE_EVERY = 1.0
_FORCE_EVERY = {Durability.NONE: float("inf"), Durability.NORMAL: 1.0, Durability.FULL: 0.0}


class FrontierWriter(CrawlExtension):
    """Writes the journal of the frontier, and a snapshot when the journal has grown long."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        super().__init__(crawler, run)
        self._thread = ThreadPoolExecutor(1, "amicrawl-journal")
        self._forcing: Future[None] | None = None
        self._force_every = _FORCE_EVERY[run.config.durability]
        self._forced_at = run.clock()
        self._noted, self._noted_at = 0, run.clock()
        """The number of rows of the index that the frontier noted last, and when."""

    def _opened(self) -> None:
        self._repeat(self._write, every=_WRITE_EVERY)

    def _write(self) -> None:
        if not self._run.has_frontier or self._run.recorder.fault is not None:
            return
        if not self._run.may_write():
            return
        try:
            self._keep()
        except AmicrawlError as fault:
            # The crawl stops as it does when a record cannot be written.
            self._run.recorder.fault = fault

    def _keep(self) -> None:
        """Do what is due; raises OutputError where the disk fails."""
        frontier, now = self._run.frontier, self._run.clock()
        rows = self._run.index_rows
        if rows != self._noted and now - self._noted_at >= _NOTE_EVERY:
            frontier.note_index(rows)
            self._noted, self._noted_at = rows, now
        frontier.flush()
        if self._forcing is not None and self._forcing.done():
            forcing, self._forcing = self._forcing, None
            forcing.result()
        if self._forcing is None and now - self._forced_at >= self._force_every:
            self._forced_at = now
            self._forcing = self._thread.submit(frontier.sync)
        frontier.partition.poll()
        if frontier.partition.snapshot_is_due:
            frontier.snapshot()

    def _closed(self) -> None:
        self._stop_timer()
        self._thread.shutdown(wait=True)
