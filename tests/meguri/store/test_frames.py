"""Frames: the bytes of a journal, and how far a damaged one counts."""

from __future__ import annotations

import struct

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st
from meguri.store.partitions import frame, host_frame, intern_frame, tombstone_frame, url_frame

from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.schema import HOST_ROW, ROW
from amicrawl.meguri.store.journal import TOMBSTONE, FrameKind, Replayed, frame_at, read_frames, replay

GO_DEV = bytes.fromhex("95a3ae4cfb1ae2c4")
URL = GO_DEV + bytes.fromhex("f5cc37a0b8ae0ca5") + b"\1\0\0\0\x3f".ljust(87, b"\0")
HOST = GO_DEV + bytes(89)


def replay_all(block: bytes, first_lsn: int | None = 1) -> tuple[Replayed, list[tuple[str, bytes]]]:
    found: list[tuple[str, bytes]] = []
    done = replay(
        block,
        first_lsn=first_lsn,
        on_url=lambda body: found.append(("url", body)),
        on_host=lambda body: found.append(("host", body)),
        on_intern=lambda body: found.append(("intern", body)),
        on_tombstone=lambda body: found.append(("gone", body)),
    )
    return done, found


def one_of_each(first_lsn: int = 1) -> list[bytes]:
    return [
        intern_frame(first_lsn, b"\x12http://go.dev/doc/"),
        url_frame(first_lsn + 1, URL),
        host_frame(first_lsn + 2, HOST),
        tombstone_frame(first_lsn + 3, GO_DEV),
        tombstone_frame(first_lsn + 4, URL[:16]),
        intern_frame(first_lsn + 5, b"\1x"),
    ]


def test_the_bytes_of_frames_are_pinned() -> None:
    """A journal written last year must replay today."""
    url = GO_DEV + bytes.fromhex("f5cc37a0b8ae0ca5010000003f000000010000000000000064000000")
    row = url.ljust(103, b"\0")
    assert intern_frame(1, b"\x12http://go.dev/doc/").hex() == (
        "0100000000000000020013000000" + "12687474703a2f2f676f2e6465762f646f632f" + "275aae74"
    )
    assert url_frame(2, row).hex() == "0200000000000000001057000000" + row.hex() + "6df81aaf"
    host = bytearray(HOST)
    struct.pack_into("<H", host, 8 + 53, 15)
    struct.pack_into("<I", host, 8 + 63, 96)
    assert host_frame(3, bytes(host)).hex() == "0300000000000000010859000000" + host.hex() + "70fdea11"
    gone = GO_DEV + bytes.fromhex("74fac99e94054c90")
    assert tombstone_frame(4, gone).hex() == "0400000000000000801000000000" + gone.hex() + "83fa069a"


def test_a_row_in_a_frame_is_a_record_of_the_tables() -> None:
    assert len(URL) == ROW.itemsize
    assert len(HOST) == HOST_ROW.itemsize
    assert len(url_frame(1, URL)) == 121
    assert len(host_frame(1, HOST)) == 115


def test_the_quick_ways_to_a_frame_give_what_the_general_one_gives() -> None:
    assert url_frame(7, URL) == frame(7, FrameKind.URL, URL, key_length=16)
    assert host_frame(7, HOST) == frame(7, FrameKind.HOST, HOST, key_length=8)
    assert intern_frame(7, b"\1x") == frame(7, FrameKind.INTERN, b"\1x", key_length=0)
    assert tombstone_frame(7, GO_DEV) == frame(7, FrameKind.HOST | TOMBSTONE, GO_DEV, key_length=8)


@given(st.binary(max_size=300), st.integers(1, 2**62))
def test_a_frame_reads_back_as_written(entry: bytes, lsn: int) -> None:
    written = intern_frame(lsn, entry)
    found = frame_at(written, 0, next_lsn=lsn)
    assert (found.length, found.lsn, found.kind, found.tombstone, found.body) == (
        len(written),
        lsn,
        FrameKind.INTERN,
        False,
        entry,
    )
    assert replay_all(written, lsn) == (Replayed(len(written), lsn + 1, 1, ""), [("intern", entry)])


def test_a_replay_hands_on_what_was_written_in_order() -> None:
    block = b"".join(one_of_each(first_lsn=41))
    done, found = replay_all(block, 41)
    assert done == Replayed(len(block), 47, 6, "")
    assert found == [
        ("intern", b"\x12http://go.dev/doc/"),
        ("url", URL),
        ("host", HOST),
        ("gone", GO_DEV),
        ("gone", URL[:16]),
        ("intern", b"\1x"),
    ]
    assert [read.lsn for read in read_frames(block, next_lsn=41)] == list(range(41, 47))


def test_a_replay_that_is_not_told_where_to_begin_begins_with_the_first_frame() -> None:
    block = b"".join(one_of_each(first_lsn=41))
    assert replay_all(block, None)[0] == Replayed(len(block), 47, 6, "")
    assert replay_all(b"", None)[0] == Replayed(0, None, 0, "")
    assert replay_all(b"torn", None)[0] == Replayed(0, None, 0, "the frame is cut short")


def test_at_every_cut_the_whole_frames_count() -> None:
    frames = one_of_each()
    block = b"".join(frames)
    ends = [len(b"".join(frames[:count])) for count in range(len(frames) + 1)]
    for cut in range(len(block)):
        done, found = replay_all(block[:cut])
        assert done.intact_bytes == max(end for end in ends if end <= cut)
        assert len(found) == done.frames == ends.index(done.intact_bytes)
        assert done.next_lsn == 1 + done.frames
        assert bool(done.stopped) == (cut not in ends)
        assert [read.body for read in read_frames(block[:cut])] == [body for _, body in found]


def test_whichever_bit_is_flipped_nothing_from_there_on_counts() -> None:
    frames = one_of_each()
    block = b"".join(frames)
    for at in range(len(block)):
        damaged = bytearray(block)
        damaged[at] ^= 1 << at % 8
        done, _ = replay_all(bytes(damaged))
        assert done.intact_bytes <= at
        assert done.intact_bytes == len(b"".join(frames[: done.frames]))
        assert len(frames[done.frames]) > at - done.intact_bytes
        assert done.stopped


@pytest.mark.parametrize("lsn", [0, 1, 3, 2**63, 2**64 - 1])
def test_a_frame_that_is_not_the_next_does_not_count(lsn: int) -> None:
    block = intern_frame(1, b"\1a") + intern_frame(lsn, b"\1b")
    done, found = replay_all(block)
    assert (done.frames, done.next_lsn) == (1, 2)
    assert found == [("intern", b"\1a")]
    assert done.stopped == f"frame {lsn} stands where 2 should"


@pytest.mark.parametrize("lsn", [0, 2**63, 2**64 - 1])
def test_a_log_cannot_begin_with_a_number_nothing_reaches(lsn: int) -> None:
    done, _ = replay_all(intern_frame(lsn, b"\1b"), None)
    assert done == Replayed(0, None, 0, f"frame {lsn} stands where another should")


@pytest.mark.parametrize(
    ("kind", "body", "key_length"),
    [
        (FrameKind.URL, URL[:-1], 16),
        (FrameKind.URL, URL + b"\0", 16),
        (FrameKind.URL, URL, 8),
        (FrameKind.URL, URL[:16], 16),
        (FrameKind.HOST, HOST[:-1], 8),
        (FrameKind.HOST, HOST, 16),
        (FrameKind.HOST, HOST[:8], 8),
        (FrameKind.INTERN, b"\1x", 1),
        (FrameKind.INTERN | TOMBSTONE, b"", 0),
        (FrameKind.URL | TOMBSTONE, URL, 16),
        (FrameKind.URL | TOMBSTONE, URL[:8], 8),
        (FrameKind.HOST | TOMBSTONE, URL[:16], 16),
        (3, b"", 0),
        (0x40, URL, 16),
        (0xFF, b"", 0),
    ],
)
def test_a_frame_of_a_shape_that_there_is_not_does_not_count(
    kind: int, body: bytes, key_length: int
) -> None:
    block = frame(1, kind, body, key_length=key_length)
    done, found = replay_all(block + intern_frame(2, b"\1x"))
    assert found == []
    assert done.intact_bytes == 0
    assert done.stopped
    with pytest.raises(Malformed):
        frame_at(block, 0)


def test_nothing_is_read_for_a_length_that_the_log_does_not_have() -> None:
    head = struct.pack("<QBBI", 1, FrameKind.INTERN, 0, 2**32 - 1)
    assert replay_all(head + bytes(100))[0] == Replayed(0, 1, 0, "the frame is cut short")


@given(st.binary(max_size=200))
def test_no_bytes_make_a_replay_fail(block: bytes) -> None:
    done, _ = replay_all(block, None)
    assert done.frames == 0 or google_crc32c.value(block[: done.intact_bytes])
    assert replay_all(bytes(200))[0].frames == 0
