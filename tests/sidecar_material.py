"""Records, files and pages for the tests of the sidecar."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING

from amicrawl.reading.records import records_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from amicrawl.reading.records import Record

ENGLISH = (
    "The engineers who built the dam wrote pamphlets about their work, and the office has kept most of "
    "them. Visitors can read them in the small library on the ground floor, which is open on weekdays. "
)
RUSSIAN = (
    "Музей открыт каждый день, кроме понедельника, и посетители могут приносить с собой обед. Летом в "
    "залах верхнего этажа тепло, поэтому большинство людей начинает прогулку в подвале. "
)
HTML_4_0 = '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.0 Transitional//EN">'


def html(text: str, *, title: str = "Pamphlets", doctype: str = "<!DOCTYPE html>") -> str:
    """Return a page that says *text*."""
    return f"{doctype}\n<html><head><title>{title}</title></head><body><p>{text}</p></body></html>"


def http(
    payload: bytes, *, status: int = 200, fields: Sequence[str] = ("Content-Type: text/html",)
) -> bytes:
    """Return the block of a response."""
    lines = "\r\n".join((f"HTTP/1.1 {status} X", *fields, f"Content-Length: {len(payload)}"))
    return lines.encode() + b"\r\n\r\n" + payload


def warc(
    block: bytes,
    *,
    number: int = 1,
    kind: str = "response",
    uri: str = "http://example.org/",
    date: str = "2012-10-26T21:59:42Z",
    content_type: str = "application/http; msgtype=response",
    fields: Sequence[str] = (),
) -> bytes:
    """Return a record, not packed."""
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: {record_id(number)}",
        f"WARC-Date: {date}",
        f"WARC-Target-URI: {uri}",
        *fields,
        f"Content-Type: {content_type}",
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def record_id(number: int) -> str:
    """Return an id."""
    return f"<urn:uuid:00000000-0000-4000-8000-{number:012x}>"


def arc(payload: bytes, *, uri: str = "http://example.org/", date: str = "20080430204825") -> bytes:
    """Return an ARC file with one response."""
    version = b"1 0 test\nURL IP-address Archive-date Content-type Archive-length\n\n"
    block = http(payload)
    return (
        b"filedesc://x.arc 0.0.0.0 20080430204825 text/plain %d\n" % len(version)
        + version
        + f"{uri} 127.0.0.1 {date} text/html {len(block)}\n".encode()
        + block
        + b"\n"
    )


def write_packed(path: Path, records: Sequence[bytes]) -> Path:
    """Write *records* to *path*, each a gzip member."""
    path.write_bytes(b"".join(gzip.compress(record, mtime=0) for record in records))
    return path


def read_back(data: bytes, path: Path) -> list[Record]:
    """Return the records of *data*, which must be sound."""
    broken: list[object] = []
    records = list(records_of(io.BytesIO(data), path, on_broken=broken.append))
    assert not broken
    return records


def heads(data: bytes) -> list[list[tuple[str, str]]]:
    """Return the header fields of each record of the packed file *data*, in order."""
    found = []
    rest = gzip.decompress(data)
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        pairs = [line.partition(": ") for line in head.decode().split("\r\n")[1:]]
        fields = [(name, value) for name, _, value in pairs]
        found.append(fields)
        rest = rest[int(dict(fields)["Content-Length"]) + 4 :]
    return found
