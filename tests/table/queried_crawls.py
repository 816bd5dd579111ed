"""Two crawls of one site, a day apart, as capture index and as table: what queries compare and trace."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from table.queried_captures import NOON, write_rows
from table.queried_table import EOT

if TYPE_CHECKING:
    from pathlib import Path

_HTML = "text/html; charset=utf-8"
_DAY = 86_400
_SITE = "http://s.test"
_PAGE = f"{_SITE}/"
_SHOWN = {"page": _PAGE, "resource_type": "document"}
_CRASHED = '{"source": "a", "page_fault": "its process died"}'
_TIMED_OUT = '{"page_fault": "its time was up"}'

# URL, seconds, status, type, bytes, digest, where it was found, how, and what else the row has.
_FETCHES: Final[list[tuple[str, int, int, str, int, str, str, str, dict[str, Any]]]] = [
    (_PAGE, 0, 200, _HTML, 100, "home1", "", "seed", {}),
    (f"{_SITE}/feed", 1, 200, "application/rss+xml", 50, "feed", _PAGE, "link", {}),
    (f"{_SITE}/talk.mp3", 2, 200, "audio/mpeg", 5000, "talk", f"{_SITE}/feed", "requisite", {}),
    (f"{_SITE}/old", 3, 200, _HTML, 110, "moves", _PAGE, "link", {}),
    (f"{_SITE}/named", 4, 200, _HTML, 120, "renamed", _PAGE, "link", {}),
    (f"{_SITE}/lost", 5, 200, _HTML, 130, "lost", f"{_SITE}/old", "link", {}),
    (f"{_SITE}/never", 6, 404, _HTML, 10, "never", f"{_SITE}/old", "link", {}),
    ("http://t.test/", 7, 200, _HTML, 8, "cut", f"{_SITE}/old", "link", {"truncated": "length"}),
    (f"{_SITE}/stays", 8, 200, _HTML, 140, "stays", _PAGE, "link", {"meta_json": _CRASHED}),
    (f"{_SITE}/flaky", 9, 200, _HTML, 150, "flaky", _PAGE, "link", {}),
    # A day later. Bodies of the same bytes at two places are no move.
    (_PAGE, _DAY, 200, _HTML, 101, "home2", "", "seed", _SHOWN | {"meta_json": _TIMED_OUT}),
    (f"{_SITE}/old", _DAY + 1, 301, "", 0, "none", _PAGE, "link", {"final_url": f"{_SITE}/new"}),
    (f"{_SITE}/new", _DAY + 2, 200, _HTML, 110, "moves", f"{_SITE}/old", "redirect", {}),
    (f"{_SITE}/named", _DAY + 3, 404, _HTML, 10, "gone", _PAGE, "link", {}),
    (f"{_SITE}/name", _DAY + 4, 200, _HTML, 120, "renamed", _PAGE, "link", {}),
    (f"{_SITE}/lost", _DAY + 5, 410, _HTML, 10, "gone", f"{_SITE}/old", "link", {}),
    (f"{_SITE}/stays", _DAY + 6, 304, "", 0, "stays", _PAGE, "link", {"unchanged": True}),
    (f"{_SITE}/flaky", _DAY + 7, 0, "", 0, "", _PAGE, "link", {"error": "connect-timeout: 20 s"}),
    (
        f"{_SITE}/a.js",
        _DAY + 8,
        200,
        "text/javascript",
        60,
        "script",
        _PAGE,
        "requisite",
        {"page": _PAGE, "resource_type": "script"},
    ),
    (
        "http://api.test/1",
        _DAY + 9,
        200,
        "application/json",
        20,
        "data",
        _PAGE,
        "requisite",
        {"page": _PAGE, "resource_type": "fetch"},
    ),
    (
        "http://api.test/2",
        _DAY + 10,
        500,
        "text/plain",
        5,
        "fault",
        _PAGE,
        "requisite",
        {"page": _PAGE, "resource_type": "fetch"},
    ),
]


def write_crawls(path: Path) -> Path:
    """Write the capture index of both crawls to the file *path*, and return it."""
    rows = []
    for number, (url, after, status, kind, size, digest, via, link, more) in enumerate(_FETCHES):
        rows.append(
            {
                "url": url,
                "host": url.split("/")[2],
                "status": status,
                "fetched_at": NOON + after * 1000,
                "content_type": kind,
                "body_length": size,
                "digest": digest,
                "via": via,
                "link": link,
                "final_url": url,
                "warc_offset": number * 1000,
                **more,
            }
        )
    return write_rows(rows, path)


def write_crawls_table(path: Path) -> Path:
    """Write the table of both crawls, `A` and `B`, to the file *path*, and return it."""
    rows = []
    for number, (url, after, status, kind, _size, digest, *_, more) in enumerate(_FETCHES):
        if "error" in more:
            continue
        host = url.split("/")[2]
        is_revisit = bool(more.get("unchanged"))
        rows.append(
            {
                **dict.fromkeys(EOT.names),
                "url": url,
                "url_surtkey": f"{','.join(reversed(host.split('.')))})/{url.split('/', 3)[3]}",
                "url_host_name": host,
                "fetch_time": datetime(2023, 11, 14, 22, 20) + timedelta(seconds=after),  # noqa: DTZ001  # as in tables
                "fetch_status": -1 if is_revisit else status,
                "content_digest": digest.upper(),
                "content_mime_type": "warc/revisit" if is_revisit else kind,
                "warc_filename": "x.warc.gz",
                "warc_record_offset": number * 1000,
                "warc_record_length": 500,
                "crawl": "A" if after < _DAY else "B",
                "subset": "warc",
            }
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=EOT), path)
    return path
