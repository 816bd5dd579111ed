"""Texts: a column of text that is not copied out of the block it was read from. Pure.

A text is known by where it begins and ends in a run of octets. What is asked of a column (what number
each text is, how far neighbours agree, where a mark stands) is answered for all of its texts at once,
eight octets at a time; a Python object per text is made only where `listed` is called.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from amicrawl.report.words import (
    KEPT,
    ZEROS,
    are_digits,
    numbers_of_eight,
    octets_shared,
    word,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from amicrawl.report.words import Flags, Numbers, Words

PADDING = b"-" + bytes(23)
"""What has to stand behind the octets of texts, so that words of eight can be read up to their end."""

_LOOKED_AT = 512
"""Octets up to which neighbours are compared all together; the few that are longer, one by one."""

_HYPHEN = ord("-")


class Texts:
    """A column of texts in *octets*, which end with `PADDING`."""

    __slots__ = ("_listed", "_places", "begins", "ends", "octets")

    def __init__(
        self,
        octets: bytes,
        begins: Numbers,
        ends: Numbers,
        *,
        listed: Callable[[], list[bytes]] | None = None,
    ) -> None:
        """Take the column as it is; *listed* returns its texts where something knows them already."""
        self.octets, self.begins, self.ends = octets, begins, ends
        self._listed = listed
        self._places: dict[bytes, Numbers] = {}

    @classmethod
    def of(cls, values: Sequence[bytes]) -> Texts:
        """Return *values* as a column."""
        known = list(values)
        ends = np.cumsum(np.fromiter(map(len, known), np.int64, len(known)), dtype=np.int64)
        begins = np.concatenate([np.zeros(min(len(ends), 1), np.int64), ends[:-1]])
        return cls(b"".join(known) + PADDING, begins, ends, listed=lambda: known)

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, at: int) -> bytes:
        return self.octets[int(self.begins[at]) : int(self.ends[at])]

    @property
    def lengths(self) -> Numbers:
        """Octets of each text."""
        return self.ends - self.begins

    def listed(self) -> list[bytes]:
        """Return the texts themselves."""
        if self._listed is not None:
            return self._listed()
        octets, length = self.octets, self._only_length()
        if length:
            rows = np.ndarray((len(octets) - length + 1,), f"S{length}", octets, strides=(1,))
            values: list[bytes] = rows[self.begins].tolist()
            return values
        return [octets[a:b] for a, b in zip(self.begins.tolist(), self.ends.tolist(), strict=True)]

    def _only_length(self) -> int:
        """Return the length that all texts have; 0 where it differs, or where zeros would be lost."""
        lengths = self.lengths
        length = int(lengths[0]) if len(lengths) else 0
        if not length or (lengths != length).any():
            return 0
        return length if np.frombuffer(self.octets, np.uint8)[self.ends - 1].all() else 0

    def at(self, chosen: Any) -> Texts:
        """Return the texts that *chosen* names: flags, or row numbers."""
        known, listed = self._listed, None
        if known is not None:
            listed = lambda: _picked(known(), chosen)  # noqa: E731  # no name could say more
        return Texts(self.octets, self.begins[chosen], self.ends[chosen], listed=listed)

    def compact(self) -> Texts:
        """Return the same texts one directly behind the other, and nothing between them."""
        values = self.listed()
        ends = np.cumsum(self.lengths)
        return Texts(b"".join(values) + PADDING, ends - self.lengths, ends, listed=lambda: values)

    def followed_by(self, other: Texts) -> Texts:
        """Return these texts and then those of *other*."""
        shift = len(self.octets)
        return Texts(
            self.octets + other.octets,
            np.concatenate([self.begins, other.begins + shift]),
            np.concatenate([self.ends, other.ends + shift]),
            listed=lambda: self.listed() + other.listed(),
        )

    def hyphened(self) -> Texts:
        """Return the texts with a hyphen in place of those that are empty."""
        empty = self.begins == self.ends
        if not empty.any():
            return self
        hyphen = len(self.octets) - len(PADDING)
        return Texts(
            self.octets, np.where(empty, hyphen, self.begins), np.where(empty, hyphen + 1, self.ends)
        )

    def words(self, *, skipped: int = 0) -> Words:
        """Return the eight octets behind the first *skipped* of each text, zeros beyond its end."""
        if not skipped:
            whole: Words = words_of(self.octets)[self.begins] & KEPT[np.minimum(self.lengths, 8)]
            return whole
        words = np.zeros(len(self), np.uint64)
        rows = np.flatnonzero(self.lengths > skipped)
        if len(rows):
            further = Texts(self.octets, self.begins[rows] + skipped, self.ends[rows])
            words[rows] = further.words()
        return words

    def last_words(self) -> Words:
        """Return the last eight octets of each text; all and then zeros where it is shorter."""
        lengths = self.lengths
        begins = self.ends - np.minimum(lengths, 8)
        words: Words = words_of(self.octets)[begins] & KEPT[self.ends - begins]
        return words

    def are(self, value: bytes) -> Flags:
        """Return which texts are *value*."""
        equal: Flags = self.lengths == len(value)
        if not equal.any():
            return equal
        begins = self.begins if equal.all() else np.where(equal, self.begins, 0)
        words = words_of(self.octets)
        for skipped in range(0, len(value), 8):
            part = value[skipped : skipped + 8]
            equal &= words[begins + skipped] & KEPT[len(part)] == word(part)
        return equal

    def begin_with(self, value: bytes) -> Flags:
        """Return which texts begin with *value*, at most eight octets."""
        begin: Flags = (self.words() & KEPT[len(value)]) == word(value)
        return begin

    def end_with(self, value: bytes) -> Flags:
        """Return which texts end with *value*."""
        long = self.lengths >= len(value)
        begins = np.where(long, self.ends - len(value), self.begins)
        ends: Flags = long & Texts(self.octets, begins, self.ends).are(value)
        return ends

    def places_of(self, mark: bytes) -> Numbers:
        """Return where in `octets` each text has the first *mark*; where it has none, its end."""
        if mark not in self._places:
            found = np.flatnonzero(np.frombuffer(self.octets, np.uint8) == ord(mark))
            following = np.concatenate([found, np.full(1, len(self.octets))])
            places = following[np.searchsorted(found, self.begins)]
            self._places[mark] = np.minimum(places, self.ends)
        return self._places[mark]

    def numbers(self, *, longest: int = 16) -> tuple[Numbers, Flags]:
        """Return each text as a number, -1 for a hyphen or nothing, and which of them are one.

        A number is decimal digits only, at most *longest* of them, which may be 16.
        """
        lengths = self.lengths
        shift = ((8 - np.minimum(lengths, 8)) * 8).astype(np.uint64)
        head = self.words()
        unknown = (lengths == 0) | ((lengths == 1) & (head == _HYPHEN))
        # The digits move to the end of the word, zeros stand before them.
        filled = np.where(lengths < 8, head << shift | ZEROS & KEPT[shift.view(np.int64) >> 3], head)
        numbers, fit = numbers_of_eight(filled), are_digits(filled)
        long = np.flatnonzero(lengths > 8)
        if len(long):
            tails, tails_fit = Texts(self.octets, self.begins[long] + 8, self.ends[long]).numbers(
                longest=8
            )
            further = np.minimum(lengths[long] - 8, 8)
            numbers[long] = numbers[long] * 10**further + tails
            fit[long] &= tails_fit & (tails >= 0)
        fit &= lengths <= longest
        return np.where(unknown, -1, numbers), fit | unknown

    def shared(self) -> Numbers:
        """Return how many octets each text but the first has in common with the one before."""
        lengths = self.lengths
        limit = np.minimum(lengths[1:], lengths[:-1])
        shared = limit.copy()
        words = words_of(self.octets)
        rows = np.arange(len(limit))
        for skipped in range(0, _LOOKED_AT, 8):
            left = limit[rows] - skipped
            begins = self.begins + skipped
            differ = (words[begins[rows]] ^ words[begins[rows + 1]]) & KEPT[np.minimum(left, 8)]
            found = differ != 0
            shared[rows[found]] = skipped + octets_shared(differ[found])
            rows = rows[~found & (left > 8)]
            if not len(rows):
                break
        for row in rows.tolist():
            shared[row] = _shared_by(self[row], self[row + 1])
        return shared


def _picked(values: list[bytes], chosen: Any) -> list[bytes]:
    if chosen.dtype == np.bool_:
        return list(compress(values, chosen.tolist()))
    return [values[row] for row in chosen.tolist()]


def _shared_by(one: bytes, other: bytes) -> int:
    """Return how many octets *one* and *other* begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
