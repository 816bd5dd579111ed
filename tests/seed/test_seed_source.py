"""Where lists are read from, and which format they are taken to be in."""

from __future__ import annotations

import gzip
import io
import os
import socket
import threading
from typing import TYPE_CHECKING, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from amicrawl.errors import InputError, UsageError
from amicrawl.seed import Seed, SeedFault, SeedFormat, open_seed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Read = Callable[..., tuple[list[Seed], list[SeedFault]]]

URL = "http://a.example/"
LINES = b"http://a.example/\n"
JSONL = b'{"url":"http://a.example/"}\n'
SITEMAP = b'<?xml version="1.0"?>\n<urlset><url><loc>http://a.example/</loc></url></urlset>'
INDEX = b"\xef\xbb\xbf\n <!-- made by hand --><s:sitemapindex xmlns:s='x'/>"
FEED = b"<rss><channel><item><link>http://a.example/</link></item></channel></rss>"


def table(**columns: list[str]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns or {"url": [URL]}), out)
    return out.getvalue()


def no_fault(fault: SeedFault) -> None:
    raise AssertionError(fault)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("seeds", LINES, SeedFormat.LINES),
        ("seeds.txt", LINES, SeedFormat.LINES),
        ("seeds.csv.gz", LINES, SeedFormat.LINES),
        ("seeds.jsonl", JSONL, SeedFormat.JSONL),
        ("SEEDS.NDJSON", JSONL, SeedFormat.JSONL),
        ("seeds.json", JSONL, SeedFormat.JSONL),
        ("seeds", JSONL, SeedFormat.JSONL),
        ("seeds.jsonl.gz", JSONL, SeedFormat.JSONL),
        ("seeds.ndjson.zst", JSONL, SeedFormat.JSONL),
        ("seeds.parquet", table(), SeedFormat.PARQUET),
        ("seeds.pq.zst", table(), SeedFormat.PARQUET),
        ("seeds.txt", table(), SeedFormat.PARQUET),
        ("sitemap.xml", SITEMAP, SeedFormat.SITEMAP),
        ("sitemap.xml.gz", SITEMAP, SeedFormat.SITEMAP),
        ("sitemap.xml", LINES, SeedFormat.SITEMAP),
        ("sitemap", SITEMAP, SeedFormat.SITEMAP),
        ("sitemap", INDEX, SeedFormat.SITEMAP),
        ("feed.rss", FEED, SeedFormat.SITEMAP),
    ],
)
@pytest.mark.parametrize(
    "packed", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gzip", "zstd"]
)
def test_format_and_packing_are_told_by_content_and_name(
    tmp_path: Path, name: str, content: bytes, expected: SeedFormat, packed: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / name
    path.write_bytes(packed(content))
    with open_seed(str(path), on_fault=no_fault) as reader:
        assert reader.format is expected
        if content is not INDEX:
            assert [seed.url for seed in reader] == [URL]


@pytest.mark.parametrize("name", list(SeedFormat))
def test_a_format_that_is_given_is_believed(tmp_path: Path, name: str) -> None:
    content = {"lines": LINES, "jsonl": JSONL, "parquet": table(), "sitemap": SITEMAP}[name]
    for misleading in ("seeds.jsonl", "seeds.xml", "seeds.pq", "seeds"):
        (tmp_path / misleading).write_bytes(content)
        with open_seed(str(tmp_path / misleading), format=name, on_fault=no_fault) as reader:
            assert [seed.url for seed in reader] == [URL]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("jsnl", "Did you mean jsonl?"),
        ("Sitemaps", "Did you mean sitemap?"),
        ("parket", "Did you mean parquet?"),
        ("warc", "Give one of lines, jsonl, parquet, sitemap."),
        ("", "Give one of lines, jsonl, parquet, sitemap."),
    ],
)
def test_an_unknown_format_names_the_nearest_before_any_file_is_opened(name: str, advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_seed("/nowhere", format=name, on_fault=no_fault)
    assert str(caught.value) == f"There is no seed format {name!r}. {advice}"


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Seed file .*/none\.txt does not exist\. Check the path\."):
        open_seed(str(tmp_path / "none.txt"), on_fault=no_fault)


def test_a_directory_is_no_seed_file_and_a_crawl_in_it_is_pointed_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a directory\. Give a file in it\."):
        open_seed(str(tmp_path), on_fault=no_fault)
    (tmp_path / "captures.parquet").touch()
    with pytest.raises(
        InputError, match=r"is a directory\. Give .*/captures\.parquet to crawl it again\."
    ):
        open_seed(str(tmp_path), on_fault=no_fault)


def test_what_the_system_refuses_to_open_is_said_in_a_sentence(tmp_path: Path) -> None:
    link = tmp_path / "loop"
    link.symlink_to(link)
    for path in (str(link), str(tmp_path / ("x" * 300)), "a\0b"):
        with pytest.raises(InputError, match=r"Seed file .* cannot be opened: .*\. Check the path\."):
            open_seed(path, on_fault=no_fault)


def test_a_file_without_permission_is_said_to_be_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "secret.txt"
    path.write_bytes(LINES)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(InputError, match=r"may not be read\. Change its permissions"):
        open_seed(str(path), on_fault=no_fault)


class _FailingFile(io.RawIOBase):
    """A file on a disk that fails after its first block."""

    def __init__(self, *blocks: bytes) -> None:
        self._blocks = list(blocks)

    def readable(self) -> bool:
        return True

    def read(self, _size: int = -1) -> bytes:
        if not self._blocks:
            raise OSError(5, "Input/output error")
        return self._blocks.pop()


def failing_file(*blocks: bytes) -> BinaryIO:
    return cast("BinaryIO", _FailingFile(*blocks))


def test_a_disk_that_fails_halfway_is_a_fault_behind_what_was_read() -> None:
    faults: list[SeedFault] = []
    file = failing_file(b"http://a.example/\nhttp://b.exa")
    seeds = list(open_seed("-", stdin=file, on_fault=faults.append))
    assert [seed.url for seed in seeds] == [URL]
    assert [(fault.line, fault.kept) for fault in faults] == [(2, False)]
    assert "standard input cannot be read on: [Errno 5] Input/output error" in faults[0].reason


def test_a_disk_that_fails_at_once_is_an_error() -> None:
    with pytest.raises(InputError, match="cannot be read on"):
        list(open_seed("-", stdin=failing_file(), on_fault=no_fault))
    with pytest.raises(InputError, match="cannot be read on"):
        list(open_seed("-", stdin=failing_file(b"http://a"), on_fault=no_fault))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_told_from_a_list_full_of_faults(read: Read, encoding: str) -> None:
    with pytest.raises(InputError, match=r"is UTF-16 text\. Convert it to UTF-8"):
        read(("\ufeff" * (encoding == "utf-16-be") + URL).encode(encoding))


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (LINES, None),
        (gzip.compress(LINES), None),
        (SITEMAP, None),
        (zstandard.compress(SITEMAP), "sitemap"),
        (zstandard.compress(JSONL), "jsonl"),
        (table(), None),
        (gzip.compress(table()), "parquet"),
    ],
)
def test_every_format_is_read_from_a_pipe_that_drips(content: bytes, format: str | None) -> None:  # noqa: A002
    reading, writing = os.pipe()

    def drip() -> None:
        with open(writing, "wb", buffering=0) as pipe:  # noqa: PTH123 - a descriptor
            pipe.writelines(content[start : start + 7] for start in range(0, len(content), 7))

    writer = threading.Thread(target=drip)
    writer.start()
    with open(reading, "rb") as stdin:  # noqa: PTH123 - a descriptor
        seeds = list(open_seed("-", format=format, stdin=stdin, on_fault=no_fault))
        assert not stdin.closed
    writer.join()
    assert [seed.url for seed in seeds] == [URL]


def test_the_first_lines_of_a_pipe_are_seeds_before_the_last_are_written() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as stdin, open(writing, "wb", buffering=0) as pipe:  # noqa: PTH123
        pipe.write(b"http://a.example/\nhttp://b.exam")
        reader = open_seed("-", stdin=stdin, on_fault=no_fault)
        assert next(reader).url == URL
        pipe.write(b"ple/\n")
        assert next(reader).url == "http://b.example/"


def test_a_fifo_is_as_good_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "seeds.jsonl"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(JSONL,))
    writer.start()
    assert [seed.url for seed in open_seed(str(path), on_fault=no_fault)] == [URL]
    writer.join()


def test_a_list_on_the_web_is_opened_by_what_is_handed_in() -> None:
    requested: list[str] = []

    def fetch(url: str) -> io.BytesIO:
        requested.append(url)
        return io.BytesIO(gzip.compress(SITEMAP))

    reader = open_seed("https://a.example/list", fetch=fetch, on_fault=no_fault)
    assert reader.format is SeedFormat.SITEMAP
    assert [seed.url for seed in reader] == [URL]
    assert requested == ["https://a.example/list"]


def test_without_an_opener_a_list_on_the_web_is_wrong_usage() -> None:
    with pytest.raises(
        UsageError, match=r"Nothing here fetches HTTP://a\.example/x\. Download it first"
    ):
        open_seed("HTTP://a.example/x", on_fault=no_fault)


def test_an_opener_that_fails_is_an_error_in_a_sentence() -> None:
    def fetch(_url: str) -> io.BytesIO:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(InputError, match=r"http://a\.example/ cannot be fetched: .*Check the URL"):
        open_seed(URL, fetch=fetch, on_fault=no_fault)


@pytest.mark.parametrize("name", ["seeds.txt", "seeds.parquet", "seeds.xml"])
def test_a_reader_that_is_closed_has_no_more_seeds_and_no_open_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    urls = [f"http://a.example/{number}" for number in range(5000)]
    if name.endswith("txt"):
        path.write_text("\n".join(urls))
    elif name.endswith("xml"):
        path.write_text(f"<urlset>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>")
    else:
        path.write_bytes(table(url=urls))
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0  # noqa: PTH110, PTH208
    reader = open_seed(str(path), on_fault=no_fault)
    assert next(reader).url == urls[0]
    reader.close()
    assert list(reader) == []
    assert reader.read == 1
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208
