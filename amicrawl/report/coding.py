"""Which texts of a column are equal, found without a Python object per text. Pure.

Texts are sorted into slots by a number made of their words, and compared with the first in their slot.
What is not equal to it tries again without those that are, a few times; then Python sorts out the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from amicrawl.report.texts import Texts
    from amicrawl.report.words import Flags, Numbers, Words

_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""2 ** 64 by the golden ratio: what it multiplies comes far from its neighbours."""

_SLOT_BITS = 12
_ROUNDS = 8
_LOOKED_AT = 96
"""Octets up to which texts are compared all together; the few that are longer, one by one."""


class Coded(NamedTuple):
    """A column as numbers into a list of its different texts."""

    codes: Numbers
    names: list[bytes]

    def at(self, chosen: Any) -> Coded:
        """Return the rows that *chosen* names: flags, or row numbers."""
        return Coded(self.codes[chosen], self.names)


def coded(texts: Texts | Coded) -> Coded:
    """Return *texts* as codes; names stand in the order in which they are first met."""
    if isinstance(texts, Coded):
        return texts
    first = _first_rows(texts)
    models = np.flatnonzero(first == np.arange(len(texts)))
    codes = np.empty(len(texts), np.int64)
    codes[models] = np.arange(len(models))
    return Coded(codes[first], texts.at(models).listed())


def _first_rows(texts: Texts) -> Numbers:
    """Return for each row the first that has the same text."""
    longest = int(texts.lengths.max(initial=0))
    words = [texts.lengths.view(np.uint64), texts.words(), texts.last_words()]
    words += [texts.words(skipped=skipped) for skipped in range(8, min(longest, _LOOKED_AT) - 8, 8)]
    slots = _slots(words)
    first = np.arange(len(texts))
    table = np.empty(1 << _SLOT_BITS, np.int64)
    rest: Any = slice(None)
    for _ in range(_ROUNDS):
        rows, chosen = first[rest], slots[rest]
        # Of the rows that fall to one slot the first stays there: the last assignment wins.
        table[chosen[::-1]] = rows[::-1]
        models = table[chosen]
        equal = np.ones(len(rows), np.bool_)
        for word in words:
            equal &= word[rest] == word[models]
        if longest > _LOOKED_AT:
            _part_long(texts, rows, models, equal)
        first[rows[equal]] = models[equal]
        rest = rows[~equal]
        if not len(rest):
            return first
    seen: dict[bytes, int] = {}
    for row, text in zip(rest.tolist(), texts.at(rest).listed(), strict=True):
        first[row] = seen.setdefault(text, row)
    return first


def _slots(words: list[Words]) -> Numbers:
    """Return a number below 2 ** `_SLOT_BITS` for each row, the same where all of *words* are."""
    mixed = words[0]
    for word in words[1:]:
        mixed = (mixed ^ word) * _MIXER
    return (mixed >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)


def _part_long(texts: Texts, rows: Numbers, models: Numbers, equal: Flags) -> None:
    """Take those rows out of *equal* whose text differs from their model's beyond the words compared."""
    for place in np.flatnonzero(equal & (texts.lengths[rows] > _LOOKED_AT)).tolist():
        equal[place] = texts[int(rows[place])] == texts[int(models[place])]
