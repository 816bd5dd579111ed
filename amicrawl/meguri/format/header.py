"""Header and trailer: the first 64 bytes of a frontier file and the last 12.

The header says whose rows the file holds, how many, and where the footer begins; it has a checksum of
its own. The trailer holds length and checksum of the footer. Both bear the format's magic, at the very
beginning and the very end, so that a file that was cut short is not taken for a whole one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntFlag
from typing import Final, Self

from amicrawl.meguri.format.checksum import crc32c
from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.format.schema import Codec

MAGIC: Final = b"MEG1"
VERSION: Final = 1
CRC32C: Final = 1
"""The number of the one checksum there is."""

_LAYOUT: Final = struct.Struct("<4sHHIHBBQQQQQI")
_TRAILER: Final = struct.Struct("<II4s")
HEADER_SIZE: Final = _LAYOUT.size + 4
TRAILER_SIZE: Final = _TRAILER.size
LEAST_SIZE: Final = HEADER_SIZE + TRAILER_SIZE
"""Bytes of the smallest file that is looked at."""


class Flag(IntFlag):
    """What a file has."""

    SORTED = 0x01
    SCHEDULE = 0x02
    SEEN_SET = 0x04
    STRINGS = 0x08
    RIBBON = 0x10
    """The seen-set is a ribbon filter. Files are written without it even then."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the first 64 bytes say."""

    partition_id: int
    flags: int
    codec: Codec
    host_key_lo: int
    host_key_hi: int
    url_rows: int
    host_rows: int
    footer_offset: int
    created: int
    """Hours since 1970."""
    version_minor: int = 0
    version_major: int = VERSION
    checksum_algorithm: int = CRC32C

    def pack(self) -> bytes:
        """Return the 64 bytes."""
        fields = _LAYOUT.pack(
            MAGIC,
            self.version_major,
            self.version_minor,
            self.partition_id,
            self.flags,
            self.checksum_algorithm,
            self.codec,
            self.host_key_lo,
            self.host_key_hi,
            self.url_rows,
            self.host_rows,
            self.footer_offset,
            self.created,
        )
        return fields + crc32c(fields).to_bytes(4, "little")

    @classmethod
    def unpack(cls, block: bytes) -> Self:
        """Return what *block*, the first 64 bytes of a file, says.

        Raises `Malformed` for another magic, checksum, version, codec or flag; a later minor version is
        read, since it may add only what readers skip.
        """
        if block[:4] != MAGIC:
            raise Malformed(f"begins with {block[:4]!r} instead of {MAGIC!r}", fault=FileFault.BAD_MAGIC)
        if crc32c(block[:60]) != int.from_bytes(block[60:64], "little"):
            raise Malformed("the header has another checksum", fault=FileFault.CHECKSUM, at=60)
        _, major, minor, partition, flags, algorithm, codec, lo, hi, urls, hosts, footer, created = (
            _LAYOUT.unpack(block[:60])
        )
        _check_known("version", major, (VERSION,), at=4)
        _check_known("checksum algorithm", algorithm, (CRC32C,), at=14)
        _check_known("codec", codec, tuple(Codec), at=15)
        if flags & ~sum(Flag):
            raise Malformed(f"unknown flags {flags:#06x}", fault=FileFault.UNSUPPORTED, at=12)
        # What is left of a range that was divided at its very end is empty, and so is the file.
        if lo > hi and (urls or hosts):
            raise Malformed(f"host keys from {lo:#018x} to {hi:#018x}", at=16)
        return cls(partition, flags, Codec(codec), lo, hi, urls, hosts, footer, created, minor)


def _check_known(name: str, value: int, known: tuple[int, ...], *, at: int) -> None:
    if value not in known:
        raise Malformed(f"{name} {value} is not known", fault=FileFault.UNSUPPORTED, at=at)


def pack_trailer(footer: bytes) -> bytes:
    """Return the 12 bytes that follow *footer*."""
    return _TRAILER.pack(len(footer), crc32c(footer), MAGIC)


def unpack_trailer(block: bytes) -> tuple[int, int]:
    """Return length and checksum of the footer from the last 12 bytes; Malformed for another magic."""
    length, checksum, magic = _TRAILER.unpack(block)
    if magic != MAGIC:
        raise Malformed(
            f"ends with {magic!r} instead of {MAGIC!r}: it was cut off, or something was added",
            fault=FileFault.BAD_MAGIC,
            at=8,
        )
    return length, checksum
