"""The superblock: its bytes, and that a damaged slot is told from one that was never written."""

from __future__ import annotations

import struct

import google_crc32c
import pytest

from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.store.superblock import (
    Slot,
    decode_slot,
    decode_superblock,
    encode_slot,
    encode_superblock,
)

FIRST = Slot(generation=1, lsn=5, arena_length=20, snapshot="snap-1.meguri", log="log-2")
SECOND = Slot(generation=2, lsn=9, arena_length=30, snapshot="snap-2.meguri", log="log-3")


def with_checksum(block: bytes) -> bytes:
    return block[:252] + struct.pack("<I", google_crc32c.value(block[:252]))


def test_the_bytes_of_a_slot_are_pinned() -> None:
    wanted = (
        bytes.fromhex("5547454d 0100000000000000 0500000000000000 1400000000000000")
        + b"\x0d\0snap-1.meguri\x05\0log-2"
    )
    assert encode_slot(FIRST) == wanted.ljust(252, b"\0") + bytes.fromhex("762a8353")


def test_generations_take_turns_in_the_two_slots() -> None:
    assert encode_superblock([FIRST]) == bytes(256) + encode_slot(FIRST)
    assert encode_superblock([FIRST, SECOND]) == encode_slot(SECOND) + encode_slot(FIRST)


def test_the_newest_slot_comes_first() -> None:
    assert decode_superblock(encode_superblock([FIRST, SECOND])) == ([SECOND, FIRST], [])
    third = Slot(3, 12, 40, "snap-3.meguri", "log-4")
    assert decode_superblock(encode_superblock([third, SECOND])) == ([third, SECOND], [])


def test_a_slot_that_was_never_written_is_no_damage() -> None:
    assert decode_superblock(encode_superblock([FIRST])) == ([FIRST], [])


@pytest.mark.parametrize("at", range(256))
def test_wherever_a_slot_is_damaged_the_other_is_found(at: int) -> None:
    block = bytearray(encode_superblock([FIRST, SECOND]))
    block[at] ^= 0x10
    slots, faults = decode_superblock(bytes(block))
    assert slots == [FIRST]
    assert [fault.fault for fault in faults] == [FileFault.BAD_MAGIC if at < 4 else FileFault.CHECKSUM]


@pytest.mark.parametrize("size", [0, 1, 255, 256, 300, 511])
def test_a_superblock_that_is_too_short_has_lost_a_slot_or_both(size: int) -> None:
    slots, faults = decode_superblock(encode_superblock([FIRST, SECOND])[:size])
    assert slots == ([SECOND] if size >= 256 else [])
    assert {fault.fault for fault in faults} == {FileFault.SHORT}


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (28, struct.pack("<H", 300)),
        (28, struct.pack("<H", 223)),
        (28, struct.pack("<H", 221)),
        (43, struct.pack("<H", 0xFFFF)),
        (30, b"\xff"),
        (4, struct.pack("<Q", 2**63)),
        (12, struct.pack("<Q", 2**64 - 1)),
        (20, struct.pack("<Q", 2**63)),
    ],
)
def test_a_slot_with_a_right_checksum_and_no_sense_is_damaged(at: int, written: bytes) -> None:
    block = bytearray(encode_slot(FIRST))
    block[at : at + len(written)] = written
    with pytest.raises(Malformed):
        decode_slot(with_checksum(bytes(block)))
