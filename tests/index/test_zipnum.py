"""ZipNum clusters: bytes, reading back, damage, and indexes that would lead elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from index.lookup_lines import cluster, line, pages, plain
from typer.testing import CliRunner

from amicrawl.archive.index.lookup.source import STRETCH, SortedFile, open_sources
from amicrawl.archive.index.zipnum.cluster import (
    BlockLocation,
    Cluster,
    idx_line,
    json_idx_head,
    json_idx_line,
    pack,
    parse_idx_line,
)
from amicrawl.archive.index.zipnum.writer import WrittenCluster, write_zipnum
from amicrawl.archive.lines.sorted_lines import SortedLines
from amicrawl.cli.cdx import app
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, DamagedFileError, InputError, OutputError, UsageError

EVERYTHING = (b'"', b"\xff")


def read(directory: Path, start: bytes = EVERYTHING[0], end: bytes = EVERYTHING[1]) -> list[bytes]:
    return list(Cluster(directory / "cluster.idx").lines(start, end))


def test_a_cluster_reads_back_as_written(tmp_path: Path) -> None:
    lines = pages(23)
    assert cluster(lines, tmp_path) == WrittenCluster(lines=23, blocks=5, shards=3)
    assert read(tmp_path) == lines


def test_the_layout_is_the_one_that_other_tools_read(tmp_path: Path) -> None:
    lines = pages(12)
    cluster(lines, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cdx-00000.gz",
        "cdx-00001.gz",
        "cluster.idx",
        "cluster.loc",
    ]
    assert (tmp_path / "cluster.loc").read_text() == (
        "cdx-00000.gz\tcdx-00000.gz\ncdx-00001.gz\tcdx-00001.gz\n"
    )
    index = [row.split("\t") for row in (tmp_path / "cluster.idx").read_text().splitlines()]
    assert [(row[0], row[1], row[4]) for row in index] == [
        ("com,example)/p000000 20200101000000", "cdx-00000.gz", "1"),
        ("com,example)/p000005 20200101000005", "cdx-00000.gz", "2"),
        ("com,example)/p000010 20200101000010", "cdx-00001.gz", "3"),
    ]
    shard = (tmp_path / "cdx-00000.gz").read_bytes()
    _, _, offset, length, _ = index[1]
    assert gzip.decompress(shard[int(offset) :][: int(length)]).splitlines() == lines[5:10]
    assert gzip.decompress(shard).splitlines() == lines[:10]


def test_the_same_lines_give_the_same_bytes(tmp_path: Path) -> None:
    """A cluster made anew must equal the old one, or mirrors would be copied for nothing."""
    cluster(pages(12), tmp_path)
    found = hashlib.sha256((tmp_path / "cluster.idx").read_bytes()).hexdigest()
    again = tmp_path / "again"
    cluster(pages(12), again)
    assert hashlib.sha256((again / "cluster.idx").read_bytes()).hexdigest() == found
    assert (again / "cdx-00000.gz").read_bytes() == (tmp_path / "cdx-00000.gz").read_bytes()


def test_a_line_of_the_index_is_pinned() -> None:
    block = BlockLocation(b"com,example)/p05 20200101000000", "cdx-00000.gz", 187, 190, 2)
    written = b"com,example)/p05 20200101000000\tcdx-00000.gz\t187\t190\t2\n"
    assert idx_line(block) == written
    assert parse_idx_line(written) == block
    assert parse_idx_line(b"a 1\tcdx-00000.gz\t187\t190\n").number is None


def test_a_title_goes_into_the_metadata(tmp_path: Path) -> None:
    write_zipnum(pages(1), tmp_path, disk=Disk(), title='A "fine" collection')
    assert (tmp_path / "metadata.yaml").read_text() == 'title: "A \\"fine\\" collection"\n'


def test_duplicates_and_legends_are_left_out_and_malformed_lines_are_told(tmp_path: Path) -> None:
    first, second = pages(2)
    told: list[tuple[bytes, str]] = []
    written = write_zipnum(
        [b" CDX N b a m s k r M S V g\n", b"!meta 0 {}\n", first, first + b"\n", b"nonsense", second],
        tmp_path,
        disk=Disk(),
        on_rejected=lambda *rejected: told.append(rejected),
    )
    assert written == WrittenCluster(lines=2, blocks=1, shards=1, duplicates=1, rejected=1)
    assert told == [(b"nonsense", "no urlkey, timestamp and fields, with a space between")]
    assert read(tmp_path) == [first, second]


def wget_line(path: str) -> bytes:
    url = f"http://www.example.com/{path}"
    return f"{url} 20240101000000 {url} text/html 200 X - - 1 a.warc.gz <urn:uuid:1>".encode()


@pytest.mark.parametrize(
    "legend", [b" CDX a b a m s k r M V g u", b"CDX A b e a m s c k r V v D d g M n"]
)
def test_an_index_whose_keys_are_urls_makes_no_cluster(tmp_path: Path, legend: bytes) -> None:
    """As wget's: no key of a request would meet one."""
    with pytest.raises(InputError, match="keys are not SURTs"):
        write_zipnum([legend, wget_line("a")], tmp_path / "cluster", disk=Disk())
    assert not (tmp_path / "cluster" / "cluster.idx").exists()


def test_a_line_whose_key_is_a_url_is_told(tmp_path: Path) -> None:
    told: list[tuple[bytes, str]] = []
    # A URL without a SURT is its own key.
    kept = [b"http://example.com:99999/ 20240101000000 {}", b"urn:x:y 20240101000000 {}"]
    left_out = wget_line("a")
    written = write_zipnum(
        [kept[0], left_out, kept[1]],
        tmp_path,
        disk=Disk(),
        on_rejected=lambda *rejected: told.append(rejected),
    )
    assert (written.lines, written.rejected) == (2, 1)
    assert told == [(left_out, "its key is a URL, and not the SURT of one")]
    assert read(tmp_path) == kept


@pytest.mark.parametrize("legend", [b" CDX a b a m s k r M V g u\n", b""])
def test_an_index_whose_keys_are_urls_is_refused_by_a_look_up(tmp_path: Path, legend: bytes) -> None:
    path = tmp_path / "wget.cdx"
    path.write_bytes(legend + b"".join(wget_line(letter) + b"\n" for letter in "ab"))
    with pytest.raises(InputError, match="keys are not SURTs"):
        open_sources([path])
    path.write_bytes(b" CDX N b a m s k r M S V g\n" + b"http://example.com:99999/ 20240101000000 {}\n")
    open_sources([path])


def test_lines_that_are_not_sorted_make_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not in byte order"):
        cluster([*pages(30), *pages(2)], tmp_path)
    assert not (tmp_path / "cluster.idx").exists()


@pytest.mark.parametrize("begin", [None, b"WARC/1.0\r\n"])
def test_no_directory_is_left_of_an_input_that_is_none(tmp_path: Path, begin: bytes | None) -> None:
    source, out = tmp_path / "index.cdxj", tmp_path / "above" / "cluster"
    if begin is not None:
        source.write_bytes(begin)
    result = CliRunner().invoke(app, ["zipnum", str(source), "-o", str(out)])
    assert isinstance(result.exception, InputError)
    assert not out.parent.exists()


def test_a_cluster_is_replaced_only_on_request(tmp_path: Path) -> None:
    cluster(pages(30), tmp_path)
    with pytest.raises(UsageError, match="holds a ZipNum cluster already"):
        cluster(pages(1), tmp_path)
    write_zipnum(pages(1), tmp_path, disk=Disk(), replace=True)
    assert read(tmp_path) == pages(1)


def test_a_disk_that_fills_up_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    class Full(Disk):
        def __init__(self, writes: int) -> None:
            self.left = writes

        def write(self, descriptor: int, block: bytes | memoryview) -> int:
            if not self.left:
                raise OSError(28, "No space left on device")
            self.left -= 1
            return super().write(descriptor, block)

    for writes in range(11):
        directory = tmp_path / str(writes)
        with pytest.raises(OutputError):
            write_zipnum(pages(23), directory, disk=Full(writes), block_lines=5, shard_lines=10)
        assert not (directory / "cluster.idx").exists()


def test_no_lines_make_an_empty_cluster(tmp_path: Path) -> None:
    assert cluster([], tmp_path) == WrittenCluster()
    assert read(tmp_path) == []
    assert Cluster(tmp_path / "cluster.idx").block_count(*EVERYTHING) == 0


KEYS = st.text(st.sampled_from("ab,)/."), min_size=1, max_size=4)
KEYED = st.lists(st.tuples(KEYS, st.integers(1, 3)), max_size=40)


@pytest.mark.slow
@given(KEYED, KEYS, KEYS, st.integers(1, 4), st.integers(1, 3))
def test_every_range_and_page_is_what_a_scan_finds(
    tmp_path_factory: pytest.TempPathFactory,
    keyed: list[tuple[str, int]],
    start: str,
    end: str,
    block: int,
    size: int,
) -> None:
    lines = sorted({line(key, f"2020010100000{time}") for key, time in keyed})
    directory = tmp_path_factory.mktemp("cluster")
    cluster(lines, directory, block=block, shard=2 * block)
    expected = [each for each in lines if start.encode() <= each < end.encode()]
    key_range = (start.encode(), end.encode())
    text = SortedFile(plain(lines, directory / "lines.cdxj"))
    assert list(text.lines(*key_range)) == expected
    numbered = Cluster(directory / "cluster.idx")
    rows = (directory / "cluster.idx").read_bytes().splitlines()
    (directory / "bare.idx").write_bytes(b"".join(row.rpartition(b"\t")[0] + b"\n" for row in rows))
    for found in (numbered, Cluster(directory / "bare.idx")):
        assert list(found.lines(*key_range)) == expected
        blocks = found.block_count(*key_range)
        assert (blocks == 0) == (not expected)
        paged = [
            each
            for first in range(0, blocks, size)
            for each in found.lines_of_blocks(*key_range, first=first, count=size)
        ]
        assert paged == expected


def test_pages_of_a_plain_file_are_stretches_of_whole_lines(tmp_path: Path) -> None:
    lines = pages(4_000)
    source = SortedFile(plain(lines, tmp_path / "lines.cdxj"))
    assert source.block_count(*EVERYTHING) == -(-sum(len(each) + 1 for each in lines) // STRETCH) > 1
    parts = [
        list(source.lines_of_blocks(*EVERYTHING, first=number, count=1))
        for number in range(source.block_count(*EVERYTHING))
    ]
    assert [each for part in parts for each in part] == lines
    assert source.block_count(b"z", b"zz") == 0


def test_neighbouring_blocks_are_read_with_one_call(tmp_path: Path) -> None:
    """Ten blocks a read: a thousand blocks must not be a thousand requests to a slow disk."""
    cluster(pages(100), tmp_path, block=5, shard=100)
    idx = tmp_path / "cluster.idx"
    damaged = idx.read_bytes().splitlines(keepends=True)
    shard = tmp_path / "cdx-00000.gz"
    tenth = parse_idx_line(damaged[10]).offset
    shard.write_bytes(shard.read_bytes()[:tenth])
    found = Cluster(idx).lines(*EVERYTHING)
    assert [next(found) for _ in range(50)] == pages(50)
    with pytest.raises(DamagedFileError, match="ends inside a block"):
        next(found)


def test_blocks_need_not_lie_side_by_side(tmp_path: Path) -> None:
    """Other tools may leave gaps between blocks, or have them in any order."""
    lines = pages(3)
    members = [pack(each + b"\n") for each in lines]
    places = [200, 0, 400]
    shard = bytearray(b"?" * 600)
    index = b""
    for each, member, place in zip(lines, members, places, strict=True):
        shard[place : place + len(member)] = member
        index += idx_line(
            BlockLocation(b" ".join(each.split(b" ")[:2]), "cdx-00000.gz", place, len(member))
        )
    assert max(map(len, members)) < 200
    (tmp_path / "cdx-00000.gz").write_bytes(shard)
    (tmp_path / "cluster.idx").write_bytes(index)
    assert read(tmp_path) == lines


def test_every_cut_of_a_shard_is_reported(tmp_path: Path) -> None:
    cluster(pages(5), tmp_path)
    shard = tmp_path / "cdx-00000.gz"
    whole = shard.read_bytes()
    for cut in range(len(whole)):
        shard.write_bytes(whole[:cut])
        with pytest.raises(DamagedFileError):
            read(tmp_path)


@given(st.binary(max_size=60))
def test_a_hostile_index_raises_nothing_but_our_errors(
    tmp_path_factory: pytest.TempPathFactory, octets: bytes
) -> None:
    idx = tmp_path_factory.mktemp("hostile") / "cluster.idx"
    idx.write_bytes(octets)
    try:
        found = Cluster(idx)
        found.block_count(*EVERYTHING)
        list(found.lines(*EVERYTHING))
        list(found.lines_of_blocks(*EVERYTHING, first=1, count=1))
    except AmicrawlError:
        pass


@pytest.mark.parametrize("shard", ["../outside.gz", "/etc/passwd", "a/../../outside.gz", "", ".", "\0"])
def test_an_index_cannot_lead_out_of_its_directory(tmp_path: Path, shard: str) -> None:
    member = pack(pages(1)[0] + b"\n")
    (tmp_path / "outside.gz").write_bytes(member)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "cluster.idx").write_bytes(
        idx_line(BlockLocation(b"com,example)/ 1", shard, 0, len(member), 1))
    )
    with pytest.raises(InputError, match="not in its directory"):
        read(inside)
    (inside / "cluster.idx").write_bytes(
        idx_line(BlockLocation(b"com,example)/ 1", "x", 0, len(member), 1))
    )
    (inside / "cluster.loc").write_text(f"x\t{shard}\n")
    with pytest.raises(InputError, match="not in its directory"):
        read(inside)


def test_a_shard_that_is_elsewhere_is_requested(tmp_path: Path) -> None:
    cluster(pages(5), tmp_path)
    (tmp_path / "cluster.loc").write_text("cdx-00000.gz\ts3://bucket/cdx-00000.gz\n")
    with pytest.raises(InputError, match="no location on this machine"):
        read(tmp_path)
    (tmp_path / "cluster.loc").write_text("other.gz\tother.gz\n")
    with pytest.raises(InputError, match="Add its line"):
        read(tmp_path)


def test_locations_that_cannot_be_read_are_an_input_error(tmp_path: Path) -> None:
    cluster(pages(3), tmp_path)
    (tmp_path / "cluster.loc").unlink()
    (tmp_path / "cluster.loc").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        Cluster(tmp_path / "cluster.idx")


def test_a_shard_may_be_a_link_to_another_disk(tmp_path: Path) -> None:
    cluster(pages(5), tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "cluster.idx").write_bytes((tmp_path / "a" / "cluster.idx").read_bytes())
    (tmp_path / "b" / "cdx-00000.gz").symlink_to(tmp_path / "a" / "cdx-00000.gz")
    assert read(tmp_path / "b") == pages(5)


@pytest.mark.slow
def test_a_bomb_is_not_inflated(tmp_path: Path) -> None:
    member = pack(b"a 1 {}\n" + b"x" * (65 * 1024**2))
    (tmp_path / "cdx-00000.gz").write_bytes(member)
    (tmp_path / "cluster.idx").write_bytes(
        idx_line(BlockLocation(b"a 1", "cdx-00000.gz", 0, len(member), 1))
    )
    with pytest.raises(DamagedFileError, match="longer than"):
        read(tmp_path)


def test_the_index_of_a_wacz_package_is_read_too(tmp_path: Path) -> None:
    lines = pages(8)
    members = [pack(b"".join(each + b"\n" for each in part)) for part in (lines[:5], lines[5:])]
    (tmp_path / "index.cdx.gz").write_bytes(b"".join(members))
    (tmp_path / "index.idx").write_bytes(
        json_idx_head("index.cdx.gz")
        + json_idx_line(BlockLocation(b"com,example)/p000000 20200101000000", "", 0, len(members[0])))
        + json_idx_line(
            BlockLocation(b"com,example)/p000005 20200101000005", "", len(members[0]), len(members[1]))
        )
    )
    for path in (tmp_path / "index.idx", tmp_path / "index.cdx.gz", tmp_path):
        (source,) = open_sources([path])
        assert list(source.lines(*EVERYTHING)) == lines
        assert source.block_count(*EVERYTHING) == 2


def test_what_cannot_be_searched_is_refused_with_what_to_do(tmp_path: Path) -> None:
    packed = tmp_path / "lines.cdxj.gz"
    packed.write_bytes(gzip.compress(b"\n".join(pages(3))))
    with pytest.raises(InputError, match="Unpack it"):
        open_sources([packed])
    with pytest.raises(InputError, match="Sort it first"):
        open_sources([plain(pages(9)[::-1], tmp_path / "reverse.cdxj")])
    with pytest.raises(InputError, match="is not there"):
        open_sources([tmp_path / "missing"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds neither"):
        open_sources([tmp_path / "empty"])


def test_more_indexes_than_a_process_may_open_are_refused_with_what_to_do(tmp_path: Path) -> None:
    paths = [plain(pages(3), tmp_path / f"{number}.cdxj") for number in range(200)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 32, hard))
    try:
        with pytest.raises(InputError, match="Make one of them, with amicrawl cdx zipnum"):
            open_sources(paths)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_index_of_blocks_in_another_order_is_refused(tmp_path: Path) -> None:
    cluster(pages(30), tmp_path)
    idx = tmp_path / "cluster.idx"
    idx.write_bytes(b"".join(idx.read_bytes().splitlines(keepends=True)[::-1]))
    with pytest.raises(InputError, match="LC_ALL=C"):
        Cluster(idx)


def test_blocks_that_begin_alike_are_in_order_whatever_their_places(tmp_path: Path) -> None:
    tabs, json_ = tmp_path / "cluster.idx", tmp_path / "x.idx"
    blocks = [BlockLocation(b"com,example)/ 20200101000000", "", at, 200) for at in (0, 800, 1000)]
    tabs.write_bytes(b"".join(map(idx_line, blocks)))
    json_.write_bytes(json_idx_head("x.gz") + b"".join(map(json_idx_line, blocks)))
    for idx in (tabs, json_):
        assert Cluster(idx).block_count(*EVERYTHING) == 3


def test_lines_are_found_in_files_without_a_last_line_end_and_without_any_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\nb\nc")
    lines = SortedLines(tmp_path / "a")
    assert [lines.line_at(lines.first_from(key)) for key in (b"", b"b", b"bb", b"d")] == [
        b"a",
        b"b",
        b"c",
        b"",
    ]
    (tmp_path / "empty").write_bytes(b"")
    assert SortedLines(tmp_path / "empty").first_from(b"x") == 0
