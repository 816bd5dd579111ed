"""Manifest: which frontier file holds which host keys, as one small file.

    "MGM1" | uvarint number of entries | entries | u32 CRC-32C of all before | "MGM1"

    entry: u32 partition | uvarint length, file name | u64 lowest key | u64 highest key | u64 URL rows
           u64 host rows | u32 earliest due | f32 bytes per URL | u32 CRC-32C of the file's footer
           u32 created | u32 epoch

All numbers are little-endian. Entries are sorted by lowest key, then partition. Reading is strict: what
`encode_manifest` would not have written is refused.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.disk import readable, replace_file
from amicrawl.meguri.format.checksum import crc32c
from amicrawl.meguri.format.faults import FileFault, FrontierFileError, Malformed
from amicrawl.meguri.format.footer import Cursor
from amicrawl.meguri.format.varints import write_uvarint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from amicrawl.disk import Disk

_MAGIC = b"MGM1"
_SHORTEST = 12
_CHECKSUM = struct.Struct("<I")
_PARTITION = struct.Struct("<I")
_REST = struct.Struct("<QQQQIfIII")
_KEYS = 1 << 64

MOST_BYTES = 256 << 20
"""A manifest that is larger is not read; one of four million files is as large."""


class ManifestEntry(NamedTuple):
    """What a manifest says of one frontier file."""

    partition_id: int
    file: bytes
    """Its name, relative to the manifest's directory; octets, as nothing says they are text."""
    host_key_lo: int
    host_key_hi: int
    url_rows: int
    host_rows: int
    due_min: int
    """The earliest time at which a row is due, in hours since 1970; 0 where none is."""
    bytes_per_url: float
    footer_crc32c: int
    created: int
    """Hours since 1970."""
    epoch: int


class Flaw(NamedTuple):
    """Host keys from *lo* to *hi* that no file of an epoch has, or that several have."""

    lo: int
    hi: int
    overlap: bool


class Manifest(NamedTuple):
    """The entries of a manifest, sorted by lowest host key, then partition."""

    entries: tuple[ManifestEntry, ...]

    @classmethod
    def of(cls, entries: Iterable[ManifestEntry]) -> Manifest:
        """Return the manifest of *entries* in any order."""
        return cls(tuple(sorted(entries, key=_order)))

    def owner(self, host_key: int) -> ManifestEntry | None:
        """Return the last entry that begins at or below *host_key*, if it reaches it."""
        below = [entry for entry in self.entries if entry.host_key_lo <= host_key]
        return below[-1] if below and host_key <= below[-1].host_key_hi else None

    def epochs(self) -> list[int]:
        """Return the epochs that occur, in order."""
        return sorted({entry.epoch for entry in self.entries})

    def flaws(self, epoch: int) -> Iterator[Flaw]:
        """Yield where the files of *epoch* leave host keys out or share them, from the lowest key on."""
        expected = 0
        for entry in self.entries:
            if entry.epoch != epoch or entry.host_key_hi < entry.host_key_lo:
                continue
            if entry.host_key_lo > expected:
                yield Flaw(expected, entry.host_key_lo - 1, overlap=False)
            elif entry.host_key_lo < expected:
                # Beyond the last key `expected` is 2^64: a range within one before it is an overlap,
                # where software that counts in 64 bits sees a gap from 0.
                yield Flaw(entry.host_key_lo, expected - 1, overlap=True)
            expected = max(expected, entry.host_key_hi + 1)
        if expected < _KEYS:
            yield Flaw(expected, _KEYS - 1, overlap=False)


def _order(entry: ManifestEntry) -> tuple[int, int]:
    return entry.host_key_lo, entry.partition_id


def encode_manifest(manifest: Manifest) -> bytes:
    """Return *manifest* exactly as its file lies on disk."""
    body = bytearray(_MAGIC + write_uvarint(len(manifest.entries)))
    for entry in manifest.entries:
        body += _PARTITION.pack(entry.partition_id) + write_uvarint(len(entry.file)) + entry.file
        body += _REST.pack(*entry[2:])
    return bytes(body) + _CHECKSUM.pack(crc32c(memoryview(body))) + _MAGIC


def decode_manifest(octets: bytes) -> Manifest:
    """Return the manifest in *octets*; raises Malformed."""
    if len(octets) < _SHORTEST or not octets.startswith(_MAGIC):
        raise Malformed("not a manifest: it does not begin with MGM1", fault=FileFault.BAD_MAGIC)
    end = len(octets) - _CHECKSUM.size - len(_MAGIC)
    if not octets.endswith(_MAGIC):
        raise Malformed(
            "it does not end with MGM1, so it was cut or added to",
            fault=FileFault.BAD_MAGIC,
            at=len(octets) - len(_MAGIC),
        )
    if _CHECKSUM.unpack_from(octets, end)[0] != crc32c(octets[:end]):
        raise Malformed("its checksum does not fit its bytes", fault=FileFault.CHECKSUM, at=end)
    cursor = Cursor(memoryview(octets), len(_MAGIC), end)
    entries = cursor.several(_read_entry, least=_PARTITION.size + 1 + _REST.size)
    if list(entries) != sorted(entries, key=_order):
        raise Malformed("its entries are not sorted", fault=FileFault.NOT_SORTED)
    if encode_manifest(Manifest(entries)) != octets:
        raise Malformed("bytes follow its last entry, or a number is longer than it need be")
    return Manifest(entries)


def _read_entry(cursor: Cursor) -> ManifestEntry:
    (partition_id,) = cursor.fields(_PARTITION)
    file = bytes(cursor.take(cursor.uvarint()))
    return ManifestEntry(partition_id, file, *_REST.unpack(cursor.take(_REST.size)))


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in *path*; raises FrontierFileError, or InputError where it cannot be read."""
    with readable(path), path.open("rb") as file:
        octets = file.read(MOST_BYTES + 1)
    if len(octets) > MOST_BYTES:
        raise FrontierFileError(
            path, MOST_BYTES, "manifest", "it is too large for one", fault=FileFault.CORRUPT
        )
    try:
        return decode_manifest(octets)
    except Malformed as error:
        raise FrontierFileError(path, error.at, "manifest", error.reason, fault=error.fault) from error


def write_manifest(manifest: Manifest, path: Path, *, disk: Disk) -> None:
    """Write *manifest* to *path*, replacing what is there once all of it is on disk."""
    replace_file(path, encode_manifest(manifest), disk=disk)
