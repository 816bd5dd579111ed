"""Parquet files of some hundred bytes that stand for gigabytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from amicrawl.archive.table.schema import EOT
from amicrawl.record.table import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
URL = "http://127.0.0.1:1/"
_LONG = ("url", "error", "content_mime_type")


def seeds(path: Path, *, length: int, rows: int, column: str = "url", values: int = 1) -> None:
    """Write *rows* rows whose *column* repeats *values* strings of *length* characters."""
    texts = [URL + "x" * length + str(number) for number in range(values)]
    columns = {"url": _repeated([URL], rows), column: _repeated(texts, rows)}
    _write(path, pa.table(columns))


def in_full(path: Path, *, length: int, values: int) -> None:
    """Write *values* strings of *length* characters each, in full: three of 600 MB fit into 20 kB."""
    texts = pa.array([URL + "x" * length] * values)
    _write(path, pa.table({"url": texts}), use_dictionary=False)


def prefixes(path: Path, *, length: int, rows: int) -> None:
    """Write *rows* strings, each stored as the beginning of the one before (DELTA_BYTE_ARRAY)."""
    texts = pa.array([URL + "x" * length] * rows)
    _write(
        path,
        pa.table({"url": texts}),
        use_dictionary=False,
        column_encoding={"url": "DELTA_BYTE_ARRAY"},
    )


def captures(path: Path, *, length: int, rows: int) -> None:
    """Write a capture index some of whose strings repeat one of *length* characters."""
    _write(path, _of_schema(CAPTURES, length, rows))


def index_table(path: Path, *, length: int, rows: int) -> None:
    """Write an index table some of whose strings repeat one of *length* characters."""
    _write(path, _of_schema(EOT.columns, length, rows))


def _of_schema(schema: pa.Schema, length: int, rows: int) -> pa.Table:
    columns: dict[str, Any] = {}
    for field in schema:
        if field.type == pa.string():
            begin, size = (URL, length) if field.name in _LONG else ("", 1)
            columns[field.name] = _repeated([begin + "x" * size], rows)
        elif pa.types.is_timestamp(field.type):
            columns[field.name] = pa.array([1_700_000_000] * rows, pa.timestamp("s")).cast(field.type)
        elif pa.types.is_boolean(field.type):
            columns[field.name] = pa.array([False] * rows)
        elif pa.types.is_integer(field.type):
            columns[field.name] = pa.array([200] * rows, field.type)
        else:
            columns[field.name] = pa.nulls(rows, field.type)
    return pa.table(columns)


def _repeated(texts: list[str], rows: int) -> pa.DictionaryArray[Any, Any]:
    codes = pa.array([row % len(texts) for row in range(rows)], pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(texts))


def _write(path: Path, table: pa.Table, **options: Any) -> None:
    options = {"dictionary_pagesize_limit": 1 << 30, **options}
    pq.write_table(
        table, path, compression="zstd", write_statistics=False, store_schema=False, **options
    )
