"""Which record of a sidecar belongs to which line: an identity first, key and second last.

A line and a record that have the same second belong together by, in this order, the record's identifier;
file and offset; key and digest; key alone. A weaker tie never joins what a stronger one separates (two
captures with different identifiers are two), nor takes a record that a stronger tie has given away.
Where key and second are all there is and the records for them say different things, none is taken; of
several that have one identity, the last of the line's own key, else the last.

`by_key_only` is the rule of merge_cdxj, to the byte: key and second, the last record wins.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import TYPE_CHECKING

import orjson

from amicrawl.archive.index.merging.sides import JoinKeys, ties_in
from amicrawl.archive.index.sidecar.findings import with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amicrawl.archive.index.merging.sides import Side


_NOTHING = JoinKeys("", "", "", "", "")
_NO_RECORD, _UNDECIDED = -1, -2
_STRONG, _WEAK = 1, 2
_WEAKER = ("record_id", "filename", "offset", "digest")
"""What distinguishes records of one key and second, where line and record both have it."""


@dataclass
class MergeCounts:
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
    """Lines that are not CDXJ, but for blank ones and headers; they are copied unchanged."""
    records: int = 0
    """Records of sidecars."""
    records_unused: int = 0
    """Those that no line got anything from."""
    faults: int = 0
    """What of the inputs could not be read."""

    @property
    def unmatched(self) -> int:
        """Lines that no record belongs to; they are copied as they are."""
        return self.lines - self.by_id - self.by_place - self.by_digest - self.by_key

    def add(self, other: MergeCounts) -> None:
        """Add the figures of *other*."""
        for each in fields_of(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class _Tied:
    """Records by a strong tie: of several, the last that has the line's own key, else the last."""

    def __init__(self, ties: list[JoinKeys]) -> None:
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


class _Candidates:
    """Records of one key and second that the same lines may get."""

    __slots__ = ("additions", "is_given", "places")

    def __init__(self) -> None:
        self.places: list[int] = []
        self.additions: set[bytes] | None = None
        """What they add, once no stronger tie can take one of them away any more."""
        self.is_given = False


class _Rivals:
    """The records of one key and second, found by what does not distinguish them from a line.

    Comparing each line with each record would take hours where very many have one key and second.
    """

    def __init__(self, ties: list[JoinKeys], places: list[int]) -> None:
        self._ties = ties
        self._by_named: dict[tuple[str, ...], list[int]] = {}
        for place in places:
            self._by_named.setdefault(_named(ties[place]), []).append(place)
        self._found: dict[
            tuple[tuple[str, ...], tuple[str, ...]], dict[tuple[str, ...], _Candidates]
        ] = {}

    def of(self, line: JoinKeys) -> list[_Candidates]:
        """Return the records that nothing distinguishes from *line*."""
        names = _named(line)
        found = []
        for theirs in self._by_named:
            both = tuple(name for name in names if name in theirs)
            if "filename" not in both:
                # An offset says nothing without its file.
                both = tuple(name for name in both if name != "offset")
            alike = self._by(theirs, both).get(_values(line, both))
            if alike is not None:
                found.append(alike)
        return found

    def _by(self, named: tuple[str, ...], both: tuple[str, ...]) -> dict[tuple[str, ...], _Candidates]:
        found = self._found.get((named, both))
        if found is None:
            found = self._found[named, both] = {}
            for place in self._by_named[named]:
                found.setdefault(_values(self._ties[place], both), _Candidates()).places.append(place)
        return found


class Join:
    """The records of sidecars, and which of them belongs to which line."""

    def __init__(
        self,
        sides: Iterable[Side],
        counts: MergeCounts,
        *,
        by_key_only: bool = False,
        used: bytes = b"",
    ) -> None:
        """Hold *sides*; *used* says of each what lines got from it already, as `used` does."""
        self._counts = counts
        self._anew = by_key_only
        self._ties: list[JoinKeys] = []
        self._additions: list[bytes] = []
        self._by_id = _Tied(self._ties)
        self._by_place = _Tied(self._ties)
        self._by_key: dict[str, int | list[int]] = {}
        self._rivals: dict[str, _Rivals] = {}
        self._digests = False
        for side in sides:
            self._add(side)
        self._used = bytearray(used or len(self._ties))

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

    def decided(self, lines: Callable[[], Iterable[bytes]]) -> Iterator[bytes]:
        """Yield each of *lines* with the fields that belong to it.

        *lines* is called up to three times and has to return the same lines each time: a record that a
        stronger tie gives to any of them is not available to the weaker ones.
        """
        places = array("q", map(self._by_strong_ties, lines()))
        if self._digests:
            for number, line in enumerate(lines()):
                if places[number] == _UNDECIDED:
                    places[number] = self._by_digest(line)
        for place, line in zip(places, lines(), strict=True):
            if place == _UNDECIDED:
                yield self._by_weaker_ties(line)
            else:
                yield line if place == _NO_RECORD else self._given(line, place)

    def _by_strong_ties(self, line: bytes) -> int:
        """Return the record that belongs to *line* by its identifier, or by file and offset."""
        self._counts.lines += 1
        found = ties_in(line)
        if found is None:
            self._counts.malformed += line[:1] not in (b"", b"!", b"\r")
            return _NO_RECORD
        side = None
        if found.record_id and self._by_id:
            side = self._by_id.find(found.record_id + found.when[-14:], found.when)
        if side is not None:
            self._counts.by_id += 1
            self._used[side] |= _STRONG
            return side
        if found.offset and self._by_place:
            side = self._by_place.find(_place(found), found.when)
            if side is not None and not _differ(found.record_id, self._ties[side].record_id):
                self._counts.by_place += 1
                self._used[side] |= _STRONG
                return side
        return _UNDECIDED if found.when in self._by_key else _NO_RECORD

    def _by_digest(self, line: bytes) -> int:
        """Return the record that belongs to *line*, which is undecided, by key and digest."""
        found = ties_in(line)
        place = self._last_by_digest(found) if found is not None and found.digest else -1
        if place < 0:
            return _UNDECIDED
        self._counts.by_digest += 1
        self._used[place] |= _STRONG
        return place

    @property
    def used(self) -> bytes:
        """Of each record, what lines got from it: 1 by a strong tie, 2 by a weak one, 3 by both."""
        return bytes(self._used)

    def _last_by_digest(self, found: JoinKeys) -> int:
        last = -1
        for alike in self._candidates(found):
            places = alike.places
            while places and self._used[places[-1]] & _STRONG:
                places.pop()
            if places and self._ties[places[-1]].digest == found.digest:
                last = max(last, places[-1])
        return last

    def _by_weaker_ties(self, line: bytes) -> bytes:
        """Return *line*, which is undecided, with what belongs to it by key and timestamp."""
        found = ties_in(line)
        assert found is not None
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
                    self._used[place] |= _WEAK
        place = max(alike.places[-1] for alike in candidates)
        self._used[place] |= _WEAK
        return self._given(line, place)

    def _additions_of(self, alike: _Candidates) -> set[bytes]:
        """Return what the records of *alike* add that no stronger tie has given away."""
        if alike.additions is None:
            alike.places = [place for place in alike.places if not self._used[place] & _STRONG]
            alike.additions = {self._additions[place] for place in alike.places}
        return alike.additions

    def _candidates(self, found: JoinKeys) -> list[_Candidates]:
        """Return the records with the key and second of *found* that nothing distinguishes from it."""
        there = self._by_key[found.when]
        if isinstance(there, int):
            # Most are alone: what finds them would take more memory than all the rest.
            rivals = _Rivals(self._ties, [there])
        elif found.when in self._rivals:
            rivals = self._rivals[found.when]
        else:
            rivals = self._rivals[found.when] = _Rivals(self._ties, there)
        return rivals.of(_NOTHING if self._anew else found)

    def _given(self, line: bytes, place: int) -> bytes:
        return with_fields(
            line, orjson.loads(line.split(b" ", 2)[2]), self._additions[place], anew=self._anew
        )


def _place(ties: JoinKeys) -> str:
    # No file name holds a slash any more.
    return f"{ties.filename}/{ties.offset}/{ties.when[-14:]}"


def _named(ties: JoinKeys) -> tuple[str, ...]:
    return tuple(name for name in _WEAKER if getattr(ties, name))


def _values(ties: JoinKeys, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(getattr(ties, name) for name in names)


def _differ(one: str, other: str) -> bool:
    return bool(one and other) and one != other
