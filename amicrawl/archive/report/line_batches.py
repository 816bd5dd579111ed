"""Blocks of CDX and CDXJ lines into batches: columns at a time where lines have the usual form. Pure.

In a CDX file of eleven columns every eleventh white space is a line feed, and what lies between two is a
column. `archive/lines/blocks.py` finds the values of CDXJ lines that one program wrote alike. A line
that is odd (other white space, another number of columns, escapes, a key without host, a strange number)
goes through `rows`, which alone decides; both ways give the same rows, in the same order.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from amicrawl.archive.arrow_texts import Octets, Spans, whole_numbers
from amicrawl.archive.lines import Block, Fields
from amicrawl.archive.report.batch import (
    Lines,
    Ruled,
    are_dates,
    are_hyphens,
    are_uniform,
    batch_of,
    chosen,
    have_hosts,
    numbers_in,
    statuses_in,
    with_odd_lines,
)
from amicrawl.archive.report.counts import CDX_SUMMARY
from amicrawl.archive.report.rows import (
    CDXJ_FACETS,
    MOST_DIGITS,
    layout_of_count,
    layout_of_letters,
    legend,
    row_like_cdx_summary,
    row_of_cdx,
    row_of_cdxj,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from amicrawl.archive.lines import LineShape
    from amicrawl.archive.report.batch import Flags, Numbers
    from amicrawl.archive.report.rows import ColumnLayout


_OPTIONAL = ("r", "M")
_FIRST_SIX = {"N": 0, "b": 1, "a": 2, "m": 3, "s": 4, "k": 5}
_READ_AS_SIZE = {
    7: {"S": 6},
    9: {"r": 6, "S": 7},
    10: {"r": 6, "M": 7, "S": 8},
    11: {"r": 6, "M": 7, "S": 8},
}
"""What cdx-summary takes for the size by how many columns there are; of 9 and 10 it is the offset."""
_MOST_COLUMNS = 64
_TIME_DIGITS = 14
_LINE_FEED = ord("\n")
_BLANK = ord(" ")
_LEGEND_BEGINS = ord("C")


class LinePiece(NamedTuple):
    """Whole lines of one layout, known from a legend or a wish; else None."""

    block: bytes
    layout: ColumnLayout | None


class Legends:
    """Cuts the blocks of one CDX file at its legends, and remembers the last from block to block."""

    def __init__(self, layout: ColumnLayout | None = None) -> None:
        """Begin with *layout*, which holds until a legend says otherwise."""
        self._layout = layout

    def pieces(self, block: bytes) -> Iterator[LinePiece]:
        """Yield the whole lines of *block* between legends, each of which is obeyed on the way."""
        if not block.endswith(b"\n"):
            block += b"\n"
        begin = 0
        for start in _perhaps_legends(block):
            end = block.index(b"\n", start)
            letters = legend(block[start:end])
            if letters is None or b"CDX " not in block[start:end]:
                continue
            if start > begin:
                yield LinePiece(block[begin:start], self._layout)
            begin = end + 1
            self._obey(letters)
        if begin < len(block):
            yield LinePiece(block[begin:], self._layout)

    def _obey(self, letters: str) -> None:
        try:
            self._layout = layout_of_letters(letters)
        except ValueError:
            self._layout = None


def _perhaps_legends(block: bytes) -> list[int]:
    """Return where lines begin that begin like a legend: with a C, or white space."""
    octets = np.frombuffer(block, np.uint8)
    starts = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(octets[:-1] == _LINE_FEED) + 1])
    first = octets[starts]
    fit = (first == _LEGEND_BEGINS) | ((first <= _BLANK) & (first != _LINE_FEED))
    places: list[int] = starts[fit].tolist()
    return places


def cdx_lines(piece: LinePiece, *, rules: str) -> Lines:
    """Return what the lines of *piece* are."""
    block = piece.block if piece.block.endswith(b"\n") else piece.block + b"\n"
    # One octet is found many times as fast as two.
    grid = _grid(block.replace(b"\r\n", b"\n") if b"\r" in block else block)
    wanted = _wanted(grid.columns, piece.layout, rules=rules)
    batch, even = None, np.empty(0, np.int64)
    if wanted is not None and len(grid.even):
        whole, fit = _checked_columns(
            {name: grid.column(at) for name, at in wanted.items()}, rules=rules
        )
        batch, even = chosen(whole, fit), grid.even[fit]
        if len(even) == len(grid.ends):
            return Lines(batch, Counter())
    odd = np.delete(np.arange(len(grid.ends)), even)
    filled = odd[grid.begins[odd] < grid.ends[odd]].tolist()
    lines = [(at, line) for at, line in zip(filled, map(grid.line, filled), strict=True) if line.strip()]
    if rules == CDX_SUMMARY:
        return with_odd_lines(Ruled(lines, batch, even), row_like_cdx_summary)
    return with_odd_lines(Ruled(lines, batch, even), partial(row_of_cdx, layout=piece.layout))


class _ColumnGrid(NamedTuple):
    """Where the columns of lines are."""

    octets: Octets
    begins: Numbers
    """Where each line begins."""
    ends: Numbers
    """Where the line feed of each line is."""
    columns: int
    """How many most lines have."""
    even: Numbers
    """Which lines have that many, single blanks between them."""
    gaps: npt.NDArray[np.int64]
    """Where each column of these ends, by column and line."""

    def line(self, number: int) -> bytes:
        return self.octets.view[self.begins[number] : self.ends[number]].tobytes()

    def column(self, at: int) -> Spans:
        begins = self.gaps[at - 1] + 1 if at else self.begins[self.even]
        return Spans(self.octets, begins, self.gaps[at])


def _grid(block: bytes) -> _ColumnGrid:
    """Find the columns of the lines of *block*, which ends with a line feed."""
    octets = np.frombuffer(block, np.uint8)
    gaps = np.flatnonzero(octets <= _BLANK)
    kinds = octets[gaps]
    feeds = np.flatnonzero(kinds == _LINE_FEED)
    ends = gaps[feeds]
    begins = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])
    counts = np.diff(feeds, prepend=-1)
    lines_of = np.bincount(np.minimum(counts, _MOST_COLUMNS), minlength=3)
    # Empty lines have one column, and say nothing of the others.
    columns = 2 + int(lines_of[2:].argmax())
    even = np.flatnonzero(counts == columns)
    if len(even) == len(ends):
        table = np.ascontiguousarray(gaps.reshape(-1, columns).T)
    else:
        table = gaps[feeds[even] + np.arange(1 - columns, 1)[:, None]]
    blanks = np.count_nonzero(kinds == _BLANK) + len(feeds) == len(gaps)
    if not blanks or gaps[0] == 0 or (gaps[1:] == gaps[:-1] + 1).any():
        # Nothing but one blank ends a column.
        fit = (np.diff(table, axis=0, prepend=begins[even][None] - 1) > 1).all(axis=0)
        fit &= (octets[table[:-1]] == _BLANK).all(axis=0)
        even, table = even[fit], table[:, fit]
    return _ColumnGrid(Octets(block), begins, ends, columns, even, table)


def _wanted(columns: int, layout: ColumnLayout | None, *, rules: str) -> dict[str, int] | None:
    """Return the columns to read by name, or None where the slow path has to."""
    if rules == CDX_SUMMARY:
        further = _READ_AS_SIZE.get(columns)
        return None if further is None else {**_FIRST_SIX, **further}
    if layout is None:
        layout = layout_of_count(columns)
    if layout is None or columns not in {layout.columns, layout.columns + 3}:
        return None
    named = {"N": layout.key, "b": layout.time, "a": layout.url, "m": layout.mime, "s": layout.status}
    named |= {"k": layout.digest}
    if min(named.values()) < 0:
        return None
    return named | {name: at for name, at in (("S", layout.size), ("V", layout.offset)) if at >= 0}


def _checked_columns(column: dict[str, Spans], *, rules: str) -> tuple[pa.RecordBatch, Flags]:
    """Return the batch of the columns, and which rows are surely as the slow path would have them."""
    texts = {
        name: column[letter].texts(kind=pa.binary())
        for name, letter in (("key", "N"), ("mime", "m"), ("url", "a"), ("digest", "k"))
    }
    time, fit = whole_numbers(column["b"])
    fit &= column["b"].lengths == _TIME_DIGITS
    status, readable = statuses_in(column["s"])
    fit &= readable
    size = np.full(len(time), -1, np.int64)
    if "S" in column:
        size, readable = numbers_in(column["S"], longest=MOST_DIGITS)
        fit &= readable
    if rules == CDX_SUMMARY:
        fit &= have_hosts(texts["key"]) & (size >= 0)
        for name in _OPTIONAL:
            if name in column:
                fit &= are_hyphens(column[name])
    else:
        fit &= are_uniform(texts["key"]) & are_dates(time)
        if "V" in column:
            fit &= numbers_in(column["V"], longest=16)[1]
    return batch_of({**texts, "time": time, "status": status, "size": size}), fit


_TEXTS = ("url", "mime", "digest")
_NAMES = (*_TEXTS, "status", "length", *CDXJ_FACETS)
_META = b"!meta"


def cdxj_lines(octets: bytes) -> Lines:
    """Return what the whole lines of *octets* are."""
    if b"\r" in octets:
        octets = octets.replace(b"\r\n", b"\n")
    block = Block(octets if octets.endswith(b"\n") else octets + b"\n")
    known = [(alike, places) for alike in block.alike if (places := _places_in(alike.shape))]
    fields = Fields(block, known)
    facets = [name for name in CDXJ_FACETS if any(places[name] is not None for _, places in known)]
    whole, fit = _checked_values(block, fields, facets)
    batch, even = chosen(whole, fit), fields.rows[fit]
    if len(even) == block.lines:
        return Lines(batch, Counter())
    return with_odd_lines(Ruled(list(_odd_lines(block, even)), batch, even), row_of_cdxj)


def _places_in(shape: LineShape) -> dict[str, int | None] | None:
    """Return where the texts of lines of that *shape* are; None where one of them is not a string."""
    try:
        return {name: shape.text(name) for name in _NAMES}
    except LookupError:
        return None


def _checked_values(block: Block, fields: Fields, facets: list[str]) -> tuple[pa.RecordBatch, Flags]:
    """Return the batch of the lines *fields*, and which are surely as the slow path would have them."""
    key = block.keys(fields.rows).texts(kind=pa.binary())
    time, _ = whole_numbers(block.seconds(fields.rows))
    status, fit = statuses_in(fields.spans("status")[0])
    size, readable = numbers_in(fields.spans("length")[0], longest=MOST_DIGITS)
    fit &= readable & are_dates(time) & are_uniform(key)
    columns = {name: fields.texts(name).view(pa.binary()) for name in _TEXTS}
    columns |= {CDXJ_FACETS[name]: fields.texts(name).view(pa.binary()) for name in facets}
    return batch_of({"key": key, "time": time, "status": status, "size": size, **columns}), fit


def _odd_lines(block: Block, even: Numbers) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not among the *even*, but for blank ones and those of metadata."""
    odd = np.delete(np.arange(block.lines), even)
    for number in odd[block.starts[odd] < block.ends[odd]].tolist():
        for line in block.line(number).splitlines():
            if line.strip() and not line.startswith(_META):
                yield number, line
