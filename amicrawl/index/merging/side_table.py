"""Records of sidecars as columns: what ties each to a capture, and what it adds; and how they are found.

A record takes some 300 octets here, a third of what it takes as objects. Rows are found by hash
(`hashing.py`), and compared. What this cannot tell for sure is not told: `join.py` knows all rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.index.lines.arrow_texts import Texts, lengths_of, taken, truths
from amicrawl.index.merging.hashing import HashIndex, hashes_of
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
"""The fields of `Ties`, and what a line ends with, its brace taken away, that the record belongs to.

The ending is empty where the record adds nothing.
"""
_BEFORE, _BEHIND = ", ", "}\n"
_SECOND = 14
_NO_HASHES = np.empty(0, np.uint64)
_ORDINARY = r"(?s) [0-9]{14}$"


def sides_as_rows(sides: Sequence[Side]) -> pa.RecordBatch:
    """Return *sides* as columns."""
    columns = list(
        zip(*[(*side.ties, ending_of(side.addition.decode())) for side in sides], strict=True)
    )
    arrays = [pa.array(column, pa.string()) for column in columns or [()] * len(SIDES)]
    return pa.RecordBatch.from_arrays(arrays, schema=SIDES)


def rows_as_sides(rows: pa.Table) -> Iterator[Side]:
    """Yield the records of *rows*, as `sides_as_rows` made them."""
    for batch in rows.to_batches(max_chunksize=4096):
        for *ties, ending in zip(*[column.to_pylist() for column in batch.columns], strict=True):
            yield Side(Ties(*ties), ending[len(_BEFORE) : -len(_BEHIND)].encode())


def ending_of(addition: str) -> str:
    """Return how a line ends that *addition* is put into, behind its last value."""
    return f"{_BEFORE}{addition}{_BEHIND}" if addition else ""


class Found(NamedTuple):
    """What was found for each of some lines."""

    sides: NDArray[np.int64]
    """The number of the record; -1 where there is none."""
    is_sure: NDArray[np.bool_]
    """Whether that is so by all rules; where not, they have to be asked."""


class SideTable:
    """The records that lines are joined with."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Have the rows of *batches*, whose columns are `SIDES`; of several alike, the last counts."""
        arrays: list[list[Texts]] = [[] for _ in SIDES]
        hashes: list[list[NDArray[np.uint64]]] = [[], [], []]
        for batch in batches:
            for column, array in zip(arrays, batch.columns, strict=True):
                column.append(array)
            # Batch by batch, what is hashed stays in the processor's cache.
            for found, each in zip(hashes, _hashes(batch), strict=True):
                found.append(each)
        columns: dict[str, Any] = {}
        for field, column in zip(SIDES, arrays, strict=True):
            columns[field.name] = pa.concat_arrays(column or [pa.array([], pa.string())])
            column.clear()
        self.rows = pa.Table.from_pydict(columns, schema=SIDES)
        self._columns = columns
        self.used = np.zeros(self.rows.num_rows, np.uint8)
        """What lines got from each record: 1 by a strong tie, 2 by a weak one, 3 by both."""
        self.is_ordinary = bool(truths(pc.match_substring_regex(columns["when"], _ORDINARY)).all())
        """Whether all records have their second where it belongs."""
        names = ("record_id", "filename", "offset", "digest")
        has = {name: lengths_of(columns[name]) > 0 for name in names}
        has_place = has["filename"] & has["offset"]
        self.has_ids = bool(has["record_id"].any())
        """Whether lines may be joined by the record's identifier."""
        self.has_places = bool(has_place.any())
        """Whether lines may be joined by file and offset."""
        self._only_keys = not (has["record_id"] | has["filename"] | has["digest"]).any()
        every = np.ones(len(self), np.bool_)
        self._by_id, self._by_place, self._by_when = (
            HashIndex(np.concatenate([*found, _NO_HASHES])[which], np.flatnonzero(which))
            for found, which in zip(hashes, (has["record_id"], has_place, every), strict=True)
        )

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def endings(self, sides: NDArray[np.int64]) -> Texts:
        """Return what each of *sides* adds, with what ends the line; null where there is none."""
        return self._taken("ending", sides)

    def by_id(self, ids: Texts, seconds: Any) -> Found:
        """Find records by identifiers, which may be empty, and hashes of seconds."""
        sides, _ = self._by_id.find(hashes_of(ids, seed=seconds))
        sides[lengths_of(ids) == 0] = -1
        return Found(sides, (sides < 0) | self._same("record_id", sides, ids))

    def by_place(self, filenames: Texts, offsets: Texts, ids: Texts, seconds: Any) -> Found:
        """Find records by files without directories and offsets; *ids* are those of the lines."""
        hashes = hashes_of(offsets, seed=hashes_of(filenames, seed=seconds))
        sides, _ = self._by_place.find(hashes)
        sides[lengths_of(offsets) == 0] = -1
        sure = self._same("filename", sides, filenames) & self._same("offset", sides, offsets)
        # Whether other identifiers tell them apart is left to the rules.
        theirs = self._taken("record_id", sides)
        sure &= (lengths_of(theirs) == 0) | (lengths_of(ids) == 0) | truths(pc.equal(ids, theirs))
        return Found(sides, (sides < 0) | sure)

    def by_when(self, whens: Texts) -> Found:
        """Find records by key and second."""
        sides, alone = self._by_when.find(hashes_of(whens))
        if not self._only_keys:
            return Found(sides, sides < 0)
        return Found(sides, (sides < 0) | (alone & self._same("when", sides, whens)))

    def of_seconds(self, seconds: set[bytes] | None) -> tuple[pa.Table, NDArray[np.int64]]:
        """Return the records of *seconds*, and their numbers; all of them where that is not sure."""
        if seconds is None or not self.is_ordinary:
            return self.rows, np.arange(len(self))
        wanted = pa.array([second.decode("latin-1") for second in seconds], pa.string())
        theirs = pc.utf8_slice_codeunits(self._columns["when"], -_SECOND)
        numbers = np.flatnonzero(truths(pc.is_in(theirs, value_set=wanted)))
        return self.rows.take(numbers), numbers

    def _taken(self, name: str, sides: NDArray[np.int64]) -> Texts:
        return taken(self._columns[name], sides, missing=sides < 0)

    def _same(self, name: str, sides: NDArray[np.int64], values: Texts) -> NDArray[np.bool_]:
        return truths(pc.equal(self._taken(name, sides), values))


def _hashes(batch: pa.RecordBatch) -> tuple[Any, Any, Any]:
    """Return hashes of identifiers, of places, each with its second, and of keys with their seconds."""
    seconds = hashes_of(batch["when"], last=_SECOND)
    files = hashes_of(batch["filename"], seed=seconds)
    return (
        hashes_of(batch["record_id"], seed=seconds),
        hashes_of(batch["offset"], seed=files),
        hashes_of(batch["when"]),
    )
