"""Rows of a table that wait until they are a row group, in few and large pieces of memory.

A block of lines leaves some ninety buffers, between those that reading it took and gave back. Kept for
long, they keep what lies between them from being used again: half as much memory as all rows take. So
the rows of some blocks are copied behind each other before they are kept, and what the blocks took can
go. Of a dictionary, rows that are a few of many keep what they use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from amicrawl.index.lines.arrow_texts import missing_in, numbers_from, numbers_of

_LOOSE = 16
"""Pieces that are made one, as long as they are small."""
_SMALL = 16 << 20
"""Bytes of so many pieces up to which that is worth a copy."""
_OF_A_COLUMN = 1 << 10
"""Bytes that a column of a piece takes besides its values, about."""


class HeldRows:
    """The rows of one partition that are in no row group yet."""

    def __init__(self) -> None:
        self.rows = 0
        """How many there are."""
        self.held_bytes = 0
        """Bytes that they take in memory."""
        self._pieces: list[pa.RecordBatch] = []
        self._loose: list[pa.RecordBatch] = []
        self._loose_bytes = 0

    def add(self, piece: pa.RecordBatch) -> None:
        """Take the rows of *piece*."""
        size = _size_of(piece)
        self.rows += piece.num_rows
        self.held_bytes += size
        self._loose.append(piece)
        self._loose_bytes += size
        if len(self._loose) >= _LOOSE and self._loose_bytes <= _SMALL:
            self._pieces.append(in_one(self._loose))
            self.held_bytes += _size_of(self._pieces[-1]) - self._loose_bytes
            self._loose, self._loose_bytes = [], 0

    def take(self) -> pa.Table:
        """Return all rows, with one dictionary for each column that has one, and hold none."""
        # A dictionary that changes within a row group would be given up, and the texts written out.
        rows = pa.Table.from_batches([*self._pieces, *self._loose]).unify_dictionaries()
        self._pieces, self._loose, self._loose_bytes = [], [], 0
        self.rows = self.held_bytes = 0
        return rows


def in_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of *batches*, of which there are some, in memory of their own."""
    rows = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return rows.to_batches()[0]


def some_of(batch: pa.RecordBatch, numbers: pa.Array[Any]) -> pa.RecordBatch:
    """Return the rows of *batch* with these *numbers*, and of its dictionaries what they use."""
    columns: list[Any] = [_used(column.take(numbers)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _used(column: Any) -> Any:
    """Return *column* without the texts of its dictionary that it does not use, if they are many."""
    if not pa.types.is_dictionary(column.type) or len(column.dictionary) <= len(column):
        return column
    places, missing = numbers_of(column.indices), missing_in(column.indices)
    used = np.unique(places if missing is None else places[~missing])
    anew = np.zeros(len(column.dictionary) + 1, np.int32)
    anew[used] = np.arange(len(used), dtype=np.int32)
    indices = numbers_from(anew[places], missing=missing)
    return pa.DictionaryArray.from_arrays(indices, column.dictionary.take(numbers_from(used)))


def _size_of(piece: pa.RecordBatch) -> int:
    return piece.nbytes + piece.num_columns * _OF_A_COLUMN
