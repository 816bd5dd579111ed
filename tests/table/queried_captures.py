"""The capture index that the shipped queries are tried on, as a crawl writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from amicrawl.record.table import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

NOON: Final = 1_700_000_400_000
"""2023-11-14 22:20:00 UTC, in milliseconds."""

# url, host, status, seconds after noon, type, bytes, digest, unchanged, error, meta_json, milliseconds
_ROWS: Final[list[tuple[str, str, int, int, str, int, str, bool, str, str, int]]] = [
    (
        "http://a.test/",
        "a.test",
        200,
        0,
        "text/html; charset=utf-8",
        1000,
        "d1",
        False,
        "",
        '{"source":"hand"}',
        10,
    ),
    (
        "http://a.test/same",
        "a.test",
        200,
        1,
        "Text/HTML",
        1000,
        "d1",
        False,
        "",
        '{"source":"sitemap"}',
        30,
    ),
    ("http://a.test/old", "a.test", 304, 2, "", 0, "d2", True, "", '{"source":"sitemap"}', 20),
    ("http://a.test/gone", "a.test", 404, 3, "text/html", 90, "d3", False, "", "", 20),
    (
        "http://b.test/",
        "b.test",
        200,
        61,
        "application/pdf",
        50_000,
        "d4",
        False,
        "",
        '{"depth":"1"}',
        500,
    ),
    (
        "http://b.test/slow",
        "b.test",
        0,
        62,
        "",
        0,
        "",
        False,
        "timeout: nothing came for 30 s",
        "",
        30_000,
    ),
    ("http://b.test/busy", "b.test", 503, 63, "text/plain", 4, "d5", False, "", "", 100),
    (
        "http://b.test/mended",
        "b.test",
        0,
        64,
        "",
        0,
        "",
        False,
        "timeout: nothing came for 30 s",
        "",
        30_000,
    ),
    ("http://b.test/mended", "b.test", 200, 200, "text/plain", 8, "d6", False, "", "", 100),
    (
        "http://nowhere.test/",
        "nowhere.test",
        0,
        65,
        "",
        0,
        "",
        False,
        "dns: no such name",
        '{"source":"hand"}',
        5,
    ),
]

# Of the crawl a day later: url, status, seconds, digest, unchanged, error, where it was found, and how.
_LATER: Final[list[tuple[str, int, int, str, bool, str, str, str]]] = [
    ("http://a.test/", 200, 0, "d1b", False, "", "", "seed"),
    ("http://a.test/same", 304, 1, "d1", True, "", "http://a.test/", "link"),
    ("http://a.test/new", 200, 2, "d7", False, "", "http://a.test/", "link"),
    ("http://b.test/slow", 200, 3, "d8", False, "", "http://a.test/", "requisite"),
    ("http://nowhere.test/", 0, 4, "", False, "dns: no such name", "", "seed"),
    # A style sheet that is there, and needs a font that is not; another that is refused.
    ("http://c.test/a.css", 200, 5, "d9", False, "", "http://a.test/new", "requisite"),
    ("http://c.test/f.woff", 404, 6, "d0", False, "", "http://c.test/a.css", "requisite"),
    ("http://c.test/g.woff", 404, 7, "d0", False, "", "http://c.test/a.css", "requisite"),
    ("http://c.test/no.css", 0, 8, "", False, "robots-denied: no", "http://a.test/new", "requisite"),
]


def write_captures(path: Path, *, twice: bool = False) -> Path:
    """Write the index to the file *path*, and return it; of two crawls where *twice*."""
    rows: list[dict[str, Any]] = []
    if twice:
        for url, status, after, digest, unchanged, error, via, link in _LATER:
            host = url.split("/")[2]
            known = {"url": url, "host": host, "status": status, "digest": digest, "error": error}
            found = {"via": via, "link": link, "hops": int(bool(via)), "unchanged": unchanged}
            rows.append({**known, **found, "fetched_at": NOON + (86_400 + after) * 1000})
    for number, row in enumerate(_ROWS):
        url, host, status, after, kind, size, digest, unchanged, error, meta, duration = row
        rows.append(
            {
                "url": url,
                "host": host,
                "status": status,
                "fetched_at": NOON + after * 1000,
                "content_type": kind,
                "body_length": size,
                "digest": digest,
                "unchanged": unchanged,
                "warc_file": "" if error else "ami-00000.warc.gz",
                "warc_offset": 0 if error else number * 2000,
                "warc_length": 0 if error else 1500,
                "error": error,
                "meta_json": meta,
                "duration_ms": duration,
            }
        )
    return write_rows(rows, path)


def write_rows(rows: list[dict[str, Any]], path: Path) -> Path:
    """Write *rows*, with empty values for the columns that they lack, to the file *path*; return it."""
    empty = {field.name: _empty(field) for field in CAPTURES}
    table = pa.Table.from_pylist([{**empty, **row} for row in rows], schema=CAPTURES)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def _empty(field: pa.Field[Any]) -> Any:
    if field.nullable:
        return None
    return "" if field.type == pa.string() else False if field.type == pa.bool_() else 0
