"""The footer of a Parquet file, read and bounded before any library sees it. Pure.

A footer is a struct of Thrift's compact protocol (parquet.thrift, `FileMetaData`). Arrow's C++ reader
ends the process where some of its fields contradict each other, and looks at each column of each row
group in a time that grows with all others. Here each byte is read once; what counts (columns, row
groups, where chunks begin, how many values they have) is checked and kept, the rest is skipped.

    columns        4,096
    row groups     32,768
    chunks         1,048,576, columns by row groups
"""

from __future__ import annotations

from typing import NamedTuple

from amicrawl.thrift import BINARY, LIST, STRUCT, CompactReader, NotThriftError

MOST_COLUMNS = 4096
MOST_GROUPS = 32_768
MOST_CHUNKS = 1 << 20
BYTE_ARRAY = 6
"""The physical type of strings."""

_MOST_ELEMENTS = 4 * MOST_COLUMNS
_DEEPEST = 64
_REPEATED = 2
_LONGEST_NAME = 1 << 16


class FooterError(ValueError):
    """A footer that is damaged, or beyond the limits."""

    def __init__(self, reason: str, *, is_damage: bool = True) -> None:
        super().__init__(reason)
        self.is_damage = is_damage
        """Whether it is not what a footer is; else it is sound and too large."""


class StoredColumn(NamedTuple):
    """A column as it is stored: one without columns of its own."""

    path: str
    """Names from the outermost column on, joined by dots."""
    kind: int
    """Physical type, as parquet.thrift numbers them."""
    width: int
    """Bytes of a value of fixed length; 0 for any other."""
    is_repeated: bool
    """Whether a row may have any number of its values."""
    is_nested: bool
    """Whether it is inside another column."""


class ColumnChunk(NamedTuple):
    """Where the values of a column in a row group are."""

    values: int
    size: int
    """Bytes, packed."""
    data: int
    """Offset of the first page of values."""
    dictionary: int
    """Offset of the dictionary; 0 without one."""


class RowGroup(NamedTuple):
    """A row group."""

    rows: int
    chunks: list[ColumnChunk]
    """One for each leaf, in their order."""


class ParquetFooter(NamedTuple):
    """What a footer says, as far as it is needed."""

    rows: int
    leaves: list[StoredColumn]
    groups: list[RowGroup]


def read_footer(octets: bytes) -> ParquetFooter:
    """Return what the footer *octets* says. Raises FooterError."""
    reader = CompactReader(octets)
    try:
        return _footer(reader)
    except NotThriftError as error:
        raise FooterError(f"its footer is damaged ({error})") from error


def _footer(reader: CompactReader) -> ParquetFooter:
    rows = -1
    leaves: list[StoredColumn] | None = None
    groups: list[RowGroup] | None = None
    for number, kind in reader.fields():
        if kind == LIST and (
            (number == 2 and leaves is not None) or (number == 4 and groups is not None)
        ):
            # Of two, Arrow takes the second: columns that the row groups read before do not have.
            raise FooterError("its footer has columns or row groups twice")
        if number == 2 and kind == LIST:
            leaves = _leaves(_elements(reader))
        elif number == 3 and kind in reader.INTEGERS:
            rows = reader.integer()
        elif number == 4 and kind == LIST:
            if leaves is None:
                raise FooterError("its footer has row groups before columns")
            groups = _groups(reader, len(leaves))
        else:
            reader.skip(kind)
    if leaves is None or groups is None or rows < 0:
        raise FooterError("its footer lacks columns, rows or row groups")
    if sum(group.rows for group in groups) != rows:
        raise FooterError(f"its row groups do not have {rows:,} rows together")
    return ParquetFooter(rows, leaves, groups)


class _Element(NamedTuple):
    name: str
    children: int
    kind: int
    width: int
    is_repeated: bool


def _elements(reader: CompactReader) -> list[_Element]:
    """Return the columns and their columns, each before its own."""
    count = _structs(reader, _MOST_ELEMENTS, "columns")
    return [_element(reader) for _ in range(count)]


def _element(reader: CompactReader) -> _Element:
    name, children, kind, width, repetition = "", 0, -1, 0, 0
    for number, type_of in reader.fields():
        is_integer = type_of in reader.INTEGERS
        if number == 1 and is_integer:
            kind = reader.integer()
        elif number == 2 and is_integer:
            width = reader.integer()
        elif number == 3 and is_integer:
            repetition = reader.integer()
        elif number == 4 and type_of == BINARY:
            name = reader.binary(_LONGEST_NAME).decode("utf-8", "replace")
        elif number == 5 and is_integer:
            children = reader.integer()
        else:
            reader.skip(type_of)
    if children < 0 or not 0 <= width <= 1 << 30:
        raise FooterError(f"its column {name[:80]!a} has no size that can be")
    return _Element(name, children, kind, width, repetition == _REPEATED)


def _leaves(elements: list[_Element]) -> list[StoredColumn]:
    """Return the columns that have none of their own; the first element is the root of all."""
    if not elements:
        raise FooterError("its footer has no columns")
    leaves: list[StoredColumn] = []
    # Of each column that is open: its path, whether it is repeated, and how many of its own are due.
    open_: list[tuple[str, bool, int]] = [("", False, elements[0].children)]
    for element in elements[1:]:
        while open_ and not open_[-1][2]:
            open_.pop()
        if not open_:
            raise FooterError("its footer has columns that belong nowhere")
        above, is_repeated, due = open_.pop()
        open_.append((above, is_repeated, due - 1))
        path = f"{above}.{element.name}" if len(open_) > 1 else element.name
        is_repeated = is_repeated or element.is_repeated
        if element.children:
            if len(open_) > _DEEPEST:
                raise FooterError("its columns are nested too deep", is_damage=False)
            open_.append((path, is_repeated, element.children))
        else:
            leaves.append(StoredColumn(path, element.kind, element.width, is_repeated, len(open_) > 1))
            if len(leaves) > MOST_COLUMNS:
                raise FooterError(f"it has more than {MOST_COLUMNS:,} columns", is_damage=False)
    if any(due for _, _, due in open_):
        raise FooterError("its footer lacks columns that it announces")
    return leaves


def _groups(reader: CompactReader, columns: int) -> list[RowGroup]:
    count = _structs(reader, MOST_GROUPS, "row groups")
    if count * columns > MOST_CHUNKS:
        raise FooterError(
            f"it has {columns:,} columns in {count:,} row groups, more than {MOST_CHUNKS:,} chunks",
            is_damage=False,
        )
    return [_group(reader, columns) for _ in range(count)]


def _group(reader: CompactReader, columns: int) -> RowGroup:
    rows, chunks = -1, list[ColumnChunk]()
    for number, kind in reader.fields():
        if number == 1 and kind == LIST:
            if _structs(reader, columns, "chunks") != columns:
                raise FooterError("a row group lacks columns")
            chunks = [_chunk(reader) for _ in range(columns)]
        elif number == 3 and kind in reader.INTEGERS:
            rows = reader.integer()
        else:
            reader.skip(kind)
    if rows < 0 or len(chunks) != columns:
        raise FooterError("a row group has no rows or no columns")
    return RowGroup(rows, chunks)


def _chunk(reader: CompactReader) -> ColumnChunk:
    found: ColumnChunk | None = None
    for number, kind in reader.fields():
        if number == 1 and kind == BINARY:
            if reader.binary(_LONGEST_NAME):
                raise FooterError("a column of it is in another file", is_damage=False)
        elif number == 3 and kind == STRUCT:
            found = _chunk_data(reader)
        else:
            reader.skip(kind)
    if found is None:
        raise FooterError("a column chunk says nothing of itself")
    return found


_CHUNK_FIELDS = {5: "values", 7: "size", 9: "data", 11: "dictionary"}


def _chunk_data(reader: CompactReader) -> ColumnChunk:
    found = {"values": -1, "size": -1, "data": -1, "dictionary": 0}
    for number, kind in reader.fields():
        name = _CHUNK_FIELDS.get(number)
        if name is not None and kind in reader.INTEGERS:
            found[name] = reader.integer()
        else:
            reader.skip(kind)
    if min(found["values"], found["size"], found["data"]) < 0:
        raise FooterError("a column chunk has no size or no place")
    return ColumnChunk(**found)


def _structs(reader: CompactReader, most: int, what: str) -> int:
    """Return the length of the list of structs that is next. Raises FooterError above *most*."""
    count, kind = reader.list_head()
    if count and kind != STRUCT:
        raise FooterError(f"its footer has no {what} where they should be")
    if count > most:
        raise FooterError(f"it has {count:,} {what}, more than {most:,}", is_damage=False)
    return count
