"""The log of a job: entries in ArchiveBot's three shapes, those yet to be sent, and the log in Redis.

* `Download`: one response, or one failed attempt.
* `Ignore`: a URL that an ignore pattern, or a rule named in brackets, has excluded.
* `Stdout`: what a program said, for people.

No other type may be written: ArchiveBot's page stops at one that it does not know.

The buffer of entries to be sent, `Inbox`, is for several threads. When it is full the least informative
entry is dropped, the oldest of its kind first: an ignore before a download, a download before a line of
text. Dropped entries are counted, and reported by a line of their own. Every entry has a time, in
microseconds, that no other of the same buffer has: a log in Redis is a set, and of two entries of the
same text it would keep one.

In Redis, entries are numbered; a reader remembers the number of the last one that it has read and
requests what comes after. A log is trimmed as ArchiveBot does it, up to what all consumers have read
once that is 500 entries, and also, whatever the consumers do, to a number of entries and of bytes, the
oldest first. An ended job keeps its last lines, within the same bounds, as long as its record.
"""

from __future__ import annotations

import json
import math
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.fleet.database import put_dead_letter, scored_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amicrawl.fleet.database import JobStore

LONGEST_ENTRY = 65_536
"""Bytes of an entry that is written; a longer URL or message is cut."""
LARGEST_READ = 1 << 20
"""Bytes of an entry that is read; ArchiveBot's relay breaks above."""

_LONGEST_FIELD = 8_192


class NotAnEntryError(ValueError):
    """A string that is not a log entry; the message says why."""


@dataclass(frozen=True, slots=True)
class Download:
    """One response, or one failed attempt."""

    ts: float
    """When, Unix seconds."""
    url: str
    """As it was queued, not as a redirect spelled it."""
    response_code: int
    """The status, an FTP reply code, or 0 for none."""
    wget_code: str = "OK"
    """`OK`, or what went wrong."""

    @property
    def is_error(self) -> bool:
        """Whether it counts as an error: 500 and above, or something went wrong."""
        return self.response_code >= 500 or self.wget_code != "OK"

    @property
    def is_warning(self) -> bool:
        """Whether it is shown as a warning: 400 to 499."""
        return 400 <= self.response_code <= 499

    def fields(self) -> dict[str, Any]:
        """Return what is written, in ArchiveBot's order."""
        return {
            "ts": self.ts,
            "url": self.url,
            "response_code": self.response_code,
            "wget_code": self.wget_code,
            "is_error": self.is_error,
            "is_warning": self.is_warning,
            "type": "download",
        }


@dataclass(frozen=True, slots=True)
class Ignore:
    """A URL that was kept out."""

    ts: float
    """When, Unix seconds."""
    url: str
    pattern: str
    """The expression as stored, or a rule in brackets."""
    source: str = "accept_url"
    """At which step: before fetching (`accept_url`), or afterwards."""

    def fields(self) -> dict[str, Any]:
        """Return what is written, in ArchiveBot's order."""
        return {
            "ts": self.ts,
            "url": self.url,
            "pattern": self.pattern,
            "source": self.source,
            "type": "ignore",
        }


@dataclass(frozen=True, slots=True)
class Stdout:
    """What a program said."""

    ts: float
    """When, Unix seconds."""
    message: str
    """May hold several lines; whole ones, where we write it."""

    def fields(self) -> dict[str, Any]:
        """Return what is written, in ArchiveBot's order."""
        return {"ts": self.ts, "message": self.message, "type": "stdout"}


Entry = Download | Ignore | Stdout


def encoded(entry: Entry) -> str:
    """Return *entry* as it is stored: at most `LONGEST_ENTRY` bytes, whatever it holds."""
    fields = entry.fields()
    text = json.dumps({name: _cut(value, _LONGEST_FIELD) for name, value in fields.items()})
    # ASCII-only JSON writes a character outside the first plane as twelve.
    if len(text) > LONGEST_ENTRY:
        text = json.dumps({name: _cut(value, _LONGEST_FIELD // 8) for name, value in fields.items()})
    return text


def parsed(text: str) -> Entry:
    """Return the entry in *text*; raises NotAnEntryError, saying why, for what is none."""
    if len(text) > LARGEST_READ:
        raise NotAnEntryError(f"it has {len(text)} characters")
    try:
        fields = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise NotAnEntryError(f"it is not JSON: {str(error)[:100]}") from error
    if not isinstance(fields, dict):
        raise NotAnEntryError("it is JSON, but no object")
    shape = fields.get("type")
    if shape == "download":
        code = fields.get("response_code")
        if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 9999:
            raise NotAnEntryError("response_code is not a status")
        return Download(_when(fields), _text(fields, "url"), code, _text(fields, "wget_code"))
    if shape == "ignore":
        return Ignore(
            _when(fields), _text(fields, "url"), _text(fields, "pattern"), _text(fields, "source")
        )
    if shape == "stdout":
        return Stdout(_when(fields), _text(fields, "message"))
    raise NotAnEntryError("its type is none of download, ignore, stdout")


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _when(fields: dict[str, Any]) -> float:
    ts = fields.get("ts")
    if isinstance(ts, bool) or not isinstance(ts, (int, float)) or not 0 <= ts < 1e11 or math.isnan(ts):
        raise NotAnEntryError("ts is not a time")
    return ts


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise NotAnEntryError(f"{name} is not a string")
    # JSON may spell half a surrogate pair, and what came as bytes may not have been UTF-8.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _cut(value: Any, longest: int) -> Any:
    if not isinstance(value, str):
        return value
    cut = value if len(value) <= longest else value[: longest - 1] + "…"
    return cut if cut.isascii() else cut.encode("utf-8", "replace").decode()


ROOM = 10_000
"""Entries that may wait."""

_STEP = 0.000_001
_DROPPED_FIRST = (Ignore, Download, Stdout)


class Inbox:
    """Lines on their way into the log of one job. Every method returns at once."""

    def __init__(self, *, clock: Callable[[], float], room: int = ROOM) -> None:
        """*clock* gives Unix seconds; *room* is how many entries may wait."""
        self._clock = clock
        self._room = room
        self._lock = threading.Lock()
        self._waiting: dict[type, deque[tuple[int, Entry]]] = {kind: deque() for kind in _DROPPED_FIRST}
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

    def ignore(self, url: str, pattern: str) -> None:
        """Take a URL that *pattern* has kept out."""
        with self._lock:
            self._add(Ignore(self._moment(), url, pattern))

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
        for kind in _DROPPED_FIRST:
            if self._waiting[kind]:
                self._waiting[kind].popleft()
                self.dropped += 1
                return


GAP = 500
"""Entries by which all consumers must be ahead before a log is trimmed for that."""
MOST_ENTRIES = 10_000
"""Entries that a log keeps at most."""
MOST_BYTES = 8 << 20
"""Bytes of memory that Redis may spend on one log."""


class Logged(NamedTuple):
    """One entry and its number."""

    score: float
    entry: Entry


class LogPage(NamedTuple):
    """Some entries of a log, ascending, and where to continue."""

    entries: list[Logged]
    last: float
    """The number of the last entry that was looked at; hand it in to read on."""


def entries_after(store: JobStore, ident: str, score: float = 0.0, *, most: int = 1000) -> LogPage:
    """Return the entries behind number *score*, the first *most* of them.

    One that cannot be read is passed over and put among the dead letters.
    """
    found = scored_at(store, store.keys.log(ident), after=score, most=most, longest=LARGEST_READ + 1)
    return LogPage(_readable(store, ident, found), found[-1][0] if found else score)


def newest_entries(store: JobStore, ident: str, *, most: int = 100) -> LogPage:
    """Return the last *most* entries, ascending."""
    found = scored_at(store, store.keys.log(ident), most=most, longest=LARGEST_READ + 1, newest=True)
    return LogPage(_readable(store, ident, found), found[-1][0] if found else 0.0)


def say(
    store: JobStore,
    ident: str,
    token: int,
    entries: Sequence[str],
    *,
    figures: Mapping[str, str | int] | None = None,
) -> None:
    """Add *entries*, texts, to the log of the job that the claim *token* holds, and set *figures*."""
    keys = store.keys
    pairs = [text for pair in (figures or {}).items() for text in pair]
    with store.responding():
        store.scripts(
            "say",
            keys=[keys.job(ident), keys.log(ident), keys.claim(ident)],
            args=[ident, keys.updates, MOST_ENTRIES, token, len(pairs) // 2, *pairs, *entries],
        )


def trim_log(
    store: JobStore,
    ident: str,
    *,
    most_entries: int = MOST_ENTRIES,
    most_bytes: int = MOST_BYTES,
) -> int:
    """Trim one log; return how many entries went."""
    keys = [store.keys.job(ident), store.keys.log(ident)]
    return max(int(store.scripts("trim", keys=keys, args=[GAP, most_entries, most_bytes])), 0)


def _readable(store: JobStore, ident: str, found: list[tuple[float, str]]) -> list[Logged]:
    entries = []
    for score, text in found:
        try:
            entries.append(Logged(score, parsed(text)))
        except NotAnEntryError as error:
            where = f"{store.keys.log(ident)} {score:.17g}"
            put_dead_letter(store, where=where, why=f"an entry cannot be read: {error}", value=text)
    return entries
