"""Whatever a file says, reading it ends in rows or in our error, with bounded memory."""

from __future__ import annotations

import struct
import tracemalloc
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meguri.format.frontier_files import encode_partition, made_up
from meguri.format.mutations import Sound, read_all, sound

from amicrawl.disk import Disk
from amicrawl.errors import InputError
from amicrawl.meguri.format.checksum import crc32c
from amicrawl.meguri.format.codec import decompress, decompressed
from amicrawl.meguri.format.faults import FileFault, FrontierFileError, Malformed
from amicrawl.meguri.format.footer import (
    PAGE_ENTRY,
    ColumnEntry,
    Footer,
    Region,
    Statistics,
    encode_footer,
)
from amicrawl.meguri.format.header import Header, pack_trailer
from amicrawl.meguri.format.page import PageHeader, PageKind
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.schema import (
    HOST_COLUMNS,
    HOST_ROW,
    ROW,
    URL_COLUMNS,
    Codec,
    Column,
    Encoding,
    Partition,
    columns_of,
)
from amicrawl.meguri.format.verification import partition_in
from amicrawl.meguri.format.writer import WriteOptions, write_partition

if TYPE_CHECKING:
    from pathlib import Path

BUDGET = 8_000_000
"""Bytes that reading a file of a few kilobytes may allocate."""

OPTIONS = (
    WriteOptions(Codec.NONE, schedule=True),
    WriteOptions(Codec.ZSTD, schedule=True),
    WriteOptions(Codec.NONE, schedule=True, max_page_rows=13),
    WriteOptions(Codec.ZSTD, max_page_rows=13),
)


@cache
def base(number: int) -> Sound:
    partition = made_up(40, hosts=5)
    partition.seen_filter = b"\1\0\3" + bytes(5) + b"\1" + bytes(23 + 64)
    return sound(partition, OPTIONS[number])


@st.composite
def changed_files(draw: st.DrawFn) -> bytes:
    """A file with a few bytes changed, mostly with all checksums right again."""
    given = base(draw(st.integers(0, len(OPTIONS) - 1)))
    offsets = st.integers(0, len(given.octets) - 1)
    fields = st.one_of(
        st.binary(min_size=1, max_size=1),
        st.sampled_from([b"\xff" * 4, b"\xff" * 8, bytes(4), bytes(8), struct.pack("<Q", 1 << 40)]),
        st.binary(min_size=1, max_size=9),
    )
    changes = draw(st.lists(st.tuples(offsets, fields), min_size=1, max_size=4))
    return given.changed(changes, repair=draw(st.integers(0, 9)) > 0)


@given(octets=changed_files())
def test_a_changed_file_is_refused_or_read(octets: bytes, tmp_path: Path) -> None:
    path = tmp_path / "changed.meguri"
    path.write_bytes(octets)
    tracemalloc.start()
    try:
        read_all(path)
        assert tracemalloc.get_traced_memory()[1] < BUDGET
    finally:
        tracemalloc.stop()


@settings(max_examples=60)
@given(octets=st.binary(max_size=300), number=st.integers(0, len(OPTIONS) - 1))
def test_a_footer_of_noise_is_refused(octets: bytes, number: int, tmp_path: Path) -> None:
    given = base(number).octets
    offset = int.from_bytes(given[48:56], "little")
    path = tmp_path / "noise.meguri"
    path.write_bytes(given[:offset] + octets + pack_trailer(octets))
    assert not read_all(path)


@pytest.mark.parametrize("number", range(len(OPTIONS)))
def test_every_cut_is_refused(number: int, tmp_path: Path) -> None:
    octets = base(number).octets
    path = tmp_path / "cut.meguri"
    for length in {*range(120), *range(0, len(octets), 37), *range(len(octets) - 40, len(octets))}:
        path.write_bytes(octets[:length])
        with pytest.raises(FrontierFileError) as refused:
            FrontierFile.open(path)
        assert refused.value.fault == (FileFault.SHORT if length < 76 else FileFault.BAD_MAGIC)


@pytest.mark.parametrize("number", range(len(OPTIONS)))
def test_every_flipped_bit_is_noticed(number: int, tmp_path: Path) -> None:
    octets = base(number).octets
    path = tmp_path / "flipped.meguri"
    for place in range(number, len(octets), 67):
        flipped = bytearray(octets)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        assert not read_all(path)


ALL_EQUAL = {Encoding.FOR: b"\0", Encoding.DICT: b"\1\0\0\0\0\0"}


def claiming(rows: int) -> bytes:
    """Return a file of a few kilobytes, right in all that it says, of so many equal rows."""
    octets = bytearray(64)
    regions, tables = [], []
    for number, schema in enumerate((URL_COLUMNS, HOST_COLUMNS)):
        begin, entries = len(octets), []
        for column in schema:
            page = equal_page(column, rows if number == 0 else 0)
            entries.append(entry_of(column, page, len(octets), rows if number == 0 else 0))
            octets += page
        tables.append(tuple(entries))
        regions.append(Region(number, begin, len(octets) - begin, crc32c(bytes(octets[begin:]))))
    totals = [
        sum(getattr(e, name) for t in tables for e in t)
        for name in ("total_compressed", "total_uncompressed")
    ]
    per_url = float(np.float32(len(octets)) / np.float32(rows))
    statistics = Statistics(rows, 0, 0, 5, 0, 0, 0, totals[0], totals[1], per_url)
    footer = encode_footer(Footer(tuple(regions), tables[0], tables[1], statistics))
    octets[:64] = Header(1, 1, Codec.NONE, 0, 5, rows, 0, len(octets), 0).pack()
    return bytes(octets) + footer + pack_trailer(footer)


def equal_page(column: Column, rows: int) -> bytes:
    encoding = Encoding.FOR if column.has_zones else Encoding.DICT
    payload = ALL_EQUAL[encoding] if rows else b""
    if not rows:
        encoding = Encoding.RAW
    header = PageHeader(
        PageKind.DATA, encoding, Codec.NONE, 0, rows, len(payload), len(payload), 0, 0, crc32c(payload)
    )
    return header.pack() + payload


def entry_of(column: Column, page: bytes, offset: int, rows: int) -> ColumnEntry:
    zone = (0, 0) if rows and column.has_zones else None
    listed = np.array([(0, rows, len(page), page[1], zone is not None, 0, 0)], PAGE_ENTRY)
    return ColumnEntry(
        column.id,
        offset,
        len(page) - 32,
        rows * column.width,
        rows,
        column.width,
        page[1],
        0,
        crc32c(page),
        zone,
        listed,
    )


def test_rows_that_a_file_of_its_size_cannot_have_are_refused_before_room_is_made(
    tmp_path: Path,
) -> None:
    path = tmp_path / "claiming.meguri"
    path.write_bytes(claiming(1000))
    with FrontierFile.open(path) as file:
        assert len(partition_in(file).urls["status"]) == 1000
    for rows in (2_000_000, 1 << 31, (1 << 32) - 1):
        path.write_bytes(claiming(rows))
        tracemalloc.start()
        with pytest.raises(FrontierFileError, match=f"url_rows {rows} in a file of"):
            FrontierFile.open(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()


def test_what_no_reader_would_open_is_not_written(tmp_path: Path) -> None:
    urls = np.zeros(1_500_000, ROW)
    urls["path_key"] = np.arange(len(urls))
    alike = Partition(urls=columns_of(urls), hosts=columns_of(np.zeros(0, HOST_ROW)), arena=b"")
    path = tmp_path / "alike.meguri"
    with pytest.raises(InputError, match="no reader would believe so many"):
        write_partition(alike, path, options=WriteOptions(max_page_rows=1 << 16), disk=Disk())
    assert not list(tmp_path.iterdir())
    # Path keys of real URLs are hashes.
    urls["path_key"] = np.sort(np.random.default_rng(1).integers(0, 1 << 63, len(urls)))
    alike.urls = columns_of(urls)
    write_partition(alike, path, options=WriteOptions(), disk=Disk())
    with FrontierFile.open(path) as file:
        assert file.url_rows == len(urls)
    repeated = made_up(1)
    repeated.seen_filter = bytes(80_000_000)
    with pytest.raises(InputError, match="no reader would open that"):
        encode_partition(repeated, WriteOptions())


def test_strings_that_compress_too_far_for_one_file_go_on_in_others(tmp_path: Path) -> None:
    """A site with links of a megabyte that are all alike must not keep a crawl from its snapshot."""
    repeated, path = made_up(1), tmp_path / "alike.meguri"
    repeated.arena = bytes(80_000_000)
    size = write_partition(repeated, path, options=WriteOptions(), disk=Disk())
    assert {file.name for file in tmp_path.iterdir()} == {path.name, "alike.strings-1.meguri"}
    assert size == sum(file.stat().st_size for file in tmp_path.iterdir())
    with FrontierFile.open(path) as file:
        assert file.arena() == repeated.arena


def bomb(*, stated: int | None) -> bytes:
    """Return a Zstandard frame of 128 KiB that stands for 4 GiB of zeros."""
    blocks = [(1 << 17 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"] * 32768
    blocks[-1] = (1 << 17 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    head = b"\x80\x58" + struct.pack("<I", stated) if stated is not None else b"\x00\x58"
    return b"\x28\xb5\x2f\xfd" + head + b"".join(blocks)


@pytest.mark.parametrize("stated", [None, 1000, 0xFFFF_FFFF])
def test_a_bomb_is_opened_no_further_than_its_page_says(stated: int | None) -> None:
    frame = bomb(stated=stated)
    tracemalloc.start()
    with pytest.raises(Malformed):
        decompress(Codec.ZSTD, frame, 1000)
    with pytest.raises(Malformed):
        for _ in decompressed(Codec.ZSTD, iter((frame,)), 1000):
            pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < BUDGET


def test_strings_that_no_url_would_compress_to_are_refused(tmp_path: Path) -> None:
    partition = made_up(10)
    partition.arena = b"?" * 200_000  # stands for its frame
    given = sound(partition, WriteOptions(Codec.NONE))
    arena = given.octets.index(b"?" * 100)
    changed = given.changed([(arena - 24, struct.pack("<I", 0xFFFF_FFFF)), (arena - 28, b"\xff" * 4)])
    path = tmp_path / "arena.meguri"
    path.write_bytes(changed)
    with FrontierFile.open(path) as file:
        for read in (file.arena, lambda: file.copy_arena(lambda _: None)):
            with pytest.raises(FrontierFileError, match=r"string_blob: .*4294967295"):
                read()
