"""WACZ packages: what is in them, every pointer followed, nothing that looks whole and is not."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import typer
from faulty_disks import QuickDisk
from hypothesis import given
from hypothesis import strategies as st
from loopback import DATA
from record.exchanges import capture, item, open_archive
from typer.testing import CliRunner
from warcio.archiveiterator import ArchiveIterator

from amicrawl.archive.index.lookup.source import open_sources
from amicrawl.archive.index.wacz.package import (
    WACZ_SUFFIXES,
    Description,
    Packed,
    ZipPackage,
    write_wacz,
)
from amicrawl.archive.index.wacz.pages import LONGEST_TITLE, pages_in_table, title_of
from amicrawl.archive.index.zipnum.cluster import BLOCK_LINES
from amicrawl.capture import BytesBody, Truncation
from amicrawl.cli.wacz import wacz
from amicrawl.config import Dedup
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, DamagedFileError, InputError, OutputError, UsageError
from amicrawl.record import Resource
from amicrawl.record.warc import Record, RecordType, gzip_member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from amicrawl.reading.records import Broken

CORPUS = DATA / "corpora" / "warc"
DAY = datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC)
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n"
PACKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"

app = typer.Typer()
app.command()(wacz)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of several files: five pages, a text and a missing page."""
    directory = tmp_path_factory.mktemp("crawled")
    archive = open_archive(directory)
    made = [
        capture(f"http://example.org/{n}", body=f"<title>Page {n}</title>".encode()) for n in range(4)
    ]
    made.append(
        capture("http://example.org/packed", head=PACKED, body=gzip.compress(b"<title>Packed</title>"))
    )
    made.append(capture("http://example.org/text", head=PLAIN, body=b"<title>No page</title>"))
    made.append(
        capture("http://example.org/missing", head=MISSING, status=404, body=b"<title>404</title>")
    )
    archive.store([item(each) for each in made])
    archive.seal()
    archive.close()
    return directory


def warcs_of(directory: Path) -> list[Path]:
    found = sorted(directory.glob("*.warc.gz"))
    assert len(found) > 1
    return found


def pack(warcs: list[Path], path: Path, **changes: Any) -> Packed:
    given: dict[str, Any] = {"description": Description(DAY, "A title"), "disk": QuickDisk()}
    return write_wacz(warcs, path, **(given | changes))


@pytest.fixture(scope="module")
def package(crawled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "a.wacz"
    packed = pack(warcs_of(crawled), path)
    assert (packed.lines, packed.pages, packed.broken) == (7, 5, 0)
    assert packed.warcs == len(warcs_of(crawled))
    return path


def read_lines(package: Path, name: str) -> list[Any]:
    with zipfile.ZipFile(package) as opened:
        return [json.loads(line) for line in opened.read(name).splitlines()]


def test_the_files_are_those_of_the_standard(package: Path, crawled: Path) -> None:
    with zipfile.ZipFile(package) as opened:
        assert opened.testzip() is None
        assert opened.namelist() == [
            *(f"archive/{path.name}" for path in warcs_of(crawled)),
            "indexes/index.cdx.gz",
            "indexes/index.idx",
            "pages/pages.jsonl",
            "datapackage.json",
            "datapackage-digest.json",
        ]
        for path in warcs_of(crawled):
            assert opened.read(f"archive/{path.name}") == path.read_bytes()


def test_what_is_packed_already_is_stored_so_that_parts_can_be_fetched(package: Path) -> None:
    with zipfile.ZipFile(package) as opened:
        for info in opened.infolist():
            stored = info.filename.endswith(".gz")
            assert (info.compress_type == zipfile.ZIP_STORED) == stored, info.filename
            # Sizes are in the headers: no reader has to look for a data descriptor.
            assert not info.flag_bits & 0x08
            assert info.date_time == (2026, 1, 2, 3, 4, 6)


def test_sizes_and_digests_are_true_up_to_the_digest_of_the_manifest(package: Path) -> None:
    with zipfile.ZipFile(package) as opened:
        written = opened.read("datapackage.json")
        manifest = json.loads(written)
        digest = json.loads(opened.read("datapackage-digest.json"))
        listed = {resource["path"]: resource for resource in manifest["resources"]}
        assert set(listed) == set(opened.namelist()) - {"datapackage.json", "datapackage-digest.json"}
        for path, resource in listed.items():
            body = opened.read(path)
            assert resource["bytes"] == len(body)
            assert resource["hash"] == "sha256:" + hashlib.sha256(body).hexdigest()
    assert digest == {
        "path": "datapackage.json",
        "hash": "sha256:" + hashlib.sha256(written).hexdigest(),
    }
    assert {name: manifest[name] for name in ("profile", "wacz_version", "title", "created")} == {
        "profile": "data-package",
        "wacz_version": "1.1.1",
        "title": "A title",
        "created": "2026-01-02T03:04:06Z",
    }
    names = [resource["name"] for resource in manifest["resources"]]
    assert len(set(names)) == len(names)


def test_every_pointer_of_the_index_leads_to_its_capture(package: Path) -> None:
    """As a reader of a remote package does: one range of the ZIP file a record."""
    with zipfile.ZipFile(package) as opened:
        text = gzip.decompress(opened.read("indexes/index.cdx.gz"))
        lines = text.splitlines()
        assert lines == sorted(lines)
        assert len(lines) == 7
        raw = package.read_bytes()
        for line in lines:
            fields = json.loads(line.split(b" ", 2)[2])
            info = opened.getinfo(f"archive/{fields['filename']}")
            begin = info.header_offset + 30 + len(info.filename) + len(info.extra)
            begin += int(fields["offset"])
            member = raw[begin : begin + int(fields["length"])]
            (record,) = ArchiveIterator(io.BytesIO(member))
            assert record.rec_headers.get_header("WARC-Target-URI") == fields["url"]


def test_the_index_of_the_index_finds_a_line(package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(package) as opened:
        opened.extractall(tmp_path)
    (source,) = open_sources([tmp_path / "indexes" / "index.idx"])
    (line,) = source.lines(b"org,example)/packed ", b"org,example)/packed!")
    assert b'"http://example.org/packed"' in line


def test_an_index_of_several_blocks_is_in_order(tmp_path: Path) -> None:
    source = tmp_path / "x.warc.gz"
    body = BytesBody(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    http = "Content-Type: application/http; msgtype=response\r\n"
    source.write_bytes(
        b"".join(
            gzip_member(
                Record(
                    RecordType.RESPONSE,
                    f"<urn:uuid:{number}>",
                    "2026-01-01T00:00:00Z",
                    f"WARC-Target-URI: http://example.org/{number:04}\r\n{http}",
                    b"",
                    body,
                )
            )
            for number in range(BLOCK_LINES + 10)
        )
    )
    pack([source], tmp_path / "a.wacz")
    with zipfile.ZipFile(tmp_path / "a.wacz") as opened:
        lines = gzip.decompress(opened.read("indexes/index.cdx.gz")).splitlines()
    assert len(lines) == BLOCK_LINES + 10
    assert lines == sorted(lines)


def test_pages_are_listed_with_date_and_title(package: Path) -> None:
    head, *listed = read_lines(package, "pages/pages.jsonl")
    assert head == {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
    assert [(page["url"], page["title"]) for page in listed] == [
        *((f"http://example.org/{n}", f"Page {n}") for n in range(4)),
        ("http://example.org/packed", "Packed"),
    ]
    assert {page["ts"] for page in listed} == {"2026-01-01T12:00:00.123Z"}
    assert len({page["id"] for page in listed}) == 5


def page_record(number: int, *, record_id: str = "") -> bytes:
    """Return a page as a member, one of several captures of a URL within a second."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>%d</title>" % number
    head = "WARC-Target-URI: http://example.org/\r\nContent-Type: application/http\r\n"
    return gzip_member(
        Record(
            RecordType.RESPONSE,
            record_id or f"<urn:uuid:{number}>",
            "2026-01-01T00:00:00Z",
            head,
            block,
        )
    )


def ids_by_title(warcs: list[Path], path: Path) -> dict[str, list[str]]:
    pack(warcs, path)
    found: dict[str, list[str]] = {}
    for page in read_lines(path, "pages/pages.jsonl")[1:]:
        found.setdefault(page["title"], []).append(page["id"])
    return found


def test_captures_of_one_second_have_ids_that_no_other_file_changes(tmp_path: Path) -> None:
    one, other = tmp_path / "one.warc.gz", tmp_path / "other.warc.gz"
    one.write_bytes(page_record(1) + page_record(2))
    other.write_bytes(page_record(3))
    both = ids_by_title([one, other], tmp_path / "both.wacz")
    assert len({*both["1"], *both["2"], *both["3"]}) == 3
    assert ids_by_title([other, one], tmp_path / "turned.wacz") == both
    assert ids_by_title([other], tmp_path / "alone.wacz") == {"3": both["3"]}


def test_pages_have_ids_of_their_own_where_records_have_not(tmp_path: Path) -> None:
    """As those of a file that is packed twice, or of a tool that gives all records one."""
    one, copy = tmp_path / "one.warc.gz", tmp_path / "copy.warc.gz"
    one.write_bytes(page_record(1) + page_record(2, record_id="<urn:uuid:1>") + page_record(3))
    copy.write_bytes(one.read_bytes())
    found = ids_by_title([one, copy], tmp_path / "a.wacz")
    assert len({name for names in found.values() for name in names}) == 6


def test_pages_of_a_browser_are_listed_with_what_a_reader_saw(tmp_path: Path) -> None:
    """All of them have one document, which scripts fill: revisits, but for the first."""
    directory = tmp_path / "crawl"
    directory.mkdir()
    archive = open_archive(directory, dedup=Dedup.CRAWL)
    for name in ("a", "b"):
        url = f"http://example.org/{name}"
        page = item(capture(url, body=b"<title>Shell</title>"))
        page.resources = [
            Resource("urn:pageinfo:", "application/json", b"{}"),
            Resource(
                "urn:text:", "text/plain; charset=utf-8", f"Page {name}\n\nTëxt {name}\n\nx".encode()
            ),
            Resource("urn:screenshot:", "image/jpeg", b"picture"),
        ]
        archive.store([page])
    archive.store([item(capture("http://example.org/plain", body=b"<title>Plain</title>"))])
    archive.seal()
    archive.close()
    pack(sorted(directory.glob("*.warc.gz")), tmp_path / "a.wacz")
    head, *listed = read_lines(tmp_path / "a.wacz", "pages/pages.jsonl")
    assert head["hasText"]
    assert [(page["title"], page.get("text"), page.get("screenshot")) for page in listed] == [
        ("Page a", "Tëxt a\n\nx", "urn:screenshot:http://example.org/a"),
        ("Page b", "Tëxt b\n\nx", "urn:screenshot:http://example.org/b"),
        ("Plain", None, None),
    ]


def test_the_same_files_and_date_give_the_same_bytes(
    package: Path, crawled: Path, tmp_path: Path
) -> None:
    pack(warcs_of(crawled), tmp_path / "again.wacz")
    assert (tmp_path / "again.wacz").read_bytes() == package.read_bytes()


def test_a_table_of_captures_says_which_pages_are_whole(crawled: Path, tmp_path: Path) -> None:
    table = crawled / "captures.parquet"
    packed = pack(warcs_of(crawled), tmp_path / "a.wacz", is_page=pages_in_table(table))
    assert packed.pages == 5
    empty = tmp_path / "other"
    empty.mkdir()
    archive = open_archive(empty)
    archive.seal()
    archive.close()
    other = pack(
        warcs_of(crawled), tmp_path / "b.wacz", is_page=pages_in_table(empty / "captures.parquet")
    )
    assert other.pages == 0
    with pytest.raises(InputError, match="capture index"):
        pages_in_table(warcs_of(crawled)[0])


@pytest.mark.parametrize("date", ["2026-13-45T99:99:99Z", "0000-00-00T00:00:00Z", "20261345999999", "x"])
def test_a_page_of_no_day_of_the_calendar_is_not_listed(date: str, tmp_path: Path) -> None:
    """A replay tool would order its pages by a time that is none."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>A page</title>"
    head = (
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\n"
        f"WARC-Date: {date}\r\nContent-Type: application/http\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    (tmp_path / "a.warc.gz").write_bytes(gzip.compress(head.encode() + block + b"\r\n\r\n"))
    assert pack([tmp_path / "a.warc.gz"], tmp_path / "a.wacz").pages == 0


def test_a_table_says_nothing_of_the_files_of_another_crawl_that_have_its_names(tmp_path: Path) -> None:
    crawls: dict[object, Path] = {}
    for name in "123456789abcdef":
        crawl = tmp_path / name
        crawl.mkdir()
        archive = open_archive(crawl, random=bytes.fromhex(name * 2).__mul__)
        archive.store([item(capture(f"http://a.example/{name}", body=b"<title>A page</title>"))])
        archive.seal()
        archive.close()
        (row,) = pq.read_table(crawl / "captures.parquet").to_pylist()
        # How long the records before are packed depends on their IDs; soon two are alike.
        other = crawls.setdefault((row["warc_file"], row["warc_offset"]), crawl)
        if other != crawl:
            break
    else:
        pytest.fail("no records lie at the same places: this says nothing")
    warcs = [next(each.glob("*.warc.gz")) for each in (other, crawl)]
    path = tmp_path / "a.wacz"
    pack(warcs, path, is_page=pages_in_table(other / "captures.parquet"))
    pages = read_lines(path, "pages/pages.jsonl")[1:]
    assert [page["url"] for page in pages] == [f"http://a.example/{other.name}"]


def test_the_main_page_is_named_with_its_date_and_has_to_be_one(crawled: Path, tmp_path: Path) -> None:
    description = Description(DAY, main_page="http://example.org/2")
    pack(warcs_of(crawled), tmp_path / "a.wacz", description=description)
    with zipfile.ZipFile(tmp_path / "a.wacz") as opened:
        manifest = json.loads(opened.read("datapackage.json"))
    assert manifest["mainPageUrl"] == "http://example.org/2"
    assert manifest["mainPageDate"] == "2026-01-01T12:00:00.123Z"
    with pytest.raises(UsageError, match="none of the 5 pages"):
        pack(
            warcs_of(crawled),
            tmp_path / "b.wacz",
            description=Description(DAY, main_page="http://example.org/text"),
        )
    assert not (tmp_path / "b.wacz").exists()


def test_a_damaged_file_is_packed_as_it_is_and_told(crawled: Path, tmp_path: Path) -> None:
    whole = warcs_of(crawled)[0]
    cut = tmp_path / whole.name
    cut.write_bytes(whole.read_bytes()[:-20])
    told: list[Broken] = []
    packed = pack([cut], tmp_path / "a.wacz", on_broken=told.append)
    assert packed.broken == len(told) > 0
    assert told[0].path == cut
    with zipfile.ZipFile(tmp_path / "a.wacz") as opened:
        assert opened.read(f"archive/{cut.name}") == cut.read_bytes()


def test_a_record_that_no_pointer_can_reach_is_in_neither_index_nor_pages(
    crawled: Path, tmp_path: Path
) -> None:
    """In a file packed as a whole, only the first record begins where a member does."""
    texts = [gzip.decompress(path.read_bytes()) for path in warcs_of(crawled)]
    (tmp_path / "whole.warc.gz").write_bytes(gzip.compress(b"".join(texts)))
    packed = pack([tmp_path / "whole.warc.gz"], tmp_path / "a.wacz")
    assert (packed.lines, packed.pages) == (0, 0)
    assert packed.broken > 0


def test_a_page_that_was_cut_off_is_not_listed_by_the_table(tmp_path: Path) -> None:
    archive = open_archive(tmp_path)
    whole, cut = capture("http://example.org/whole"), capture("http://example.org/cut")
    archive.store([item(whole), item(replace(cut, truncated=Truncation.LENGTH))])
    archive.seal()
    archive.close()
    warcs = sorted(tmp_path.glob("*.warc.gz"))
    path = tmp_path / "a.wacz"
    assert pack(warcs, path).pages == 2
    assert pack(warcs, path, is_page=pages_in_table(tmp_path / "captures.parquet")).pages == 1
    assert read_lines(path, "pages/pages.jsonl")[1]["url"] == "http://example.org/whole"


@pytest.mark.parametrize(
    ("names", "target", "reason"),
    [
        ([], "a.wacz", "no WARC file"),
        (["a.warc.gz"], "a.zip", "end in .wacz"),
        (["a.arc.gz"], "a.wacz", "only .warc"),
        (["a.warc.gz.open"], "a.wacz", "only .warc"),
        (["x/a.warc.gz", "x/a.warc.gz"], "a.wacz", "named twice"),
        (["a~b/c.warc", "x/c.warc", "a/b~c.warc", "y/b~c.warc"], "a.wacz", "the name of another"),
    ],
)
def test_names_that_a_package_cannot_have_are_refused(
    tmp_path: Path, names: list[str], target: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        pack([tmp_path / name for name in names], tmp_path / target)
    assert list(tmp_path.iterdir()) == []


def test_files_of_one_name_are_told_apart_by_their_directories(crawled: Path, tmp_path: Path) -> None:
    (first, *_) = warcs_of(crawled)
    for directory in ("monday", "tuesday"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / first.name).write_bytes(first.read_bytes())
    (tmp_path / "other.warc.gz").write_bytes(first.read_bytes())
    given = [
        tmp_path / "monday" / first.name,
        tmp_path / "tuesday" / first.name,
        tmp_path / "other.warc.gz",
    ]
    pack(given, tmp_path / "a.wacz")
    names = {f"monday~{first.name}", f"tuesday~{first.name}", "other.warc.gz"}
    with zipfile.ZipFile(tmp_path / "a.wacz") as opened:
        assert {name[8:] for name in opened.namelist() if name.startswith("archive/")} == names
        lines = gzip.decompress(opened.read("indexes/index.cdx.gz")).splitlines()
    assert {json.loads(line.split(b" ", 2)[2])["filename"] for line in lines} == names


def test_a_path_that_another_ends_with_keeps_a_name_of_its_own(crawled: Path, tmp_path: Path) -> None:
    (first, *_) = warcs_of(crawled)
    below = tmp_path / "below" / tmp_path.relative_to("/")
    below.mkdir(parents=True)
    for directory in (tmp_path, below):
        (directory / "a.warc.gz").write_bytes(first.read_bytes())
    packed = pack([tmp_path / "a.warc.gz", below / "a.warc.gz"], tmp_path / "a.wacz")
    names = [entry.path for entry in packed.entries[:2]]
    assert len(set(names)) == 2
    assert not any("//" in name for name in names)


def test_a_file_that_is_missing_or_still_written_to_makes_no_package(
    crawled: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        pack([tmp_path / "missing.warc.gz"], tmp_path / "a.wacz")
    growing = tmp_path / "growing.warc.gz"
    growing.write_bytes(warcs_of(crawled)[0].read_bytes())

    def grow(_record: object) -> bool:
        with growing.open("ab") as stream:
            stream.write(b"more")
        return True

    with pytest.raises(InputError, match="was changed while"):
        pack([growing], tmp_path / "a.wacz", is_page=grow)
    assert not (tmp_path / "a.wacz").exists()


def test_a_disk_that_fills_up_at_any_moment_leaves_no_package(crawled: Path, tmp_path: Path) -> None:
    class Filling(QuickDisk):
        def __init__(self, writes: int) -> None:
            super().__init__()
            self.left = writes

        def write(self, descriptor: int, block: bytes | memoryview) -> int:
            if not self.left:
                raise OSError(28, "No space left on device")
            self.left -= 1
            return super().write(descriptor, block)

    path = tmp_path / "a.wacz"
    writes = 0
    while True:
        try:
            pack(warcs_of(crawled), path, disk=Filling(writes))
            break
        except OutputError:
            assert not path.exists()
            writes += 1
    assert writes > 10
    assert zipfile.ZipFile(path).testzip() is None


def test_files_beyond_two_gibibytes_get_headers_for_them(tmp_path: Path) -> None:
    """Announced as three gibibytes, that is: the headers are the same, and the test is short."""
    path = tmp_path / "a.wacz"
    with ZipPackage(path, moment=DAY, disk=Disk()) as package:
        entry = package.add("archive/a.warc", [b"abc", b"def"], packed=False, size=3 << 30)
    assert entry == ("archive/a.warc", 6, hashlib.sha256(b"abcdef").hexdigest())
    assert b"\x01\x00\x10\x00" in path.read_bytes()[:80]  # the extra field of ZIP64, 16 bytes
    with zipfile.ZipFile(path) as opened:
        assert opened.read("archive/a.warc") == b"abcdef"


def test_a_package_that_is_given_up_stays_open(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"abc"
        raise DamagedFileError(tmp_path, 0, "for instance")

    package = ZipPackage(tmp_path / "a.wacz", moment=DAY, disk=Disk())
    with pytest.raises(DamagedFileError), package:
        package.add("a", broken(), packed=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a.wacz.open"]


def test_a_moment_that_zip_cannot_say_is_moved_to_the_nearest_year(tmp_path: Path) -> None:
    for year, said in ((1970, 1980), (2200, 2107)):
        path = tmp_path / f"{year}.wacz"
        with ZipPackage(path, moment=DAY.replace(year=year), disk=Disk()) as package:
            package.add("a", [], packed=True)
        with zipfile.ZipFile(path) as opened:
            assert opened.infolist()[0].date_time[0] == said


@pytest.mark.parametrize(
    ("content", "content_type", "title"),
    [
        (b"<title>Plain</title>", "", "Plain"),
        (b"<html><TITLE lang=en>\n Two\n  lines </TITLE>", "", "Two lines"),
        (b"<title>Fish &amp; chips &#8211; menu</title>", "", "Fish & chips – menu"),
        ("<title>Größe</title>".encode("latin-1"), "text/html; charset=iso-8859-1", "Größe"),
        ("<meta charset=koi8-r><title>Привет</title>".encode("koi8-r"), "", "Привет"),
        ("<title>日本</title>".encode("utf-16"), "", "日本"),
        (b"<!-- <title>no</title> --><title>yes</title>", "", "yes"),
        (b"<script>'<title>no</title>'</script><title>yes</title>", "", "yes"),
        (b"<svg><title>no</title></svg><title>yes</title>", "", "yes"),
        (b"<title>never closed", "", "never closed"),
        (b"<title></title>", "", ""),
        (b"<p>none", "", ""),
        (b"", "", ""),
        (b"<title>" + b"x" * 5000, "", "x" * LONGEST_TITLE),
    ],
)
def test_titles(content: bytes, content_type: str, title: str) -> None:
    assert title_of(content, content_type) == title


@pytest.mark.slow
@given(
    st.lists(st.sampled_from([b"<title", b">", b"<!--", b"-->", b"<svg>", b"</svg>", b"&#1;", b"\xff"]))
)
def test_hostile_pages_have_some_title_or_none(pieces: list[bytes]) -> None:
    assert "\n" not in title_of(b"".join(pieces))


def test_pages_made_to_take_long_do_not() -> None:
    for piece in (b"<!--", b"<script>", b"<svg><title", b"<a b='", b"<title>&#"):
        assert len(title_of(piece * (1_000_000 // len(piece)))) <= 1_000_000


@pytest.fixture
def run() -> Callable[..., tuple[int, str]]:
    def run(*arguments: object) -> tuple[int, str]:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if isinstance(result.exception, AmicrawlError):
            raise result.exception
        return result.exit_code, result.output

    return run


def test_the_command_packs_the_files_of_a_directory(
    crawled: Path, package: Path, tmp_path: Path, run: Callable[..., tuple[int, str]]
) -> None:
    path = tmp_path / "a.wacz"
    code, said = run(crawled, "-o", path, "--title", "A title", "--date", "2026-01-02T03:04:06Z",
                     "--pages", crawled / "captures.parquet")  # fmt: skip
    assert (code, said) == (0, f"{path}: {len(warcs_of(crawled))} WARC files, 7 index lines, 5 pages\n")
    assert path.read_bytes() == package.read_bytes()
    run(crawled, "-o", path)
    created = json.loads(zipfile.ZipFile(path).read("datapackage.json"))["created"]
    assert created > "2026-01-02T03:04:06Z"


@pytest.mark.parametrize("option", ["--out", "--output"])
def test_the_package_is_named_as_other_outputs_are_and_by_its_old_option(
    crawled: Path, tmp_path: Path, run: Callable[..., tuple[int, str]], option: str
) -> None:
    code, _ = run(warcs_of(crawled)[0], option, tmp_path / "a.wacz")
    assert code == 0
    assert (tmp_path / "a.wacz").is_file()


def test_the_command_says_what_is_wrong(
    crawled: Path, tmp_path: Path, run: Callable[..., tuple[int, str]]
) -> None:
    cut = tmp_path / "cut.warc.gz"
    cut.write_bytes(warcs_of(crawled)[0].read_bytes()[:-20])
    code, said = run(cut, "-o", tmp_path / "a.wacz")
    assert code == 5
    assert f"{cut}, byte " in said
    for date in ("yesterday", "0001-01-01T00:00:00+14:00"):
        with pytest.raises(UsageError, match="not a time"):
            run(cut, "-o", tmp_path / "a.wacz", "--date", date)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no file that ends in \.warc"):
        run(tmp_path / "empty", "-o", tmp_path / "a.wacz")


def test_foreign_archives_are_packed_and_every_pointer_holds(tmp_path: Path) -> None:
    if not CORPUS.exists():
        pytest.skip(f"{CORPUS} is not here")
    files = {
        path.name: path for path in sorted(CORPUS.rglob("*.warc*")) if path.name.endswith(WACZ_SUFFIXES)
    }
    told: list[Broken] = []
    path = tmp_path / "a.wacz"
    packed = pack(list(files.values()), path, on_broken=told.append)
    assert packed.warcs == len(files) > 40
    assert packed.broken == len(told) > 0
    raw = path.read_bytes()
    with zipfile.ZipFile(path) as opened:
        lines = gzip.decompress(opened.read("indexes/index.cdx.gz")).splitlines()
        assert packed.lines == len(lines) > 50
        for line in lines:
            fields = json.loads(line.split(b" ", 2)[2])
            info = opened.getinfo(f"archive/{fields['filename']}")
            begin = (
                info.header_offset + 30 + len(info.filename) + len(info.extra) + int(fields["offset"])
            )
            found = raw[begin : begin + int(fields["length"])]
            found = gzip.decompress(found) if fields["filename"].endswith(".gz") else found
            assert found.startswith(b"WARC/"), fields
