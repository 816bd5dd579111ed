"""Inbox: the log entries of a crawl on their way to Redis, bounded. For several threads.

When it is full the least telling entry goes, the oldest of its kind first: an ignore before a download,
a download before a line of text. What was dropped is counted, and reported by a line of its own.

Every entry has a moment that no other of the same inbox has, in microseconds: a log in Redis is a set,
and of two entries of the same text it would keep one.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from amicrawl.jobs.entries import Download, Entry, Ignore, Stdout, encoded

if TYPE_CHECKING:
    from collections.abc import Callable

ROOM = 10_000
"""Entries that may wait."""

_STEP = 0.000_001
_LEAST_TELLING_FIRST = (Ignore, Download, Stdout)


class Inbox:
    """Lines on their way into the log of one job. Every method returns at once."""

    def __init__(self, *, clock: Callable[[], float], room: int = ROOM) -> None:
        """*clock* gives Unix seconds; *room* is how many entries may wait."""
        self._clock = clock
        self._room = room
        self._lock = threading.Lock()
        self._waiting: dict[type, deque[tuple[int, Entry]]] = {
            kind: deque() for kind in _LEAST_TELLING_FIRST
        }
        self._number = 0
        self._last = 0.0
        self.dropped = 0
        """Entries that found no room, so far."""
        self._told = 0
        self._peeked = 0
        """The number of the last entry that was peeked at."""

    def __len__(self) -> int:
        """Return how many entries wait."""
        return sum(map(len, self._waiting.values()))

    def tell(self, message: str) -> None:
        """Take a line of text."""
        with self._lock:
            self._add(Stdout(self._moment(), message + "\n"))

    def download(self, url: str, status: int, word: str) -> None:
        """Take what came of a fetch: the status, or 0, and `OK` or what went wrong."""
        with self._lock:
            self._add(Download(self._moment(), url, status, word))

    def ignore(self, url: str, pattern: str, source: str) -> None:
        """Take a URL that *pattern* has kept out."""
        with self._lock:
            self._add(Ignore(self._moment(), url, pattern, source))

    def peek(self, most: int, *, size: int) -> list[str]:
        """Return the first *most* entries as JSON texts, in order, as many as *size* characters hold.

        They stay until `taken` says that they have arrived.
        """
        with self._lock:
            if self.dropped > self._told:
                lost, self._told = self.dropped - self._told, self.dropped
                line = f"{lost} log entries found no room and were dropped.\n"
                # Beyond the room that there is: it must not be the reason for the next one.
                self._append(Stdout(self._moment(), line))
            waiting = [entry for queue in self._waiting.values() for entry in queue]
        waiting.sort(key=lambda numbered: numbered[0])
        texts: list[str] = []
        total, self._peeked = 0, 0
        for number, entry in waiting[:most]:
            text = encoded(entry)
            total += len(text)
            if texts and total > size:
                break
            texts.append(text)
            self._peeked = number
        return texts

    def taken(self) -> None:
        """Let go of the entries that the last `peek` returned: they have arrived."""
        with self._lock:
            for queue in self._waiting.values():
                while queue and queue[0][0] <= self._peeked:
                    queue.popleft()

    def _moment(self) -> float:
        self._last = max(round(self._clock(), 6), round(self._last + _STEP, 6))
        return self._last

    def _append(self, entry: Entry) -> None:
        self._number += 1
        self._waiting[type(entry)].append((self._number, entry))

    def _add(self, entry: Entry) -> None:
        self._append(entry)
        if len(self) <= self._room:
            return
        for kind in _LEAST_TELLING_FIRST:
            if self._waiting[kind]:
                self._waiting[kind].popleft()
                self.dropped += 1
                return
