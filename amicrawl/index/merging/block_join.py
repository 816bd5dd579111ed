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

from amicrawl.index.lines.arrow_texts import Texts, octets_of, texts_from, texts_of
from amicrawl.index.lines.blocks import Block, Fields
from amicrawl.index.lines.spans import Spans
from amicrawl.index.merging.fields import ADDED
from amicrawl.index.merging.hashing import hashes_of
from amicrawl.index.merging.sides import bare_id, base_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from amicrawl.index.lines.shapes import Shape
    from amicrawl.index.merging.join import Counts
    from amicrawl.index.merging.side_table import SideTable

_USED = ("recordid", "filename", "offset", "digest")
_NOTHING: Any = texts_from([""]).cast(pa.binary())[0]
_DIGITS, _LETTERS = 10, 6
_ZERO, _A, _DASH = b"0a-"


class Joined(NamedTuple):
    """A block with what belongs to its lines."""

    octets: bytes | memoryview
    """The lines, without those that are left."""
    lines: int
    """How many lines the block has, with those that are left."""
    places: NDArray[np.int64]
    """Where in `octets` each line that is left belongs."""
    left: list[bytes]
    """Those lines, without LF."""


def joined(block: Block, sides: SideTable, counts: Counts) -> Joined:
    """Return the lines of *block* with what belongs to them, and count those that are not left."""
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
    if not len(left) and (found < 0).all():
        return Joined(block.octets, block.lines, left, [])
    written, begins = _with_endings(block, found, is_left, sides=sides)
    # As many lines as are left before one are missing there.
    places = begins[left - np.arange(len(left))]
    return Joined(written, block.lines, places, [block.line(number) for number in left.tolist()])


def _with_endings(
    block: Block, found: NDArray[np.int64], is_left: NDArray[np.bool_], *, sides: SideTable
) -> tuple[memoryview, NDArray[np.int64]]:
    """Return the lines that are not left, each with what its record in *found* adds.

    And where each of them begins, and the last ends.
    """
    octets, ends = block.all.view, block.ends
    if is_left.any():
        kept = np.flatnonzero(~is_left)
        octets, cuts = octets_of(
            Spans(block.all, block.starts[kept], ends[kept] + 1).texts(kind=pa.binary())
        )
        ends, found = cuts[1:] - 1, found[kept]
    # What is added comes before the brace that ends a line. So lines are cut there, and put together
    # again with what belongs between: what is cut ends with a line's brace, and the next line follows.
    cuts = np.empty(len(ends) + 2, np.int64)
    cuts[0] = 0
    np.subtract(ends, found >= 0, out=cuts[1:-1])
    cuts[-1] = ends[-1] + 1 if len(ends) else 0
    lines = texts_of(octets, cuts.astype(np.int32), kind=pa.binary())
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
    counts: Counts,
) -> None:
    """Set the records that the lines of *fields* get in *found*, and which of them are left."""
    rows = fields.rows
    whens = block.whens(rows)
    seconds = hashes_of(block.seconds(rows)) if any(sides.known) else np.zeros(len(rows), np.uint64)
    left = np.zeros(len(rows), np.bool_)
    mine = np.full(len(rows), -1)
    ids = None
    if sides.known.ids:
        ids = bare_ids(fields.spans("recordid")[0])
        by_id = sides.by_id(ids, seconds=seconds, whens=whens)
        mine = by_id.sides
        left |= ~by_id.is_sure
        counts.by_id += int(np.count_nonzero((mine >= 0) & ~left))
    open_ = np.flatnonzero((mine < 0) & ~left)
    if sides.known.places and len(open_):
        names = base_names(fields.spans("filename")[0].some(open_))
        offsets = fields.spans("offset")[0].some(open_)
        its = ids.some(open_) if ids is not None else None
        by_place = sides.by_place(names, offsets, its, seconds=seconds[open_], whens=whens.some(open_))
        mine[open_] = by_place.sides
        left[open_] |= ~by_place.is_sure
        counts.by_place += int(np.count_nonzero((by_place.sides >= 0) & by_place.is_sure))
        open_ = open_[by_place.sides < 0]
    strong = mine[(mine >= 0) & ~left]
    sides.used[strong] |= 1
    if len(open_):
        by_when = sides.by_when(whens.some(open_))
        mine[open_] = by_when.sides
        left[open_] |= ~by_when.is_sure
        given = by_when.sides[(by_when.sides >= 0) & by_when.is_sure]
        counts.by_key += len(given)
        sides.used[given] |= 2
    found[rows] = np.where(left, -1, mine)
    is_left[rows] = left


def bare_ids(ids: Spans) -> Spans:
    """Return identifiers as `bare_id` does."""
    # Nothing has to be taken off a UUID in small letters.
    texts = ids.texts()
    octets, places = octets_of(texts)
    used = octets[places[0] : places[-1]]
    is_digit, is_letter = used - np.uint8(_ZERO) < _DIGITS, used - np.uint8(_A) < _LETTERS
    if (is_digit | is_letter | (used == _DASH)).all():
        return ids
    return Spans.of(texts_from([bare_id(text) for text in texts.to_pylist()]))


def base_names(names: Spans) -> Spans:
    """Return file names without directories."""
    return Spans.of(base_names_of(names.texts()))


def base_names_of(texts: Texts) -> Texts:
    """Return file names without directories, as texts."""
    spelled = texts.dictionary_encode()
    return texts_from([base_name(name) for name in spelled.dictionary.to_pylist()]).take(spelled.indices)
