"""Results as text for people, CSV, JSON or Parquet: written as they come, never held whole.

CSV has a header and an empty field for null. JSON is one array with one object a line,
JSON Lines (`jsonl`) the same without the array: a seed list. Maps are objects
of JSON, in CSV and text too. A text's columns are as wide as the first thousand rows need.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.types import is_nested

from amicrawl.disk import Disk, OutputFile
from amicrawl.errors import UsageError
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from amicrawl.archive.table import QueryResult

FORMATS = ("table", "csv", "json", "jsonl", "parquet")
"""What a result can be written as; files are known by the endings of all but the first."""

_BY_NAME = frozenset({"json", "jsonl", "parquet"})
"""Formats whose readers know a column by its name."""
_SAMPLE_ROWS = 1000
_WIDEST = 60
_GROUP_ROWS = 100_000
_BLOCK = 65_536


class _QuerySink(Protocol):
    def write(self, block: bytes, /) -> object: ...


def write_result(result: QueryResult, format_name: str, out: Path | None) -> None:
    """Write *result* to the file *out*, which has its name once it is whole, or to standard output."""
    if out is None:
        sys.stdout.flush()
        _write(result, format_name, sys.stdout.buffer, terminal=sys.stdout.isatty())
        sys.stdout.buffer.flush()
        return
    file = OutputFile.replacing(out, disk=Disk())
    try:
        _write(result, format_name, file, terminal=False)
        file.seal()
    finally:
        file.close()


def _write(result: QueryResult, format_name: str, sink: _QuerySink, *, terminal: bool) -> None:
    if format_name in _BY_NAME:
        _check_names(result.schema.names)
    if format_name == "parquet":
        _write_parquet(result, sink)
        return
    lines = _LINES[format_name](result)
    if terminal:
        # A terminal obeys what it is shown.
        lines = (harmless(line, limit=len(line) + 1) for lot in lines for line in lot.split("\n"))
    block: list[str] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size > _BLOCK:
            sink.write(_encoded(block))
            block, size = [], 0
    sink.write(_encoded(block))


def _check_names(names: list[str]) -> None:
    """Raise UsageError where two columns have one name, so that one of them would be lost."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"Two columns of this result are called {harmless(twice)}. Give one another name with AS, "
            "or choose the format csv or table."
        )


def _encoded(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def _text_lines(result: QueryResult) -> Iterator[str]:
    rows = ([_shown(value) for value in row] for row in _rows(result))
    first = list(islice(rows, _SAMPLE_ROWS))
    names = [harmless(name) for name in result.schema.names]
    widths = [min(_WIDEST, max(map(len, column))) for column in zip(names, *first, strict=True)]
    right = [_is_number(field.type) for field in result.schema]
    count = -1
    for row in chain([names], first, rows):
        cells = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        )
        yield "  ".join(cells).rstrip()
        count += 1
    yield f"({count:,} {'row' if count == 1 else 'rows'})"


def _csv_lines(result: QueryResult) -> Iterator[str]:
    text = _CsvText()
    # What ends a line is all that is quoted beside the comma, and a reader takes a CR for an end, too.
    lines = csv.writer(text, lineterminator="\r\n")
    lines.writerow(result.schema.names)
    for batch in result.batches:
        lines.writerows(zip(*map(_csv_values, batch.columns), strict=True))
        yield text.getvalue()[:-1]
        text.seek(0)
        text.truncate()
    if text.tell():
        yield text.getvalue()[:-1]


class _CsvText(io.StringIO):
    """Lines of CSV, each ended by LF."""

    def write(self, line: str, /) -> int:
        return super().write(f"{line[:-2]}\n")


def _json_lines(result: QueryResult) -> Iterator[str]:
    names = result.schema.names
    # The comma belongs to the line before, so each line is held back until there is another.
    line = None
    yield "["
    for row in _rows(result):
        if line is not None:
            yield f"{line},"
        line = _json(dict(zip(names, row, strict=True)))
    if line is not None:
        yield line
    yield "]"


def _object_lines(result: QueryResult) -> Iterator[str]:
    names = result.schema.names
    for row in _rows(result):
        yield _json(dict(zip(names, row, strict=True)))


_LINES: dict[str, Callable[[QueryResult], Iterator[str]]] = {
    "table": _text_lines,
    "csv": _csv_lines,
    "json": _json_lines,
    "jsonl": _object_lines,
}


def _write_parquet(result: QueryResult, sink: _QuerySink) -> None:
    target: Any = _Writable(sink)
    try:
        writer = pq.ParquetWriter(target, result.schema, compression="zstd")
    except pa.ArrowNotImplementedError as error:
        raise UsageError(
            f"Parquet cannot hold this result: {error}. Select that column as text (...::VARCHAR), or "
            "choose another format."
        ) from error
    try:
        for group in _groups(result.batches):
            writer.write_table(pa.Table.from_batches(group, result.schema))
    finally:
        # Closing it writes the footer; after a failure the file is not kept.
        writer.close()


class _Writable:
    """What pyarrow writes to: it needs more than a sink has."""

    closed = False

    def __init__(self, sink: _QuerySink) -> None:
        self._sink = sink
        self._size = 0

    def write(self, block: bytes) -> int:
        self._sink.write(bytes(block))
        self._size += len(block)
        return len(block)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Do nothing: the file is not pyarrow's to close."""


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if sum(each.num_rows for each in group) >= _GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group


def _rows(result: QueryResult) -> Iterator[tuple[Any, ...]]:
    """Yield the rows; two columns may have one name, so not as dicts."""
    for batch in result.batches:
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array[Any]) -> list[Any]:
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError):
        values = [_value(each) for each in column]
    return [_with_objects(value, column.type) for value in values] if is_nested(column.type) else values


def _with_objects(value: Any, kind: Any) -> Any:
    """Return *value*, of Arrow's type *kind*, with a dict for each map in it, a list of pairs."""
    if value is None or not is_nested(kind):
        return value
    if pa.types.is_map(kind):
        return {_plain(key): _with_objects(each, kind.item_type) for key, each in value}
    if pa.types.is_struct(kind):
        return {field.name: _with_objects(value[field.name], field.type) for field in kind}
    if pa.types.is_union(kind):
        return value
    return [_with_objects(each, kind.value_type) for each in value]


def _value(scalar: Any) -> Any:
    """Return *scalar* as Python has it; as text where it is a time in a year that Python has not."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        try:
            return scalar.cast(pa.string()).as_py()
        except MemoryError:  # Arrow's is an ArrowException, too
            raise
        except pa.ArrowException as error:
            raise UsageError(
                f"The result has a {str(scalar.type)[:80]} with a time that cannot be shown. Select its "
                "parts by themselves, or as text: ...::VARCHAR."
            ) from error


def _csv_values(column: pa.Array[Any]) -> list[Any]:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_integer(kind):
        return column.to_pylist()
    return [_plain(value) for value in _values(column)]


def _plain(value: Any) -> Any:
    """Return *value* as a field of CSV: text, a number, or None."""
    if isinstance(value, dict | list | tuple):
        return _json(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)


def _shown(value: Any) -> str:
    return "" if value is None else harmless(str(_plain(value)))


def _json(value: Any) -> str:
    # In ASCII, DEL is all that JSON leaves raw and a terminal may obey.
    return json.dumps(_finite(value), default=_as_json).replace("\x7f", "\\u007f")


def _as_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return _plain(value)


def _finite(value: Any) -> Any:
    """Return *value* with what JSON has no number for as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return value


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
