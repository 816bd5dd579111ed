"""Lines joined with records of sidecars and written: most of them as blocks, without reading each line.

`joined` decides what `join.py` decides, for lines where it is certain: the record has their identifier,
or file and offset; or no record has their key and second. `join.py` decides the others once all lines
have been seen; from the first of these on, lines wait on disk.
"""

from __future__ import annotations

from array import array
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.archive.arrow_texts import Texts, octets_of, taken, texts_from, texts_of
from amicrawl.archive.index.merging.join import Join
from amicrawl.archive.index.merging.sides import bare_id, base_name, rows_as_sides
from amicrawl.archive.index.sidecar.findings import ADDED
from amicrawl.archive.lines import Block, Fields
from amicrawl.disk import discard, explained, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from amicrawl.archive.index.merging.join import MergeCounts
    from amicrawl.archive.index.merging.side_table import SideTable
    from amicrawl.archive.lines import LineShape
    from amicrawl.disk import Disk


_PIECE = 1 << 20
_MOST_SECONDS = 100_000
"""Timestamps of undecided lines that are held; with more, `join.py` receives all records."""
_NONE = np.empty(0, np.int64)
_USED = ("recordid", "filename", "offset", "digest")
_NOTHING: Any = texts_from([""]).cast(pa.binary())[0]
_DIGITS, _LETTERS = 10, 6
_ZERO, _A, _DASH = b"0a-"


class LineSink(Protocol):
    """What takes whole lines, file by file."""

    def write(self, octets: bytes | memoryview) -> object:
        """Take lines, each ended by LF."""

    def end_file(self) -> None:
        """Take what follows for the next file's."""


class Undecided:
    """Lines on their way to a sink; from the first undecided one on, all wait on disk."""

    def __init__(self, sink: LineSink, *, scratch: Path, disk: Disk) -> None:
        self._sink = sink
        self._scratch = scratch
        self._disk = disk
        self._aside: IO[bytes] | None = None
        self._size = 0
        self._places = array("q")
        # How many undecided lines come before the end of a file, and where it is.
        self._ends: list[tuple[int, int]] = []

    @property
    def are_there(self) -> bool:
        """Whether any line is undecided."""
        return bool(self._places)

    def add(self, octets: bytes | memoryview, places: NDArray[np.int64]) -> None:
        """Take lines, each ended by LF; at the offsets *places*, ascending, undecided ones begin."""
        if self._aside is None and not len(places):
            self._sink.write(octets)
            return
        with explained(self._scratch, "written to"):
            self._aside = self._aside or self._disk.temporary(self._scratch)
            self._places.extend((places + self._size).tolist())
            for piece in pieces(octets):
                self._aside.write(piece)
        self._size += len(octets)

    def end_file(self) -> None:
        """Take what follows for the next file's."""
        if self._aside is None:
            self._sink.end_file()
        else:
            self._ends.append((len(self._places), self._size))

    def lines(self) -> Iterator[bytes]:
        """Yield the undecided lines in order, without LF; may be called more than once."""
        assert self._aside is not None
        for place in self._places:
            with explained(self._scratch, "read from"):
                self._aside.seek(place)
                line = self._aside.readline()
            yield line[:-1]

    def replace(self, lines: Iterator[bytes]) -> None:
        """Hand on all that waits, with *lines* in place of the undecided ones."""
        if self._aside is None:
            return
        done = at = 0
        for count, end in self._ends:
            at = self._replace_until(self._aside, at, end, self._places[done:count], lines)
            done = count
            self._sink.end_file()
        self._replace_until(self._aside, at, self._size, self._places[done:], lines)
        self.close()

    def _replace_until(
        self, aside: IO[bytes], at: int, end: int, places: array[int], lines: Iterator[bytes]
    ) -> int:
        """Hand on the lines from *at* to *end*, those at *places* replaced by *lines*; return *end*."""
        held: list[bytes] = []
        size = 0
        for place in places:
            line = next(lines)
            with explained(self._scratch, "read from"):
                aside.seek(at)
                held += [aside.read(place - at), line, b"\n"]
                at = place + len(aside.readline())
            size += len(held[-3]) + len(line)
            if size >= _PIECE:
                self._sink.write(b"".join(held))
                held, size = [], 0
        self._sink.write(b"".join(held))
        while at < end:
            with explained(self._scratch, "read from"):
                aside.seek(at)
                piece = aside.read(min(_PIECE, end - at))
            self._sink.write(piece)
            at += len(piece)
        return end

    def close(self) -> None:
        """Discard what waits."""
        if self._aside is not None:
            discard(self._aside)
        self._aside = None


class Joining:
    """The records of some sidecars, and the way of lines through them to a sink."""

    def __init__(
        self,
        table: SideTable,
        sink: LineSink,
        counts: MergeCounts,
        *,
        by_key_only: bool = False,
        scratch: Path,
        disk: Disk,
    ) -> None:
        self._table = table
        self._counts = counts
        self._undecided = Undecided(sink, scratch=scratch, disk=disk)
        self._seconds: set[bytes] = set()
        # merge_cdxj's rule writes every object anew, so each line has to be parsed.
        self._by_key = Join(rows_as_sides(table.rows), counts, by_key_only=True) if by_key_only else None
        counts.records += len(self._table)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undecided.close()

    def add(self, octets: bytes) -> None:
        """Take lines, each ended by LF."""
        if self._by_key is not None:
            lines = octets.split(b"\n")[:-1]
            self._undecided.add(b"\n".join([*self._by_key.decided(lambda: lines), b""]), _NONE)
            return
        block = Block(octets)
        found = joined(block, self._table, self._counts)
        self._undecided.add(found.octets, found.places)
        for number in found.left.tolist():
            if len(self._seconds) <= _MOST_SECONDS:
                self._seconds.update(part[:14] for part in block.line(number).split(b" ", 2)[1:2])

    def end_file(self) -> None:
        """Take what follows for the next file's."""
        self._undecided.end_file()

    def finish(self) -> None:
        """Decide what is left, and count the records that no line got anything from."""
        if self._by_key is not None:
            self._counts.records_unused += self._by_key.used.count(0)
            return
        if self._undecided.are_there:
            seconds = self._seconds if len(self._seconds) <= _MOST_SECONDS else None
            rows, numbers = self._table.of_seconds(seconds)
            used = self._table.used[numbers].tobytes()
            join = Join(rows_as_sides(rows), self._counts, used=used)
            self._undecided.replace(join.decided(self._undecided.lines))
            self._table.used[numbers] = np.frombuffer(join.used, np.uint8)
        self._counts.records_unused += int(np.count_nonzero(self._table.used == 0))


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
    endings, numbers = sides.endings(np.append(found, -1))
    whole: Any = pc.binary_join_element_wise(
        lines, endings, numbers, _NOTHING, null_handling="replace", null_replacement=""
    )
    written, places = octets_of(whole)
    # A line begins where its piece does, behind the end of the line before.
    begins = places.copy()
    begins[1:-1] += ends + 1 - cuts[1:-1]
    return memoryview(written.data)[: places[-1]], begins[:-1]


def _places_in(shape: LineShape) -> dict[str, int | None] | None:
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
