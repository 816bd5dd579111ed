"""Parquet tables of any origin, read in batches whose bytes are bounded before anything is unpacked.

Pages of a Parquet file are compressed, and a value that repeats is stored once: a file of 600 bytes can
stand for terabytes. The footer says nothing of that which could be relied on, so the headers of the
pages are read first (`parquet_pages.py`), and the footer itself before Arrow sees it
(`parquet_footer.py`): some contradictions in it end the process in Arrow's C++. From the pages' sizes,
and from the longest value of a dictionary, follows how many rows a batch may have.

    a page              64 MiB unpacked; so what one row needs, of all columns that are read
    a batch             64 MiB of values
    all batches         64 MiB of strings and 1,000 times the size of the file
    rows                250,000 and 64 times the size of the file in bytes
    the footer          16 MiB, 4,096 columns, 32,768 row groups

What is beyond is refused with a sentence, as are columns that hold lists or records, unless the reader
requests them: of those, all values of a row group may take 8 MiB (`nested_fits`).
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from amicrawl.disk import refuse_pipe
from amicrawl.errors import InputError
from amicrawl.parquet_footer import FooterError, ParquetFooter, read_footer
from amicrawl.parquet_pages import ENTRY, PageError, PageHeaders, StoredChunk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

BATCH_BYTES = 64 << 20
"""Bytes that the pages of a row, and the values of a batch, may have unpacked."""
FOOTER_BYTES = 16 << 20
"""Bytes of the longest footer that is read."""

_NESTED_BYTES = BATCH_BYTES // 8
"""Bytes of a column of lists or records in a row group: as objects they take many times as much."""
_ROWS, _ROWS_A_BYTE = 250_000, 64
_TEXT_BYTES, _TEXT_A_BYTE = 64 << 20, 1000
_READ_WHOLE = 4 << 20
_PAGE_BUFFER = 256 << 10


class NotWholeError(InputError):
    """A Parquet file is cut off or damaged; of a file of ours, that is damage and no wrong input."""


def is_text(kind: pa.DataType) -> bool:
    """Return whether *kind* is that of strings, as they are or as codes into a dictionary."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


class ParquetTable:
    """An opened Parquet file whose batches stay within bounds, whatever it says of itself."""

    def __init__(
        self, source: Path | BinaryIO, name: str, *, dictionaries: Collection[str] = ()
    ) -> None:
        """Open *source*, called *name* in errors; columns in *dictionaries* come as codes.

        Raises InputError where something is absurd, ArrowException or OSError where it cannot be read.
        """
        self.name = name
        self._kept = ExitStack()
        if isinstance(source, os.PathLike):
            refuse_pipe(source)
        try:
            file: Any = (
                self._kept.enter_context(pa.OSFile(cast("Any", os.fsencode(source)), "rb"))
                if isinstance(source, os.PathLike)
                else source
            )
            self._file = file
            self._size = _size(file)
            self._footer = self._read_footer()
            self._headers = PageHeaders(file, self._size, self._footer)
            self._options: dict[str, Any] = {
                "buffer_size": _PAGE_BUFFER if self._size > _READ_WHOLE else 0,
                "pre_buffer": False,
            }
            plain = pq.ParquetFile(file, **self._options)
            texts = {field.name for field in plain.schema_arrow if is_text(field.type)}
            coded = [name for name in dictionaries if name in texts]
            self._table = self._kept.enter_context(
                pq.ParquetFile(file, metadata=plain.metadata, read_dictionary=coded, **self._options)
            )
            self.rows = self._footer.rows
            self.schema: pa.Schema = self._table.schema_arrow
            self._check_rows()
        except BaseException:
            self._kept.close()
            raise
        self._text = 0

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """What the writer noted, by key."""
        return self._table.metadata.metadata or {}

    @property
    def groups(self) -> int:
        """The number of row groups."""
        return len(self._footer.groups)

    @property
    def group_rows(self) -> list[int]:
        """The number of rows of each row group."""
        return [group.rows for group in self._footer.groups]

    def batches(
        self,
        columns: Sequence[str],
        *,
        rows: int = 65_536,
        groups: Sequence[int] | None = None,
        threads: bool = False,
        nested: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the *columns*, at most *rows* rows at a time, in the order of the file.

        Only with *nested* may they hold lists or records.
        """
        leaves = self._leaves(columns, nested=nested)
        for group in range(self.groups) if groups is None else groups:
            most = self._most_rows(group, leaves, rows)
            read = self._table.iter_batches(
                most, row_groups=[group], columns=list(columns), use_threads=threads
            )
            for batch in read:
                self._count_text(batch)
                yield batch

    def nested_fits(self, column: str) -> bool:
        """Return whether *column*, of lists or records, is small enough to be read with `nested`."""
        leaves = self._leaves([column], nested=True)
        return all(
            sum(self._chunk(group, leaf).of_batch(rows) for leaf in leaves) <= _NESTED_BYTES
            for group, rows in enumerate(self.group_rows)
        )

    def check(self, columns: Sequence[str] | None = None) -> None:
        """Raise InputError where *columns*, or all flat ones, are more than `batches` would read.

        For readers that have no such bounds. Little is unpacked, unless there is a doubt.
        """
        kinds = self._footer.leaves
        flat = [kind.path for kind in kinds if not kind.is_nested and not kind.is_repeated]
        leaves = self._leaves(flat if columns is None else columns)
        for group in range(self.groups):
            for leaf, name in leaves.items():
                self._most_rows(group, {leaf: name}, 1)
                chunk = self._chunk(group, leaf)
                if chunk.longest * chunk.coded > _TEXT_BYTES:
                    deque(self.batches([name], groups=[group]), maxlen=0)

    def close(self) -> None:
        """Close the file, where it was opened here."""
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_footer(self) -> ParquetFooter:
        self._file.seek(max(self._size - 8, 0))
        ending = self._file.read(8)
        length = int.from_bytes(ending[:4], "little")
        if not ending.endswith(b"PAR1") or length + 12 > self._size:
            raise self._damaged("it does not end as Parquet files do")
        if length > FOOTER_BYTES:
            raise self._refused(f"its footer has {length:,} bytes, more than {FOOTER_BYTES:,}")
        self._file.seek(self._size - 8 - length)
        try:
            footer = read_footer(self._file.read(length))
        except FooterError as error:
            raise (self._damaged if error.is_damage else self._refused)(str(error)) from error
        self._file.seek(0)
        return footer

    def _check_rows(self) -> None:
        most = _ROWS + _ROWS_A_BYTE * self._size
        if self.rows > most:
            raise self._refused(f"{self._size:,} bytes cannot hold {self.rows:,} rows")

    def _leaves(self, columns: Sequence[str], *, nested: bool = False) -> dict[int, str]:
        """Return the leaves of *columns* by number: one of each, unless they may be *nested*."""
        wanted = frozenset(columns)
        leaves, found = {}, set()
        for number, leaf in enumerate(self._footer.leaves):
            name = leaf.path.partition(".")[0]
            if leaf.path in wanted or name in wanted:
                if not nested and (leaf.path not in wanted or leaf.is_repeated):
                    raise self._refused(f"its column {name[:80]!a} holds lists or records")
                leaves[number] = leaf.path
                found |= {leaf.path, name}
        missing = set(columns) - found
        if missing:
            raise self._damaged(f"it has no column {min(missing)[:80]!a}")
        return leaves

    def _most_rows(self, group: int, leaves: dict[int, str], rows: int) -> int:
        """Return how many rows, of *rows*, a batch of *group* may have; InputError if not even one."""
        chunks = {leaf: self._chunk(group, leaf) for leaf in leaves}
        while (needed := self._needed(chunks, rows)) > BATCH_BYTES:
            guessed = next(
                (leaf for leaf, chunk in chunks.items() if chunk.may_be_probed(BATCH_BYTES)), None
            )
            if guessed is not None:
                self._probe(group, leaves[guessed], chunks[guessed])
            elif rows == 1:
                self._refuse_row(group, chunks, leaves)
            else:
                rows = max(1, min(rows // 2, rows * BATCH_BYTES // needed))
        return rows

    @staticmethod
    def _needed(chunks: dict[int, StoredChunk], rows: int) -> int:
        return sum(chunk.of_batch(rows) for chunk in chunks.values())

    def _refuse_row(self, group: int, chunks: dict[int, StoredChunk], leaves: dict[int, str]) -> None:
        largest = max(chunks, key=lambda leaf: chunks[leaf].of_batch(1))
        needed = self._needed(chunks, 1)
        raise self._refused(
            f"a row of group {group} unpacks to {needed:,} bytes, most of them in column "
            f"{leaves[largest][:80]!a}; at most {BATCH_BYTES:,} are read"
        )

    def _probe(self, group: int, name: str, chunk: StoredChunk) -> None:
        """Find out how long the longest value in the dictionary of *chunk* is; it is small enough to."""
        chunk.probed = True
        coded = pq.ParquetFile(
            self._file, metadata=self._table.metadata, read_dictionary=[name], **self._options
        )
        first = next(coded.iter_batches(1, row_groups=[group], columns=[name], use_threads=False), None)
        values = getattr(first.column(0), "dictionary", None) if first is not None else None
        if values is not None and len(values):
            chunk.longest = int(_lengths(values).max()) + 16

    def _chunk(self, group: int, leaf: int) -> StoredChunk:
        try:
            return self._headers.chunk(group, leaf)
        except PageError as error:
            raise self._damaged(str(error)) from error

    def _count_text(self, batch: pa.RecordBatch) -> None:
        for column in batch.columns:
            if pa.types.is_dictionary(column.type):
                self._text += int(_coded_lengths(column).sum())
            elif column.type in _TEXTS:
                self._text += column.nbytes
        if self._text > _TEXT_BYTES + _TEXT_A_BYTE * self._size:
            raise self._refused(f"its {self._size:,} bytes stand for more than {self._text:,}")

    def _refused(self, reason: str) -> InputError:
        return InputError(
            f"{self.name} is refused: {reason}. Check where it comes from; if it is sound, write it "
            "again with smaller pages or values, or as JSON Lines."
        )

    def _damaged(self, reason: str) -> NotWholeError:
        return NotWholeError(
            f"{self.name} is not a complete Parquet file: {reason}. Get a complete copy."
        )


_TEXTS = frozenset((pa.string(), pa.large_string(), pa.binary(), pa.large_binary()))


def _size(file: Any) -> int:
    file.seek(0, os.SEEK_END)
    return int(file.tell())


def _lengths(values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the bytes that each of the strings *values* has."""
    if values.type not in _TEXTS:
        return np.full(len(values), ENTRY, np.int64)
    wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    places = np.frombuffer(values.buffers()[1], np.int64 if wide else np.int32)
    lengths: np.ndarray[Any, np.dtype[np.int64]] = np.diff(
        places[values.offset :][: len(values) + 1]
    ).astype(np.int64)
    return lengths


def _coded_lengths(column: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the bytes that each value of a dictionary-encoded *column* would have in full."""
    if not len(column.dictionary):
        return np.zeros(1, np.int64)
    codes = column.indices
    # Arrow's own ways to numpy load pandas where it is installed. A null may be any number.
    numbers = np.frombuffer(codes.buffers()[1], codes.type.to_pandas_dtype())[codes.offset :]
    known = np.clip(numbers[: len(codes)], 0, len(column.dictionary) - 1)
    lengths: np.ndarray[Any, np.dtype[np.int64]] = _lengths(column.dictionary)[known]
    return lengths
