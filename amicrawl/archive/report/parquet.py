"""Parquet into batches or counts: the 31-column table, its relatives, and a crawl's `captures.parquet`.

Only the columns that are counted are read, row group by row group. Keys are those of the table
(`url_surtkey`), not parts of URLs, so that figures are those of the CDX it was made from.

`count_narrow` counts what needs no key (captures, bytes, first and last, media types by status, months)
from the narrow columns of a table, at many million rows a second: the keys alone take longer to read.
"""

from __future__ import annotations

import glob
import re
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.archive.arrow_texts import (
    lengths_of,
    mask_from,
    missing_in,
    numbers_from,
    numbers_of,
    octets_from,
    octets_of,
    taken,
    texts_of,
    truths,
)
from amicrawl.archive.location import is_uri
from amicrawl.archive.report.batch import Lines, are_dates, batch_of, chosen, digits_of
from amicrawl.archive.report.counts import Counts
from amicrawl.archive.report.inputs import files_of, is_parquet
from amicrawl.archive.report.rows import MOST_DIGITS, NOT_A_DATE
from amicrawl.capture import Failure
from amicrawl.disk import refuse_undecodable
from amicrawl.errors import DamagedFileError, InputError, UsageError
from amicrawl.parquet import NotWholeError, ParquetTable, is_text
from amicrawl.urls.surt import surt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from amicrawl.archive.report.batch import Flags, Numbers

TABLE_COLUMN = "url_surtkey"
"""The column by which a table is known."""

CAPTURES_COLUMNS = frozenset({"url", "fetched_at", "warc_length"})
"""Columns by which a `captures.parquet` is known."""

_ROWS = 1 << 16
_SHA1 = "^[0-9A-Fa-f]{40}$"
_BASE32 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", np.uint8)
_NOTHING, _REVISIT = octets_from([b"", b"warc/revisit"])
_ERRORS = ("utf-8", "surrogateescape")
_FACETS = {
    "content_mime_detected": "mime-detected",
    "content_puid": "puid",
    "content_charset": "charset",
    "content_languages": "languages",
    "content_truncated": "truncated",
    "crawl": "crawl",
    "subset": "subset",
    "warc_segment": "segment",
}
_NEEDED = (TABLE_COLUMN, "fetch_time", "fetch_status", "warc_record_length")
_TABLE = (*_NEEDED, "url", "content_mime_type", "content_digest", *_FACETS)
NARROW_COLUMNS = ("fetch_time", "fetch_status", "warc_record_length", "content_mime_type")
"""Columns of a table that say most for the least reading."""
_MIME = "content_mime_type"
_REPEATING = ("content_mime_type", *_FACETS)
_CAPTURES = (
    "url",
    "status",
    "fetched_at",
    "duration_ms",
    "content_type",
    "unchanged",
    "digest",
    "warc_length",
    "truncated",
    "error",
)
_TEXTS = frozenset({"url", "content_type", "digest", "truncated", "error", _MIME})
_NOT_REQUESTED = f"^(?:{'|'.join(failure for failure in Failure if failure.never_requested)})(?::|$)"
"""What `error` begins with in a row of a URL that no server was contacted for."""
_PARTITION = re.compile(r"(?<![^/])(crawl|subset)=([^/]+)/")
_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The value, in the name of a directory, of what is missing."""


def opened_table(path: Path) -> ParquetTable:
    """Open *path*; InputError where it cannot be read, DamagedFileError where it is not Parquet."""
    try:
        # Strings that repeat are read as codes into a dictionary, which is how the file has them.
        return ParquetTable(path, str(path), dictionaries=(*_REPEATING, "content_type"))
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (pa.ArrowException, NotWholeError) as error:
        raise DamagedFileError(path, 0, f"not a readable Parquet file ({error})") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}. Check path and permissions.") from error


def table_lines(path: Path, on_read: Callable[[int], None]) -> Iterator[Lines]:
    """Yield the captures of the table *path* in order; *on_read* receives the bytes of each batch."""
    size = path.stat().st_size
    with opened_table(path) as table:
        names = set(table.schema.names)
        if names >= CAPTURES_COLUMNS and TABLE_COLUMN not in names:
            read: Callable[[pa.RecordBatch, dict[str, str]], Lines] = _of_captures
            columns = [name for name in _CAPTURES if name in names]
            _check_texts(path, table.schema)
        elif names.issuperset(_NEEDED):
            read = _of_table
            columns = [name for name in _TABLE if name in names]
        else:
            raise InputError(
                f"{path} is neither an index table (columns {', '.join(_NEEDED)}) nor a "
                f"captures.parquet ({', '.join(sorted(CAPTURES_COLUMNS))}). Its columns are: "
                f"{', '.join(sorted(names)[:40])}."
            )
        partitions = partitions_of(path)
        try:
            for rows in table.batches(columns, rows=_ROWS, threads=True):
                if len(rows):
                    on_read(size * len(rows) // table.rows)
                    yield read(rows, partitions)
        except MemoryError:  # Arrow's is an ArrowException, too
            raise
        except (pa.ArrowException, OSError) as error:
            raise DamagedFileError(path, 0, f"rows that cannot be read ({error})") from error


def _check_texts(path: Path, schema: pa.Schema) -> None:
    """Raise InputError where a column of the table *path* that is read as strings is of another type."""
    for field in schema:
        if field.name in _TEXTS and not (is_text(field.type) or pa.types.is_null(field.type)):
            raise InputError(
                f"{path}: column {field.name} is {str(field.type)[:80]}, and must be string. "
                "Give the file as it was written."
            )


def partitions_of(path: Path) -> dict[str, str]:
    """Return what the directories above *path* say of crawl and subset, as Hive spells it."""
    return {
        name: unquote(value)
        for name, value in _PARTITION.findall(path.as_posix())
        if value != _DEFAULT_PARTITION
    }


def _of_table(rows: pa.RecordBatch, partitions: dict[str, str]) -> Lines:
    names, count = set(rows.schema.names), len(rows)
    facets = {
        facet: _octets(rows[name])
        for name, facet in _FACETS.items()
        if name in names and rows[name].null_count < count
    }
    for name, value in partitions.items():
        facets.setdefault(name, pa.repeat(octets_from([value.encode()])[0], count))
    key = _octets(rows[TABLE_COLUMN])
    texts = {"mime": _MIME, "url": "url", "digest": "content_digest"}
    columns = {
        "key": key,
        "time": digits_of(rows["fetch_time"]),
        "status": _status(rows["fetch_status"]),
        "size": _sizes(rows["warc_record_length"]),
        **{
            name: _octets(rows[column]) if column in names else pa.nulls(count, pa.binary())
            for name, column in texts.items()
        },
    }
    known = (lengths_of(key) > 0) & truths(rows["fetch_time"].is_valid())
    reasons = {"a row without key or time": ~known, NOT_A_DATE: known & ~are_dates(columns["time"])}
    return _without(batch_of(columns | facets), reasons)


def _of_captures(rows: pa.RecordBatch, _: dict[str, str]) -> Lines:
    names = set(rows.schema.names)
    nothing = pa.nulls(len(rows), pa.binary())
    urls = pc.fill_null(_octets(rows["url"]), _NOTHING)
    began = fetched = _numbers(rows["fetched_at"], missing=0)
    if "duration_ms" in names:
        began = fetched - _numbers(rows["duration_ms"], missing=0)
    mime = _media_types(_octets(rows["content_type"]) if "content_type" in names else nothing)
    if "unchanged" in names:
        mime = pc.if_else(mask_from(truths(rows["unchanged"].cast(pa.bool_()))), _REVISIT, mime)
    columns = {
        "key": octets_from([surt(url).encode(*_ERRORS) for url in urls.to_pylist()]),
        "time": digits_of(numbers_from(began, kind=pa.timestamp("ms"))),
        "mime": mime,
        "status": _status(rows["status"]) if "status" in names else np.full(len(rows), -1),
        "size": _sizes(rows["warc_length"]),
        "url": urls,
        "digest": in_base32(_octets(rows["digest"]) if "digest" in names else nothing),
    }
    if "truncated" in names:
        columns["truncated"] = _octets(rows["truncated"])
    stored = _numbers(rows["warc_length"], missing=0) > 0
    error = _octets(rows["error"]) if "error" in names else nothing
    withheld = ~stored & truths(pc.match_substring_regex(error, _NOT_REQUESTED))
    failed = ~stored & ~withheld
    return _without(
        batch_of(columns),
        {
            "a fetch that failed, so that there is no record": failed,
            "a URL that was not requested": withheld,
            NOT_A_DATE: stored & ~(are_dates(columns["time"]) & (fetched > 0)),
        },
    )


def _without(batch: pa.RecordBatch, reasons: Mapping[str, Flags]) -> Lines:
    """Return the rows of *batch* that none of *reasons* to skip one is true of."""
    skipped = Counter({reason: int(np.count_nonzero(rows)) for reason, rows in reasons.items()})
    wanted = ~np.logical_or.reduce(list(reasons.values()))
    return Lines(chosen(batch, wanted), +skipped)


def in_base32(digests: Any) -> Any:
    """Return *digests*, octets, as indexes write them: each SHA-1 in hexadecimal digits in base32."""
    are_sha1 = truths(pc.match_substring_regex(digests, _SHA1))
    octets, cuts = octets_of(taken(digests, np.flatnonzero(are_sha1)))
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(octets[: cuts[-1]].tobytes().decode()), np.uint8))
    digits = _BASE32[np.packbits(bits.reshape(-1, 5), axis=1) >> 3]
    written = texts_of(digits, np.arange(0, len(digits) + 1, 32, dtype=np.int32), kind=pa.binary())
    return pc.replace_with_mask(pc.fill_null(digests, _NOTHING), mask_from(are_sha1), written)


def _media_types(declared: Any) -> Any:
    """Return `media_type` of each of *declared*, octets, of which few differ."""
    encoded = declared.dictionary_encode(null_encoding="encode")
    known = [media_type((each or b"").decode(*_ERRORS)) for each in encoded.dictionary.to_pylist()]
    return octets_from(known).take(encoded.indices)


def media_type(content_type: str) -> bytes:
    """Return the media type in a Content-Type, lower case and without parameters; a hyphen if none."""
    named = content_type.partition(";")[0].strip().lower()
    return named.encode(*_ERRORS) or b"-"


def _octets(column: Any) -> Any:
    """Return a column of text as octets, which need not be UTF-8."""
    plain = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    return plain.cast(pa.binary())


def _numbers(column: Any, *, missing: int) -> Numbers:
    numbers = column.cast(pa.int64(), safe=False)
    nulls = missing_in(numbers)
    return numbers_of(numbers) if nulls is None else np.where(nulls, missing, numbers_of(numbers))


def _status(column: Any) -> Numbers:
    status = _numbers(column, missing=-1)
    return np.where((status >= 0) & (status <= 999), status, -1)


def _sizes(column: Any) -> Numbers:
    sizes = _numbers(column, missing=-1)
    return np.where((sizes >= 0) & (sizes < 10**MOST_DIGITS), sizes, -1)


_SIZED = f"warc_record_length BETWEEN 0 AND {10**MOST_DIGITS - 1}"
_GROUPS = f"""
SELECT content_mime_type, fetch_status, year(time) * 100 + month(time), count(*),
       coalesce(sum(warc_record_length) FILTER ({_SIZED}), 0)::HUGEINT, count(*) FILTER ({_SIZED}),
       strftime(min(time), '%Y%m%d%H%M%S'), strftime(max(time), '%Y%m%d%H%M%S')
FROM (SELECT *, make_timestamp_ms(epoch_ms(fetch_time)) AS time FROM read_parquet($file))
GROUP BY ALL
"""  # noqa: S608  # numbers of ours


def count_narrow(paths: Sequence[str]) -> Counts:
    """Return the counts of the tables *paths* that need no key; hosts, URLs and the like stay empty.

    Raises InputError for what is not a table, DamagedFileError for what cannot be read, UsageError for
    URIs.
    """
    import duckdb  # noqa: PLC0415  # an extra

    counts = Counts()
    if any(map(is_uri, paths)):
        raise UsageError("--quick reads files of this machine only. Leave it out for URIs.")
    with duckdb.connect(config={"threads": 2}) as connection:
        for file, _ in chain.from_iterable(map(files_of, paths)):
            path = file.as_path
            _check_narrow(path)
            try:
                groups = connection.execute(_GROUPS, {"file": glob.escape(str(path))}).fetchall()
            except duckdb.Error as error:
                raise DamagedFileError(path, 0, f"rows that cannot be read ({error})") from error
            for group in groups:
                _count_group(counts, group)
    return counts


def _check_narrow(file: Path) -> None:
    """Raise InputError where *file* is not a table with the narrow columns, or has no name in SQL."""
    refuse_undecodable(file)
    if not is_parquet(file):
        raise InputError(f"--quick is for index tables, and {file} is not one. Leave it out for others.")
    with opened_table(file) as table:
        missing = [name for name in NARROW_COLUMNS if name not in table.schema.names]
        if missing:
            raise InputError(
                f"{file} has no column {missing[0]}: --quick is for index tables. Leave it out for "
                "others."
            )
        _check_texts(file, table.schema)
        status = table.schema.field("fetch_status").type
        if not (pa.types.is_integer(status) or pa.types.is_null(status)):
            raise InputError(f"{file}: column fetch_status is {str(status)[:80]}, and must be a number.")
        table.check(NARROW_COLUMNS)


def _count_group(counts: Counts, group: tuple[Any, ...]) -> None:
    mime, status, month, captures, size, sized, first, last = group
    if month is None or not 101 <= month <= 999912:
        counts.skipped["a row without time" if month is None else NOT_A_DATE] += captures
        return
    known = status is not None and 0 <= status <= 999
    counts.captures += captures
    counts.bytes += size
    counts.unsized += captures - sized
    counts.first = min(counts.first or first, first)
    counts.last = max(counts.last, last)
    shown = f"{status:03d}" if known else "-"
    counts.by_mime_status.add((mime or "-", shown), captures, size)
    counts.by_month.add(f"{month:06d}", captures, size)
