"""Records of archive files: where they lie, what is in them, and what becomes of damaged ones."""

from __future__ import annotations

import hashlib
import io
import random
import re
import time
import tracemalloc
import zipfile
import zlib
from itertools import chain, repeat
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from index.archive_files import ARC_HEADER, URL, arc, gzip_member, http, packed, unexpected, warc

from amicrawl.errors import InputError
from amicrawl.reading.flow import found_records
from amicrawl.reading.framing import next_arc, next_warc, warc_head
from amicrawl.reading.piece_buffer import MOST_UNITS
from amicrawl.reading.records import Broken, Record, read_records
from amicrawl.reading.unpacking import PIECE, Piece, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGES = [http(f"page {number} ".encode() * 5, Content_Type="text/html") for number in range(5)]
WARCS = [warc("response", f"{URL}{number}", page) for number, page in enumerate(PAGES)]
ARCS = [ARC_HEADER, *(arc(f"{URL}{number}", page) for number, page in enumerate(PAGES))]
URIS = [f"{URL}{number}" for number in range(5)]


def read(path: Path, data: bytes, **options: int) -> tuple[list[Record], list[Broken]]:
    path.write_bytes(data)
    broken: list[Broken] = []
    return list(read_records(path, on_broken=broken.append, **options)), broken


def uris(records: list[Record]) -> list[str]:
    return [record.uri for record in records if record.type == "response"]


def frames(records: list[bytes]) -> bytes:
    return b"".join(zstandard.ZstdCompressor().compress(record) for record in records)


@pytest.mark.parametrize(
    ("name", "pack", "records", "closing"),
    [
        ("x.warc.gz", packed, WARCS, 0),
        ("x.arc.gz", packed, ARCS, 0),
        ("x.warc.zst", frames, WARCS, 0),
        ("x.warc", b"".join, WARCS, 4),
        ("x.arc", b"".join, ARCS, 1),
    ],
)
def test_each_record_lies_where_it_says(
    name: str, pack: Callable[[list[bytes]], bytes], records: list[bytes], closing: int, tmp_path: Path
) -> None:
    data = pack(records)
    found, broken = read(tmp_path / name, data)
    assert broken == []
    assert uris(found) == URIS
    for record, raw in zip(found, records, strict=True):
        assert data[record.offset : record.offset + record.length] == pack([raw])[: -closing or None]
        assert record.head + record.block == raw[: -closing or None] or closing == 0
        assert record.seekable
        assert record.whole
    assert [record.block for record in found if record.type == "response"] == PAGES


@pytest.mark.parametrize("zeros", [1, 3, 512, 300_000])
@pytest.mark.parametrize("pack", [packed, frames])
def test_zeros_between_members_are_passed_over_and_reported_once(
    pack: Callable[[list[bytes]], bytes], zeros: int, tmp_path: Path
) -> None:
    """As files filled up to whole blocks have them. RFC 1952 knows no filling; others stop there."""
    alone = [pack([record]) for record in WARCS]
    found, broken = read(tmp_path / "filled", b"".join(one + b"\0" * zeros for one in alone))
    assert uris(found) == URIS
    assert [record.length for record in found] == [len(one) for one in alone]
    [fault] = broken
    assert fault.offset == len(alone[0])
    assert "zeros" in fault.reason


def test_filled_up_members_are_all_read_however_many_there_are(tmp_path: Path) -> None:
    """Each filling counted as a fault, and behind a thousand faults a file is left."""
    found, broken = read(tmp_path / "filled", (gzip_member(WARCS[0]) + b"\0" * 16) * 1100)
    assert (len(found), len(broken)) == (1100, 1)


def test_what_is_lost_beside_zeros_is_reported_each_time(tmp_path: Path) -> None:
    """A record that zeros cut is lost, and so is what stands behind zeros and is no member."""
    member, cut = gzip_member(WARCS[0]), gzip_member(WARCS[1][:-20])
    parts = [member, cut, b"\0" * 9, member, cut, b"\0" * 9, member, b"\0" * 9, b"junk", member]
    found, broken = read(tmp_path / "cut", b"".join(parts))
    assert len(found) == 4
    places = [len(b"".join(parts[:count])) for count in (2, 5, 7, 8)]
    assert [fault.offset for fault in broken] == places


def test_a_dictionary_of_a_zstd_file_is_used(tmp_path: Path) -> None:
    samples: list[bytes | bytearray | memoryview] = [
        warc("response", f"{URL}{number}", PAGES[number % 5]) for number in range(500)
    ]
    trained = zstandard.train_dictionary(4096, samples)
    plain = trained.as_bytes()
    packer = zstandard.ZstdCompressor(dict_data=trained)
    body = b"".join(packer.compress(record) for record in WARCS)
    for dictionary in (plain, zstandard.ZstdCompressor().compress(plain)):
        head = b"\x5d\x2a\x4d\x18" + len(dictionary).to_bytes(4, "little") + dictionary
        found, broken = read(tmp_path / "d.warc.zst", head + body)
        assert (uris(found), broken) == (URIS, [])
        assert found[0].offset == len(head)


def test_a_dictionary_counts_at_the_begin_of_a_file_only(tmp_path: Path) -> None:
    """Anywhere else it is a skippable frame like others: the records behind it are read as before."""

    def trained(name: str) -> zstandard.ZstdCompressionDict:
        samples: list[bytes | bytearray | memoryview] = [
            warc("response", f"http://{name}.example/{number}", PAGES[number % 5])
            for number in range(500)
        ]
        return zstandard.train_dictionary(4096, samples)

    def frame(dictionary: zstandard.ZstdCompressionDict) -> bytes:
        content = dictionary.as_bytes()
        return b"\x5d\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content

    first, second = trained("first"), trained("second")
    packed = [zstandard.ZstdCompressor(dict_data=first).compress(record) for record in WARCS]
    data = frame(first) + packed[0] + frame(second) + b"".join(packed[1:])
    found, broken = read(tmp_path / "two.warc.zst", data)
    assert (uris(found), broken) == (URIS, [])


def test_http_is_read_when_it_is_requested(tmp_path: Path) -> None:
    body = b"5\r\nhello\r\n0\r\n\r\n"
    block = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + http(
        body, Transfer_Encoding="chunked", Content_Type="text/html", X="1"
    )
    (record,), broken = read(tmp_path / "h.warc", warc("response", URL, block, version="1.1"))
    assert broken == []
    assert (record.version, record.http_status, record.payload) == ("WARC/1.1", 200, b"hello")
    assert record.http_field(b"x") == b"1"
    assert record.http_field(b"link") is None
    assert record.http_head.startswith(b"HTTP/1.1 200 OK")
    assert record.body == body
    assert record.content(3) == b"hel"


def test_content_is_decoded_as_far_as_requested(tmp_path: Path) -> None:
    block = http(gzip_member(b"a" * 10_000), Content_Encoding="gzip")
    (record,), _ = read(tmp_path / "c.warc", warc("response", URL, block))
    assert record.payload == gzip_member(b"a" * 10_000)
    assert record.content(100) == b"a" * 100
    assert len(record.content()) == 10_000


def test_a_request_has_no_status_and_other_records_no_http(tmp_path: Path) -> None:
    data = warc("request", URL, http(b"", first="GET / HTTP/1.1")) + warc(
        "response", "dns:a", b"HTTP/1.1 200 OK\r\n\r\n", Content_Type="text/dns"
    )
    (request, result), _ = read(tmp_path / "r.warc", data)
    assert (request.http_status, request.http_head[:3]) == (None, b"GET")
    assert (result.is_http, result.http_status, result.http_head, result.http_fields) == (
        False,
        None,
        b"",
        [],
    )
    assert result.payload == result.block == b"HTTP/1.1 200 OK\r\n\r\n"


def test_header_fields_are_read_tolerantly(tmp_path: Path) -> None:
    head = (
        b"WARC/1.0\r\nwarc-type: Response\r\nWARC-Target-URI:<http://a.example/>\r\n"
        b"X-Long: one\r\n two\r\n"
        b"WARC-Date: first\r\nWARC-Date: second\r\nno field\r\nContent-length :  4 \r\n\r\n"
    )
    (record,), _ = read(tmp_path / "t.warc", head + b"abcd\r\n\r\n")
    assert (record.type, record.uri, record.block) == ("response", "http://a.example/", b"abcd")
    assert record.fields["x-long"] == "one two"
    assert record.date == "first"


def test_a_file_that_cannot_be_opened_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        list(read_records(tmp_path / "nowhere.warc", on_broken=unexpected))
    with pytest.raises(InputError):
        list(read_records(tmp_path, on_broken=unexpected))


@pytest.mark.parametrize("name", ["x.warc.gz", "x.warc.zst"])
def test_records_behind_a_damaged_member_are_read(name: str, tmp_path: Path) -> None:
    pack = packed if name.endswith("gz") else frames
    data = bytearray(pack(WARCS))
    second, third = len(pack(WARCS[:1])), len(pack(WARCS[:2]))
    data[second + 20 : third - 20] = b"\xff" * (third - second - 40)
    found, broken = read(tmp_path / name, bytes(data))
    assert uris(found) == [URIS[0], *URIS[2:]]
    assert [fault.offset for fault in broken] == [second]
    assert found[1].offset == third


@pytest.mark.parametrize("pack", [packed, frames])
def test_a_file_whose_beginning_is_damaged_is_packed_though_a_picture_in_it_is_not(
    pack: Callable[[list[bytes]], bytes], tmp_path: Path
) -> None:
    """Zstandard leaves a block as it is that would become hardly smaller, its record's header too."""
    picture = warc("response", URIS[2], http(random.Random(2).randbytes(100_000)))
    data = pack([*WARCS[:2], picture, *WARCS[3:]])
    for begin in (b"\xff" * 20, b"\0" * 20):
        found, _ = read(tmp_path / "x", begin + data[len(begin) :])
        assert uris(found) == URIS[1:]
    # And one that holds such a file, without packing, is not.
    holds = warc("resource", URIS[1], frames([picture]), Content_Type="application/zstd")
    found, _ = read(tmp_path / "x", b"\0" * 20 + WARCS[0] + holds + WARCS[2])
    assert [record.uri for record in found] == URIS[:3]


def test_a_large_record_behind_garbage_is_read_whatever_its_packing(tmp_path: Path) -> None:
    words = random.Random(7)
    page = b"".join(b"<p>%d %s\n" % (at, words.randbytes(30).hex().encode()) for at in range(3000))
    large = [warc("response", URIS[3], http(page))]
    for name, pack in (("x.warc.gz", packed), ("x.warc.zst", frames)):
        before = pack(WARCS[:1]) + b"garbage\0\0\0\0"
        found, broken = read(tmp_path / name, before + pack(large + WARCS[4:]))
        assert uris(found) == [URIS[0], *URIS[3:]]
        assert [fault.offset for fault in broken] == [len(before) - 11]


def test_beginnings_of_large_frames_behind_a_fault_cost_little_more_than_those_of_small_ones(
    tmp_path: Path,
) -> None:
    """What looks like a frame is inflated to see whether a record begins there, far into its block."""
    magic, single, compressed = b"\x28\xb5\x2f\xfd", b"\x00\x38", 2

    def seconds(block: int) -> float:
        frame = magic + single + (block << 3 | compressed << 1).to_bytes(3, "little")
        data = frames(WARCS[:1]) + b"\0" + frame * 20_000 + frames(WARCS[4:])
        began = time.process_time()
        found, _ = read(tmp_path / "x.warc.zst", data)
        took = time.process_time() - began
        assert uris(found) == [URIS[0], URIS[4]]
        return took

    small = seconds(4)
    assert seconds(130_000) < 8 * max(small, 0.1)


@pytest.mark.parametrize("pack", [packed, frames])
def test_no_record_is_lost_behind_small_members_that_hold_none(
    pack: Callable[[list[bytes]], bytes], tmp_path: Path
) -> None:
    large = warc("response", URIS[1], http(random.Random(1).randbytes(600_000)))
    found, broken = read(tmp_path / "x", pack([b"no record", b"none either", WARCS[0], large, WARCS[2]]))
    assert uris(found) == URIS[:3]
    assert [fault.reason for fault in broken] == ["no record begins here"]


def test_a_header_of_folded_lines_takes_no_more_time_than_its_bytes() -> None:
    def seconds(lines: int) -> float:
        head = b"WARC/1.0\r\nX-Folded: y\r\n" + b" a\n" * lines + b"\r\n"
        began = time.process_time()
        found = warc_head(head)
        assert found is not None
        assert len(found.fields["x-folded"]) == 2 * lines + 1
        return time.process_time() - began

    # Twelve times the lines may not take a hundred and forty-four times as long.
    assert seconds(600_000) < 40 * seconds(50_000)


def test_a_checksum_that_does_not_agree_costs_its_record_and_no_other(tmp_path: Path) -> None:
    data = bytearray(packed(WARCS))
    end = len(packed(WARCS[:2]))
    data[end - 6] ^= 1
    found, broken = read(tmp_path / "crc.warc.gz", bytes(data))
    assert uris(found) == [URIS[0], *URIS[2:]]
    assert [fault.offset for fault in broken] == [len(packed(WARCS[:1]))]


@pytest.mark.parametrize("version", ["1.0", "9.9"])
def test_of_a_record_that_is_cut_and_not_kept_nothing_else_is_told(version: str, tmp_path: Path) -> None:
    large = http(random.Random(1).randbytes(100_000))
    last = gzip_member(warc("response", block=large, version=version))
    for cut in range(1, 16):
        records, broken = read(tmp_path / "cut.warc.gz", packed(WARCS) + last[:-cut])
        assert uris(records) == URIS
        assert [fault.reason for fault in broken] == ["the file ends inside a gzip member"]


def test_a_file_compressed_with_lz4_is_named_with_what_to_do(tmp_path: Path) -> None:
    records, broken = read(tmp_path / "x.warc.lz4", b"\x04\x22\x4d\x18\x60\x70\x73" + bytes(200))
    assert not records
    (fault,) = broken
    assert (fault.offset, fault.reason.partition("; ")[2]) == (0, "decompress it with lz4 -d")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("pack", [packed, b"".join])
def test_a_package_is_named_with_what_to_do(
    tmp_path: Path, pack: Callable[[list[bytes]], bytes], method: int
) -> None:
    """Records that are stored in it as they are can be read all the same, as of one that is damaged."""
    with zipfile.ZipFile(tmp_path / "x.wacz", "w", method) as package:
        package.writestr("archive/x", pack(WARCS))
    records, broken = read(tmp_path / "x.wacz", (tmp_path / "x.wacz").read_bytes())
    assert uris(records) == (URIS if method == zipfile.ZIP_STORED else [])
    assert broken[0].offset == 0
    assert (
        broken[0].reason == "the file is a package (WACZ, ZIP); unpack it, and name the files in archive"
    )


def test_records_behind_garbage_are_read(tmp_path: Path) -> None:
    garbage = random.Random(5).randbytes(3 << 20)
    for name, pack in (("x.warc.gz", packed), ("x.warc", b"".join)):
        data = pack(WARCS[:2]) + garbage + pack(WARCS[2:])
        found, broken = read(tmp_path / name, data)
        assert uris(found) == URIS
        assert [fault.offset for fault in broken] == [len(pack(WARCS[:2]))]


@pytest.mark.parametrize("pack", [packed, b"".join, lambda records: gzip_member(b"".join(records))])
@pytest.mark.parametrize("line", [b"10.0.0.1 200804302048 text/html", b"a.host 20080430204825 no-type"])
def test_an_arc_record_is_found_behind_another_however_its_line_is_written(
    line: bytes, pack: Callable[[list[bytes]], bytes], tmp_path: Path
) -> None:
    block = b"HTTP/1.0 200 OK\r\n\r\nold"
    old = b"%s %s %d\n%s\n" % (URIS[1].encode(), line, len(block), block)
    found, _ = read(tmp_path / "x.arc", pack([*ARCS[:2], old, *ARCS[3:]]))
    assert uris(found) == URIS
    assert [record.block for record in found[1:]] == [PAGES[0], block, *PAGES[2:]]
    assert all(record.whole for record in found)


@pytest.mark.parametrize("wrong", ["300", "1", "99999999", "", "-1", "many", "9" * 30])
@pytest.mark.parametrize("name", ["x.warc", "x.warc.gz", "whole.warc.gz"])
def test_a_wrong_length_costs_no_other_record(wrong: str, name: str, tmp_path: Path) -> None:
    length = f"Content-Length: {len(PAGES[1])}\r\n".encode()
    bad = WARCS[1].replace(length, f"Content-Length: {wrong}\r\n".encode())
    records = [WARCS[0], bad, *WARCS[2:]]
    if name == "whole.warc.gz":
        data = gzip_member(b"".join(records))
    else:
        data = (packed if name.endswith("gz") else b"".join)(records)
    found, broken = read(tmp_path / name, data)
    assert uris(found) == URIS
    assert [record.whole for record in found] == [True, False, True, True, True]
    assert found[1].block == PAGES[1]
    assert any("Content-Length" in fault.reason for fault in broken)


def test_a_file_packed_as_a_whole_is_read_but_cannot_be_sought(tmp_path: Path) -> None:
    found, broken = read(tmp_path / "w.warc.gz", gzip_member(b"".join(WARCS)))
    assert uris(found) == URIS
    assert [record.block for record in found] == PAGES
    assert not any(record.seekable for record in found)
    (fault,) = broken
    assert "cannot be sought" in fault.reason


def test_members_that_end_anywhere_are_read(tmp_path: Path) -> None:
    whole = b"".join(WARCS)
    for step in (7, 100, 333, 1000):
        data = packed([whole[start : start + step] for start in range(0, len(whole), step)])
        found, _ = read(tmp_path / "s.warc.gz", data)
        assert uris(found) == URIS
        assert [record.block for record in found] == PAGES


def test_of_a_large_block_the_beginning_is_kept(tmp_path: Path) -> None:
    large = http(b"x" * 5_000_000)
    records = [WARCS[0], warc("response", f"{URL}large", large), WARCS[1]]
    for data in (packed(records), b"".join(records), gzip_member(b"".join(records))):
        found, broken = read(tmp_path / "l.warc", data, block_cap=100_000)
        assert uris(found) == [URIS[0], f"{URL}large", URIS[1]]
        assert (found[1].block, found[1].block_length) == (large[:100_000], len(large))
        assert found[1].is_cut
        assert not found[0].is_cut
        assert all(record.whole for record in found)
        assert found[1].body_sha1 == hashlib.sha1(b"x" * 5_000_000).digest()
        assert all("cannot be sought" in fault.reason for fault in broken)


def test_memory_does_not_grow_with_a_record(tmp_path: Path) -> None:
    zeros = gzip_member(warc("response", URL, http(b"\0" * 120_000_000)))
    path = tmp_path / "zeros.warc.gz"
    path.write_bytes(zeros * 2)
    tracemalloc.start()
    try:
        found = [
            record.block_length for record in read_records(path, on_broken=unexpected, block_cap=1 << 20)
        ]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 2
    assert peak < 80_000_000


def test_a_record_in_very_many_members_is_read_as_far_as_they_may_be_held() -> None:
    head = warc("response", block=bytes(10_000_000)).partition(b"\0")[0]
    units = chain([head], repeat(b"y", 2 * MOST_UNITS))
    pieces = (Piece(at, data, at + 1, "") for at, data in enumerate(units))
    reasons: list[str] = []
    (found,) = found_records(
        pieces, peek=None, broken=lambda _, reason: reasons.append(reason), block_cap=1 << 20
    )
    assert found.block_length == MOST_UNITS
    assert not found.whole
    assert reasons[-1] == "no record begins here"


def test_a_file_made_of_faults_is_left_after_a_thousand(tmp_path: Path) -> None:
    fault = gzip_member(b"WARC/1.0\r\n" + random.Random(1).randbytes(300))[:-9] + b"\xff" * 9
    found, broken = read(tmp_path / "f.warc.gz", fault * 2000)
    assert found == []
    assert len(broken) <= 1002
    assert "not read" in broken[-1].reason


def _damaged(data: bytes, at: int, value: int) -> bytes:
    at %= len(data)
    return data[:at] + bytes([value]) + data[at + 1 :]


@given(st.integers(0), st.integers(0, 255), st.sampled_from(["gz", "zst", "plain", "arc", "arc.gz"]))
def test_no_byte_can_be_changed_so_that_reading_raises_or_loses_more_than_is_told(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int, kind: str
) -> None:
    records = ARCS if "arc" in kind else WARCS
    pack: Callable[[list[bytes]], bytes] = {"gz": packed, "arc.gz": packed, "zst": frames}.get(
        kind, b"".join
    )
    data = _damaged(pack(records), at, value)
    found, broken = read(tmp_path_factory.getbasetemp() / f"damaged.{kind}", data)
    assert broken or len(found) == len(records)
    assert len(found) >= len(records) - 2
    for record in found:
        assert 0 <= record.offset <= len(data)
        assert record.offset + record.length <= len(data)


@given(st.binary(max_size=2000))
def test_any_bytes_can_be_read(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    for start in (b"", b"WARC/1.0\r\n", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", zlib.compress(b"")):
        found, broken = read(path, start + data)
        assert found or broken or not (start + data).strip(b"\r\n")


@pytest.mark.parametrize("kind", ["warc.gz", "warc", "arc.gz", "arc", "warc.zst", "whole.warc.gz"])
def test_wherever_a_file_is_cut_whole_records_are_read_and_the_rest_is_told(
    kind: str, tmp_path: Path
) -> None:
    records = (ARCS if "arc" in kind.split(".") else WARCS)[:3]
    if kind.startswith("whole"):
        data, borders = gzip_member(b"".join(records)), {0}
    else:
        pack = packed if kind.endswith("gz") else frames if kind.endswith("zst") else b"".join
        data = pack(records)
        borders = {len(pack(records[:count])) for count in range(len(records) + 1)}
    closing = 0 if kind.endswith(("gz", "zst")) else 1 if kind == "arc" else 4
    for cut in range(len(data)):
        found, broken = read(tmp_path / kind, data[:cut])
        before = sum(border <= cut for border in borders if border)
        assert sum(record.whole for record in found) >= before or kind.startswith("whole")
        assert broken or any(border - closing <= cut <= border for border in borders)


def test_a_body_is_decoded_as_far_as_it_is_requested_whatever_was_before(tmp_path: Path) -> None:
    block = http(gzip_member(b"0123456789"), Content_Encoding="gzip")
    [record], _ = read(tmp_path / "x.warc.gz", packed([warc("response", block=block)]))
    for limit in (4, 10, 3, 11, 5, 12):
        assert record.content(limit) == b"0123456789"[:limit]
    assert record.content(20) is record.content(20)[:20], "it is not decoded again"


@pytest.mark.parametrize("cut", range(12))
def test_a_head_that_ends_in_many_carriage_returns_is_read_wherever_its_pieces_are_cut(
    cut: int, tmp_path: Path
) -> None:
    head = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 3\r\n" + b"\r" * 9 + b"\n"
    filler = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: %07d\r\n\r\n"
    room = PIECE - len(filler % 0) - 4 - len(head) + cut
    path = tmp_path / "a.warc"
    path.write_bytes(filler % room + b"x" * room + b"\r\n\r\n" + head + b"abc\r\n\r\n")
    records = list(read_records(path, on_broken=unexpected))
    assert [record.block_length for record in records] == [room, 3]


def test_a_member_that_is_read_in_steps_comes_as_one_piece() -> None:
    """Of octets that do not pack, so that it is a dozen steps long."""
    member = gzip_member(random.Random(1).randbytes(200_000))
    is_packed, pieces = unpacked(io.BytesIO(member * 2))
    assert is_packed
    assert [(len(each.data), each.end) for each in pieces] == [
        (200_000, len(member)),
        (200_000, 2 * len(member)),
    ]


def test_what_a_member_held_before_it_is_damaged_comes_before_the_fault() -> None:
    member = bytearray(gzip_member(random.Random(1).randbytes(200_000)))
    member[-5] ^= 1  # of the checksum
    _, pieces = unpacked(io.BytesIO(bytes(member)))
    *begun, last = pieces
    assert sum(len(each.data) for each in begun) > 150_000
    assert all(each.end == -1 for each in begun)
    assert "damaged" in last.fault


_BEGINS = ("WARC/1.0\r\nA:", "warc/1.1\nB:", "http://a/ 1.2.3.4 20260101000000 text/html 5\n")
_PIECES = st.sampled_from([*_BEGINS, "WARC", "wArC", "/", "1.", "0", "\r", "\n", "C", ":", "a-b", " "])


@given(st.lists(_PIECES, max_size=20), st.integers(0, 30))
def test_a_record_among_other_bytes_is_found_where_a_look_at_each_byte_finds_it(
    pieces: list[str], start: int
) -> None:
    data = bytearray("".join(pieces).encode())
    warc = re.compile(rb"(?i:WARC)/[0-9]+\.[0-9]+\r*\n[A-Za-z][A-Za-z0-9-]*:")
    places = range(start, len(data))
    assert next_warc(data, start) == next((at for at in places if warc.match(data, at)), -1)
    arc = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*:\S[^\n]* 1\.2\.3\.4 20260101000000 [^\n]+\n")
    lines = (at for at in places if data[at - 1 : at] == b"\n" and arc.match(data, at))
    assert next_arc(data, start) == next(lines, -1)
