"""The superblock of a partition's directory: which generation counts. Bytes only.

It is two slots of 256 bytes, each naming a generation, so that one is always whole:

    +--------+------------+-----+--------------+---------------+----------+-----------+-----------------+
    | magic  | generation | LSN | arena length | snapshot name | log name | zero fill | CRC32C of the   |
    | u32 LE | u64 LE     | u64 | u64 LE       | u16 + octets  | u16 + .. | to 252    | 252 before, u32 |
    +--------+------------+-----+--------------+---------------+----------+-----------+-----------------+

The last eight octets of the fill (244 to 251) hold, in slots of ours, the number of the newest log that
was begun since: all logs up to that one must be there. Other software writes zeros and reads nothing.

A generation has the first slot if it is even and the second if it is odd. A slot of nothing but zeros
was never written.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final

from google_crc32c import value as crc32c

from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.store.journal import MAX_LSN

if TYPE_CHECKING:
    from collections.abc import Iterable

SUPERBLOCK_NAME: Final = "super"
SLOT_SIZE: Final = 256
SUPERBLOCK_SIZE: Final = 2 * SLOT_SIZE

_MAGIC: Final = 0x4D454755
_HEAD: Final = Struct("<IQQQ")
_LENGTH: Final = Struct("<H")
_CRC: Final = Struct("<I")
_CRC_AT: Final = SLOT_SIZE - _CRC.size
_NEWEST: Final = Struct("<Q")
_NEWEST_AT: Final = _CRC_AT - _NEWEST.size


@dataclass(frozen=True, slots=True)
class Slot:
    """What a slot says of a generation."""

    generation: int
    lsn: int
    """The first that the snapshot does not hold: that of the first frame to replay."""
    arena_length: int
    """Octets of the string arena in the snapshot."""
    snapshot: str
    """The name of its file."""
    log: str
    """The name of the first log to replay."""
    newest_log: int = 0
    """The number of the newest log that must be there; 0 where the slot does not say."""


def encode_slot(slot: Slot) -> bytes:
    """Return the 256 bytes of *slot*."""
    block = _HEAD.pack(_MAGIC, slot.generation, slot.lsn, slot.arena_length)
    for name in (slot.snapshot, slot.log):
        octets = name.encode("ascii")
        block += _LENGTH.pack(len(octets)) + octets
    block = block.ljust(_NEWEST_AT, b"\0")[:_NEWEST_AT] + _NEWEST.pack(slot.newest_log)
    return block + _CRC.pack(crc32c(block))


def decode_slot(block: bytes) -> Slot | None:
    """Return what a slot says; None if it was never written. Raises Malformed if it is damaged."""
    if len(block) != SLOT_SIZE:
        raise Malformed(f"it ends after {len(block)} of its {SLOT_SIZE} bytes", fault=FileFault.SHORT)
    if not any(block):
        return None
    magic, generation, lsn, arena_length = _HEAD.unpack_from(block)
    if magic != _MAGIC:
        raise Malformed("it does not begin as a slot does", fault=FileFault.BAD_MAGIC)
    if crc32c(block[:_CRC_AT]) != _CRC.unpack_from(block, _CRC_AT)[0]:
        raise Malformed("its checksum is wrong", fault=FileFault.CHECKSUM, at=_CRC_AT)
    if max(generation, lsn, arena_length) > MAX_LSN:
        raise Malformed("it has a number that nothing can reach", at=_LENGTH.size)
    snapshot, log_at = _name_at(block, _HEAD.size)
    log, end = _name_at(block, log_at)
    newest = _NEWEST.unpack_from(block, _NEWEST_AT)[0] if end <= _NEWEST_AT else 0
    return Slot(generation, lsn, arena_length, snapshot, log, newest if newest <= MAX_LSN else 0)


def _name_at(block: bytes, offset: int) -> tuple[str, int]:
    """Return the name at *offset*, and where it ends."""
    begin = offset + _LENGTH.size
    if begin > _CRC_AT or (end := begin + _LENGTH.unpack_from(block, offset)[0]) > _CRC_AT:
        raise Malformed("a name in it is longer than the slot", at=offset)
    try:
        return block[begin:end].decode("ascii"), end
    except UnicodeDecodeError as error:
        raise Malformed("a name in it is not ASCII", at=begin) from error


def encode_superblock(slots: Iterable[Slot]) -> bytes:
    """Return the 512 bytes that hold *slots*: at most one of an even and one of an odd generation."""
    block = bytearray(SUPERBLOCK_SIZE)
    for slot in slots:
        at = slot.generation % 2 * SLOT_SIZE
        assert not any(block[at : at + SLOT_SIZE]), "two generations for one slot"
        block[at : at + SLOT_SIZE] = encode_slot(slot)
    return bytes(block)


def decode_superblock(block: bytes) -> tuple[list[Slot], list[Malformed]]:
    """Return the slots that are whole, the newest first, and what is wrong with the others.

    Of a block that is too long, what is behind the slots is not looked at.
    """
    slots, faults = [], []
    for at in (0, SLOT_SIZE):
        try:
            slot = decode_slot(block[at : at + SLOT_SIZE])
        except Malformed as error:
            faults.append(Malformed(error.reason, fault=error.fault, at=at + error.at))
        else:
            slots += [] if slot is None else [slot]
    return sorted(slots, key=lambda slot: -slot.generation), faults
