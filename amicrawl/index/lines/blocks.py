"""Many CDXJ lines at once: where their keys, timestamps and values stand in a block of octets.

Python looks at one line of each shape (`shapes.py`); that the others are like it, and what they hold, is
found with a few passes of numpy and Arrow over the block. Nothing is copied before it is asked for.
Lines that are not plain, for they are no CDXJ or just odd, are left to whoever reads them one by one.
What is found of a plain line is what `line.split(b" ", 2)` and a JSON parser find.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from amicrawl.index.lines.arrow_texts import Texts, octets_of, taken, texts_of, truths
from amicrawl.index.lines.shapes import shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from amicrawl.index.lines.shapes import Link, Number, Shape

_QUOTE, _LF, _SPACE, _BRACE, _BACKSLASH = b'"\n {\\'
_HEAD = 17
"""Octets before the first quotation mark: a space, 14 digits, a space, a brace."""
_MOST_SHAPES = 24
"""Shapes that are looked for in a block; lines of others are not plain."""
_LARGEST = 1 << 30
"""Octets of a block, whose places are numbers of 32 bits."""


class Block:
    """Whole lines, each ended by LF, and what is in them."""

    def __init__(self, octets: bytes) -> None:
        """Look through *octets*; they end in LF and are fewer than 1 GiB."""
        self.octets = octets
        self._view = np.frombuffer(octets, np.uint8)
        marks = np.flatnonzero((self._view == _QUOTE) | (self._view == _LF))
        ends = np.flatnonzero(self._view[marks] == _LF)
        self.ends: NDArray[np.int64] = marks[ends]
        """Where the LF of each line stands."""
        self.starts: NDArray[np.int64] = np.concatenate(([0], self.ends[:-1] + 1))
        """Where each line begins."""
        self.lines = len(ends)
        """How many there are."""
        self._marks = marks
        self._first = np.concatenate(([0], ends[:-1] + 1))
        self._quotes = ends - self._first
        self.shapes: list[tuple[Shape, NDArray[np.int64]]] = []
        """The shapes of plain lines, and the numbers of the lines that have each, ascending."""
        self.is_plain: NDArray[np.bool_] = np.zeros(self.lines, np.bool_)
        """Of each line, whether it is plain."""
        candidates = self._candidates()
        if len(candidates):
            self._texts = self._tiled()
            self._find_shapes(candidates)

    def line(self, number: int) -> bytes:
        """Return the line *number* without its LF."""
        return self.octets[self.starts[number] : self.ends[number]]

    def first_octets(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the octet that each of the lines *rows*, none of which is empty, begins with."""
        return self._view[self.starts[rows]]

    def keys(self, rows: NDArray[np.int64]) -> Texts:
        """Return the keys of the plain lines *rows*."""
        return self.spans(self.starts[rows], self._marks[self._first[rows]] - _HEAD)

    def timestamps(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the 14 digits of the plain lines *rows*, a row of octets each."""
        first = self._marks[self._first[rows]] - _HEAD + 1
        digits: NDArray[np.uint8] = self._view[first[:, None] + np.arange(14)]
        return digits

    def seconds(self, rows: NDArray[np.int64]) -> Texts:
        """Return the timestamps of the plain lines *rows*."""
        first = self._marks[self._first[rows]]
        return self.spans(first - _HEAD + 1, first - 2)

    def whens(self, rows: NDArray[np.int64]) -> Texts:
        """Return key, space and timestamp of the plain lines *rows*: how they begin."""
        return self.spans(self.starts[rows], self._marks[self._first[rows]] - 2)

    def column(
        self, rows: NDArray[np.int64], places: Sequence[tuple[NDArray[np.int64], int | None]]
    ) -> Texts:
        """Return a text for each of *rows*: *places* has lines and where theirs is; null elsewhere."""
        where = np.full(self.lines, -1)
        for some, place in places:
            if place is not None:
                where[some] = self._first[some] + place
        if len(rows) < self.lines:
            where = where[rows]
        missing = where < 0
        return taken(self._texts, where, missing=missing if missing.any() else None)

    def texts(self, rows: NDArray[np.int64], place: int) -> Texts:
        """Return the texts at *place* of *rows*, lines of one shape."""
        return taken(self._texts, self._first[rows] + place)

    def numbers(self, rows: NDArray[np.int64], number: Number) -> Texts:
        """Return how the *number* of their shape is written in *rows*."""
        first = self._first[rows] + number.mark
        return self.spans(self._marks[first] + 1 + number.before, self._marks[first + 1] - number.after)

    def _candidates(self) -> NDArray[np.int64]:
        """Return the numbers of the lines that begin as one does and hold nothing that is not plain."""
        sound = (self._quotes >= 4) & (self._quotes % 2 == 0)
        if len(self.octets) > _LARGEST or not sound.any():
            return np.empty(0, np.int64)
        quote = self._marks[np.minimum(self._first, len(self._marks) - 1)]
        sound &= quote - self.starts > _HEAD
        quote = np.maximum(quote, _HEAD)
        for back, octet in ((1, _BRACE), (2, _SPACE), (_HEAD, _SPACE)):
            sound &= self._view[quote - back] == octet
        sound &= self._have_digits(quote)
        if _BACKSLASH in self.octets:
            sound[self._lines_with(self._view == _BACKSLASH)] = False
        controls = self._view < _SPACE
        if np.count_nonzero(controls) > self.lines:
            controls[self.ends] = False
            sound[self._lines_with(controls)] = False
        if not self.octets.isascii():
            sound &= self._are_text()
        rows = np.flatnonzero(sound)
        if len(rows):
            keys = self.keys(rows)
            if b" " in octets_of(keys)[0]:
                rows = rows[~truths(pc.match_substring(keys, " "))]
        return rows

    def _have_digits(self, quote: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell of each line whether 14 digits stand where they belong before its *quote*."""
        # A digit less "0" is less than 10; an octet that is less than "0" wraps around.
        digits = self._view[(quote - _HEAD + 1)[:, None] + np.arange(14)] - np.uint8(ord("0"))
        are: NDArray[np.bool_] = (digits < 10).all(axis=1)
        return are

    def _are_text(self) -> NDArray[np.bool_]:
        """Tell of each line whether it is UTF-8."""
        try:
            self.octets.decode()
        except UnicodeDecodeError:
            return np.array([_is_text(self.line(number)) for number in range(self.lines)], np.bool_)
        return np.ones(self.lines, np.bool_)

    def _lines_with(self, octets: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.unique(np.searchsorted(self.ends, np.flatnonzero(octets)))

    def _tiled(self) -> Texts:
        """Return the block as one array of texts, cut behind and before quotation marks, in turn.

        Its places are those of the marks: what follows mark 6 of a line is 6 behind the line's first.
        """
        cuts = np.empty(len(self._marks) + 1, np.int32)
        cuts[:-1] = self._marks
        cuts[-1] = len(self.octets)
        # A line's LF is a mark too, so which marks open a text depends on how many came before.
        opening = np.zeros(len(self._marks) + 1, np.int8)
        flips = self._first[1:][(self._quotes[:-1] + 1) % 2 == 1]
        opening[flips] = 1
        np.bitwise_xor.accumulate(opening, out=opening)
        opening[0::2] ^= 1
        cuts += opening
        cuts[-1] = len(self.octets)
        return texts_of(self.octets, cuts)

    def spans(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Texts:
        """Return the texts between *starts* and *ends*, which ascend and do not overlap."""
        cuts = np.empty(2 * len(starts), np.int32)
        cuts[0::2] = starts
        cuts[1::2] = ends
        return taken(texts_of(self.octets, cuts), np.arange(0, len(cuts), 2))

    def _find_shapes(self, candidates: NDArray[np.int64]) -> None:
        quotes = self._quotes[candidates]
        waiting = [candidates[quotes == count] for count in np.flatnonzero(np.bincount(quotes)).tolist()]
        for _ in range(_MOST_SHAPES):
            if not waiting:
                return
            rows = waiting.pop()
            written = self.octets[self._marks[self._first[rows[0]]] - 1 : self.ends[rows[0]]]
            shape = _known_shape(written)
            fits = self._fits(shape, rows) if shape is not None else np.zeros(len(rows), np.bool_)
            if shape is not None and fits.any():
                self.shapes.append((shape, rows[fits]))
                self.is_plain[rows[fits]] = True
            else:
                # Whatever is odd about the first, the others may be like each other.
                fits[0] = True
            if not fits.all():
                waiting.insert(0, rows[~fits])

    def _fits(self, shape: Shape, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell of each of *rows*, which have as many quotation marks as *shape*, whether it has it."""
        first = self._first[rows]
        fits = np.ones(len(rows), np.bool_)
        for link in shape.links:
            begins = self._marks[first + link.first]
            self._compare(link, begins, self._marks[first + link.last] + 1, fits)
        self._compare(shape.tail, self._marks[first + shape.tail.first], self.ends[rows], fits)
        return fits

    def _compare(
        self, link: Link, begins: NDArray[np.int64], ends: NDArray[np.int64], fits: NDArray[np.bool_]
    ) -> None:
        """Clear in *fits* what is not like *link* between where it *begins* and *ends*."""
        if link.pattern:
            fits &= truths(pc.match_substring_regex(self.spans(begins, ends), link.pattern))
            return
        text = link.text
        fits &= ends - begins == len(text)
        # Octets are compared eight at a time; where a text ends, some twice.
        width = 8 if len(text) >= 8 else 4 if len(text) >= 4 else 1
        words = np.ndarray(
            (len(self.octets) - width + 1,), f"<u{width}", buffer=self.octets, strides=(1,)
        )
        limit = len(words) - 1
        for at in _steps(len(text), width):
            word = int.from_bytes(text[at : at + width], "little")
            places = begins + at
            if places[-1] > limit:
                places = np.minimum(places, limit)
            fits &= words[places] == words.dtype.type(word)


def _steps(length: int, width: int) -> list[int]:
    return [*range(0, length - width, width), length - width]


def _is_text(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


@lru_cache(maxsize=4096)
def _known_shape(written: bytes) -> Shape | None:
    return shape_of(written)
