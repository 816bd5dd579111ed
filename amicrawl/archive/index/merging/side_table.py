"""The records of sidecars, found by what ties them to lines: columns and hashes of what they say.

A record takes some 300 bytes, its indexes included. Where the rules of `join.py` need more than one
record or line to decide, a match is marked as not certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.archive.arrow_texts import (
    WORD,
    GrowingCodes,
    GrowingTexts,
    Spans,
    Texts,
    have_other_than_digits,
    lengths_of,
    numbers_from,
    taken,
    texts_from,
    truths,
)
from amicrawl.archive.index.merging.sides import SECOND, SIDES, batch_of
from amicrawl.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

_SPACE = ord(" ")


class Matches(NamedTuple):
    """The record found for each of some lines."""

    sides: NDArray[np.int64]
    """The number of the record; -1 where there is none."""
    are_certain: NDArray[np.bool_]
    """Whether the match, or its absence, is final; `join.py` decides the others."""


class _Index:
    """Rows by a hash of what they say; of several with the same, the last.

    A hash finds a candidate; whether that says the same is for the caller to compare, so that texts made
    to have one hash cost time and nothing else.
    """

    def __init__(self, columns: Sequence[Texts], rows: NDArray[np.int64]) -> None:
        """Have *rows*, ascending, which say *columns*."""
        # Numbers alone are sorted many times as fast as with what belongs to them, so that the lowest
        # bits of a hash make room for its row.
        bits = len(rows).bit_length()
        self._is_row = np.uint64((1 << bits) - 1)
        marked = np.arange(len(rows), dtype=np.uint64)
        # Before all others is 0, which no search passes.
        self._sorted = np.zeros(len(rows) + 1, np.uint64)
        self._sorted[1:] = np.sort(hashes_of(columns) & ~self._is_row | marked)
        self._head = np.uint64(64 - bits)
        heads = (self._sorted[1:] >> self._head).astype(np.int64)
        # By head: how many have a lower one.
        self._lower = np.zeros((1 << bits) + 1, np.int32)
        self._lower[1:] = np.cumsum(np.bincount(heads, minlength=1 << bits))
        self._rows = rows

    def find(self, *columns: Texts) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the row that says what each of *columns* does, -1 for none, and whether it is alone."""
        hashes = hashes_of(columns) & ~self._is_row
        if not len(self._rows):
            return np.full(len(hashes), -1), np.ones(len(hashes), np.bool_)
        last = self._last_until(hashes | self._is_row)
        near, before = self._sorted[last], self._sorted[np.maximum(last - 1, 0)]
        are_there = (last > 0) & (near & ~self._is_row == hashes)
        rows = np.where(are_there, self._rows[(near & self._is_row).astype(np.int64)], -1)
        return rows, (last <= 1) | (before & ~self._is_row != hashes)

    def _last_until(self, wanted: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the place of the last that is not more than each of *wanted*."""
        # By halves, among those with its head: there are as many heads as rows, so a few steps find all.
        heads = (wanted >> self._head).astype(np.int64)
        least, most = self._lower[heads], self._lower[heads + 1]
        while (least < most).any():
            middle = (least + most + 1) >> 1
            are_beyond = self._sorted[middle] > wanted
            least, most = np.where(are_beyond, least, middle), np.where(are_beyond, middle - 1, most)
        return least


_FACTOR, _HALF = np.uint64(0xFF51AFD7ED558CCD), np.uint64(32)


def hashes_of(columns: Sequence[Texts]) -> NDArray[np.uint64]:
    """Return a hash of what each row says."""
    found = np.zeros(len(columns[0]), np.uint64)
    for texts in columns:
        spans = Spans.of(texts)
        found = (found ^ spans.lengths.astype(np.uint64)) * _FACTOR
        for at in range(0, spans.least, WORD):
            found = _mixed(found, spans.words(at))
        rows = np.arange(len(spans))
        for at in range(-(-spans.least // WORD) * WORD, spans.most, WORD):
            rows = rows[spans.lengths[rows] > at]
            found[rows] = _mixed(found[rows], spans.some(rows).words(at))
    return found ^ found >> _HALF


def _mixed(found: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    # The low bits of a product say nothing of the high ones of its factors.
    words ^= found
    words *= _FACTOR
    words ^= words >> _HALF
    return words


def gathered(
    batches: Iterable[pa.RecordBatch], *, most: int | None = None
) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Return the rows of *batches*, whose columns are `SIDES`, as one, and the batch that is too much.

    These are up to *most* rows, and what has room in a column, 2 GiB. Where it is not said how many,
    InputError if that is not all of them.
    """
    columns = [GrowingCodes() if name == "ending" else GrowingTexts() for name in SIDES.names]
    more, count = None, 0
    for batch in batches:
        has_room = min(column.room for column in columns) >= batch.nbytes
        if not has_room and most is None:
            raise InputError("Records of the same seconds add more than 2 GiB. Merge fewer sidecars.")
        if not has_room or (most is not None and count + batch.num_rows > most):
            more = batch
            break
        for column, texts in zip(columns, batch.columns, strict=True):
            column.add(texts)
        count += batch.num_rows
    return batch_of([each.texts() for each in columns]), more


class SideTable:
    """The records that lines are joined with."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        """Have *rows*, whose columns are `SIDES`."""
        columns: dict[str, Any] = dict(zip(SIDES.names, rows.columns, strict=True))
        self._columns = columns
        self.rows = pa.Table.from_batches([rows])
        self.used = np.zeros(self.rows.num_rows, np.uint8)
        """What lines got from each record: 1 by a strong tie, 2 by a weak one, 3 by both."""
        self.is_ordinary = _end_in_seconds(columns["when"])
        """Whether the `when` of every record ends in a space and 14 digits."""
        names = ("record_id", "filename", "offset", "digest")
        has = {name: lengths_of(columns[name]) > 0 for name in names}
        self._only_keys = not (has["record_id"] | has["filename"] | has["digest"]).any()
        self._columns["second"] = Spans.of(columns["when"]).last(SECOND).texts()
        self._by_id = self._index(has["record_id"], "record_id", "second")
        self._by_place = self._index(has["filename"] & has["offset"], "filename", "offset", "second")
        self._by_when: _Index | None = None

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def has_ids(self) -> bool:
        """Whether records are tied to captures by identifiers."""
        return self._by_id is not None

    @property
    def has_places(self) -> bool:
        """Whether records are tied to captures by file and offset."""
        return self._by_place is not None

    def endings(self, sides: NDArray[np.int64]) -> tuple[Texts, Texts]:
        """Return what each of *sides* adds, ending and number, as bytes; null where there is none."""
        missing, endings = sides < 0, self._columns["ending"]
        codes = taken(endings.indices, sides, missing=missing)
        numbers = taken(self._columns["number"].view(pa.binary()), sides, missing=missing)
        return endings.dictionary.view(pa.binary()).take(codes), numbers

    def by_id(self, ids: Texts, seconds: Texts, whens: Texts) -> Matches:
        """Find records by identifiers, which may be empty, and timestamps."""
        assert self._by_id is not None
        sides, are_alone = self._by_id.find(ids, seconds)
        return Matches(sides, self._certain(sides, are_alone, whens, record_id=ids, second=seconds))

    def by_place(
        self, filenames: Texts, offsets: Texts, ids: Texts | None, seconds: Texts, whens: Texts
    ) -> Matches:
        """Find records by files without directories and offsets; *ids* are those of the lines."""
        assert self._by_place is not None
        sides, are_alone = self._by_place.find(filenames, offsets, seconds)
        said = {"filename": filenames, "offset": offsets, "second": seconds}
        certain = self._certain(sides, are_alone, whens, **said)
        if ids is not None:
            # Whether different identifiers separate the two is left to the rules.
            certain &= (
                (sides < 0)
                | (lengths_of(ids) == 0)
                | self._have(sides, "record_id", ids)
                | self._have(sides, "record_id", texts_from([""] * len(sides)))
            )
        return Matches(sides, certain)

    def by_when(self, whens: Texts) -> Matches:
        """Find records by key and timestamp."""
        if self._by_when is None:
            self._by_when = _Index([self._columns["when"]], np.arange(len(self)))
        sides, are_alone = self._by_when.find(whens)
        if not self._only_keys:
            return Matches(sides, sides < 0)
        return Matches(sides, (sides < 0) | (are_alone & self._have(sides, "when", whens)))

    def _certain(
        self, sides: NDArray[np.int64], are_alone: NDArray[np.bool_], whens: Texts, **said: Texts
    ) -> NDArray[np.bool_]:
        """Return whether *sides* are certain: that say what is *said*, alone or with the same `when`."""
        are = np.ones(len(sides), np.bool_)
        for name, values in said.items():
            are &= self._have(sides, name, values)
        if not are_alone.all():
            are &= are_alone | self._have(sides, "when", whens)
        return are | (sides < 0)

    def of_seconds(self, seconds: set[bytes] | None) -> tuple[pa.Table, NDArray[np.int64]]:
        """Return the records of *seconds*, and their numbers; all of them where that is not known."""
        if seconds is None or not self.is_ordinary:
            return self.rows, np.arange(len(self))
        wanted = texts_from([second.decode("latin-1") for second in seconds])
        numbers = np.flatnonzero(truths(pc.is_in(self._columns["second"], value_set=wanted)))
        return self.rows.take(numbers_from(numbers)), numbers

    def _index(self, have: NDArray[np.bool_], *columns: str) -> _Index | None:
        """Index the rows that *have* all of *columns*; None where there are none."""
        rows = np.flatnonzero(have)
        if not len(rows):
            return None
        arrays = [self._columns[name] for name in columns]
        return _Index(arrays if have.all() else [taken(array, rows) for array in arrays], rows)

    def _have(self, sides: NDArray[np.int64], name: str, values: Texts) -> NDArray[np.bool_]:
        """Return for each of *sides*, -1 for none, whether its field *name* equals that of *values*."""
        return truths(pc.equal(taken(self._columns[name], sides, missing=sides < 0), values))


def _end_in_seconds(whens: Texts) -> bool:
    """Return whether all *whens* end in a space and 14 digits."""
    ends = Spans.of(whens).last(1 + SECOND)
    if ends.least <= SECOND:
        return not len(ends)
    others = have_other_than_digits(ends.words(1)) | have_other_than_digits(
        ends.words(1 + SECOND - WORD)
    )
    return not others.any() and bool((ends.words(0).astype(np.uint8) == _SPACE).all())
