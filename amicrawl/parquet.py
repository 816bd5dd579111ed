"""Parquet tables of any origin, read in batches whose bytes are bounded before anything is unpacked.

Pages of a Parquet file are compressed, and a value that repeats is stored once: a file of 600 bytes can
stand for terabytes. The footer says nothing of that which could be relied on, so the headers of the
pages are read first (parquet.thrift, `PageHeader`), and the footer itself before Arrow sees it
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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from amicrawl.errors import InputError
from amicrawl.parquet_footer import BYTE_ARRAY, FooterError, ParquetFooter, read_footer
from amicrawl.thrift import NotThriftError, compact_struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType
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
_HEADER, _LONGEST_HEADER = 512, 1 << 20
_PADDING = 100
"""Bytes by which old writers declare a column chunk too short, all that they forgot (PARQUET-816)."""
_ENTRY = 64
"""Bytes that an entry of a dictionary takes at most while it is read."""
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_DICTIONARY_ENCODINGS = frozenset((2, 8))
_DELTA_BYTE_ARRAY = 7


class NotWholeError(InputError):
    """A Parquet file is cut off or damaged; of a file of ours, that is damage and no wrong input."""


class _DataPage(NamedTuple):
    kind: int
    unpacked: int
    """Bytes."""
    values: int
    encoding: int


@dataclass(slots=True)
class _Chunk:
    """What a column chunk needs, by the headers of its pages."""

    dictionary: int = 0
    """Bytes of the dictionary, unpacked and indexed."""
    longest: int = 0
    """Bytes that a value may be repeated with; not known exactly as long as `probed` is False."""
    probed: bool = True
    coded: int = 0
    """Values that are not there in full: of a dictionary, or with the beginning of the one before."""
    width: int = 0
    """Bytes of each value where they are of a fixed width."""
    sizes: list[int] = field(default_factory=list)
    """Of each data page, the bytes unpacked."""
    counts: list[int] = field(default_factory=list)
    """Of each data page, the values."""
    is_repeated: bool = False
    """Whether a row may have any number of values: then a batch may have all of them."""

    def may_be_probed(self) -> bool:
        """Whether the dictionary can be unpacked to see how long its values are, and was not yet."""
        return not self.probed and self.dictionary + self.sizes[0] <= BATCH_BYTES

    def of_batch(self, rows: int) -> int:
        """Return how many bytes *rows* rows in a row take at most."""
        if self.is_repeated:
            rows = max(rows, sum(self.counts))
        total = self.dictionary + rows * self.width + min(rows, self.coded) * self.longest
        if not self.sizes:
            return total
        ends = np.cumsum(self.counts)
        # A batch that begins with the last value of a page reaches furthest.
        last = np.minimum(np.searchsorted(ends, ends + rows - 1), len(ends) - 1)
        summed = np.concatenate(([0], np.cumsum(self.sizes)))
        return total + int((summed[last + 1] - summed[:-1]).max())


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
        try:
            file: Any = (
                self._kept.enter_context(pa.OSFile(str(source), "rb"))
                if isinstance(source, os.PathLike)
                else source
            )
            self._file = file
            self._size = _size(file)
            self._footer = self._read_footer()
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
            guessed = next((leaf for leaf, chunk in chunks.items() if chunk.may_be_probed()), None)
            if guessed is not None:
                self._probe(group, leaves[guessed], chunks[guessed])
            elif rows == 1:
                self._refuse_row(group, chunks, leaves)
            else:
                rows = max(1, min(rows // 2, rows * BATCH_BYTES // needed))
        return rows

    @staticmethod
    def _needed(chunks: dict[int, _Chunk], rows: int) -> int:
        return sum(chunk.of_batch(rows) for chunk in chunks.values())

    def _refuse_row(self, group: int, chunks: dict[int, _Chunk], leaves: dict[int, str]) -> None:
        largest = max(chunks, key=lambda leaf: chunks[leaf].of_batch(1))
        needed = self._needed(chunks, 1)
        raise self._refused(
            f"a row of group {group} unpacks to {needed:,} bytes, most of them in column "
            f"{leaves[largest][:80]!a}; at most {BATCH_BYTES:,} are read"
        )

    def _probe(self, group: int, name: str, chunk: _Chunk) -> None:
        """Find out how long the longest value in the dictionary of *chunk* is; it is small enough to."""
        chunk.probed = True
        coded = pq.ParquetFile(
            self._file, metadata=self._table.metadata, read_dictionary=[name], **self._options
        )
        first = next(coded.iter_batches(1, row_groups=[group], columns=[name], use_threads=False), None)
        values = getattr(first.column(0), "dictionary", None) if first is not None else None
        if values is not None and len(values):
            chunk.longest = int(_lengths(values).max()) + 16

    def _chunk(self, group: int, leaf: int) -> _Chunk:
        found = _Chunk()
        kind = self._footer.leaves[leaf]
        is_text = kind.kind == BYTE_ARRAY
        found.width = max(kind.width, 8)
        found.is_repeated = kind.is_repeated
        for page in self._pages(group, leaf):
            if page.kind == _DICTIONARY:
                found.dictionary = page.unpacked + _ENTRY * page.values
                found.longest, found.probed = (page.unpacked, False) if is_text else (0, True)
            elif page.encoding == _DELTA_BYTE_ARRAY:
                # Each value may have the beginning of the one before, however long that is.
                found.longest, found.probed = max(found.longest, page.unpacked), True
            elif not found.sizes and page.encoding not in _DICTIONARY_ENCODINGS:
                found.probed = True  # by its first row the dictionary could not be known
            if page.kind != _DICTIONARY:
                found.sizes.append(page.unpacked)
                found.counts.append(page.values)
                is_coded = page.encoding in _DICTIONARY_ENCODINGS or page.encoding == _DELTA_BYTE_ARRAY
                found.coded += page.values if is_coded else 0
        return found

    def _pages(self, group: int, leaf: int) -> Iterator[_DataPage]:
        """Yield the headers of the pages of a column chunk, which holds a value for each row.

        One that is repeated may hold any number.
        """
        column, due = self._footer.groups[group].chunks[leaf], self._footer.groups[group].rows
        if self._footer.leaves[leaf].is_repeated:
            due = column.values
        if column.values != due:
            raise self._damaged(f"column {leaf} has {column.values:,} values in {due:,} rows")
        at, has_dictionary = column.data, False
        if 0 < column.dictionary < at:
            at = column.dictionary
        end = min(at + column.size + _PADDING, self._size)
        while due > 0:
            page, at = self._header(at, end)
            if page.kind == _DICTIONARY:
                if has_dictionary:
                    raise self._damaged(f"column {leaf} has two dictionaries")
                has_dictionary = True
            elif page.kind not in (_DATA, _DATA_V2):
                continue
            elif not 0 <= page.values <= due:
                raise self._damaged(f"a page of column {leaf} has {page.values:,} values too many")
            else:
                due -= page.values
            yield page

    def _header(self, at: int, end: int) -> tuple[_DataPage, int]:
        """Return the header of the page at byte *at*, and where the next page begins."""
        size = _HEADER
        while True:
            self._file.seek(at)
            head = self._file.read(max(min(size, end - at), 0))
            try:
                fields, length = compact_struct(head)
                break
            except NotThriftError as error:
                if size > _LONGEST_HEADER or len(head) < size:
                    raise self._damaged(f"no page begins at byte {at:,} ({error})") from error
                size *= 8
        unpacked: Any = fields.get(2, -1)
        packed: Any = fields.get(3, -1)
        said: Any = fields.get(5) or fields.get(7) or fields.get(8) or {}
        if not (_is_size(unpacked) and _is_size(packed) and isinstance(said, dict)):
            raise self._damaged(f"the page at byte {at:,} has no size")
        following = at + length + packed
        if following > end:
            raise self._damaged(f"the page at byte {at:,} is longer than its column")
        kind: Any = fields.get(1)
        values: Any = said.get(1, 0)
        encoding: Any = said.get(4 if kind == _DATA_V2 else 2, 0)
        if not (isinstance(kind, int) and _is_size(values) and isinstance(encoding, int)):
            raise self._damaged(f"the page at byte {at:,} has no kind")
        return _DataPage(kind, unpacked, values, encoding), following

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


def _is_size(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _lengths(values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the bytes that each of the strings *values* has."""
    if values.type not in _TEXTS:
        return np.full(len(values), _ENTRY, np.int64)
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
