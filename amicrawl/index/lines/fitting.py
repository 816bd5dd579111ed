"""Which lines have a shape: told of many at a time, by comparing what is between their values. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from amicrawl.index.lines.arrow_texts import truths
from amicrawl.index.lines.numerals import are_plain
from amicrawl.index.lines.spans import Spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from amicrawl.index.lines.shapes import Link, Scalar, Shape
    from amicrawl.index.lines.spans import Octets

_NUMBER = r"^-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,17})?$"
_TRUE, _FALSE = (int.from_bytes(literal, "little") for literal in (b"true", b"false"))


def fitting(octets: Octets, shape: Shape, marks: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell of each line of *octets* whether it has *shape*; *marks* are those of each, a row for each.

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
    """Return where the *scalar* stands in lines with these *marks*."""
    starts = marks[:, scalar.mark] + (1 + scalar.before)
    return Spans(octets, starts, np.maximum(marks[:, scalar.mark + 1] - scalar.after, starts))


def _compare(octets: Octets, link: Link, marks: NDArray[np.int64], fits: NDArray[np.bool_]) -> None:
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
