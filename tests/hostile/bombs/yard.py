"""The bomb yard: for every format that is read, the worst small inputs, and the commands that read it.

A bomb is a file (or several) made by code in an empty directory. A command is given its name as `{}`.
"""

from __future__ import annotations

import gzip
import json
import struct
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import zstandard
from hostile.bombs import frontier_bombs, parquet_bombs
from hostile.bombs.archive_bombs import PAGE, RECORD, record, with_dictionary, zeros
from hostile.bombs.confined import MEMORY
from isal import isal_zlib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

MIB = 1 << 20
LESS_MEMORY = 288 * MIB
"""For bombs that stand for some 200 MiB, or a few hundred thousand things, beside what is loaded."""
URL = "http://127.0.0.1:1/"


class Format(NamedTuple):
    """A format: its bombs by the names of their files, and the commands that read it."""

    bombs: dict[str, Callable[[], bytes]]
    commands: Sequence[str]
    covers: Sequence[str] = ()
    """What in the lists of the readers it stands for."""
    memory: int = MEMORY
    """Bytes that a command may have had in memory."""


def packed(block: bytes, count: int) -> bytes:
    """Return *block* *count* times, as one gzip member."""
    # What ends with a full flush refers to nothing before it, and can be repeated; a MiB is packed as
    # tightly as the whole would be.
    together = max(1, min(count, MIB // len(block)))
    body = _flushed(block * together) * (count // together) + _flushed(block * (count % together))
    check = 0
    for _ in range(count):
        check = isal_zlib.crc32(block, check)
    head, last = b"\x1f\x8b\x08\0\0\0\0\0\0\xff", b"\x03\0"
    return head + body + last + struct.pack("<II", check, len(block) * count % 2**32)


def _flushed(data: bytes) -> bytes:
    packer = isal_zlib.compressobj(3, isal_zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush(isal_zlib.Z_FULL_FLUSH)


def frame(block: bytes, count: int) -> bytes:
    """Return *block* *count* times, as one frame of zstd that does not say its size."""
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join(packer.compress(block) for _ in range(count)) + packer.flush()


def parquet(make: Callable[[Path], None]) -> Callable[[], bytes]:
    """Return what makes the bytes of the Parquet file that *make* writes."""

    def made() -> bytes:
        import tempfile  # noqa: PLC0415
        from pathlib import Path  # noqa: PLC0415

        with tempfile.TemporaryDirectory() as directory:
            make(Path(directory) / "x.parquet")
            return (Path(directory) / "x.parquet").read_bytes()

    return made


LINE = f"{URL}a\n".encode()
OBJECT = json.dumps({"url": URL, "a": 1}).encode() + b"\n"
CDXJ = b'com,example)/ 20260101000000 {"url":"http://example.com/","status":"200","length":"9"}\n'
CDX = b"com,example)/ 20260101000000 http://example.com/ text/html 200 AAAA - - 9 0 a.warc.gz\n"
NESTED = b"[" * 1_000_000


def html(markup: bytes, *fields: bytes) -> bytes:
    """Return a gzip member with a record of a page of *markup*."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + b"".join(f + b"\r\n" for f in fields)
    block = head + b"\r\n" + markup
    return gzip.compress(RECORD % (len(block), block), 6)


def arc(length: int) -> bytes:
    """Return an ARC file whose record declares *length* bytes."""
    version = b"1 0 x\nURL IP-address Archive-date Content-type Archive-length\n"
    return (
        b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain %d\n" % len(version)
        + version
        + b"\nhttp://127.0.0.1/ 127.0.0.1 20260101000000 text/html %d\n" % length
        + PAGE % b"x"
    )


ARCHIVES: dict[str, Callable[[], bytes]] = {
    "dictionary.warc.zst": partial(with_dictionary, says_size=False),
    "dictionary-of-known-size.warc.zst": partial(with_dictionary, says_size=True),
    "zeros.warc.zst": lambda: zeros(224 * MIB, says_size=False),
    "records.warc.zst": lambda: frame(record() * 100, 1000),
    "records.warc.gz": lambda: packed(record() * 100, 100),
    "zeros.warc.gz": lambda: packed(bytes(MIB), 64),
    "a-long-block.warc.gz": lambda: packed(
        RECORD % (64 * MIB, b"HTTP/1.1 200 OK\r\n\r\n") + bytes(MIB), 1
    ),
    "members.warc.gz": lambda: gzip.compress(b"") * 3000,
    "head.warc.gz": lambda: packed(b"WARC/1.1\r\n" + b"A: b\r\n" * 100_000, 10),
    "line-ends.warc.gz": lambda: packed(b"\r\n" * (MIB // 2), 64),
    "line-ends-behind.warc.gz": lambda: packed(record() + b"\r\n" * (MIB // 2), 64),
    "a-blank-line.warc.gz": lambda: (
        gzip.compress(b"WARC/1.1\r\nA: b\r\n") + gzip.compress(b"\r\r\r") * 30_000
    ),
    "length.warc": lambda: RECORD % (10**17, b"x"),
    "begins.warc": lambda: b"WARC/1.1\r\n" * 20_000,
    "length.arc": lambda: arc(10**17),
    "lines.arc": lambda: arc(3) + b"\nhttp://x/ 127.0.0.1 20260101000000 text/html 0" * 3000,
    "line.arc.gz": lambda: packed(b"http://127.0.0.1/" + b"x" * MIB, 64),
    "deep.warc.gz": lambda: html(b"<div>" * 2_000_000),
    "links.warc.gz": lambda: html(b"<a href=/>x" * 1_000_000),
    "attribute.warc.gz": lambda: html(b"<a " + b"b=c " * 3_000_000),
    "comments.warc.gz": lambda: html(b"<!--" * 3_000_000),
    "entities.warc.gz": lambda: html(b"&amp;&#x10FFFF;" * 1_000_000),
    "coded.warc.gz": lambda: html(
        packed(b"<p>x", 1) + packed(bytes(MIB), 64), b"Content-Encoding: gzip"
    ),
    "twice.warc.gz": lambda: html(
        gzip.compress(packed(bytes(MIB), 256)), b"Content-Encoding: gzip, gzip"
    ),
    "chunks.warc.gz": lambda: html(b"1\r\nx\r\n" * 300_000, b"Transfer-Encoding: chunked"),
    "fields.warc.gz": lambda: html(b"x", *[b"X-A: b"] * 50_000),
}
_COSTLY = "a-blank-line.warc.gz"
CRAWL = ("crawl {} -o out",)
SEEDS = ("seeds {}",)
"""The list is read as a crawl reads it; a crawl of every list would take minutes."""

YARD: dict[str, Format] = {
    "a whole crawl": Format(
        {
            "a-line.txt.gz": lambda: packed(b"x" * MIB, 64),
            "captures.parquet": parquet(partial(parquet_bombs.captures, length=2 * MIB, rows=3000)),
        },
        CRAWL,
    ),
    "lines": Format(
        {
            "lines.txt.gz": lambda: packed(LINE * 1000, 300),
            "a-line.txt.gz": lambda: packed(b"x" * MIB, 64),
            "a-line.txt.zst": lambda: zeros(MEMORY, says_size=False),
            "empty-lines.txt.gz": lambda: packed(b"\n" * MIB, 4),
            "escapes.txt": lambda: b"http://" + b"%41" * 300_000 + b"/\n",
            "ats.txt": lambda: b"http://" + b"a@" * 400_000 + b"/\n",
            "dots.txt": lambda: URL.encode() + b"../" * 300_000 + b"\n",
        },
        SEEDS,
        covers=("lines",),
    ),
    "gzip": Format(
        {
            "twice.gz": lambda: gzip.compress(packed(bytes(MIB), 64)),
            "members.gz": lambda: gzip.compress(b"") * 30_000,
            "bits.gz": lambda: packed(LINE, 1)[:-8] + bytes(8),
        },
        (*SEEDS, "summary {}", "inspect {}"),
        covers=("gzip",),
    ),
    "zstd": Format(
        {
            "zeros.zst": lambda: zeros(MEMORY, says_size=False),
            "skipped.zst": lambda: b"\x50\x2a\x4d\x18\0\0\0\0" * 8000,
            "window.zst": lambda: b"\x28\xb5\x2f\xfd\x00\xf8" + bytes(20),
        },
        (*SEEDS, "summary {}", "inspect {}"),
        covers=("zstd",),
    ),
    "JSON Lines": Format(
        {
            "nested.jsonl": lambda: b'{"url":"%s","a":%s' % (URL.encode(), NESTED),
            "values.jsonl.gz": lambda: packed(b'{"url":"x","a":[' + b"{}," * 2_000_000 + b"{}]}\n", 1),
            "digits.jsonl": lambda: b'{"url":"%s","a":%s}' % (URL.encode(), b"9" * MIB),
            "keys.jsonl.gz": lambda: packed(
                b"{" + b",".join(b'"%d":1' % number for number in range(400_000)) + b"}\n", 1
            ),
            "objects.jsonl.gz": lambda: packed(OBJECT * 1000, 100),
        },
        SEEDS,
        covers=("jsonl",),
    ),
    "Parquet": Format(
        {
            "repeated.parquet": parquet(partial(parquet_bombs.seeds, length=5 * MIB, rows=9000)),
            "captures.parquet": parquet(partial(parquet_bombs.captures, length=2 * MIB, rows=3000)),
            "table.parquet": parquet(partial(parquet_bombs.index_table, length=2 * MIB, rows=3000)),
        },
        (*SEEDS, "summary {}", "inspect {}", "query {} --sql SELECT+1", "summary --quick {}"),
        covers=("parquet", "captures"),
    ),
    "sitemap": Format(
        {
            "spaces.xml.gz": lambda: packed(b"<urlset>" + b" " * MIB, 64),
            "deep.xml": lambda: b"<urlset>" + b"<a>" * 300_000,
            "entities.xml": lambda: (
                b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
                b"]><urlset><url><loc>&b;</loc></url></urlset>"
            ),
            "attributes.xml": lambda: b"<urlset " + b'a="b" ' * 200_000 + b"/>",
            "urls.xml.gz": lambda: packed(
                b"<urlset>" + b"<url><loc>%s</loc></url>" % URL.encode() * 1_000_000, 1
            ),
            "text.xml": lambda: b"<urlset><url><loc>" + b"x" * (8 * MIB),
        },
        SEEDS,
        covers=("sitemap",),
    ),
    "WARC": Format(
        {name: make for name, make in ARCHIVES.items() if ".warc" in name and name != _COSTLY},
        (
            "index {} -o out",
            "wat {} -o out",
            "wet {} -o out",
            "inspect {}",
            "wacz {} -o out.wacz",
        ),
        covers=(".warc", ".warc.gz", ".warc.zst"),
        memory=LESS_MEMORY,
    ),
    # The reader of records, which all commands share, takes 9 s of a processor for it.
    "WARC, members in a head": Format({_COSTLY: ARCHIVES[_COSTLY]}, ("index {} -o out",)),
    "WARC, counted": Format(
        {
            name: ARCHIVES[name]
            for name in ("records.warc.gz", "zeros.warc.zst", "deep.warc.gz", "line-ends.warc.gz")
        },
        ("summary {}",),
        covers=("warc",),
    ),
    "all at once": Format(
        {name: ARCHIVES[name] for name in ("records.warc.gz", "deep.warc.gz", "zeros.warc.gz")},
        ("collection {} -o out",),
    ),
    "ARC": Format(
        {name: make for name, make in ARCHIVES.items() if ".arc" in name},
        ("index {} -o out", "wat {} -o out", "inspect {}"),
        covers=(".arc", ".arc.gz"),
    ),
    "CDX": Format(
        {
            "lines.cdx.gz": lambda: packed(CDX * 1000, 100),
            "a-line.cdx.gz": lambda: packed(b" CDX N b a m s k r M S V g\n" + b"x" * MIB, 128),
            "words.cdx": lambda: b"a " * MIB,
        },
        ("summary {}", "cdx query --url example.com {}", "cdx zipnum {} -o out"),
        covers=("cdx7", "cdx9", "cdx10", "cdx11"),
    ),
    "CDXJ": Format(
        {
            "lines.cdxj.gz": lambda: packed(CDXJ * 1000, 20),
            "captures-of-a-second.cdxj.gz": lambda: gzip.compress(
                b"".join(CDXJ.replace(b'"9"', b'"9","digest":"%d"' % n) for n in range(10_000))
            ),
            "names-of-a-second.cdxj.gz": lambda: gzip.compress(
                b"".join(
                    CDXJ.replace(b'"9"', b'"9","filename":"%d","mime":"%d"' % (n, n))
                    for n in range(10_000)
                )
            ),
            "a-line.cdxj.gz": lambda: packed(b'a 20260101000000 {"a":"' + b"x" * MIB, 128),
            "nested.cdxj": lambda: CDXJ[:-2] + b',"a":' + NESTED + b"\n",
            "keys.cdxj": lambda: CDXJ[:-2] + b"".join(b',"%d":1' % n for n in range(100_000)) + b"}\n",
            "digits.cdxj": lambda: CDXJ.replace(b'"9"', b"9" * 500_000),
            "times.cdxj": lambda: b"".join(CDXJ.replace(b"2026", b"%04d" % n) for n in range(10_000)),
        },
        (
            "summary {}",
            "table {} -o out",
            "merge {} {} -o out",
            "merge --by-key {} {} -o out",
            "cdx query --url example.com {}",
            "cdx zipnum {} -o out",
        ),
        covers=("cdxj",),
    ),
    "summary in JSON": Format(
        {
            "nested.json": lambda: b'{"captures":' + NESTED,
            "values.json.gz": lambda: packed(b'{"captures":[' + b"{}," * 4_000_000 + b"{}]}", 1),
        },
        ("summary {}",),
    ),
    "frontier dump": Format(
        {
            "nested.json": lambda: b'{"urls":' + NESTED,
            "values.json": lambda: b'{"urls":[' + b"[]," * 300_000 + b"[]]}",
        },
        ("frontier import {} -o out.meguri",),
    ),
    "meguri": Format(
        {
            "zeros.meguri": lambda: bytes(MIB),
            "magic.meguri": lambda: b"MEGURI" * 100_000,
            **frontier_bombs.BOMBS,
        },
        (
            "frontier inspect {}",
            "frontier verify {}",
            "frontier stats {}",
            "frontier ls {}",
            "frontier schedule {}",
            "frontier show {} http://127.0.0.1/",
            "frontier explain {} http://127.0.0.1/",
            "frontier compact {} -o out.meguri",
            "frontier diff {} {}",
        ),
        memory=LESS_MEMORY,
    ),
    "manifest": Format(frontier_bombs.MANIFESTS, ("frontier map {}",), memory=LESS_MEMORY),
    # It writes a line for each row, however they are packed: one file of so many does.
    "meguri, exported": Format(
        {
            name: make
            for name, make in frontier_bombs.BOMBS.items()
            if name not in {"ascending.meguri", "runs.meguri", "hosts.meguri"}
        },
        ("frontier export {}",),
        memory=LESS_MEMORY,
    ),
    "crawl file": Format(
        {
            "deep.toml": lambda: b"a = " + b"[" * 100_000,
            "tables.toml": lambda: b"[" + b"a." * 50_000 + b"a]\n",
            "dots.toml": lambda: b"a." * 20_000 + b"a = 1\n",
            "keys.toml": lambda: b"".join(b"a%d = 1\n" % number for number in range(100_000)),
            "digits.toml": lambda: b"[politeness]\ndelay = " + b"9" * 100_000 + b"\n",
            "patterns.toml": lambda: b"[scope]\ninclude = ['" + b"(a+)+" * 20_000 + b"$']\n",
        },
        ("check {}", "crawl {}"),
    ),
}
"""All formats that commands read out of a file of their own."""


def _zipnum(
    directory: Path,
    *,
    line: Callable[[bytes], bytes],
    block: Callable[[], bytes] = lambda: b"x",
) -> None:
    index = directory / "index"
    index.mkdir()
    packed_lines = block()
    (index / "cdx-00000.gz").write_bytes(packed_lines)
    (index / "a.idx").write_bytes(line(packed_lines))
    (index / "a.loc").write_text(f"cdx-00000.gz\t{index / 'cdx-00000.gz'}\n")


def _archives(directory: Path, bombs: dict[str, Callable[[], bytes]]) -> None:
    for name, content in bombs.items():
        (directory / name).write_bytes(content())


def _crawl(directory: Path, name: str, content: Callable[[], bytes]) -> None:
    crawl = directory / "ami"
    (crawl / "frontier").mkdir(parents=True)
    parquet_bombs.captures(crawl / "captures.parquet", length=1, rows=1)
    (crawl / "crawl.json").write_text("{}")
    (crawl / name).write_bytes(content())


def _frontier(directory: Path, content: Callable[[], bytes]) -> None:
    frontier = directory / "frontier"
    frontier.mkdir()
    (frontier / "snap-1.meguri").write_bytes(content())


FRONTIER = ("frontier pack frontier -o out.meguri", "frontier map frontier")
"""The commands that read frontier files in directories only."""
ZIPNUM = ("cdx query --url example.com index", "summary index")
CRAWLED = (
    "inspect ami",
    "repair ami",
    "explain http://127.0.0.1/ --dir ami",
    "upload ami --to {bucket}",
)
ZIPNUM_LINE = b"com,example)/ 20260101000000\tcdx-00000\t0\t%d\t1\n"
LISTED = b'{"format":1,"version":"%s","bucket":"","files":[' % (b"0" * 32)
FILE = b'{"name":"frontier/super","part":"part-000","key":"","size":%s,"sha256":"%s"}'
LISTS: dict[str, Callable[[], bytes]] = {
    "values": lambda: LISTED + b"{}," * 4_000_000 + b"{}]}",
    "files": lambda: LISTED + b",".join([FILE % (b"1", b"0" * 64)] * 50_000) + b"]}",
    "nesting": lambda: LISTED + NESTED,
    "a size of digits": lambda: LISTED + FILE % (b"9" * 500_000, b"0" * 64) + b"]}",
    "a lying size": lambda: LISTED + FILE % (b"1", b"0" * 64) + b"]}",
    "spaces": lambda: LISTED + b" " * (80 * MIB),
    "a name": lambda: LISTED + b'{"name":"' + b"x" * (8 * MIB) + b'"}]}',
}
"""Lists of the files of a crawl."""


def _values() -> bytes:
    return b'{"files":[' + b"{}," * 5_000_000 + b"{}]}"


def _bucket(directory: Path, content: Callable[[], bytes]) -> None:
    bucket = directory / "bucket"
    bucket.mkdir(parents=True)
    for name in ("checkpoint.json", "uploaded.json"):
        (bucket / name).write_bytes(content())
    (bucket / "part-000").write_bytes(packed(bytes(MIB), 64))


BUCKET = ("bucket",)
"""What lies there is taken as by who takes over a crawl; a pipeline around it would take minutes."""


def directories() -> Iterator[tuple[str, Callable[[Path], None], Sequence[str]]]:
    """Yield the bombs that are directories: ZipNum clusters, frontiers, and what a crawl has left.

    Each is made when it is called: every worker lists which there are.
    """
    yield (
        "zipnum: a block of gigabytes",
        partial(
            _zipnum,
            line=lambda block: ZIPNUM_LINE % len(block),
            block=lambda: packed(CDXJ * 1000, 2000),
        ),
        ZIPNUM,
    )
    yield "zipnum: a lying length", partial(_zipnum, line=lambda _: ZIPNUM_LINE % 10**15), ZIPNUM
    yield "zipnum: a line without end", partial(_zipnum, line=lambda _: b"x" * (9 * MIB)), ZIPNUM
    for name, content in YARD["meguri"].bombs.items():
        yield f"a frontier: {name}", partial(_frontier, content=content), FRONTIER
    for name in ("crawl.json", "uploaded.json", "frontier/robots.json"):
        yield f"{name} of values", partial(_crawl, name=name, content=_values), CRAWLED
        yield f"{name} that is nested", partial(_crawl, name=name, content=lambda: NESTED), CRAWLED
    for what, content in LISTS.items():
        yield f"bucket: lists of {what}", partial(_bucket, content=content), BUCKET
    # A third of a second goes into the signatures of PRONOM each time.
    for number in range(3):
        bombs = dict([each for each in ARCHIVES.items() if each[0] != _COSTLY][number::3])
        yield (
            f"sidecar of archives {number}",
            partial(_archives, bombs=bombs),
            ("sidecar . -o out -j 1",),
        )
    yield (
        "a journal of rows",
        partial(_crawl, name="captures-00000.open", content=lambda: (b'{"url":"' + b"x" * MIB) * 8),
        CRAWLED,
    )
    yield (
        "a WARC file that was not sealed",
        partial(_crawl, name="ami-00000.warc.gz.open", content=lambda: packed(record() * 100, 300)),
        CRAWLED,
    )
    yield (
        "a block that was not sealed",
        partial(_crawl, name="ami-00000.warc.gz.open", content=lambda: packed(bytes(MIB), 100)),
        CRAWLED,
    )


COVERED_COMMANDS = frozenset(
    command.split(" ")[0] for format_ in YARD.values() for command in format_.commands
) | {command.split(" ")[0] for _, _, commands in directories() for command in commands}
"""The commands that the yard runs."""

NOT_OF_FILES = {
    "dashboard": "reads Redis: tests/dashboard/test_hostile_redis.py",
    "job": "reads Redis: test_redis_values_cost_commands_little",
    "jobs": "the same",
    "pipeline": "reads Redis and buckets: test_redis_values_cost_commands_little, tests/jobs",
    "recrawl": "reads what `crawl` does, in a directory of a crawl",
    "report": "reads what `inspect` does, in a directory of a crawl: tests/report/test_crawl_report.py",
    "replay": "indexes as `index` does",
    "share": "reads Redis and buckets: tests/jobs/test_share_shipping.py",
    "watch": "reads what `report` does, and lines of its own: tests/dashboard/test_watch.py",
    "url": "reads its arguments: tests/urls/test_hostile_urls.py",
}
"""Commands that read no file of a foreign format, and where what they read is tried."""
