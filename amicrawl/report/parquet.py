"""Parquet into batches: the 31-column table (or one of its family), and `captures.parquet` of a crawl.

Only the columns that are counted are read, row group by row group. Keys are those of the table
(`url_surtkey`), not parts of URLs, so that figures are those of the CDX it was made from.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from amicrawl.errors import DamagedFileError, InputError
from amicrawl.report.batch import Batch
from amicrawl.report.cdx_batches import Lines
from amicrawl.report.rows import MOST_DIGITS
from amicrawl.urls.surt import surt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

pc: Any = pyarrow.compute  # its stubs know neither binary columns nor plain numbers

TABLE_COLUMN = "url_surtkey"
"""The column by which a table is known."""

CAPTURES_COLUMNS = frozenset({"url", "fetched_at", "warc_length"})
"""Columns by which a `captures.parquet` is known."""

_ROWS = 1 << 16
_HEX_DIGITS = 40
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
_NEEDED = ("url_surtkey", "fetch_time", "fetch_status", "warc_record_length")
_TABLE = (*_NEEDED, "url", "content_mime_type", "content_digest", *_FACETS)
NARROW_COLUMNS = ("fetch_time", "fetch_status", "warc_record_length", "content_mime_type")
"""Columns of a table that say most for the least reading."""
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
)
_PARTITION = re.compile(r"(crawl|subset)=([^/]+)")


def opened_table(path: Path) -> pq.ParquetFile:
    """Open *path*; InputError where it cannot be read, DamagedFileError where it is no Parquet file."""
    try:
        # Text whose values repeat comes as codes into a dictionary, which is how it lies in the file.
        names = pq.read_schema(path).names
        repeating = [name for name in (*_REPEATING, "content_type") if name in names]
        return pq.ParquetFile(path, read_dictionary=repeating)
    except pa.ArrowInvalid as error:
        raise DamagedFileError(path, 0, f"not a readable Parquet file ({error})") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}. Check path and permissions.") from error


def table_lines(path: Path) -> Iterator[Lines]:
    """Yield the captures of the table *path* in their order."""
    with opened_table(path) as table:
        names = set(table.schema_arrow.names)
        if names >= CAPTURES_COLUMNS and TABLE_COLUMN not in names:
            read: Callable[[pa.RecordBatch, dict[str, str]], Lines] = _of_captures
            columns = [name for name in _CAPTURES if name in names]
        elif names.issuperset(_NEEDED):
            read = _of_table
            columns = [name for name in _TABLE if name in names]
        else:
            raise InputError(
                f"{path} is neither an index table (columns {', '.join(_NEEDED)}) nor a "
                f"captures.parquet ({', '.join(sorted(CAPTURES_COLUMNS))}). Its columns are: "
                f"{', '.join(sorted(names)[:40])}."
            )
        partitions = dict(_PARTITION.findall(path.as_posix()))
        try:
            for rows in table.iter_batches(batch_size=_ROWS, columns=columns):
                if rows.num_rows:
                    yield read(rows, partitions)
        except (pa.ArrowException, OSError) as error:
            raise DamagedFileError(path, 0, f"rows that cannot be read ({error})") from error


def _of_table(rows: pa.RecordBatch, partitions: dict[str, str]) -> Lines:
    key = rows["url_surtkey"]
    known = pc.and_(
        pc.fill_null(pc.greater(pc.binary_length(key), 0), False),  # noqa: FBT003  # Arrow's own call
        pc.is_valid(rows["fetch_time"]),
    )
    skipped: Counter[str] = Counter()
    if not pc.all(known).as_py():
        whole = rows.num_rows
        rows = rows.filter(known)
        skipped["a row without key or time"] = whole - rows.num_rows
    columns = set(rows.schema.names)
    none = pa.nulls(rows.num_rows, pa.binary())
    facets = {
        facet: _coded(rows[name])
        for name, facet in _FACETS.items()
        if name in columns and rows[name].null_count < rows.num_rows
    }
    for name, value in partitions.items():
        facets.setdefault(name, pa.array([value.encode()] * rows.num_rows, pa.binary()))
    mime = _coded(rows["content_mime_type"]) if "content_mime_type" in columns else none
    batch = Batch(
        key=_octets(rows["url_surtkey"]),
        time=_digits(_seconds(rows["fetch_time"])),
        mime=_hyphened(mime),
        status=_status(rows["fetch_status"]),
        size=_sizes(rows["warc_record_length"]),
        url=_octets(rows["url"]) if "url" in columns else none,
        digest=_octets(rows["content_digest"]) if "content_digest" in columns else None,
        facets=facets,
    )
    return Lines(batch, skipped)


def _of_captures(rows: pa.RecordBatch, _: dict[str, str]) -> Lines:
    skipped: Counter[str] = Counter()
    stored = pc.greater(rows["warc_length"], 0)
    whole = rows.num_rows
    rows = rows.filter(stored)
    if rows.num_rows < whole:
        skipped["a fetch that failed, so that there is no record"] = whole - rows.num_rows
    columns = set(rows.schema.names)
    began = rows["fetched_at"].to_numpy(zero_copy_only=False).astype(np.int64)
    if "duration_ms" in columns:
        began = began - rows["duration_ms"].fill_null(0).to_numpy(zero_copy_only=False)
    mime = [media_type(value) for value in _listed(rows, "content_type", "")]
    revisit = _listed(rows, "unchanged", default=False)
    keys = [surt(url).encode("utf-8", "surrogateescape") for url in _listed(rows, "url", "")]
    shown = [b"warc/revisit" if same else one for one, same in zip(mime, revisit, strict=True)]
    truncated = _octets(_decoded(rows["truncated"])) if "truncated" in columns else None
    batch = Batch(
        key=pa.array(keys, pa.binary()),
        time=_digits(began // 1000),
        mime=pa.array(shown, pa.binary()),
        status=_status(rows["status"]) if "status" in columns else np.full(rows.num_rows, -1),
        size=_sizes(rows["warc_length"]),
        url=_octets(rows["url"]),
        digest=pa.array([base32_of(one) for one in _listed(rows, "digest", "")], pa.binary()),
        facets={} if truncated is None else {"truncated": truncated},
    )
    return Lines(batch, skipped)


def base32_of(digest: str) -> bytes:
    """Return a SHA-1 in hexadecimal digits the way indexes write it; anything else as it is."""
    try:
        octets = bytes.fromhex(digest) if len(digest) == _HEX_DIGITS else b""
    except ValueError:
        octets = b""
    return base64.b32encode(octets) if octets else digest.encode("utf-8", "surrogatepass")


def media_type(content_type: str) -> bytes:
    """Return the media type in a Content-Type, lower case and without parameters; a hyphen if none."""
    named = content_type.partition(";")[0].strip().lower()
    return named.encode("utf-8", "surrogatepass") or b"-"


def _listed(rows: pa.RecordBatch, name: str, default: Any) -> list[Any]:
    if name not in rows.schema.names:
        return [default] * rows.num_rows
    values: list[Any] = _decoded(rows[name]).fill_null(default).to_pylist()
    return values


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _octets(column: Any) -> Any:
    return _decoded(column).cast(pa.binary())


def _coded(column: Any) -> Any:
    """Return a column of text as binary codes."""
    if not isinstance(column, pa.DictionaryArray):
        return column.cast(pa.binary())
    return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.binary()))


def _hyphened(column: Any) -> Any:
    """Return *column* with a hyphen where there is nothing."""
    return _decoded(column).fill_null(b"-") if column.null_count else column


def _status(column: Any) -> Numbers:
    status = column.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.where((status >= 0) & (status <= 999), status, -1)


def _sizes(column: Any) -> Numbers:
    sizes = column.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.where((sizes >= 0) & (sizes < 10**MOST_DIGITS), sizes, -1)


def _seconds(column: Any) -> Numbers:
    times = column.to_numpy(zero_copy_only=False).astype("datetime64[s]")
    seconds: Numbers = times.astype(np.int64)
    return seconds


def _digits(seconds: Numbers) -> Numbers:
    """Return Unix *seconds* as numbers of fourteen digits."""
    days, of_day = np.divmod(seconds, 86_400)
    if len(days) and days.min() >= 0 and days.max() - days.min() < _ROWS:
        # A crawl lasts some hundred days: their dates are worked out once each.
        begin = int(days.min())
        dates = _date(np.arange(begin, int(days.max()) + 1))[days - begin]
    else:
        dates = _date(days)
    minutes, second = np.divmod(of_day, 60)
    hour, minute = np.divmod(minutes, 60)
    digits: Numbers = dates * 10**6 + hour * 10_000 + minute * 100 + second
    return digits


def _date(days: Numbers) -> Numbers:
    """Return days since 1970 as numbers of eight digits."""
    date = days.astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    months = month.astype(np.int64) + 1970 * 12
    day = (date - month.astype("datetime64[D]")).astype(np.int64) + 1
    digits: Numbers = months // 12 * 10_000 + (months % 12 + 1) * 100 + day
    return digits
