"""Records of sidecars as columns: what ties each to a capture, and what it adds; and how they are found.

A record takes some 300 octets here, a third of what it takes as objects. Rows are found by hash
(`hashing.py`), and compared. What this cannot tell for sure is not told: `join.py` knows all rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.index.lines.arrow_texts import (
    Texts,
    lengths_of,
    numbers_from,
    taken,
    texts_from,
    truths,
)
from amicrawl.index.lines.numerals import have_other_than_digits
from amicrawl.index.lines.spans import WORD, Octets, Spans
from amicrawl.index.merging.hashing import HashIndex, hashes_in_pieces, hashes_of
from amicrawl.index.merging.sides import Side, Ties

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

_FIELDS: list[pa.Field[Any]] = [
    pa.field("when", pa.string()),
    pa.field("record_id", pa.string()),
    pa.field("filename", pa.string()),
    pa.field("offset", pa.string()),
    pa.field("digest", pa.string()),
    pa.field("ending", pa.string()),
]
SIDES = pa.schema(_FIELDS)
"""The fields of `Ties`, and what is put in before the brace that ends a line; maybe nothing."""
_BEFORE = ", "
SECOND = 14
"""Octets of a second, with which every `when` ends."""
_NO_HASHES = np.empty(0, np.uint64)
_SPACE = ord(" ")


def sides_as_rows(sides: Sequence[Side]) -> pa.RecordBatch:
    """Return *sides* as columns."""
    columns = list(
        zip(*[(*side.ties, ending_of(side.addition.decode())) for side in sides], strict=True)
    )
    arrays = [texts_from(column) for column in columns or [()] * len(SIDES)]
    return pa.RecordBatch.from_arrays(arrays, schema=SIDES)


def rows_as_sides(rows: pa.Table) -> Iterator[Side]:
    """Yield the records of *rows*, as `sides_as_rows` made them."""
    for batch in rows.to_batches(max_chunksize=4096):
        for *ties, ending in zip(*[column.to_pylist() for column in batch.columns], strict=True):
            yield Side(Ties(*ties), ending[len(_BEFORE) :].encode())


def ending_of(addition: str) -> str:
    """Return what is put in behind the last value of a line for *addition*."""
    return f"{_BEFORE}{addition}" if addition else ""


class Known(NamedTuple):
    """What the records of sidecars are known by, besides key and second."""

    ids: bool
    """Whether there are identifiers of records."""
    places: bool
    """Whether there are files with offsets."""


class Found(NamedTuple):
    """What was found for each of some lines."""

    sides: NDArray[np.int64]
    """The number of the record; -1 where there is none."""
    is_sure: NDArray[np.bool_]
    """Whether that is so by all rules; where not, they have to be asked."""
    hashes: NDArray[np.uint64]
    """Of what was sought."""


class _Column:
    """Texts of one column, by the numbers of rows."""

    def __init__(self, texts: Texts) -> None:
        _, cuts, octets = texts.buffers()
        self._cuts = np.frombuffer(cuts, np.int32)[texts.offset :]
        self._octets = Octets(octets or b"")

    def spans(self, rows: NDArray[np.int64]) -> Spans:
        """Return where the texts of *rows* stand."""
        starts, ends = self._cuts[rows], self._cuts[rows + 1]
        return Spans(self._octets, starts.astype(np.int64), ends.astype(np.int64))


class SideTable:
    """The records that lines are joined with."""

    def __init__(self, batches: Iterable[pa.RecordBatch], *, known: Known | None = None) -> None:
        """Have the rows of *batches*, whose columns are `SIDES`.

        *known* tells of all records where these are some of them.
        """
        self.is_ordinary = True
        """Whether all records have their second where it belongs."""
        arrays: list[list[Texts]] = [[] for _ in SIDES]
        hashes: list[list[NDArray[np.uint64]]] = [[], []]
        for batch in batches:
            for column, array in zip(arrays, batch.columns, strict=True):
                column.append(array)
            # Batch by batch, what is hashed stays in the processor's cache.
            for found, each in zip(hashes, _hashes(batch), strict=True):
                found.append(each)
            self.is_ordinary = self.is_ordinary and _are_ordinary(Spans.of(batch["when"]))
        columns: dict[str, Any] = {}
        for field, column in zip(SIDES, arrays, strict=True):
            columns[field.name] = pa.concat_arrays(column or [texts_from([])])
            column.clear()
        self.rows = pa.Table.from_pydict(columns, schema=SIDES)
        self._columns = columns
        self.used = np.zeros(self.rows.num_rows, np.uint8)
        """What lines got from each record: 1 by a strong tie, 2 by a weak one, 3 by both."""
        names = ("record_id", "filename", "offset", "digest")
        has = {name: lengths_of(columns[name]) > 0 for name in names}
        has_place = has["filename"] & has["offset"]
        self.known = known or Known(bool(has["record_id"].any()), bool(has_place.any()))
        """What lines may be joined by, besides key and second."""
        self._only_keys = not (has["record_id"] | has["filename"] | has["digest"]).any()
        self.ties = [
            np.concatenate([*found, _NO_HASHES])[which]
            for found, which in zip(hashes, (has["record_id"], has_place), strict=True)
        ]
        """Hashes of identifiers, and of places, each with its second."""
        self._by_id, self._by_place = (
            HashIndex(ties, np.flatnonzero(which))
            for ties, which in zip(self.ties, (has["record_id"], has_place), strict=True)
        )
        self._by_when: HashIndex | None = None

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def endings(self, sides: NDArray[np.int64]) -> Texts:
        """Return what each of *sides* adds, as octets; null where there is none."""
        return taken(self._columns["ending"].view(pa.binary()), sides, missing=sides < 0)

    def by_id(self, ids: Spans, *, seconds: Any, whens: Spans) -> Found:
        """Find records by identifiers, which may be empty, and hashes of seconds."""
        hashes = hashes_of(ids, seed=seconds)
        sides, alone = self._by_id.find(hashes)
        sides[ids.lengths == 0] = -1
        sure = self._are("record_id", sides, ids)
        self._doubt_twins(sure, sides, alone, whens)
        return Found(sides, sure, hashes)

    def by_place(
        self, filenames: Spans, offsets: Spans, ids: Spans | None, *, seconds: Any, whens: Spans
    ) -> Found:
        """Find records by files without directories and offsets; *ids* are those of the lines."""
        hashes = hashes_of(offsets, seed=hashes_of(filenames, seed=seconds))
        sides, alone = self._by_place.find(hashes)
        sides[offsets.lengths == 0] = -1
        sure = self._are("filename", sides, filenames) & self._are("offset", sides, offsets)
        self._doubt_twins(sure, sides, alone, whens)
        if ids is not None:
            # Whether other identifiers tell them apart is left to the rules.
            there = np.flatnonzero(sides >= 0)
            ids, theirs = ids.some(there), self._texts("record_id").spans(sides[there])
            sure[there] &= (theirs.lengths == 0) | (ids.lengths == 0) | ids.equal(theirs)
        return Found(sides, sure, hashes)

    def by_when(self, whens: Spans) -> Found:
        """Find records by key and second."""
        if self._by_when is None:
            rows = self._weak_rows()
            theirs = Spans.of(self._columns["when"]).some(rows)
            self._by_when = HashIndex(hashes_in_pieces(theirs), rows)
        hashes = hashes_of(whens)
        sides, alone = self._by_when.find(hashes)
        sure = sides < 0
        if self._only_keys:
            sure |= alone & self._are("when", sides, whens)
        return Found(sides, sure, hashes)

    def _weak_rows(self) -> NDArray[np.int64]:
        """Return the numbers of the records that key and second alone may tie to a line."""
        return np.arange(len(self))

    def _doubt_twins(
        self,
        sure: NDArray[np.bool_],
        sides: NDArray[np.int64],
        alone: NDArray[np.bool_],
        whens: Spans,
    ) -> None:
        """Clear in *sure* the lines that several records belong to, the last of them of another key."""
        twins = np.flatnonzero((sides >= 0) & ~alone)
        if len(twins):
            sure[twins] &= self._are("when", sides[twins], whens.some(twins))

    def of_seconds(self, seconds: set[bytes] | None) -> tuple[pa.Table, NDArray[np.int64]]:
        """Return the records of *seconds*, and their numbers; all of them where that is not sure."""
        if seconds is None or not self.is_ordinary:
            return self.rows, np.arange(len(self))
        wanted = texts_from([second.decode("latin-1") for second in seconds])
        theirs = pc.utf8_slice_codeunits(self._columns["when"], -SECOND)
        numbers = np.flatnonzero(truths(pc.is_in(theirs, value_set=wanted)))
        return self.rows.take(numbers_from(numbers)), numbers

    def _texts(self, name: str) -> _Column:
        return _Column(self._columns[name])

    def _are(self, name: str, sides: NDArray[np.int64], values: Spans) -> NDArray[np.bool_]:
        """Tell where what *sides* have under *name* is what *values* hold; or where there is no side."""
        are = sides < 0
        there = np.flatnonzero(~are)
        are[there] = self._texts(name).spans(sides[there]).equal(values.some(there))
        return are


def _hashes(batch: pa.RecordBatch) -> tuple[Any, Any]:
    """Return hashes of identifiers and of places, each with its second."""
    when, ids, files, offsets = (
        Spans.of(batch[name]) for name in ("when", "record_id", "filename", "offset")
    )
    if not ids.most and not offsets.most:
        return (np.zeros(len(when), np.uint64),) * 2
    seconds = hashes_of(when.last(SECOND))
    return (
        hashes_of(ids, seed=seconds),
        hashes_of(offsets, seed=hashes_of(files, seed=seconds)),
    )


def _are_ordinary(whens: Spans) -> bool:
    """Tell whether all of *whens* end in a space and 14 digits."""
    if not len(whens):
        return True
    seconds = whens.last(SECOND)
    if (whens.lengths <= SECOND).any():
        return False
    others = have_other_than_digits(seconds.words(0)) | have_other_than_digits(
        seconds.words(SECOND - WORD)
    )
    spaces = whens.octets.view[seconds.starts - 1] == _SPACE
    return bool(spaces.all() and not others.any())
