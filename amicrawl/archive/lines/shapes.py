"""The shape of a line: what is the same in all lines like it, and where the values are. Pure.

Lines of one producer differ in their values only. So one line is parsed as JSON, and for others it is
enough to compare what is between the values, and to check that numbers are where numbers were. A line
with the shape of one that was parsed is JSON of that structure if its bytes are UTF-8 without control
characters or backslashes, which `blocks.py` checks.

Places in a line are counted in marks: its quotation marks, and the LF that ends it. One pass over the
bytes finds the marks of all lines.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
import pyarrow.compute as pc

from amicrawl.archive.arrow_texts import Spans, are_plain, truths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from amicrawl.archive.arrow_texts import Octets


_LONGEST = 2048
"""Octets of a line without its texts and numbers: of a sidecar's, some 300."""
_SCALAR = re.compile(rb"(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|true|false")


class Separator(NamedTuple):
    """What is between values, strings or scalars, and the same in all lines: names and brackets."""

    first: int
    """The first mark in it."""
    last: int
    """The last, maybe the same."""
    before: int
    """Octets before the first mark."""
    width: int
    """Octets from the first mark to the last."""
    text: bytes


class Scalar(NamedTuple):
    """Where a number or a literal is that is a value: alone between two marks."""

    mark: int
    """The mark before it, that ends its name."""
    before: int
    """Octets between that mark and the value."""
    after: int
    """Octets between the value and the next mark."""
    is_number: bool


class LineShape(NamedTuple):
    """What the lines that are alike have in common."""

    quotes: int
    """Quotation marks in the line."""
    fields: dict[str, Any]
    """The object, its texts replaced by their places: the text after quotation mark 6 is "6"."""
    links: tuple[Separator, ...]
    scalars: tuple[Scalar, ...]
    numbers: dict[str, tuple[Scalar, ...]]
    """Scalars that are numbers, by their names, in their order; as many as the line has of the name."""

    def text(self, *path: str) -> int | None:
        """Return the place of the text under the names *path*; None where there is nothing.

        LookupError where what is there is not a string.
        """
        found: Any = self.fields
        for name in path:
            if not isinstance(found, dict):
                raise LookupError(f"{name} is not in an object")  # noqa: TRY004  # it is the data's fault
            found = found.get(name)
            if found is None:
                return None
        if not isinstance(found, str):
            raise LookupError(f"{path[-1]} is not a string")  # noqa: TRY004
        return int(found)


def shape_of(written: bytes) -> LineShape | None:
    """Return the shape of the object *written*, without what surrounds it; None where it has none.

    It has none if it is not a JSON object, holds an escape, has two scalars without a mark between
    them, or is too long to be one of many.
    """
    parts = written.split(b'"')
    if b"\\" in written or len(parts) < 4 or len(parts) % 2 == 0 or parts[0] != b"{":
        return None
    # Texts are every other part. Of those that are values, and of scalars, only the place counts.
    for place in range(1, len(parts), 2):
        if not _is_name(parts, place):
            parts[place] = b""
    parts[::2] = [_SCALAR.sub(_usual, part) for part in parts[::2]]
    like = b'"'.join(parts)
    return _shape_like(like) if len(like) <= _LONGEST else None


def _is_name(parts: list[bytes], place: int) -> bool:
    return parts[place + 1].lstrip().startswith(b":")


def _usual(scalar: re.Match[bytes]) -> bytes:
    return b"0" if scalar[1] else b"true"


@lru_cache(maxsize=1024)
def _shape_like(written: bytes) -> LineShape | None:
    """Return the shape of lines like *written*, whose texts are empty, whose scalars are 0 or true."""
    parts = written.split(b'"')
    marked = [
        b"%d" % (place - 1) if place % 2 and not _is_name(parts, place) else part
        for place, part in enumerate(parts)
    ]
    scalars: dict[int, Scalar] = {}
    try:
        fields = orjson.loads(b'"'.join(marked))
        for place in range(1, len(parts), 2):
            if found := _SCALAR.search(part := parts[place + 1]):
                scalars[place] = Scalar(
                    place, found.start(), len(part) - found.end(), found[1] is not None
                )
                if _SCALAR.search(part, found.end()):
                    return None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    numbers: dict[str, tuple[Scalar, ...]] = {}
    for place, scalar in scalars.items():
        if scalar.is_number and _is_name(parts, place):
            name = parts[place].decode()
            numbers[name] = (*numbers.get(name, ()), scalar)
    numbers = {
        name: found for name, found in numbers.items() if parts.count(name.encode()) == len(found)
    }
    return LineShape(
        len(parts) - 1, fields, tuple(_links(parts, scalars)), tuple(scalars.values()), numbers
    )


def _links(parts: list[bytes], scalars: dict[int, Scalar]) -> Iterator[Separator]:
    """Yield what all lines like *parts* have in common, the line's end included."""
    first, last, before, width, text = 0, 0, 0, 0, b'"'
    for place in range(1, len(parts), 2):
        if _is_name(parts, place):
            last, width = place, len(text) - before + len(parts[place])
            text += parts[place] + b'"'
        else:
            yield Separator(first, last, before, width, text)
            first, last, before, width, text = place, place, 0, 0, b'"'
        part = parts[place + 1]
        if scalar := scalars.get(place):
            yield Separator(first, last, before, width, text + part[: scalar.before])
            before, text = scalar.after, part[len(part) - scalar.after :]
            first, width = place + 1, 0
        else:
            width = len(text) - before + len(part)
            text += part
        text += b'"' if place + 2 < len(parts) else b"\n"
        last = place + 1
    yield Separator(first, last, before, width, text)


_QUOTE, _LF, _SPACE = b'"\n '


class Marks:
    """Whole lines, each ended by LF, and the marks in them: quotation marks, and each line's LF."""

    def __init__(self, view: NDArray[np.uint8]) -> None:
        """Look through *view*; it ends in LF."""
        # Control characters are found on the way: there are none but LF in lines that are plain. With
        # one bit turned a quotation mark comes next behind them, so that one comparison finds both.
        all_ = np.flatnonzero((view ^ (_QUOTE ^ _SPACE)) <= _SPACE)
        found = view[all_]
        is_end = found == _LF
        has_controls = np.count_nonzero(found == _QUOTE) + np.count_nonzero(is_end) < len(found)
        if has_controls:
            controls = all_[(found != _QUOTE) & ~is_end]
            kept = (found == _QUOTE) | is_end
            all_, is_end = all_[kept], is_end[kept]
        ends = np.flatnonzero(is_end)
        self.ends: NDArray[np.int64] = all_[ends]
        """Where the LF of each line is."""
        self.starts: NDArray[np.int64] = np.concatenate(([0], self.ends + 1))[:-1]
        """Where each line begins."""
        self.first: NDArray[np.int64] = np.concatenate(([0], ends + 1))[:-1]
        """The number of the first mark of each line."""
        self.quotes: NDArray[np.int64] = ends - self.first
        """How many quotation marks each line has."""
        self.places: NDArray[np.int64] = all_
        """Where each mark is."""
        self.with_controls = self.lines_of(controls) if has_controls else np.empty(0, np.int64)
        """The numbers of the lines that hold control characters."""

    def lines_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of the lines that contain the octets at *places*."""
        return np.unique(np.searchsorted(self.ends, places))

    def of(self, rows: NDArray[np.int64], quotes: int) -> NDArray[np.int64]:
        """Return the places of the marks of *rows*, lines that have so many *quotes*, a row for each."""
        count = quotes + 1
        if len(rows) * count == len(self.places):
            return self.places.reshape(-1, count)
        # Taken as one thing each, rows are copied whole.
        whole = np.ndarray(
            (len(self.places) - quotes,), f"V{8 * count}", buffer=self.places.data, strides=(8,)
        )
        return whole[self.first[rows]].view(np.int64).reshape(-1, count)


_NUMBER = r"^-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,17})?$"
_TRUE, _FALSE = (int.from_bytes(literal, "little") for literal in (b"true", b"false"))


def fitting(octets: Octets, shape: LineShape, marks: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each line of *octets* whether it has *shape*; *marks* has those of each in a row.

    They have as many quotation marks as the shape has, and are UTF-8 without control characters and
    backslashes.
    """
    fits = np.ones(len(marks), np.bool_)
    for link in shape.links:
        _compare(octets, link, marks, fits)
    for scalar in shape.scalars:
        # Of lines that do not fit, the places say nothing: they may lie behind the last octet.
        rows = slice(None) if fits.all() else np.flatnonzero(fits)
        spans = scalar_spans(octets, scalar, marks[rows])
        fits[rows] = _are_numbers(spans) if scalar.is_number else _are_truths(spans)
    return fits


def scalar_spans(octets: Octets, scalar: Scalar, marks: NDArray[np.int64]) -> Spans:
    """Return where the *scalar* is in lines with these *marks*."""
    starts = marks[:, scalar.mark] + (1 + scalar.before)
    return Spans(octets, starts, np.maximum(marks[:, scalar.mark + 1] - scalar.after, starts))


def _compare(octets: Octets, link: Separator, marks: NDArray[np.int64], fits: NDArray[np.bool_]) -> None:
    """Clear in *fits* the lines whose octets are not those of *link* where it has to stand."""
    first, size = marks[:, link.first], len(link.text)
    begins = first - link.before
    fits &= begins + size <= len(octets.view)
    if link.width:
        fits &= marks[:, link.last] - first == link.width
    # Only what is as long can be it, and would else be copied for nothing.
    rows = None if fits.all() else np.flatnonzero(fits)
    found = octets.blocks(begins if rows is None else begins[rows], size)
    if found.tobytes() == link.text * len(found):
        return
    each = found.view(np.uint8).reshape(-1, size) == np.frombuffer(link.text, np.uint8)
    fits[slice(None) if rows is None else rows] = each.all(axis=1)


def _are_numbers(spans: Spans) -> NDArray[np.bool_]:
    are = are_plain(spans)
    if not are.all():
        others = np.flatnonzero(~are)
        are[others] = truths(pc.match_substring_regex(spans.some(others).texts(), _NUMBER))
    return are


def _are_truths(spans: Spans) -> NDArray[np.bool_]:
    word, lengths = spans.words(0), spans.lengths
    are: NDArray[np.bool_] = (word == _TRUE) & (lengths == len("true"))
    are |= (word == _FALSE) & (lengths == len("false"))
    return are
