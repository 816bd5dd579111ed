"""Parquet tables as seed lists: any with a column `url`, and the `captures.parquet` of an earlier crawl.

Of a table, `url`, `digest`, `etag` and `last_modified` are read; the other columns become `meta_json` in
their order, as in JSON Lines: a string stays as it is, any other value becomes its JSON text (a moment
in the form of RFC 3339), and a null gives no field. A column `meta_json` is carried over unchanged.
Columns of bytes are left out, and columns
whose names say that they hold bodies or headers (`is_bulk`): they may be most of the file.

Rows are read a thousand at a time, or fewer where they are large (`amicrawl.parquet`), and only in the
columns that are needed.

A capture index is known by the thirteen columns that every crawl writes; its own columns never become
`meta_json`, which is carried over unchanged. Every row is a seed, also one that failed: the next
crawl is to try again. What a row says of the earlier capture is used only where it is whole:

* `digest` of any response without `error` that is not `truncated`: the same payload need not be stored
  again, an error page's as little as a page's.
* `etag` and `last_modified` where, besides, the status was 200 or 304. A 206, a redirect or an error
  page says nothing about the next 200; a cut payload must be fetched again, not confirmed by
  a 304.
* URL, time and payload digest of the record that holds the payload, to which the revisit record of an
  unchanged page has to refer. Where the row is itself that of a revisit it says `original_url` and
  `original_at`; otherwise the time is `fetched_at` less `duration_ms`. Of an `unchanged` row without
  these columns it is not known.

A URL may have several rows (retries, several runs in one table). All are yielded, in the order of the
table.
"""

from __future__ import annotations

import json
import re
import tempfile
from contextlib import ExitStack, contextmanager
from datetime import date, datetime
from datetime import time as clock_time
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from amicrawl.errors import InputError, OutputError
from amicrawl.parquet import ParquetTable
from amicrawl.seed.fields import CONDITIONAL, Conditionals, conditionals, meta_json, url_of
from amicrawl.seed.lines import MAX_LINE
from amicrawl.seed.seed import NotASeedError, Seed, excerpt, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from amicrawl.seed.fields import Flaw
    from amicrawl.seed.seed import FaultLog
    from amicrawl.seed.source import SeedSource

    Row = Mapping[str, object]
    from collections.abc import Mapping


MAX_SPOOLED = 64 * 1024**3
"""Bytes that are put aside on disk of a table that comes packed or through a pipe: its index is last."""

_ROWS = 1024
_BULK = frozenset(
    (
        *("body", "content", "data", "header", "headers", "html", "markdown", "payload"),
        *("raw", "request", "response", "text", "warc"),
    )
)
_BULK_ENDINGS = ("_body", "_content", "_header", "_headers", "_html", "_payload", "_text")


class _Unreadable:
    """Stands for a value that Python has no object for."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"({self.reason})"


_NOT_UTF_8 = _Unreadable("not UTF-8")
_NO_VALUE = _Unreadable(
    "not a value that can be read"
)  # a date after the year 9999, an unknown time zone


def is_bulk(name: str) -> bool:
    """Tell by its name whether a column holds bodies or headers rather than what is known of a URL."""
    lowered = name.lower()
    return lowered in _BULK or lowered.endswith(_BULK_ENDINGS)


def read_parquet(source: SeedSource, faults: FaultLog) -> Generator[Seed, None, None]:
    """Yield the rows of the table in *source* as seeds.

    Raises InputError if it is not Parquet or has no column `url` with text. A row without a URL is
    reported and skipped. Of a table that is damaged further on, the rows before that come first.
    """
    number = 0

    def flaw(reason: str) -> None:
        faults.flaw(source.name, number, reason)

    try:
        with _table(source) as table:
            columns, seed_of = chosen(source.name, table.schema)
            for name in [name for name in columns if pa.types.is_nested(table.schema.field(name).type)]:
                if not table.nested_fits(name):
                    flaw(f"column {excerpt(name)} holds lists or records of too many bytes; left out")
                    columns.remove(name)
            for number, row in enumerate(_rows(table, columns), 1):
                try:
                    check_size(row)
                    seed = seed_of(row, flaw)
                except NotASeedError as reason:
                    faults.leave_out(source.name, number, reason)
                else:
                    if seed is not None:
                        yield seed
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: names of columns
        damage = InputError(
            f"{source.name} is not a complete Parquet file: {printable(str(error))}. "
            "Get a complete copy."
        )
        damage.__cause__ = error
        faults.end_early(source.name, number + 1, damage)
    except InputError as error:
        faults.end_early(source.name, number + 1, error)


def chosen(name: str, schema: pa.Schema) -> tuple[list[str], Callable[[Row, Flaw], Seed | None]]:
    """Return which columns to read and what makes a seed of a row of them."""
    texts = [field.name for field in schema if _is_text(field.type)]
    if "url" not in texts:
        has = "has a column url, but not of text" if "url" in schema.names else "has no column url"
        raise InputError(f"{name} {has}. Rename the column that holds the URLs, or write them as lines.")
    captures = captures_columns(schema.names)
    if captures:
        return captures, seed_of_capture
    carried = [field.name for field in schema if not (is_bulk(field.name) or _is_bytes(field.type))]
    return [name for name in schema.names if name in {*carried, *_KNOWN}], _seed_of_row


def check_size(row: Row) -> None:
    """Raise NotASeedError for a *row* with more characters than a line may have."""
    if sum(len(value) for value in row.values() if type(value) is str) > MAX_LINE:
        raise NotASeedError(f"the row has more than {MAX_LINE} characters")


_KNOWN = ("url", *CONDITIONAL)


def _seed_of_row(row: Row, flaw: Flaw) -> Seed:
    meta = {}
    for name, value in row.items():
        if name not in _KNOWN and value is not None and type(value) is not _Unreadable:
            meta[name] = value if isinstance(value, str) else _json_text(value)
    if sum(map(len, meta.values())) > MAX_LINE:
        raise NotASeedError(f"the row has more than {MAX_LINE} characters")
    text = meta_json(meta)
    url = url_of(row, flaw, text)
    for name, value in row.items():
        if name not in _KNOWN and type(value) is _Unreadable:
            flaw(f"column {excerpt(name)} is {value.reason}; it is left out")
    return Seed(url, *conditionals(row, flaw), meta_json=text)


def _json_text(value: object) -> str:
    """Return *value*, of a column that is not of strings, as JSON text, or plain where there is none."""
    if not isinstance(value, (bool, int, float, list, dict)):
        return str(_plain(value))
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _plain(value: object) -> object:
    """Return what stands for *value* within a list or a struct."""
    if isinstance(value, (datetime, date, clock_time)):
        return value.isoformat()
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _is_bytes(kind: pa.DataType) -> bool:
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _rows(table: ParquetTable, columns: Sequence[str]) -> Iterator[dict[str, object]]:
    for batch in table.batches(columns, rows=_ROWS, nested=True):
        yield from rows_of(batch)


def rows_of(batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
    """Yield the rows of *batch*; a value that Python has no object for is marked as such."""
    names = batch.schema.names
    values = [_values(column) for column in batch.columns]
    for row in zip(*values, strict=True):
        yield dict(zip(names, row, strict=True))


def _values(column: pa.Array[Any]) -> list[object]:
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar[Any]) -> object:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return _NOT_UTF_8
    except (ValueError, OverflowError):
        return _NO_VALUE


@contextmanager
def _table(source: SeedSource) -> Iterator[ParquetTable]:
    """Open the table in *source*, from where it lies or from a copy on disk."""
    with ExitStack() as stack:
        file: Path | BinaryIO
        if source.path is not None:
            file = source.path
        else:
            file = stack.enter_context(tempfile.TemporaryFile())
            _spool(source, file)
        yield stack.enter_context(ParquetTable(file, source.name))


def _spool(source: SeedSource, file: BinaryIO) -> None:
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


INDEX_COLUMNS = (
    *("url", "host", "status", "fetched_at", "content_type", "body_length", "digest", "unchanged"),
    *("warc_file", "warc_offset", "warc_length", "error", "meta_json"),
)
"""The columns that every capture index has."""

_NEEDED = (
    *("url", "status", "fetched_at", "digest", "unchanged", "error", "meta_json"),
    *("etag", "last_modified", "duration_ms", "truncated"),
    *("payload_digest", "original_url", "original_at"),
)
_LABEL = re.compile(r"sha1:[A-Z2-7]{32}")
_SENT_URL = re.compile(r"https?://[!-~]{1,16384}")
_ROBOTS = re.compile(r"https?://[^/?#]+/robots\.txt", re.IGNORECASE)
_CONDITIONAL = frozenset((200, 304))
"""Statuses whose validators may be sent back."""
_LAST_MOMENT = 253_402_300_799_999
"""The end of the year 9999 in Unix milliseconds; no date can be written for a later one."""


def captures_columns(names: Sequence[str]) -> list[str]:
    """Return which columns to read of a table that has *names*; none if it is not a capture index."""
    if not set(INDEX_COLUMNS).issubset(names):
        return []
    return [name for name in _NEEDED if name in names]


def seed_of_capture(row: Mapping[str, object], flaw: Flaw) -> Seed | None:
    """Return the seed that requests *row* again; raise NotASeedError where its URL cannot be requested.

    None for a robots.txt that the earlier crawl requested by itself: the next one does so, too.
    """
    meta = row["meta_json"] if isinstance(row["meta_json"], str) else ""
    url = url_of(row, flaw, meta)
    if not meta and _ROBOTS.fullmatch(url):
        return None
    known = conditionals(row, flaw) if _is_whole(row) else Conditionals()
    if not known.digest:
        known = Conditionals()
    elif row["status"] not in _CONDITIONAL:
        known = Conditionals(known.digest)
    if not known.digest:
        return Seed(url, meta_json=meta)
    original_url, captured_at = _original(row)
    label = row.get("payload_digest")
    return Seed(
        url,
        *known,
        captured_at=captured_at,
        meta_json=meta,
        original_url=original_url if original_url != url else "",
        payload_digest=label if isinstance(label, str) and _LABEL.fullmatch(label) else "",
    )


def _is_whole(row: Mapping[str, object]) -> bool:
    return bool(row["status"]) and not row["error"] and not row.get("truncated")


def _original(row: Mapping[str, object]) -> tuple[str, int]:
    """Return URL and time of the record with the payload of *row*; empty for its own URL, 0: unknown."""
    url, moment = row.get("original_url"), row.get("original_at")
    if not isinstance(url, str) or not _SENT_URL.fullmatch(url):
        return "", 0 if row["unchanged"] else _begun(row)
    return url, moment if isinstance(moment, int) and 0 < moment <= _LAST_MOMENT else 0


def _begun(row: Mapping[str, object]) -> int:
    """Return when the capture in *row* began, Unix milliseconds; 0 where the row does not say."""
    fetched_at, duration = row["fetched_at"], row.get("duration_ms") or 0
    if not isinstance(fetched_at, int) or not isinstance(duration, int):
        return 0
    begun = fetched_at - duration
    return begun if 0 < begun <= _LAST_MOMENT else 0
