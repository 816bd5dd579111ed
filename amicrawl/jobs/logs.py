"""Reading the log of a job, and keeping it from growing.

Entries are numbered; a reader remembers the number of the last one that it has seen and asks for what
comes after. A log is trimmed as ArchiveBot does it, up to what all consumers have seen once that is 500
entries, and also, whatever the consumers do, to a number of entries and of bytes, the oldest first. A
finished job keeps its last lines, within the same bounds, as long as its record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amicrawl.jobs import dead_letters, redis_values
from amicrawl.jobs.log_entries import LARGEST_READ, Entry, NotAnEntryError, parsed

if TYPE_CHECKING:
    from amicrawl.jobs.connection import JobStore

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
    """Some entries of a log, ascending, and where to go on."""

    entries: list[Logged]
    last: float
    """The number of the last entry that was looked at; hand it in to read on."""


def after(store: JobStore, ident: str, score: float = 0.0, *, most: int = 1000) -> LogPage:
    """Return the entries behind number *score*, the first *most* of them.

    One that cannot be read is passed over and put among the dead letters.
    """
    found = redis_values.scored_at(
        store, store.keys.log(ident), after=score, most=most, longest=LARGEST_READ + 1
    )
    return LogPage(_readable(store, ident, found), found[-1][0] if found else score)


def newest(store: JobStore, ident: str, *, most: int = 100) -> LogPage:
    """Return the last *most* entries, ascending."""
    found = redis_values.scored_at(
        store, store.keys.log(ident), most=most, longest=LARGEST_READ + 1, newest=True
    )
    return LogPage(_readable(store, ident, found), found[-1][0] if found else 0.0)


def trim(
    store: JobStore,
    ident: str,
    *,
    gap: int = GAP,
    most_entries: int = MOST_ENTRIES,
    most_bytes: int = MOST_BYTES,
) -> int:
    """Trim one log; return how many entries went."""
    keys = [store.keys.job(ident), store.keys.log(ident)]
    return max(int(store.scripts("trim", keys=keys, args=[gap, most_entries, most_bytes])), 0)


def _readable(store: JobStore, ident: str, found: list[tuple[float, str]]) -> list[Logged]:
    entries = []
    for score, text in found:
        try:
            entries.append(Logged(score, parsed(text)))
        except NotAnEntryError as error:
            where = f"{store.keys.log(ident)} {score:.17g}"
            dead_letters.put(store, where=where, why=f"an entry cannot be read: {error}", value=text)
    return entries
