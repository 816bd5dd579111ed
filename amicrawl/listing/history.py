"""`history.jsonl`: how a crawl went, a line a moment, over all its resumes and kills.

    {"at": 1763918000.1, "started": "amicrawl/0.3.0", "every": 1}   a crawl began in the directory
    {"at": 1763918001.1, "state": "running", "ok": 12, ...}         a moment of it
    {"at": 1763918060.0, "ended": "finished"}                       it ended; not of a killed one

A moment has the counts of its run by class (those of `crawl.json`), and

    bytes      of responses as received
    waiting    URLs that are due or in flight
    in_flight  requests
    limit      of requests in flight
    memory     bytes of the crawl's processes, without what they share; 0 where unknown
    free       bytes on the disk of the output; 0 where unknown

Lines are appended, one in `every` seconds, at first 1. Where the file would be longer than `SIZE_LIMIT`,
every second moment goes, and from then on there are half as many; starts and ends stay. So a crawl of a
year has some thousand moments, evenly spread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from amicrawl import __version__
from amicrawl.disk import replace_file
from amicrawl.errors import OutputError
from amicrawl.jsontext import parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from amicrawl.disk import Disk

HISTORY_NAME = "history.jsonl"
SIZE_LIMIT = 1024**2
"""Bytes of the longest file."""
_LONGEST_LINE = 1000
_LONGEST_GAP = 1 << 20
_EVENTS = 1000
"""Starts and ends that are remembered."""
COUNTS = ("ok", "unchanged", "redirect", "client_error", "server_error", "failed", "skipped")
"""The classes of rows; each row is in one."""
NUMBERS = (*COUNTS, "bytes", "waiting", "in_flight", "limit", "memory", "free")
"""What a moment has numbers of."""


class HistoryMoment(NamedTuple):
    """A crawl as it was at one moment."""

    at: float
    """Unix seconds."""
    run: int
    """Which start of the crawl it belongs to, from 1."""
    state: str
    numbers: Mapping[str, int]
    """By the names of `NUMBERS`; counts are those of its run."""


class HistoryRun(NamedTuple):
    """One start of the crawl, and its end."""

    started: float
    """Unix seconds."""
    ended: float | None
    """Unix seconds; None where it runs, or was killed."""
    reason: str
    """Why it ended; empty where it runs, or was killed."""


class CrawlHistory(NamedTuple):
    """Everything that the file of a directory says."""

    runs: list[HistoryRun]
    moments: list[HistoryMoment]


def read_history(directory: Path) -> CrawlHistory:
    """Return what `history.jsonl` in *directory* says; empty where there is none.

    A line that is none, as at the end of a killed crawl's, is passed over. Raises OutputError where the
    file cannot be read.
    """
    runs: list[HistoryRun] = []
    moments: list[HistoryMoment] = []
    for line in _lines(directory / HISTORY_NAME):
        at, state = line["at"], line.get("state")
        if "started" in line:
            runs.append(HistoryRun(at, None, ""))
        elif "ended" in line and runs:
            runs[-1] = runs[-1]._replace(ended=at, reason=str(line["ended"]))
        elif isinstance(state, str) and runs:
            numbers = {name: _count(line.get(name)) for name in NUMBERS}
            moments.append(HistoryMoment(at, len(runs), state, numbers))
    return CrawlHistory(runs, moments)


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            text = file.read(2 * SIZE_LIMIT)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {error.strerror or error}.") from error
    found = []
    for line in text.split(b"\n"):
        if 0 < len(line) <= _LONGEST_LINE:
            try:
                said = parsed(line, most=100)
            except ValueError:
                continue
            at = said.get("at") if isinstance(said, dict) else None
            if isinstance(at, float | int) and not isinstance(at, bool) and 0 < at < 1e11:
                found.append(said)
    return found


class HistoryFile:
    """The `history.jsonl` of one run; for one thread at a time. What cannot be written is left out."""

    def __init__(self, directory: Path, *, disk: Disk, limit: int = SIZE_LIMIT) -> None:
        """Begin a run in *directory*; call `begin` before anything else."""
        self._path = directory / HISTORY_NAME
        self._disk = disk
        self._limit = limit
        self._size = 0
        self._before = b""
        """What ends the line before, which may be torn."""
        self._next = 0.0
        self.every = 1.0
        """Seconds between two moments."""

    def begin(self, at: float) -> None:
        """Note that a run begins *at*, Unix seconds; the file of earlier ones is continued."""
        lines = _lines(self._path)
        before = [line for line in lines if "started" in line]
        if before:
            self.every = float(min(max(_count(before[-1].get("every")), 1), _LONGEST_GAP))
        started = {"started": f"amicrawl/{__version__}", "every": round(self.every)}
        self._replace([*lines, {"at": round(at, 1), **started}])

    def note(self, at: float, state: str, numbers: Mapping[str, int]) -> None:
        """Note a moment *at*, Unix seconds, if one is due."""
        # Where the clock was set back, nothing waits until it has caught up.
        if self._next - self.every <= at < self._next:
            return
        # A timer that comes a little early is in time.
        self._next = at + 0.9 * self.every
        said = {name: value for name, value in numbers.items() if value}
        self._append({"at": round(at, 1), "state": state, **said})

    def end(self, at: float, reason: str, numbers: Mapping[str, int]) -> None:
        """Note the last moment of the run, and that it ended *at* for *reason*."""
        self._next = 0.0
        self.note(at, "finished", numbers)
        self._append({"at": round(at, 1), "ended": reason})

    def _append(self, line: dict[str, Any]) -> None:
        written = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        if self._size + len(written) > self._limit:
            if self._replace([*_thinned(_lines(self._path), round(2 * self.every)), line]):
                self.every *= 2
            return
        try:
            with self._path.open("ab", buffering=0) as file:
                self._disk.write(file.fileno(), self._before + written)
            self._size += len(written)
            self._before = b""
        except OSError:
            # A part of the line may be there, as on a disk that is full.
            self._before = b"\n"

    def _replace(self, lines: Iterable[dict[str, Any]]) -> bool:
        """Write the file anew; return whether it was written."""
        text = b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
        try:
            replace_file(self._path, text, disk=self._disk)
            self._size = len(text)
            self._before = b""
        except OutputError:
            return False
        return True


def _thinned(lines: list[dict[str, Any]], every: int) -> list[dict[str, Any]]:
    """Return *lines* without every second moment, and with the latest starts and ends.

    The last start says that moments are *every* so many seconds apart from now on.
    """
    started: dict[str, Any] = next((line for line in reversed(lines) if "started" in line), {})
    started["every"] = every
    kept, moments, events = [], 0, 0
    for line in reversed(lines):
        if "state" in line:
            moments += 1
            if moments % 2 == 0:
                continue
        else:
            events += 1
            if events > _EVENTS:
                continue
        kept.append(line)
    return kept[::-1]
