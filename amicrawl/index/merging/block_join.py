"""Blocks of CDXJ lines joined with the records of sidecars, without reading each line.

What is decided here is what `join.py` decides, for lines of which that is plain: the record has their
identifier, or file and offset; or no record has their key and second. The rest is left as it is, for
`join.py` to decide once all lines have been seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.index.lines.arrow_texts import Texts, octets_of, taken, texts_from, texts_of
from amicrawl.index.lines.blocks import Fields
from amicrawl.index.merging.fields import ADDED
from amicrawl.index.merging.sides import bare_id, base_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from amicrawl.index.lines.blocks import Block
    from amicrawl.index.lines.shapes import Shape
    from amicrawl.index.merging.join import MergeCounts
    from amicrawl.index.merging.sides import SideTable

_USED = ("recordid", "filename", "offset", "digest")
_NOTHING: Any = texts_from([""]).cast(pa.binary())[0]
_DIGITS, _LETTERS = 10, 6
_ZERO, _A, _DASH = b"0a-"


class Joined(NamedTuple):
    """The lines of a block, with what belongs to them where that is decided."""

    octets: bytes | memoryview
    left: NDArray[np.int64]
    """The numbers of the undecided lines; they are unchanged."""
    places: NDArray[np.int64]
    """Where in `octets` each of them begins."""


def joined(block: Block, sides: SideTable, counts: MergeCounts) -> Joined:
    """Return the lines of *block* with what belongs to them, and count those that are decided."""
    fields = Fields(
        block,
        [(alike, places) for alike in block.alike if (places := _places_in(alike.shape)) is not None],
    )
    found = np.full(block.lines, -1)
    is_left = np.ones(block.lines, np.bool_)
    is_left[fields.rows] = False
    if len(fields.rows) and sides.is_ordinary:
        _find(block, fields, sides=sides, found=found, is_left=is_left, counts=counts)
    elif len(fields.rows) and len(sides):
        is_left[:] = True
    left = np.flatnonzero(is_left)
    counts.lines += block.lines - len(left)
    if (found < 0).all():
        return Joined(block.octets, left, block.starts[left])
    written, begins = _with_endings(block, found, sides)
    return Joined(written, left, begins[left])


def _with_endings(
    block: Block, found: NDArray[np.int64], sides: SideTable
) -> tuple[memoryview, NDArray[np.int64]]:
    """Return the lines, each with what its record in *found* adds, and where each of them begins."""
    # What is added is inserted before the brace that ends a line. So lines are cut there, and joined
    # again with what belongs between: a piece ends with a line's brace, and the next line follows.
    ends = block.ends
    cuts = np.empty(len(ends) + 2, np.int64)
    cuts[0] = 0
    np.subtract(ends, found >= 0, out=cuts[1:-1])
    cuts[-1] = ends[-1] + 1
    lines = texts_of(block.all.view, cuts.astype(np.int32), kind=pa.binary())
    endings = sides.endings(np.append(found, -1))
    whole: Any = pc.binary_join_element_wise(
        lines, endings, _NOTHING, null_handling="replace", null_replacement=""
    )
    written, places = octets_of(whole)
    # A line begins where its piece does, behind the end of the line before.
    begins = places.copy()
    begins[1:-1] += ends + 1 - cuts[1:-1]
    return memoryview(written.data)[: places[-1]], begins[:-1]


def _places_in(shape: Shape) -> dict[str, int | None] | None:
    """Return where the lines of *shape* say what they are known by; None where that is not plain."""
    if (
        not shape.fields.keys().isdisjoint(ADDED)
        or {"recordid", "warc-record-id"} <= shape.fields.keys()
        or not shape.links[-1].text.endswith(b"}\n")
    ):
        return None
    try:
        places = {name: shape.text(name) for name in _USED}
        if places["recordid"] is None:
            places["recordid"] = shape.text("warc-record-id")
    except LookupError:
        return None
    return places


def _find(
    block: Block,
    fields: Fields,
    *,
    sides: SideTable,
    found: NDArray[np.int64],
    is_left: NDArray[np.bool_],
    counts: MergeCounts,
) -> None:
    """Set the records that the lines of *fields* get in *found*, and which of them are left."""
    rows = fields.rows
    whens, seconds = block.whens(rows).texts(), block.seconds(rows).texts()
    left = np.zeros(len(rows), np.bool_)
    mine = np.full(len(rows), -1)
    ids = None
    if sides.has_ids:
        ids = bare_ids(fields.spans("recordid")[0].texts())
        mine, certain = sides.by_id(ids, seconds, whens)
        left |= ~certain
        counts.by_id += int(np.count_nonzero((mine >= 0) & certain))
    open_ = np.flatnonzero((mine < 0) & ~left)
    if sides.has_places and len(open_):
        names = base_names_of(fields.spans("filename")[0].some(open_).texts())
        offsets = fields.spans("offset")[0].some(open_).texts()
        its = taken(ids, open_) if ids is not None else None
        by_place = sides.by_place(names, offsets, its, taken(seconds, open_), taken(whens, open_))
        mine[open_] = by_place.sides
        left[open_] |= ~by_place.are_certain
        counts.by_place += int(np.count_nonzero((by_place.sides >= 0) & by_place.are_certain))
        open_ = open_[by_place.sides < 0]
    strong = mine[(mine >= 0) & ~left]
    sides.used[strong] |= 1
    if len(open_):
        by_when = sides.by_when(taken(whens, open_))
        mine[open_] = by_when.sides
        left[open_] |= ~by_when.are_certain
        given = by_when.sides[(by_when.sides >= 0) & by_when.are_certain]
        counts.by_key += len(given)
        sides.used[given] |= 2
    found[rows] = np.where(left, -1, mine)
    is_left[rows] = left


def bare_ids(texts: Texts) -> Texts:
    """Return identifiers as `bare_id` does."""
    # Nothing has to be taken off a UUID in lower case.
    octets, places = octets_of(texts)
    used = octets[places[0] : places[-1]]
    is_digit, is_letter = used - np.uint8(_ZERO) < _DIGITS, used - np.uint8(_A) < _LETTERS
    if (is_digit | is_letter | (used == _DASH)).all():
        return texts
    return texts_from([bare_id(text) for text in texts.to_pylist()])


def base_names_of(texts: Texts) -> Texts:
    """Return file names without directories."""
    spelled = texts.dictionary_encode()
    return texts_from([base_name(name) for name in spelled.dictionary.to_pylist()]).take(spelled.indices)
