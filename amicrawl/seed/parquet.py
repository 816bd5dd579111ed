"""Parquet tables as seed lists: any with a column `url`, and the `captures.parquet` of an earlier crawl.

Of a table, `url`, `digest`, `etag` and `last_modified` are read; the other columns of strings become
`meta_json` in the order of the columns, a null giving no field. Columns that hold bodies or headers,
told by their names (`is_bulk`), are not carried along: they may be most of the file. `captures.py` says
what becomes of an earlier crawl.

Rows are read a thousand at a time, page by page, and only in the columns that are needed.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from amicrawl.errors import InputError, OutputError
from amicrawl.seed.captures import captures_columns, seed_of_capture
from amicrawl.seed.fault import NotASeedError, excerpt, printable
from amicrawl.seed.fields import CONDITIONAL, conditionals, meta_json, url_of
from amicrawl.seed.seed import Seed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from amicrawl.seed.fault import FaultLog
    from amicrawl.seed.fields import Flaw
    from amicrawl.seed.source import Source

    Row = Mapping[str, object]

MAX_SPOOLED = 64 * 1024**3
"""Bytes that are put aside on disk of a table that comes packed or through a pipe: its index is last."""

_ROWS = 1024
_PAGE_BUFFER = 64 * 1024
_READ_WHOLE = 4 * 1024**2
_BULK = frozenset(
    (
        *("body", "content", "data", "header", "headers", "html", "markdown", "payload"),
        *("raw", "request", "response", "text", "warc"),
    )
)
_BULK_ENDINGS = ("_body", "_content", "_header", "_headers", "_html", "_payload", "_text")


class _NoText:
    """Stands for bytes of a string column that are not UTF-8."""

    def __repr__(self) -> str:
        return "(not UTF-8)"


_NOT_UTF_8 = _NoText()


def is_bulk(name: str) -> bool:
    """Tell by its name whether a column holds bodies or headers rather than what is known of a URL."""
    lowered = name.lower()
    return lowered in _BULK or lowered.endswith(_BULK_ENDINGS)


def read_parquet(source: Source, faults: FaultLog) -> Generator[Seed, None, None]:
    """Yield the rows of the table in *source* as seeds.

    Raises InputError where it is no Parquet or has no column `url` with text. A row without a URL is
    reported and passed over. Of a table that is damaged further on, the rows before that come first.
    """
    number = 0

    def flaw(reason: str) -> None:
        faults.flaw(source.name, number, reason)

    try:
        with _table(source) as table:
            columns, seed_of = _chosen(source.name, table.schema_arrow)
            for number, row in enumerate(_rows(table, columns), 1):
                try:
                    seed = seed_of(row, flaw)
                except NotASeedError as reason:
                    faults.skip(source.name, number, str(reason))
                else:
                    yield seed
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: names of columns
        damage = InputError(
            f"{source.name} is no whole Parquet file: {printable(str(error))}. Get a whole copy of it."
        )
        damage.__cause__ = error
        faults.end_early(source.name, number + 1, damage)


def _chosen(name: str, schema: pa.Schema) -> tuple[list[str], Callable[[Row, Flaw], Seed]]:
    """Return which columns to read and what makes a seed of a row of them."""
    texts = [field.name for field in schema if _is_text(field.type)]
    if "url" not in texts:
        has = "has a column url, but not of text" if "url" in schema.names else "has no column url"
        raise InputError(f"{name} {has}. Rename the column that holds the URLs, or write them as lines.")
    captures = captures_columns(schema.names)
    if captures:
        return captures, seed_of_capture
    return [column for column in texts if column in _KNOWN or not is_bulk(column)], _seed_of_row


_KNOWN = ("url", *CONDITIONAL)


def _seed_of_row(row: Row, flaw: Flaw) -> Seed:
    url = url_of(row)
    meta = {}
    for name, value in row.items():
        if name in _KNOWN or value is None:
            continue
        if isinstance(value, str):
            meta[name] = value
        else:
            flaw(f"column {excerpt(name)} is not UTF-8; it is left out")
    return Seed(url, *conditionals(row, flaw), meta_json=meta_json(meta))


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _rows(table: pq.ParquetFile, columns: Sequence[str]) -> Iterator[dict[str, object]]:
    # Group by group, for a batch must not fail for what is wrong with the group behind it.
    for group in range(table.num_row_groups):
        batches = table.iter_batches(_ROWS, row_groups=[group], columns=list(columns), use_threads=False)
        for batch in batches:
            names = batch.schema.names
            values = [_values(column) for column in batch.columns]
            for row in zip(*values, strict=True):
                yield dict(zip(names, row, strict=True))


def _values(column: pa.Array[Any]) -> list[object]:
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar[Any]) -> object:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return _NOT_UTF_8


@contextmanager
def _table(source: Source) -> Iterator[pq.ParquetFile]:
    """Open the table in *source*, from where it lies or from a copy on disk."""
    with ExitStack() as stack:
        if source.path is not None:
            file: pa.NativeFile | BinaryIO = stack.enter_context(pa.OSFile(str(source.path), "rb"))
        else:
            spool = stack.enter_context(tempfile.TemporaryFile())
            _spool(source, spool)
            file = spool
        size = file.seek(0, os.SEEK_END)
        # A row group may be the whole file, so the columns of a large file are read page by page. Not so
        # those of a small one: what a damaged page says of its size would be allocated, up to 2 GiB.
        buffer_size = _PAGE_BUFFER if size > _READ_WHOLE else 0
        table = pq.ParquetFile(file, buffer_size=buffer_size, pre_buffer=False)
        yield stack.enter_context(closing(table))


def _spool(source: Source, file: BinaryIO) -> None:
    room = MAX_SPOOLED
    for block in source.blocks:
        room -= len(block)
        if room < 0:
            raise InputError(
                f"{source.name} has more than {MAX_SPOOLED} bytes unpacked. Unpack it and give the file."
            )
        try:
            file.write(block)
        except OSError as error:
            where = tempfile.gettempdir()
            raise OutputError(
                f"{source.name} cannot be put aside in {where}: {error}. Make room there."
            ) from error
