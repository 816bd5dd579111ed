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
from amicrawl.index.merging.sides import Ties, ties_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.index.merging.sides import Side


_NOTHING = Ties("", "", "", "", "")
_WEAKER = ("record_id", "filename", "offset", "digest")
"""What tells records of one key and second apart, where line and record both have it."""


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


class _Alike:
    """Records of one key and second that the same lines may get."""

    __slots__ = ("additions", "is_given", "places")

    def __init__(self) -> None:
        self.places: list[int] = []
        self.additions: set[bytes] | None = None
        """What they add, once no stronger tie can take one of them away any more."""
        self.is_given = False


class _Rivals:
    """The records of one key and second, found by what does not tell them apart from a line.

    Comparing each line with each record would take hours where very many have one key and second.
    """

    def __init__(self, ties: list[Ties], places: list[int]) -> None:
        self._ties = ties
        self._by_named: dict[tuple[str, ...], list[int]] = {}
        for place in places:
            self._by_named.setdefault(_named(ties[place]), []).append(place)
        self._found: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[tuple[str, ...], _Alike]] = {}

    def of(self, line: Ties) -> list[_Alike]:
        """Return the records that nothing tells apart from *line*."""
        names = _named(line)
        if "filename" not in names:
            # An offset says nothing without its file.
            names = tuple(name for name in names if name != "offset")
        found = []
        for theirs in self._by_named:
            both = tuple(name for name in names if name in theirs)
            alike = self._by(theirs, both).get(_values(line, both))
            if alike is not None:
                found.append(alike)
        return found

    def _by(self, named: tuple[str, ...], both: tuple[str, ...]) -> dict[tuple[str, ...], _Alike]:
        found = self._found.get((named, both))
        if found is None:
            found = self._found[named, both] = {}
            for place in self._by_named[named]:
                found.setdefault(_values(self._ties[place], both), _Alike()).places.append(place)
        return found


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
        self._rivals: dict[str, _Rivals] = {}
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
            place = self._last_by_digest(found) if found.digest else -1
            if place < 0:
                return None
            self._counts.by_digest += 1
            return self._given(line, fields, place)
        return self._by_weaker_ties(line, fields, found)

    @property
    def used(self) -> bytes:
        """Of each record, what lines got from it: 1 by a strong tie, 2 by a weak one, 3 by both."""
        return bytes(self._used)

    @property
    def has_digests(self) -> bool:
        """Whether records name the digest of what they tell of."""
        return self._digests

    def _last_by_digest(self, found: Ties) -> int:
        last = -1
        for alike in self._candidates(found):
            places = alike.places
            while places and self._used[places[-1]] & 1:
                places.pop()
            if places and self._ties[places[-1]].digest == found.digest:
                last = max(last, places[-1])
        return last

    def _by_weaker_ties(self, line: bytes, fields: dict[str, Any], found: Ties) -> bytes:
        candidates = [alike for alike in self._candidates(found) if self._additions_of(alike)]
        if not candidates:
            return line
        if not self._anew and len(set().union(*map(self._additions_of, candidates))) > 1:
            self._counts.ambiguous += 1
            return line
        self._counts.by_key += 1
        for alike in candidates:
            if not alike.is_given:
                alike.is_given = True
                for place in alike.places:
                    self._used[place] |= 2
        return self._given(line, fields, max(alike.places[-1] for alike in candidates), mark=2)

    def _additions_of(self, alike: _Alike) -> set[bytes]:
        """Return what the records of *alike* add that no stronger tie has given away."""
        if alike.additions is None:
            alike.places = [place for place in alike.places if not self._used[place] & 1]
            alike.additions = {self._additions[place] for place in alike.places}
        return alike.additions

    def _candidates(self, found: Ties) -> list[_Alike]:
        """Return the records with the key and second of *found* that nothing tells apart from it."""
        there = self._by_key[found.when]
        if isinstance(there, int):
            # Most are alone: what finds them would take more memory than all the rest.
            rivals = _Rivals(self._ties, [there])
        elif found.when in self._rivals:
            rivals = self._rivals[found.when]
        else:
            rivals = self._rivals[found.when] = _Rivals(self._ties, there)
        return rivals.of(_NOTHING if self._anew else found)

    def _given(self, line: bytes, fields: dict[str, Any], place: int, *, mark: int = 1) -> bytes:
        self._used[place] |= mark
        return with_fields(line, fields, self._additions[place], anew=self._anew)


def _place(ties: Ties) -> str:
    # No file name holds a slash any more.
    return f"{ties.filename}/{ties.offset}/{ties.when[-14:]}"


def _named(ties: Ties) -> tuple[str, ...]:
    return tuple(name for name in _WEAKER if getattr(ties, name))


def _values(ties: Ties, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(getattr(ties, name) for name in names)


def _differ(one: str, other: str) -> bool:
    return bool(one and other) and one != other
