"""Which record of a sidecar belongs to which line: an identity first, key and second last.

A line and a record that have the same second belong together by, in this order, the record's identifier;
file and offset; key and digest; key alone. A weaker tie never joins what a stronger one tells apart (two
captures with different identifiers are two), nor takes a record that a stronger tie has given away.
Where key and second are all there is and the records for them say different things, none is taken; of
several that have one identity, the last of the line's own key, else the last.

`by_key_only` is the rule of merge_cdxj, to the byte: key and second, the last record wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.index.merging.fields import with_fields
from amicrawl.index.merging.sides import ties_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.index.merging.sides import Side, Ties


@dataclass
class Counts:
    """What became of the lines and of the sidecars' records."""

    lines: int = 0
    by_id: int = 0
    """Lines that got fields by the record's identifier."""
    by_place: int = 0
    """By file and offset."""
    by_digest: int = 0
    """By key, second and digest."""
    by_key: int = 0
    """By key and second."""
    ambiguous: int = 0
    """Lines that got nothing, because records with their key and second say different things."""
    malformed: int = 0
    """Lines that are no CDXJ; they are copied as they are."""
    records: int = 0
    """Records of sidecars."""
    records_unused: int = 0
    """Those that no line got anything from."""
    records_broken: int = 0
    """What of sidecars could not be read."""

    @property
    def unmatched(self) -> int:
        """Lines that no record belongs to; they are copied as they are."""
        return self.lines - self.by_id - self.by_place - self.by_digest - self.by_key

    def add(self, other: Counts) -> None:
        """Add the figures of *other*."""
        for each in fields_of(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class _Tied:
    """Records by a strong tie: of several, the last that has the line's own key, else the last."""

    def __init__(self, ties: list[Ties]) -> None:
        self._ties = ties
        self._last: dict[str, int] = {}
        self._last_of_key: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self._last)

    def add(self, tie: str, place: int) -> None:
        there = self._last.get(tie)
        if there is not None and (when := self._ties[there].when) != self._ties[place].when:
            self._last_of_key[tie, when] = there
        self._last[tie] = place

    def find(self, tie: str, when: str) -> int | None:
        place = self._last.get(tie)
        if place is None or self._ties[place].when == when:
            return place
        return self._last_of_key.get((tie, when), place)


class Join:
    """The records of sidecars, asked for line by line, then once more for lines put off."""

    def __init__(
        self,
        sides: Iterable[Side],
        counts: Counts,
        *,
        by_key_only: bool = False,
        used: bytes = b"",
    ) -> None:
        """Have *sides*; *used* says of each what lines got from it already, as `used` does."""
        self._counts = counts
        self._anew = by_key_only
        self._ties: list[Ties] = []
        self._additions: list[bytes] = []
        self._by_id = _Tied(self._ties)
        self._by_place = _Tied(self._ties)
        self._by_key: dict[str, int | list[int]] = {}
        self._digests = False
        for side in sides:
            self._add(side)
        self._used = bytearray(used or len(self._ties))
        # Without identities there is nothing to wait for: no stronger tie can take a record away.
        self._decides_at_once = not (self._by_id or self._by_place or self._digests)

    def _add(self, side: Side) -> None:
        place, ties = len(self._ties), side.ties
        self._ties.append(ties)
        self._additions.append(side.addition)
        if not self._anew:
            if ties.record_id:
                self._by_id.add(ties.record_id + ties.when[-14:], place)
            if ties.filename and ties.offset:
                self._by_place.add(_place(ties), place)
            self._digests = self._digests or bool(ties.digest)
        there = self._by_key.setdefault(ties.when, place)
        if isinstance(there, list):
            there.append(place)
        elif there != place:
            # Most are alone: a list for each would take more memory than all the rest.
            self._by_key[ties.when] = [there, place]

    def merged(self, line: bytes) -> bytes | None:
        """Return *line* with what belongs to it; None where only all lines together can tell."""
        self._counts.lines += 1
        try:
            key, timestamp, text = line.split(b" ", 2)
            fields = orjson.loads(text)
            found = ties_of(key, timestamp, fields)
        except (ValueError, AttributeError):
            self._counts.malformed += 1
            return line
        side = None
        if found.record_id and self._by_id:
            side = self._by_id.find(found.record_id + found.when[-14:], found.when)
        if side is not None:
            self._counts.by_id += 1
            return self._given(line, fields, side)
        if found.offset and self._by_place:
            side = self._by_place.find(_place(found), found.when)
            if side is not None and not _differ(found.record_id, self._ties[side].record_id):
                self._counts.by_place += 1
                return self._given(line, fields, side)
        if found.when not in self._by_key:
            return line
        return self._by_weaker_ties(line, fields, found) if self._decides_at_once else None

    def merged_later(self, line: bytes, *, by_digest: bool) -> bytes | None:
        """Return *line*, which `merged` put off, with what belongs to it by its digest, or by its key.

        None where *by_digest* is asked for and there is no such record.
        """
        key, timestamp, text = line.split(b" ", 2)
        fields = orjson.loads(text)
        found = ties_of(key, timestamp, fields)
        if by_digest:
            candidates = [
                place for place in self._candidates(found) if self._ties[place].digest == found.digest
            ]
            if not found.digest or not candidates:
                return None
            self._counts.by_digest += 1
            return self._given(line, fields, candidates[-1])
        return self._by_weaker_ties(line, fields, found)

    @property
    def used(self) -> bytes:
        """Of each record, what lines got from it: 1 by a strong tie, 2 by a weak one, 3 by both."""
        return bytes(self._used)

    @property
    def has_digests(self) -> bool:
        """Whether records name the digest of what they tell of."""
        return self._digests

    def _by_weaker_ties(self, line: bytes, fields: dict[str, Any], found: Ties) -> bytes:
        candidates = self._candidates(found)
        if not candidates:
            return line
        if not self._anew and len({self._additions[place] for place in candidates}) > 1:
            self._counts.ambiguous += 1
            return line
        self._counts.by_key += 1
        for place in candidates:
            self._used[place] |= 2
        return self._given(line, fields, candidates[-1], mark=2)

    def _candidates(self, found: Ties) -> list[int]:
        """Return the records with the key and second of *found* that nothing tells apart from it."""
        there = self._by_key[found.when]
        places = there if isinstance(there, list) else [there]
        if self._anew:
            return places
        return [
            place
            for place in places
            if not self._used[place] & 1 and not _told_apart(found, self._ties[place])
        ]

    def _given(self, line: bytes, fields: dict[str, Any], place: int, *, mark: int = 1) -> bytes:
        self._used[place] |= mark
        return with_fields(line, fields, self._additions[place], anew=self._anew)


def _place(ties: Ties) -> str:
    # No file name holds a slash any more.
    return f"{ties.filename}/{ties.offset}/{ties.when[-14:]}"


def _told_apart(one: Ties, other: Ties) -> bool:
    return (
        _differ(one.record_id, other.record_id)
        or _differ(one.filename, other.filename)
        or (bool(one.filename) and _differ(one.offset, other.offset))
        or _differ(one.digest, other.digest)
    )


def _differ(one: str, other: str) -> bool:
    return bool(one and other) and one != other
