"""Archive files made for tests: records as text, packed in the ways that archives are packed."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from amicrawl.archive.index.collection.products import FileJob, LineMaker, ProductOptions
from amicrawl.archive.index.derivatives.file import LeftOutError
from amicrawl.archive.lines.cdxj import CdxjLine, Layout, cdx_line
from amicrawl.reading.records import Broken, paired

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amicrawl.archive.lines.record_lines import IndexOptions
    from amicrawl.reading.records import Record

DIGEST = "sha1:G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK"
URL = "http://www.example.org/"


def warc(
    kind: str, uri: str | None = URL, block: bytes = b"", *, version: str = "1.0", **fields: str
) -> bytes:
    """Return a WARC record; of *fields*, names have `_` for `-`, and empty values are left out."""
    number = zlib.crc32(repr(fields).encode())
    head = {
        "WARC-Type": kind,
        "WARC-Target-URI": uri or "",
        "WARC-Date": "2024-04-24T10:00:00Z",
        "WARC-Record-ID": f"<urn:uuid:{zlib.crc32(block):08x}-0000-4000-8000-{number:012x}>",
        "Content-Type": f"application/http; msgtype={'request' if kind == 'request' else 'response'}",
        "Content-Length": str(len(block)),
    }
    head |= {name.replace("_", "-"): value for name, value in fields.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items() if value)
    return f"WARC/{version}\r\n{lines}\r\n".encode() + block + b"\r\n\r\n"


def http(body: bytes = b"hello", *, first: str = "HTTP/1.1 200 OK", **fields: str) -> bytes:
    """Return an HTTP message; of *fields*, names have `_` for `-`."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"{first}\r\n{lines}\r\n".encode() + body


def arc(url: str, block: bytes, *, kind: str = "text/html", date: str = "20080430204825") -> bytes:
    """Return an ARC record of version 1."""
    return f"{url} 192.0.2.1 {date} {kind} {len(block)}\n".encode() + block + b"\n"


ARC_HEADER = arc(
    "filedesc://test.arc",
    b"1 0 Tests\nURL IP-address Archive-date Content-type Archive-length\n",
    kind="text/plain",
)


def packed(records: Iterable[bytes]) -> bytes:
    """Return *records* with a gzip member for each."""
    return b"".join(map(gzip_member, records))


def gzip_member(data: bytes) -> bytes:
    """Return *data* as one gzip member."""
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


def exchange(
    url: str, *, method: str = "GET", kind: str = "", body: bytes = b"", number: int = 1
) -> list[bytes]:
    """Return response and request of an exchange, side by side, the request naming the response."""
    response_id = f"<urn:uuid:00000000-0000-4000-8000-{number:012d}>"
    sent = {"Content_Type": kind, "Content_Length": str(len(body))} if body or kind else {}
    path = "/" + url.split("/", 3)[3]
    return [
        warc(
            "response",
            url,
            http(Content_Type="text/html; charset=utf-8"),
            WARC_Record_ID=response_id,
            WARC_Payload_Digest=DIGEST,
        ),
        warc(
            "request",
            url,
            http(body, first=f"{method} {path} HTTP/1.1", Host="example.org", **sent),
            WARC_Concurrent_To=response_id,
        ),
    ]


def unexpected(broken: Broken) -> NoReturn:
    """Take *broken* for a failure of the test."""
    pytest.fail(str(broken))


def index_lines(
    records: Iterable[Record],
    filename: str,
    *,
    options: IndexOptions,
    layout: Layout = Layout.CDXJ,
    on_broken: Callable[[Broken], None],
) -> Iterator[bytes]:
    """Yield the index lines of *records*, as they come."""
    how = ProductOptions(options, layout)
    maker = LineMaker(FileJob(Path(filename), filename, Path(), ("cdxj",), filename, how))
    pairs = paired(records) if options.needs_pairs else ((record, None) for record in records)
    for record, partner in pairs:
        try:
            line = maker.line_of(record, partner)
        except LeftOutError as error:
            on_broken(Broken(record.path, record.offset, str(error)))
        else:
            if line is not None:
                yield cdx_line(line, layout) if layout.columns else line.encoded()


def parse_cdxj(line: bytes) -> CdxjLine:
    """Return what *line*, one of ours, says; values that are not strings as JSON."""
    key, timestamp, text = line.split(b" ", 2)
    fields = json.loads(text).items()
    said = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields}
    return CdxjLine(key.decode("utf-8", "surrogateescape"), timestamp.decode(), said)
