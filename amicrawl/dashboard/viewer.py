"""A viewer: what is on its way to one browser, bounded. Pure but for a lock.

State (figures, jobs) is kept once for each thing, so a viewer that reads slowly gets the newest and
nothing in between. Log lines have a bound in number and in bytes: the oldest go, and are counted.
Everything arrives as encoded JSON, made once for all viewers.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MOST_LINES = 2000
MOST_BYTES = 4 * 1024**2
TYPES = frozenset({"download", "ignore", "stdout", "unknown"})


class Line(NamedTuple):
    """One log entry, ready to be sent."""

    number: int
    """Grows with every line of every job."""
    type: str
    data: bytes


class Event(NamedTuple):
    """One server-sent event, without its id."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Wish:
    """What a viewer wants to see."""

    jobs: frozenset[str] = frozenset()
    """Jobs of which it wants details and log."""
    all_logs: bool = False
    """Whether it wants the log of every job that runs."""
    types: frozenset[str] = TYPES
    """Types of log lines that it wants."""
    replay: int = 200
    """Lines of the past that it wants first."""
    after: int | None = None
    """The number of the last line that it has had from us, where it comes back."""


@dataclass(slots=True)
class _Logs:
    lines: deque[tuple[str, Line]] = field(default_factory=deque)
    size: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    reset: set[str] = field(default_factory=set)


class Viewer:
    """What is on its way to one browser. Filled by one thread, emptied by another."""

    def __init__(self, wish: Wish, *, wake: Callable[[], None]) -> None:
        """*wake* is called, from any thread, when there is something where there was nothing."""
        self.wish = wish
        self._wake = wake
        self._lock = threading.Lock()
        self._events: dict[tuple[str, str], bytes] = {}
        self._totals = b""
        self._jobs: dict[str, bytes] = {}
        self._gone: set[str] = set()
        self._is_full = False
        self._logs = _Logs()
        self._last = wish.after or 0
        self._is_awake = False
        self.is_welcome = False
        """Whether it has received the state that everything after builds on."""
        self.is_over = False
        """Whether there is nothing more to come."""

    def wants_log(self, ident: str) -> bool:
        """Tell whether it is to get the log of *ident*."""
        return self.wish.all_logs or ident in self.wish.jobs

    def tell(self, name: str, data: bytes, *, about: str = "") -> None:
        """Have the event *name* sent, in place of one *about* the same that still waits."""
        with self._lock:
            # In its place at the end: an older one about something else must not come after it.
            self._events.pop((name, about), None)
            self._events[name, about] = data
        self._rouse()

    def tell_overview(
        self, totals: bytes, jobs: Mapping[str, bytes], gone: Iterable[str], *, is_full: bool
    ) -> None:
        """Have the figures sent, and *jobs* by ident: all if it *is_full*, or what changed."""
        with self._lock:
            if is_full:
                self._jobs, self._gone, self._is_full = {}, set(), True
            self._totals = totals
            for ident in gone:
                self._jobs.pop(ident, None)
                self._gone.add(ident)
            self._jobs.update(jobs)
            self._gone -= jobs.keys()
        self._rouse()

    def tell_log(
        self, ident: str, lines: Iterable[Line], *, reset: bool = False, skipped: int = 0
    ) -> None:
        """Have *lines* of *ident* sent; *skipped* lines before them are known to be lost."""
        with self._lock:
            logs = self._logs
            if reset:
                kept = [(of, line) for of, line in logs.lines if of != ident]
                logs.lines = deque(kept)
                logs.size = sum(len(line.data) for _, line in kept)
                logs.dropped.pop(ident, None)
                logs.reset.add(ident)
            logs.dropped[ident] += skipped
            for line in lines:
                if line.type in self.wish.types:
                    logs.lines.append((ident, line))
                    logs.size += len(line.data)
            while logs.lines and (len(logs.lines) > MOST_LINES or logs.size > MOST_BYTES):
                of, line = logs.lines.popleft()
                logs.size -= len(line.data)
                logs.dropped[of] += 1
        self._rouse()

    def end(self) -> None:
        """Say that nothing more will come."""
        self.is_over = True
        self._rouse()

    def take(self) -> tuple[list[Event], int]:
        """Return what waits, and the number of the last line in it or before."""
        with self._lock:
            self._is_awake = False
            events, self._events = self._events, {}
            totals, self._totals = self._totals, b""
            jobs, self._jobs = self._jobs, {}
            gone, self._gone = self._gone, set()
            is_full, self._is_full = self._is_full, False
            logs, self._logs = self._logs, _Logs()
            if logs.lines:
                self._last = max(self._last, logs.lines[-1][1].number)
            last = self._last
        taken = []
        if totals:
            taken.append(Event("overview", _overview(totals, jobs, gone, is_full=is_full)))
        taken += [Event(name, data) for (name, _), data in events.items()]
        # What a job said last comes before the news that it has ended.
        ended = [event for event in taken if event.name == "ended"]
        return [*(e for e in taken if e.name != "ended"), *_log_events(logs), *ended], last

    def _rouse(self) -> None:
        with self._lock:
            was_awake, self._is_awake = self._is_awake, True
        if not was_awake:
            self._wake()


def _overview(totals: bytes, jobs: Mapping[str, bytes], gone: Iterable[str], *, is_full: bool) -> bytes:
    listed = b",".join(jobs.values())
    named = b",".join(b'"%s"' % ident.encode("ascii") for ident in gone)
    full = b"true" if is_full else b"false"
    return b'{"full":%s,"totals":%s,"jobs":[%s],"gone":[%s]}' % (full, totals, listed, named)


def _log_events(logs: _Logs) -> list[Event]:
    by_job: dict[str, list[bytes]] = {ident: [] for ident in logs.reset}
    for ident, line in logs.lines:
        by_job.setdefault(ident, []).append(line.data)
    for ident, dropped in logs.dropped.items():
        if dropped:
            by_job.setdefault(ident, [])
    return [
        Event(
            "log",
            b'{"ident":"%s","reset":%s,"dropped":%d,"entries":[%s]}'
            % (
                ident.encode("ascii"),
                b"true" if ident in logs.reset else b"false",
                logs.dropped[ident],
                b",".join(lines),
            ),
        )
        for ident, lines in by_job.items()
    ]
