"""How far an index run is, told on one line of a terminal."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amicrawl.cli.progress_line import ProgressLine
from amicrawl.cli.terminal import counted, human_size
from amicrawl.index.indexing import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.index.indexing import IndexJob


def size_of(path: Path) -> int:
    """Return the size of the file *path* in bytes; 0 where that cannot be told."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


class Screen:
    """Says on a line how far it is."""

    def __init__(self, files: int, before: int, total: int) -> None:
        self._line = ProgressLine()
        self._files = files
        self._done = before
        self._total = total
        self._at: dict[str, Progress] = {}
        self._began = self._shown = time.monotonic()

    def teller(self, job: IndexJob) -> Teller:
        """Return what is told how far *job* is."""
        return Teller(self, job)

    def tell(self, job: IndexJob, at: Progress) -> None:
        """Take in how far *job* is, and show it now and then."""
        self._at[job.name] = at
        now = time.monotonic()
        if now - self._shown >= 0.2:
            self._shown = now
            self._show(now - self._began)

    def done(self, job: IndexJob) -> None:
        """Take in that *job* is done."""
        self._done += 1
        records = self._at[job.name].records if job.name in self._at else 0
        self.tell(job, Progress(size_of(job.source), records))

    def _show(self, seconds: float) -> None:
        read = sum(at.offset for at in self._at.values())
        records = sum(at.records for at in self._at.values())
        self._line.show(
            f"{self._done:,} of {counted(self._files, 'file')}, {counted(records, 'record')}, "
            f"{human_size(read)} of {human_size(self._total)}, {records / seconds:,.0f} records/s"
        )

    def clear(self) -> None:
        """Make room for other lines."""
        self._line.clear()


@dataclass(frozen=True)
class Teller:
    """What a file's reading tells its progress to."""

    screen: Screen
    job: IndexJob

    def __call__(self, at: Progress) -> None:
        """Take in how far the reading is."""
        self.screen.tell(self.job, at)
