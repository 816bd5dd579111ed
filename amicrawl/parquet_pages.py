"""The pages of a Parquet file by their headers: how many bytes a column chunk can take once unpacked.

A page is a struct of Thrift's compact protocol (parquet.thrift, `PageHeader`) and its values, which are
compressed: the header says how many there are, and their bytes unpacked. Nothing is unpacked here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from amicrawl.parquet_footer import BYTE_ARRAY
from amicrawl.thrift import NotThriftError, compact_struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.parquet_footer import ParquetFooter

_HEADER, _LONGEST_HEADER = 512, 1 << 20
_PADDING = 100
"""Bytes by which old writers declare a column chunk too short, all that they forgot (PARQUET-816)."""
ENTRY = 64
"""Bytes that an entry of a dictionary takes at most while it is read."""
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_DICTIONARY_ENCODINGS = frozenset((2, 8))
_DELTA_BYTE_ARRAY = 7


class PageError(ValueError):
    """The pages of a column chunk are not what Parquet has there."""


class _DataPage(NamedTuple):
    kind: int
    unpacked: int
    """Bytes."""
    values: int
    encoding: int


@dataclass(slots=True)
class StoredChunk:
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

    def may_be_probed(self, within: int) -> bool:
        """Whether the dictionary can be unpacked *within* so many bytes to see its longest value."""
        return not self.probed and self.dictionary + self.sizes[0] <= within

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


class PageHeaders:
    """The headers of the pages of *file*, which has *size* bytes and this *footer*."""

    def __init__(self, file: Any, size: int, footer: ParquetFooter) -> None:
        self._file = file
        self._size = size
        self._footer = footer

    def chunk(self, group: int, leaf: int) -> StoredChunk:
        """Return what the chunk of column *leaf* in row group *group* needs. Raises PageError."""
        found = StoredChunk()
        kind = self._footer.leaves[leaf]
        is_text = kind.kind == BYTE_ARRAY
        found.width = max(kind.width, 8)
        found.is_repeated = kind.is_repeated
        for page in self._pages(group, leaf):
            if page.kind == _DICTIONARY:
                found.dictionary = page.unpacked + ENTRY * page.values
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
            raise PageError(f"column {leaf} has {column.values:,} values in {due:,} rows")
        at, has_dictionary = column.data, False
        if 0 < column.dictionary < at:
            at = column.dictionary
        end = min(at + column.size + _PADDING, self._size)
        while due > 0:
            page, at = self._header(at, end)
            if page.kind == _DICTIONARY:
                if has_dictionary:
                    raise PageError(f"column {leaf} has two dictionaries")
                has_dictionary = True
            elif page.kind not in (_DATA, _DATA_V2):
                continue
            elif not 0 <= page.values <= due:
                raise PageError(f"a page of column {leaf} has {page.values:,} values too many")
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
                    raise PageError(f"no page begins at byte {at:,} ({error})") from error
                size *= 8
        unpacked: Any = fields.get(2, -1)
        packed: Any = fields.get(3, -1)
        said: Any = fields.get(5) or fields.get(7) or fields.get(8) or {}
        if not (_is_size(unpacked) and _is_size(packed) and isinstance(said, dict)):
            raise PageError(f"the page at byte {at:,} has no size")
        following = at + length + packed
        if following > end:
            raise PageError(f"the page at byte {at:,} is longer than its column")
        kind: Any = fields.get(1)
        values: Any = said.get(1, 0)
        encoding: Any = said.get(4 if kind == _DATA_V2 else 2, 0)
        if not (isinstance(kind, int) and _is_size(values) and isinstance(encoding, int)):
            raise PageError(f"the page at byte {at:,} has no kind")
        return _DataPage(kind, unpacked, values, encoding), following


def _is_size(value: object) -> bool:
    return isinstance(value, int) and value >= 0
