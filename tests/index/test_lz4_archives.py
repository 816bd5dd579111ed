"""WARC files packed with LZ4, a frame a record, as FastWARC writes them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fastwarc.stream_io import Lz4Reader, Lz4Writer
from index.archive_files import http, unexpected, warc

from amicrawl.index.reading.lz4_frame import Lz4Frame
from amicrawl.index.reading.records import read_records, records_of

if TYPE_CHECKING:
    from amicrawl.index.reading.records import Broken

BODIES = [b"one", b"two" * 700_000, b"", bytes(range(256)) * 40, b"five"]
RECORDS = [
    warc("response", f"http://example.org/{number}", http(body)) for number, body in enumerate(BODIES)
]


def frame(data: bytes) -> bytes:
    stream = io.BytesIO()
    writer = Lz4Writer(stream)
    writer.write(data)
    writer.close()
    return stream.getvalue()


FRAMES = [frame(record) for record in RECORDS]


def test_every_record_is_found_where_its_frame_lies(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.lz4"
    path.write_bytes(b"".join(FRAMES))
    found = list(read_records(path, on_broken=unexpected))
    assert [record.body for record in found] == BODIES
    assert [record.length for record in found] == [len(each) for each in FRAMES]
    for record, packed in zip(found, FRAMES, strict=True):
        assert path.read_bytes()[record.offset :][: record.length] == packed
        assert record.seekable


@pytest.mark.parametrize("lost", range(1, 4))
def test_a_damaged_frame_is_told_and_the_others_are_read(lost: int) -> None:
    frames = list(FRAMES)
    frames[lost] = frames[lost][:11] + b"\xf0" + frames[lost][12:-12] + b"\xff" * 12
    broken: list[Broken] = []
    found = list(records_of(io.BytesIO(b"".join(frames)), Path("x.warc.lz4"), on_broken=broken.append))
    offset = sum(map(len, frames[:lost]))
    assert {record.uri[-1] for record in found} == set("01234") - {str(lost)}
    assert broken[0].offset == offset
    assert "LZ4 frame" in broken[0].reason


@pytest.mark.parametrize("cut", [3, 9, 30, len(FRAMES[0]) - 1])
def test_a_file_that_ends_inside_a_frame_is_told(cut: int) -> None:
    broken: list[Broken] = []
    data = FRAMES[3] + FRAMES[0][:cut]
    found = list(records_of(io.BytesIO(data), Path("x.warc.lz4"), on_broken=broken.append))
    assert [record.body for record in found] == [BODIES[3]]
    assert [each.offset for each in broken] == [len(FRAMES[3])]


def test_a_frame_that_stands_for_much_is_handed_out_in_pieces() -> None:
    data = bytes(40 << 20)
    packed = frame(data)
    assert len(packed) < 1 << 20
    decoder = Lz4Frame(1 << 20)
    surplus = packed + b"what follows"
    sizes = []
    while not decoder.eof:
        sizes.append(len(decoder.decompress(surplus)))
        surplus = decoder.unused_data
    assert sum(sizes) == len(data)
    assert max(sizes) <= (1 << 20) + 1
    assert surplus == b"what follows"


def test_frames_of_every_size_end_where_they_end() -> None:
    """Whatever is fed at a time, a frame ends at its own end, as a foreign reader has it."""
    for size in (0, 1, 100, 70_000, 5_000_000):
        data = (b"WARC/1.0" * (size // 8 + 1))[:size]
        packed = frame(data)
        assert Lz4Reader(io.BytesIO(packed)).read(size + 1) == data
        for feed in (1, 7, 65_536) if size < 1000 else (65_536,):
            decoder, given, at = Lz4Frame(1 << 20), b"", 0
            while not decoder.eof:
                block = (packed + b"rest")[at : at + feed]
                given += decoder.decompress(block)
                at += len(block) - len(decoder.unused_data)
            assert (given, at) == (data, len(packed))
