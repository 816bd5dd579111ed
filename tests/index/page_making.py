"""Small WARC files made of pages, for tests of what is made of archives."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from warcio.archiveiterator import ArchiveIterator

if TYPE_CHECKING:
    from pathlib import Path

DATE = "2024-05-18T01:58:10Z"


def write_pages(
    path: Path,
    pages: dict[str, bytes],
    *,
    content_type: str = "text/html",
    fields: dict[str, str] | None = None,
) -> None:
    """Write a WARC file with a warcinfo, and a request and a response for each of *pages* by URL."""
    about = b"software: a test\r\nrobots: obey\r\noperator: Ami\r\nisPartOf: pages\r\n"
    parts = [record("warcinfo", 0, about, {"Content-Type": "application/warc-fields"})]
    for number, (url, page) in enumerate(pages.items()):
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n"
            f"Set-Cookie: a=1\r\nset-cookie: b=1\r\nSet-Cookie: b=2\r\n\r\n"
        )
        both = {"WARC-Target-URI": url}
        request = {**both, "WARC-Concurrent-To": f"<urn:test:{2 * number + 1}>"}
        parts += [
            record(
                "response", 2 * number + 1, head.encode() + page, {**both, **_HTTP, **(fields or {})}
            ),
            record(
                "request",
                2 * number + 2,
                b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
                {**request, **_HTTP},
            ),
        ]
    path.write_bytes(packed(*parts) if path.suffix == ".gz" else b"".join(parts))


_HTTP = {"Content-Type": "application/http"}


def record(kind: str, number: int, block: bytes, fields: dict[str, str]) -> bytes:
    """Return a WARC record."""
    head = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:test:{number}>",
        "WARC-Date": DATE,
        **fields,
        "Content-Length": str(len(block)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return b"WARC/1.1\r\n" + lines.encode() + b"\r\n" + block + b"\r\n\r\n"


def records(path: Path) -> list[tuple[dict[str, str], bytes]]:
    """Return fields and block of each record of *path*, as warcio reads them."""
    with path.open("rb") as stream:
        return [
            (dict(record.rec_headers.headers), record.raw_stream.read())
            for record in ArchiveIterator(stream, no_record_parse=True)
        ]


def documents(path: Path) -> list[dict[str, Any]]:
    """Return what a WAT file says of each record."""
    return [json.loads(block) for fields, block in records(path) if fields["WARC-Type"] == "metadata"]


def packed(*parts: bytes) -> bytes:
    """Return each of *parts* as a gzip member of its own."""
    return b"".join(gzip.compress(part, mtime=0) for part in parts)
