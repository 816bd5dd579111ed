"""Blocks of CDXJ lines joined with the records of sidecars, without reading each line.

What is decided here is what `join.py` decides, for lines of which that is plain: the record has their
identifier, or file and offset; or no record has their key and second. The rest is left as it is, for
`join.py` to decide once all lines have been seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from amicrawl.index.lines.arrow_texts import Texts, lengths_of, octets_of, taken, texts_of
from amicrawl.index.lines.blocks import Block
from amicrawl.index.merging.fields import ADDED
from amicrawl.index.merging.hashing import hashes_of
from amicrawl.index.merging.sides import bare_id, base_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from amicrawl.index.lines.shapes import Shape
    from amicrawl.index.merging.join import Counts
    from amicrawl.index.merging.side_table import SideTable

_PLAIN = np.zeros(256, np.bool_)
_PLAIN[list(b"0123456789abcdef-")] = True
_USED = ("recordid", "filename", "offset", "digest")


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


def joined(octets: bytes, sides: SideTable, counts: Counts) -> Joined:
    """Return the lines of *octets* with what belongs to them, and count those that are not left."""
    block = Block(octets)
    fields = [
        (rows, places) for shape, rows in block.shapes if (places := _places_in(shape)) is not None
    ]
    rows = np.sort(np.concatenate([rows for rows, _ in fields])) if fields else np.empty(0, np.int64)
    found = np.full(block.lines, -1)
    is_left = np.ones(block.lines, np.bool_)
    is_left[rows] = False
    if len(rows) and sides.is_ordinary:
        _find(block, fields, rows, sides=sides, found=found, is_left=is_left, counts=counts)
    elif len(rows) and len(sides):
        is_left[:] = True
    count = int(np.count_nonzero(is_left))
    counts.lines += block.lines - count
    if not count and (found < 0).all():
        return Joined(octets, block.lines, np.empty(0, np.int64), [])
    endings = sides.endings(found)
    has_ending = lengths_of(endings) > 0
    whole, begins = octets_of(_put_together(block, endings, has_ending, is_left))
    return Joined(
        memoryview(whole)[: begins[-1]],
        block.lines,
        begins[2 * np.flatnonzero(is_left)],
        [block.line(number) for number in np.flatnonzero(is_left).tolist()],
    )


def _put_together(
    block: Block, endings: Texts, has_ending: NDArray[np.bool_], is_left: NDArray[np.bool_]
) -> Texts:
    """Return two texts for each line, line and ending; both are empty for lines that are left."""
    octets, places = octets_of(endings)
    # A line that gets something gives its brace and LF for it.
    cuts = np.empty(3 * block.lines + 1, np.int32)
    cuts[0 : 2 * block.lines : 2] = block.starts
    cuts[1 : 2 * block.lines : 2] = block.ends + np.where(has_ending, -1, 1)
    size = len(block.octets)
    cuts[2 * block.lines :] = places + size
    both = texts_of(b"".join([block.octets, octets]), cuts, kind=pa.binary())
    which = np.empty(2 * block.lines, np.int64)
    which[0::2] = np.arange(0, 2 * block.lines, 2)
    which[1::2] = np.arange(2 * block.lines, 3 * block.lines)
    return taken(both, which, missing=np.repeat(is_left, 2) if is_left.any() else None)


def _places_in(shape: Shape) -> dict[str, int | None] | None:
    """Return where the lines of *shape* say what they are known by; None where that is not plain."""
    if (
        not shape.fields.keys().isdisjoint(ADDED)
        or {"recordid", "warc-record-id"} <= shape.fields.keys()
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
    fields: list[tuple[NDArray[np.int64], dict[str, int | None]]],
    rows: NDArray[np.int64],
    *,
    sides: SideTable,
    found: NDArray[np.int64],
    is_left: NDArray[np.bool_],
    counts: Counts,
) -> None:
    """Set the records that *rows* get in *found*, and which of them are left."""

    def texts(name: str, some: NDArray[np.int64]) -> Texts:
        column = block.column(some, [(each, places[name]) for each, places in fields])
        return column.fill_null("") if column.null_count else column

    seconds = hashes_of(block.seconds(rows))
    left = np.zeros(len(rows), np.bool_)
    mine = np.full(len(rows), -1)
    ids = None
    if sides.has_ids:
        ids = bare_ids(texts("recordid", rows))
        by_id = sides.by_id(ids, seconds)
        mine = by_id.sides
        left |= ~by_id.is_sure
        counts.by_id += int(np.count_nonzero((mine >= 0) & ~left))
    open_ = np.flatnonzero((mine < 0) & ~left)
    if sides.has_places and len(open_):
        some = rows[open_]
        names = base_names(texts("filename", some))
        its = taken(ids, open_) if ids is not None else pa.array([""] * len(some))
        by_place = sides.by_place(names, texts("offset", some), its, seconds[open_])
        mine[open_] = by_place.sides
        left[open_] |= ~by_place.is_sure
        counts.by_place += int(np.count_nonzero((by_place.sides >= 0) & by_place.is_sure))
        open_ = open_[by_place.sides < 0]
    strong = mine[(mine >= 0) & ~left]
    sides.used[strong] |= 1
    if len(open_):
        by_when = sides.by_when(block.whens(rows[open_]))
        mine[open_] = by_when.sides
        left[open_] |= ~by_when.is_sure
        given = by_when.sides[(by_when.sides >= 0) & by_when.is_sure]
        counts.by_key += len(given)
        sides.used[given] |= 2
    found[rows] = np.where(left, -1, mine)
    is_left[rows] = left


def bare_ids(texts: Texts) -> Texts:
    """Return identifiers as `bare_id` does."""
    # Nothing has to be taken off a UUID in small letters.
    octets, places = octets_of(texts)
    if _PLAIN[np.frombuffer(octets, np.uint8)[places[0] : places[-1]]].all():
        return texts
    return pa.array([bare_id(text) for text in texts.to_pylist()], pa.string())


def base_names(texts: Texts) -> Texts:
    """Return file names without directories."""
    spelled = texts.dictionary_encode()
    names = [base_name(name) for name in spelled.dictionary.to_pylist()]
    return pa.array(names, pa.string()).take(spelled.indices)
