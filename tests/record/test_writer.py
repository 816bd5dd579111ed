"""WarcWriter: where records lie, when files are sealed, and what others make of them."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given
from hypothesis import strategies as st
from record.exchanges import (
    CONDITIONAL_REQUEST,
    HEAD,
    NOT_MODIFIED,
    capture,
    foreign_verdicts,
    item,
    names_in,
    numbered_bytes,
    open_writer,
)

from amicrawl.disk import Disk
from amicrawl.errors import OutputError
from amicrawl.record.archive import WarcStage
from amicrawl.record.warc import URI_LIMIT, record_ids
from amicrawl.record.writer import STREAM_ABOVE, next_number
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.capture import Capture
    from amicrawl.record import CaptureItem
    from amicrawl.record.writer import WarcWriter

TOOLS = Path(sys.executable).parent


def stage_on(writer: WarcWriter) -> WarcStage:
    return WarcStage(writer, ids=record_ids(numbered_bytes(1)))


def store(directory: Path, *items: CaptureItem, max_size: int = 1_000_000) -> WarcWriter:
    writer = open_writer(directory, max_size=max_size)
    stage = stage_on(writer)
    for entry in items:
        stage.add(entry)
    stage.commit(sync=False)
    writer.seal()
    return writer


def run(*line: str) -> tuple[int, str]:
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_a_file_is_open_until_it_is_sealed(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    stage_on(writer).add(item())
    assert names_in(tmp_path) == []
    writer.commit(sync=True)
    assert names_in(tmp_path) == ["ami-00000.warc.gz.open"]
    writer.seal()
    assert names_in(tmp_path) == ["ami-00000.warc.gz"]


def test_locations_inflate_to_their_record_alone(tmp_path: Path) -> None:
    items = [item(capture(f"http://h/{number}", body=b"x" * number)) for number in range(20)]
    store(tmp_path, *items, max_size=2000)
    for entry in items:
        assert entry.location is not None
        raw = (tmp_path / entry.location.warc_file).read_bytes()
        record = gzip.decompress(raw[entry.location.offset :][: entry.location.length])
        assert record.startswith(b"WARC/1.1\r\nWARC-Type: response\r\n")
        assert f"WARC-Record-ID: {entry.record_id}\r\n".encode() in record
        assert f"WARC-Target-URI: {entry.capture.url}\r\n".encode() in record


def test_files_roll_between_exchanges_once_they_are_full(tmp_path: Path) -> None:
    items = [item(capture(f"http://h/{number}")) for number in range(30)]
    writer = store(tmp_path, *items, max_size=4000)
    names = names_in(tmp_path)
    assert names == [f"ami-{number:05d}.warc.gz" for number in range(len(names))]
    assert len(names) > 2
    for name in names[:-1]:
        assert 4000 <= (tmp_path / name).stat().st_size < 6000
    for name in names:
        with (tmp_path / name).open("rb") as file:
            types = [str(record.record_type) for record in ArchiveIterator(file, parse_http=False)]
        assert types == ["warcinfo"] + ["request", "response"] * (len(types) // 2)
        assert len(types) > 1
    assert [file.name for file in writer.sealed] == names


def test_a_sealed_file_is_described_as_it_is(tmp_path: Path) -> None:
    writer = store(tmp_path, item(), item())
    [file] = writer.sealed
    content = (tmp_path / file.name).read_bytes()
    assert file.size == len(content)
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert file.records == 5


def test_the_records_of_all_commits_are_counted(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    stage = stage_on(writer)
    for _ in range(3):
        stage.add(item())
        stage.commit(sync=False)
    writer.seal()
    [file] = writer.sealed
    assert file.records == 7
    with (tmp_path / file.name).open("rb") as stream:
        assert sum(1 for _ in ArchiveIterator(stream, parse_http=False)) == 7


def test_a_file_that_has_exactly_its_size_is_full(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    [alone] = store(tmp_path / "first", item()).sealed
    first, second = store(tmp_path / "second", item(), item(), max_size=alone.size).sealed
    assert first.size == alone.size
    assert second.name == "ami-00001.warc.gz"


def test_what_comes_after_a_file_was_sealed_goes_into_the_next(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    stage = stage_on(writer)
    for _ in range(2):
        stage.add(item())
        writer.seal()
    assert [file.name for file in writer.sealed] == ["ami-00000.warc.gz", "ami-00001.warc.gz"]
    assert names_in(tmp_path) == ["ami-00000.warc.gz", "ami-00001.warc.gz"]


def test_the_record_that_opens_a_file_has_an_id_of_its_own(tmp_path: Path) -> None:
    store(tmp_path, item())
    with (tmp_path / "ami-00000.warc.gz").open("rb") as file:
        ids = [str(record.record_id) for record in ArchiveIterator(file, parse_http=False)]
    assert len(set(ids)) == 3
    assert all(re.fullmatch("<urn:uuid:[0-9a-f-]{36}>", each) for each in ids)


class DiskWithoutRoom(Disk):
    """A disk that has no room for temporary files, and notes where they were to be."""

    requested: Path | None = None

    def temporary(self, directory: Path) -> IO[bytes]:
        self.requested = directory
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_long_body_waits_on_the_disk_of_the_crawl_and_a_full_one_is_named(tmp_path: Path) -> None:
    disk = DiskWithoutRoom()
    stage = stage_on(open_writer(tmp_path, disk=disk))
    with pytest.raises(OutputError, match=re.escape(f"{tmp_path} cannot be used for a temporary file")):
        stage.add(item(capture("http://h/long", body=LongBody(64))))
    assert disk.requested == tmp_path


def test_a_writer_that_got_nothing_leaves_nothing(tmp_path: Path) -> None:
    assert store(tmp_path).sealed == []
    assert names_in(tmp_path) == []


def test_numbers_go_on_after_those_that_were_ever_used(tmp_path: Path) -> None:
    assert next_number(tmp_path) == 0
    for name in (
        "ami-00002.warc.gz",
        "ami-00004.warc.gz.open",
        "ami-00007.warc.gz.tail",
        "x-00050.warc.gz",
    ):
        (tmp_path / name).touch()
    assert next_number(tmp_path) == 51, "whatever the prefixes are"
    assert next_number(tmp_path, taken=["y-2026-00061.warc.gz", "captures.parquet"]) == 62


def test_a_writer_never_opens_a_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "ami-00000.warc.gz.open").write_bytes(b"somebody's")
    store(tmp_path, item())
    assert (tmp_path / "ami-00000.warc.gz.open").read_bytes() == b"somebody's"
    assert names_in(tmp_path) == ["ami-00000.warc.gz.open", "ami-00001.warc.gz"]


class LongBody:
    """A body that is never whole in memory: its blocks are made as they are requested."""

    def __init__(self, blocks: int) -> None:
        self.count = blocks
        self.closed = False

    def __len__(self) -> int:
        return self.count * 65536

    def blocks(self) -> Iterator[bytes]:
        source = numbered_bytes(7)
        for _ in range(self.count):
            yield source(65536)

    def close(self) -> None:
        self.closed = True


def test_a_long_body_goes_through_a_nameless_file_and_not_through_memory(tmp_path: Path) -> None:
    body = LongBody(64)
    assert len(body) > STREAM_ABOVE
    writer = open_writer(tmp_path)
    stage = stage_on(writer)
    long, short = item(capture("http://h/long", body=body)), item(capture("http://h/short"))
    tracemalloc.start()
    for entry in (long, short):
        stage.add(entry)
    assert writer.pending_bytes > len(body)
    assert names_in(tmp_path) == []
    writer.seal()
    assert tracemalloc.get_traced_memory()[1] < len(body)
    tracemalloc.stop()
    for entry in (long, short):
        assert entry.location is not None
        raw = (tmp_path / entry.location.warc_file).read_bytes()
        record = gzip.decompress(raw[entry.location.offset :][: entry.location.length])
        assert record.endswith(b"\r\n\r\n" + HEAD + b"".join(entry.capture.body.blocks()) + b"\r\n\r\n")
    assert not body.closed


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
GZIPPED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
FORGED = b"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n"
ODD = [
    capture("http://h/plain"),
    capture("http://h/chunked", head=CHUNKED, body=b"1\r\na\r\n0\r\n\r\n"),
    capture("http://h/bad-chunks", head=CHUNKED, body=b"zz\r\nx"),
    capture("http://h/gzip-lie", head=GZIPPED, body=b"\x1f\x8bno"),
    capture("http://h/gzip-cut", head=GZIPPED, body=gzip.compress(b"x" * 999)[:-9]),
    capture("http://h/interim", head=b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD),
    capture("http://h/lf", head=b"HTTP/1.1 200 OK\nA: b\n\n"),
    capture("http://h/http09", head=b"", protocol="http/0.9", body=b"hello, no head\n\nat all"),
    capture("http://h/http09-empty-line", head=b"", protocol="http/0.9", body=b"\n"),
    capture("http://h/icy", head=b"ICY 200 OK\r\nA: b\r\n\r\n"),
    capture("http://h/lower", head=b"http/1.1 200 ok\r\nA: b\r\n\r\n"),
    capture("http://h/no-fields", head=b"HTTP/1.1 204 No Content\r\n\r\n", body=b"", status=204),
    capture("http://h/blank-first", head=b"\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\n"),
    capture("http://h/white-line", head=b"HTTP/1.1 200 OK\r\n \r\nA: b\r\n\r\n"),
    capture("http://h/nul", head=b"HTTP/1.1 200 OK\r\nA\0: \0\xff\r\n: x\r\nno colon\r\n\r\n"),
    capture("http://h/fold", head=b"HTTP/1.1 200 OK\r\nA: b\r\n\tc\r\n\r\n"),
    capture("http://h/long-head", head=b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000 + b"\r\n\r\n"),
    capture("http://h/many-fields", head=b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 3000 + b"\r\n"),
    capture("http://h/cut-head", head=b"HTTP/1.1 200 OK\r\nA: b", body=b""),
    capture("http://h/forged", body=FORGED),
    capture("http://h/\r\nWARC-Type: warcinfo\r\n\r\n\0\ud800ü"),
    capture("http://h/" + "x" * (URI_LIMIT - 9)),
    capture("http://h/no-request", request=b""),
    capture("http://h/post", request=b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
    capture("http://h/empty-request-head", request=b"\r\n"),
]  # fmt: skip


def test_three_validators_find_nothing_whatever_servers_send(tmp_path: Path) -> None:
    items = [item(made) for made in ODD]
    store(tmp_path, *items)
    path = str(tmp_path / "ami-00000.warc.gz")
    assert run("gzip", "-t", path) == (0, "")
    code, said = run(str(TOOLS / "warcio"), "check", "-v", path)
    assert (code, said.count("digest pass")) == (0, 1 + 2 * len(ODD) - 1)
    code, said = run(str(TOOLS / "fastwarc"), "check", "-p", path)
    assert (code, said.split("\n")[0]) == (0, f"{2 * len(ODD)} records were verified successfully.")


def test_a_url_too_long_for_a_record_fails_and_harms_no_other(tmp_path: Path) -> None:
    long = item(capture("http://h/" + "x" * URI_LIMIT))
    store(tmp_path, long, item())
    assert long.location is None
    assert long.capture.status == 0
    assert long.capture.failure == "unfetchable-url"
    types, _, _ = foreign_verdicts(tmp_path / "ami-00000.warc.gz")
    assert types == ["warcinfo", "request", "response"]


def test_the_longest_urls_and_a_revisit_of_them_can_be_read_by_fastwarc(tmp_path: Path) -> None:
    url = "http://h/" + "x" * (URI_LIMIT - 9)
    made = capture(url, head=NOT_MODIFIED, body=b"", status=304, request=CONDITIONAL_REQUEST)
    store(tmp_path, item(made, Seed(url, digest="0" * 40, captured_at=1)), item())
    code, said = run(str(TOOLS / "fastwarc"), "check", str(tmp_path / "ami-00000.warc.gz"))
    assert (code, said.split("\n")[0]) == (0, "5 records were verified successfully.")


def test_of_revisits_warcio_finds_nothing_and_fastwarc_only_the_payload_that_is_elsewhere(
    tmp_path: Path,
) -> None:
    """The standard demands the digest of a payload that is elsewhere; fastwarc looks for it here."""
    digest = "f572d396fae9206628714fb2ce00f72e94f2258f"
    same = item(capture(body=b"hello\n"), Seed("http://example.org/", digest=digest, captured_at=1))
    store(tmp_path, same, item())
    assert same.unchanged
    assert same.digest == digest
    types, by_warcio, by_fastwarc = foreign_verdicts(tmp_path / "ami-00000.warc.gz")
    assert types == ["warcinfo", "request", "revisit", "request", "response"]
    assert by_warcio == [True, True, None, True, True]
    assert by_fastwarc == [(True, None), (True, None), (True, False), (True, None), (True, True)]


FIELD = st.binary(max_size=12)
LINE_END = st.sampled_from(
    [b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r\r\n", b" \r\n", b"\r\n\t", b"\x0b\r\n", b"\xc2\x85\r\n"]
)


@given(
    start=st.sampled_from(
        [b"HTTP/1.1 200 OK", b"HTTP/1.1 100 C", b"HTTP/", b"ICY 200", b"http/1.0 200 x", b""]
    ),
    lines=st.lists(st.tuples(FIELD, LINE_END), max_size=6),
    end=st.sampled_from([b"\r\n\r\n", b"\n\n", b"\n\r\n", b""]),
    coding=st.sampled_from([b"", b"\r\nContent-Encoding: gzip", b"\r\nTransfer-Encoding: chunked"]),
    body=st.binary(max_size=60),
    url=st.text(max_size=30),
    request=st.binary(max_size=60),
)
def test_no_bytes_of_a_server_make_a_file_that_foreign_readers_doubt(
    start: bytes,
    lines: list[tuple[bytes, bytes]],
    end: bytes,
    coding: bytes,
    body: bytes,
    url: str,
    request: bytes,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    head = start + coding + b"".join(b"\r\n" + text + line_end for text, line_end in lines) + end
    directory = tmp_path_factory.mktemp("w")
    made: Capture = capture("http://h/" + url, head=head, body=body, request=request)
    store(directory, item(made), item())
    types, by_warcio, by_fastwarc = foreign_verdicts(directory / "ami-00000.warc.gz")
    requests = ["request"] if request else []
    assert types == ["warcinfo", *requests, "response", "request", "response"]
    assert False not in by_warcio
    assert all(False not in verdict for verdict in by_fastwarc)
    assert len(by_fastwarc) == len(types)
