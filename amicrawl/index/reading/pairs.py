"""Requests and responses that belong to one exchange, found side by side.

Writers put the two records of an exchange one behind the other, and one of them names the other as
concurrent. So a record waits until the next one has been seen, and no more than one is held. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amicrawl.index.reading.records import Record

_HALVES = frozenset(
    (("request", "response"), ("response", "request"), ("request", "revisit"), ("revisit", "request"))
)


class Pairing:
    """Hands records on together with their other half."""

    def __init__(self) -> None:
        self._waiting: Record | None = None

    def take(self, record: Record) -> list[tuple[Record, Record | None]]:
        """Take the next record; return those for which it is now known whether they have a partner."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and are_partners(waiting, record):
            return [(waiting, record), (record, waiting)]
        self._waiting = record
        return [(waiting, None)] if waiting is not None else []

    def end(self) -> list[tuple[Record, Record | None]]:
        """Return what is left when there are no more records."""
        waiting, self._waiting = self._waiting, None
        return [(waiting, None)] if waiting is not None else []


def paired(records: Iterable[Record]) -> Iterator[tuple[Record, Record | None]]:
    """Yield *records* in order, each with its partner, or None."""
    pairing = Pairing()
    for record in records:
        yield from pairing.take(record)
    yield from pairing.end()


def are_partners(first: Record, second: Record) -> bool:
    """Return whether the two are the request and the response of one exchange."""
    if (first.type, second.type) not in _HALVES or first.uri != second.uri:
        return False
    named = first.fields.get("warc-concurrent-to"), second.fields.get("warc-concurrent-to")
    return (bool(first.record_id) and first.record_id == named[1]) or (
        bool(second.record_id) and second.record_id == named[0]
    )
