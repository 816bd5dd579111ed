"""Many CDXJ lines at once: where their keys, timestamps and values are in a block of octets.

Python looks at one line of each shape (`shapes.py`); that the others are like it, and what they hold, is
found with a few passes of numpy over the block. Nothing is copied before it is requested.
Lines that are not plain, because they are not CDXJ or unusual, are left to the caller to parse.
What is found of a plain line is what `line.split(b" ", 2)` and a JSON parser find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from amicrawl.archive.arrow_texts import Octets, Spans, have_other_than_digits, octets_of
from amicrawl.archive.lines.shapes import Marks, fitting, scalar_spans, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from amicrawl.archive.arrow_texts import Texts
    from amicrawl.archive.lines.shapes import LineShape, Scalar

_SPACE, _BRACE, _BACKSLASH = b" {\\"
_HEAD = 17
"""Octets before the first quotation mark: a space, 14 digits, a space, a brace."""
_SECOND = 14
_MOST_SHAPES = 24
"""Shapes that are looked for in a block; lines of others are not plain."""
_LARGEST = 1 << 30
"""Octets of a block, whose places are numbers of 32 bits."""


class Alike(NamedTuple):
    """Lines of one shape."""

    shape: LineShape
    rows: NDArray[np.int64]
    """Their numbers, ascending."""
    marks: NDArray[np.int64]
    """The places of their marks, a row for each line."""

    def some(self, which: NDArray[np.bool_]) -> Alike:
        """Return those of which that is true."""
        return self if which.all() else Alike(self.shape, self.rows[which], self.marks[which])


class Block:
    """Whole lines, each ended by LF, and what is in them."""

    def __init__(self, octets: bytes) -> None:
        """Look through *octets*; they end in LF and are fewer than 1 GiB."""
        self.octets = octets
        self.all = Octets(octets)
        """The same, to be read from anywhere."""
        self._marks = Marks(self.all.view)
        self.ends = self._marks.ends
        """Where the LF of each line is."""
        self.starts = self._marks.starts
        """Where each line begins."""
        self.lines = len(self.ends)
        """How many there are."""
        self.alike: list[Alike] = []
        """The plain lines, by their shapes."""
        # The first quotation mark of each line that has one.
        self._quote = self._marks.places[self._marks.first]
        candidates = self._candidates()
        if len(candidates):
            self._find_shapes(candidates)

    def line(self, number: int) -> bytes:
        """Return the line *number* without its LF."""
        return self.octets[self.starts[number] : self.ends[number]]

    def first_octets(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the octet that each of the lines *rows*, none of which is empty, begins with."""
        return self.all.view[self._starts(rows)]

    def keys(self, rows: NDArray[np.int64]) -> Spans:
        """Return the keys of the plain lines *rows*."""
        return Spans(self.all, self._starts(rows), self._quotes(rows) - _HEAD)

    def seconds(self, rows: NDArray[np.int64]) -> Spans:
        """Return the timestamps of the plain lines *rows*."""
        ends = self._quotes(rows) - 2
        return Spans(self.all, ends - _SECOND, ends)

    def whens(self, rows: NDArray[np.int64]) -> Spans:
        """Return key, space and timestamp of the plain lines *rows*: how they begin."""
        return Spans(self.all, self._starts(rows), self._quotes(rows) - 2)

    def texts(self, alike: Alike, place: int) -> Spans:
        """Return the texts at *place* of lines of one shape."""
        return Spans(self.all, alike.marks[:, place] + 1, alike.marks[:, place + 1])

    def scalars(self, alike: Alike, scalar: Scalar) -> Spans:
        """Return how the *scalar* of their shape is written in lines of one shape."""
        return scalar_spans(self.all, scalar, alike.marks)

    def _starts(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.starts if len(rows) == self.lines else self.starts[rows]

    def _quotes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._quote if len(rows) == self.lines else self._quote[rows]

    def _candidates(self) -> NDArray[np.int64]:
        """Return the numbers of the lines that begin as one does and hold nothing that is not plain."""
        quotes, view = self._marks.quotes, self.all.view
        sound = (quotes >= 4) & (quotes % 2 == 0) & (self._quote - self.starts > _HEAD)
        if len(self.octets) > _LARGEST or not sound.any():
            return np.empty(0, np.int64)
        quote = np.maximum(self._quote, _HEAD)
        for back, octet in ((1, _BRACE), (2, _SPACE), (_HEAD, _SPACE)):
            sound &= view[quote - back] == octet
        for back in (_HEAD - 1, 10):
            sound &= have_other_than_digits(self.all.words(quote - back)) == 0
        if _BACKSLASH in self.octets:
            sound[self._marks.lines_of(np.flatnonzero(view == _BACKSLASH))] = False
        sound[self._marks.with_controls] = False
        if view.max() >= 0x80:
            sound &= self._are_text()
        return self._without_spaces_in_keys(np.flatnonzero(sound))

    def _without_spaces_in_keys(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of the lines *rows* whose keys, all that is before the second, hold no space."""
        octets, places = octets_of(self.keys(rows).texts())
        spaces = np.flatnonzero(octets == _SPACE)
        if not len(spaces):
            return rows
        has_space = np.zeros(len(rows), np.bool_)
        has_space[np.searchsorted(places, spaces, side="right") - 1] = True
        return rows[~has_space]

    def _are_text(self) -> NDArray[np.bool_]:
        """Return for each line whether it is UTF-8."""
        try:
            self.octets.decode()
        except UnicodeDecodeError:
            return np.array([is_utf8(self.line(number)) for number in range(self.lines)], np.bool_)
        return np.ones(self.lines, np.bool_)

    def _find_shapes(self, candidates: NDArray[np.int64]) -> None:
        quotes = self._marks.quotes[candidates]
        waiting = [candidates[quotes == count] for count in np.flatnonzero(np.bincount(quotes)).tolist()]
        for _ in range(_MOST_SHAPES):
            if not waiting:
                return
            rows = waiting.pop()
            fits = np.zeros(len(rows), np.bool_)
            written = self.octets[self._quote[rows[0]] - 1 : self.ends[rows[0]]]
            if (shape := shape_of(written)) is not None:
                marks = self._marks.of(rows, shape.quotes)
                fits = fitting(self.all, shape, marks)
                if fits.any():
                    self.alike.append(Alike(shape, rows, marks).some(fits))
            if not fits.any():
                # Whatever is odd about the first, the others may be like each other.
                fits[0] = True
            if not fits.all():
                waiting.insert(0, rows[~fits])


class Fields:
    """Some of the plain lines of a block, of several shapes, and what they have by name."""

    def __init__(self, block: Block, alike: Sequence[tuple[Alike, Mapping[str, int | None]]]) -> None:
        """Have the lines *alike*, each shape with the places of its texts, under names that all have."""
        self._block = block
        self._alike = alike
        rows = [each.rows for each, _ in alike]
        self.rows = np.sort(np.concatenate(rows)) if rows else np.empty(0, np.int64)
        """The numbers of the lines, ascending."""
        self._where = [np.searchsorted(self.rows, each) for each in rows]

    def spans(self, name: str) -> tuple[Spans, NDArray[np.bool_] | None]:
        """Return the texts under *name*, and which lines have none; None where all have one."""
        if len(self._alike) == 1 and (place := self._alike[0][1][name]) is not None:
            return self._block.texts(self._alike[0][0], place), None
        starts, ends = np.empty(len(self.rows), np.int64), np.empty(len(self.rows), np.int64)
        missing = np.zeros(len(self.rows), np.bool_)
        for (alike, places), where in zip(self._alike, self._where, strict=True):
            if (place := places[name]) is not None:
                starts[where] = alike.marks[:, place] + 1
                ends[where] = alike.marks[:, place + 1]
            else:
                # A missing value is empty, at the start of its line, so that all ascend.
                starts[where] = ends[where] = self._block.starts[alike.rows]
                missing[where] = True
        return Spans(self._block.all, starts, ends), missing if missing.any() else None

    def texts(self, name: str) -> Texts:
        """Return the texts under *name*; null for lines that have none."""
        spans, missing = self.spans(name)
        return spans.texts(missing=missing)


def is_utf8(octets: bytes) -> bool:
    """Return whether *octets* are UTF-8."""
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True
