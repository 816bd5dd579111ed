"""What is fuzzed: readers of what strangers send, as functions that raise where a promise breaks.

Each has inputs to begin with; those that were once found to break something are in `corpus/NAME/`.
"""

from __future__ import annotations

import gzip
import io
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import brotli
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from fuzz.forked import forked
from meguri.format.frontier_files import made_up
from meguri.format.mutations import read_all, sound

from amicrawl.archive.index.lookup.query import IndexRow
from amicrawl.archive.report.line_batches import cdxj_lines
from amicrawl.archive.table.block_rows import rows_of_block
from amicrawl.archive.table.convert import converted
from amicrawl.archive.table.schema import EOT
from amicrawl.capture import Truncation
from amicrawl.errors import InputError
from amicrawl.fetch.response import ResponseReader
from amicrawl.fleet.jobs.live_settings import live_settings
from amicrawl.fleet.jobs.record import JobRecord
from amicrawl.fleet.jobs.seedqueue import seed_in
from amicrawl.fleet.logs.job_log import NotAnEntryError, parsed
from amicrawl.meguri.format.schema import Codec
from amicrawl.meguri.format.writer import WriteOptions
from amicrawl.message import ChunkReader
from amicrawl.partition.batch import links_in
from amicrawl.reading.records import records_of
from amicrawl.record import CAPTURES
from amicrawl.seed.seed import NotASeedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from meguri.format.mutations import Sound

    from amicrawl.reading.records import Broken

CORPUS = Path(__file__).parent / "corpus"
_CAP = 1 << 16


class Target(NamedTuple):
    """Something to fuzz."""

    run: Callable[[bytes], None]
    begins: Sequence[bytes]
    """Sound inputs, which changes are made to."""
    in_child: bool = False
    """Whether each case has a process of its own, and takes as much longer."""


def http(octets: bytes) -> None:
    """Read a response whole and in pieces: every byte is kept, and the pieces make no difference."""
    whole, piecewise = _read([octets]), _read(_cut(octets))
    assert whole == piecewise, (whole, piecewise)
    head, body, truncated, _ = whole
    if truncated is not Truncation.LENGTH:
        assert head + body == octets, "a byte is lost or made up"


def _read(pieces: Sequence[bytes]) -> tuple[bytes, bytes, Truncation | None, str]:
    reader = ResponseReader(
        "GET", max_header=_CAP, max_body=_CAP, spool_above=1 << 30, spool_dir=Path("/nowhere")
    )
    for piece in pieces:
        if piece:
            reader.feed(piece)
    truncated = reader.end(orderly=True)
    return reader.head, b"".join(reader.body().blocks()), truncated, reader.more().name


def _cut(octets: bytes) -> list[bytes]:
    size = 1 + len(octets) % 7
    return [octets[place : place + size] for place in range(0, len(octets), size)]


def chunks(octets: bytes) -> None:
    """Take the chunked coding off a body whole and in pieces: the payload is the same."""
    found = []
    for pieces in ([octets], _cut(octets)):
        reader = ChunkReader()
        payload = b"".join(part for piece in pieces for part in reader.feed(piece))
        assert len(payload) + reader.surplus <= len(octets), "more comes out than went in"
        found.append((payload, reader.done, reader.broken, reader.surplus))
    assert found[0] == found[1]


def warc(octets: bytes) -> None:
    """Read an archive file: records that lie in it, and sentences about the rest."""
    told: list[Broken] = []
    for record in records_of(
        io.BytesIO(octets), Path("a.warc.gz"), on_broken=told.append, block_cap=_CAP
    ):
        assert 0 <= record.offset <= len(octets)
        assert not record.seekable or record.offset + record.length <= len(octets)
        assert len(record.block) <= _CAP
        _ = record.fields, record.body
    assert all(0 <= broken.offset <= len(octets) for broken in told)


def cdxj(octets: bytes) -> None:
    """Read lines of an index: into a table in bulk and one by one alike, a summary, and rows."""
    octets += b"" if octets.endswith(b"\n") else b"\n"  # as whoever makes blocks of a file does
    cdxj_lines(octets)
    block = rows_of_block(octets, EOT)
    assert block is not None
    lines = [line for line in octets.split(b"\n") if line.strip()]
    converted(lines, EOT)
    for line in lines:
        with suppress(InputError, ValueError):
            IndexRow(line)


def redis(octets: bytes) -> None:
    """Read what Redis holds: batches of links, entries of logs, records, settings, seeds."""
    text = octets.decode("utf-8", "surrogateescape")
    words = text.split("\n")
    pairs = dict(zip(words[::2], words[1::2], strict=False))
    with suppress(InputError):
        links_in(text)
    with suppress(NotAnEntryError):
        parsed(text)
    for given in ([text], words):
        with suppress(NotASeedError):
            seed_in(given)
    JobRecord.parse(pairs, ident=words[0])
    live_settings(words[0], pairs, words, words)


@cache
def _files() -> tuple[Sound, ...]:
    """Return sound frontier files, in each codec, in one page and in several."""
    options = [
        WriteOptions(codec, schedule=True, max_page_rows=rows) for codec in Codec for rows in (0, 13)
    ]
    return tuple(sound(made_up(40, hosts=5), each) for each in options)


def meguri(octets: bytes) -> None:
    """Read a frontier file: *octets*, or one of `_files` with changes and its checksums right again.

    The first octet says which (0: *octets*). A change is an offset (3 octets, little-endian), a length
    and so many octets. Anything but rows or a FrontierFileError breaks the promise.
    """
    if octets[:1] > b"\0":
        base = _files()[octets[0] % len(_files())]
        changes, stream = [], io.BytesIO(octets[1:])
        while len(head := stream.read(4)) == 4:
            offset = int.from_bytes(head[:3], "little") % len(base.octets)
            changes.append((offset, stream.read(head[3])))
        octets = base.changed(changes)
    else:
        octets = octets[1:]
    with tempfile.NamedTemporaryFile(suffix=".meguri") as file:
        file.write(octets)
        file.flush()
        read_all(Path(file.name))


_RECORD = (
    b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\n"
    b"Content-Length: 19\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\r\n\r\n"
)
_LINE = (
    b'example,a)/ 20260101000000 {"url":"http://a.example/","mime":"text/html","status":"200",'
    b'"digest":"AAAA","length":"9","offset":"0","filename":"a.warc.gz"}\n'
)


def in_child(name: str, *begins: bytes) -> Target:
    """Return the target that has the reader *name* read in a child: no abort ends another process."""
    return Target(lambda octets: forked().run(name, octets), begins, in_child=True)


def _table(table: pa.Table) -> bytes:
    into = io.BytesIO()
    pq.write_table(table, into, row_group_size=5, store_schema=False)
    return into.getvalue()


def _row(schema: pa.Schema) -> dict[str, object]:
    known: dict[str, object] = {"string": "x", "bool": False}
    said = {
        "url": "http://a.example/", "url_surtkey": "example,a)/", "fetched_at": 1_767_225_600_000,
        "status": 200, "warc_file": "a.warc.gz", "warc_length": 9,
    }  # fmt: skip
    return {field.name: said.get(field.name, known.get(str(field.type), 0)) for field in schema}


_CAPTURES = _table(pa.Table.from_pylist([_row(CAPTURES)] * 3, schema=CAPTURES))
_LISTED = _table(pa.table({"url": ["http://a.example/"] * 4, "tags": [["a", "b"], [], None, ["c"]]}))
_GROUPED = _table(pa.table({"url": [f"http://a.example/{n}" for n in range(9)], "n": range(9)}))
_INDEXED = _table(pa.Table.from_pylist([_row(EOT.in_files)] * 3, schema=EOT.in_files))
_ROBOTS = (
    b"User-agent: *\nDisallow: /a*$\nAllow: /a/b\nCrawl-delay: 2\nSitemap: http://a.example/s.xml\n"
)
_SITEMAP = (
    b'<?xml version="1.0"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    b"<url><loc>http://a.example/</loc><lastmod>2026-01-01</lastmod></url></urlset>"
)
_ARC = (
    b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain 61\n1 0 x\n"
    b"URL IP-address Archive-date Content-type Archive-length\n\n"
    b"http://a.example/ 127.0.0.1 20260101000000 text/html 22\nHTTP/1.0 200 OK\r\n\r\nabc\n"
)
_CRAWL = (
    b'public = false\n[seeds]\nurl = "http://a.example/"\n[scope]\ninclude = ["^http://a"]\n'
    b"[politeness]\ndelay = 2\n[recrawl]\n'/news/*' = '1h'\n"
)
_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>x</title><a href=/b>b</a>"
_PACKED = gzip.compress(
    b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\n"
    b"WARC-Date: 2026-01-01T00:00:00Z\r\n"
    b"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000001>\r\n"
    b"Content-Type: application/http;msgtype=response\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
    % (len(_PAGE), _PAGE),
    mtime=0,
)
_BROTLI = brotli.compress(b"x" * 100)


TARGETS: dict[str, Target] = {
    "parquet": in_child("parquet", _CAPTURES, _LISTED, _GROUPED),
    "captures": in_child("captures", _CAPTURES),
    "capture summary": in_child("capture summary", _CAPTURES),
    "table": in_child("table", _INDEXED),
    "duckdb": in_child("duckdb", _CAPTURES),
    "seeds": in_child(
        "seeds",
        b"http://a.example/\nhttp://b.example/ x\n",
        b'{"url":"http://a.example/","a":1}\n',
        gzip.compress(b"http://a.example/\n", mtime=0),
        zstandard.compress(b"http://a.example/\n"),
        _LISTED,
        _GROUPED,
    ),
    "sitemap": in_child("sitemap", _SITEMAP, gzip.compress(_SITEMAP, mtime=0)),
    "robots": in_child("robots", _ROBOTS, _ROBOTS.replace(b"\n", b"\r")),
    "crawl file": in_child("crawl file", _CRAWL),
    "arc": in_child("arc", _ARC, gzip.compress(_ARC, mtime=0)),
    "wacz": in_child("wacz", _PACKED, _PACKED * 2),
    "reconstructed": in_child("reconstructed", _BROTLI, gzip.compress(b"x"), zstandard.compress(b"x")),
    "http": Target(
        http,
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200\n\nok",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
    ),
    "chunks": Target(chunks, (b"2\r\nok\r\n0\r\n\r\n", b"1;a=b\nx\n0\nA: b\n\nx", b"0\r\n\r\n")),
    "warc": Target(
        warc,
        (
            _RECORD,
            _RECORD * 2,
            b"filedesc://a 0.0.0.0 20260101000000 text/plain 9\n1 0 x\nURL\n",
        ),
    ),
    "cdxj": Target(cdxj, (_LINE, _LINE * 3, b"a b {}\n", _LINE + b'x 1 {"status":-1}\n')),
    "redis": Target(
        redis,
        (
            orjson.dumps({"u": "http://a.example/", "s": 1}),
            orjson.dumps({"ts": 1.5, "type": "stdout", "message": "x"}),
            b"url\nhttp://a.example/\ndelay_min\n7\nqueued_at\n1e9",
        ),
    ),
    "meguri": Target(
        meguri,
        (
            *(b"\0" + file.octets for file in _files()),
            *(bytes([number]) + b"\x30\0\0\1\xff\x80\1\0\2\0\0" for number in range(1, 9)),
        ),
    ),
}


def corpus(name: str) -> list[bytes]:
    """Return what the target *name* begins with: sound inputs, and what once broke it."""
    found = sorted((CORPUS / name).glob("*")) if (CORPUS / name).is_dir() else []
    return [*TARGETS[name].begins, *(path.read_bytes() for path in found)]
