"""Frontier files changed by somebody who can compute checksums: only their meaning shows the change."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from meguri.format.frontier_files import encode_partition

from amicrawl.meguri.format.checksum import crc32c
from amicrawl.meguri.format.faults import FrontierFileError
from amicrawl.meguri.format.footer import REGION_NAMES
from amicrawl.meguri.format.header import HEADER_SIZE, TRAILER_SIZE
from amicrawl.meguri.format.page import HEADER_SIZE as PAGE_HEADER_SIZE
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.varints import read_uvarint
from amicrawl.meguri.format.verification import partition_in, verify

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.meguri.format.schema import Partition
    from amicrawl.meguri.format.writer import WriteOptions

_REGION_ENTRY = 22


@dataclass(frozen=True)
class Sound:
    """A sound file, and where its checksums stand: each with the bytes that it covers."""

    octets: bytes
    slots: tuple[tuple[int, int, int], ...]

    def changed(self, changes: Iterable[tuple[int, bytes]], *, repair: bool = True) -> bytes:
        """Return the file with *changes* written over it, its checksums put right if *repair*."""
        octets = bytearray(self.octets)
        for offset, block in changes:
            fitting = block[: len(octets) - offset]
            octets[offset : offset + len(fitting)] = fitting
        for slot, begin, end in self.slots if repair else ():
            octets[slot : slot + 4] = crc32c(bytes(octets[begin:end])).to_bytes(4, "little")
        return bytes(octets)


def sound(partition: Partition, options: WriteOptions) -> Sound:
    """Return *partition* written under *options*."""
    octets = encode_partition(partition, options)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "sound.meguri"
        path.write_bytes(octets)
        with FrontierFile.open(path) as file:
            return Sound(octets, tuple(_slots(file, octets)))


def _slots(file: FrontierFile, octets: bytes) -> Iterable[tuple[int, int, int]]:
    """Yield the place of each checksum and the bytes it covers; those that cover others come later."""
    footer = file.header.footer_offset
    columns = []
    for table, region in ((file.url_columns, file.regions[0]), (file.host_columns, file.regions[1])):
        entries = list(table.values())
        ends = [entry.first_page_offset for entry in entries[1:]] + [region.end]
        for entry, end in zip(entries, ends, strict=True):
            page = entry.first_page_offset
            for length in entry.pages["length"].tolist():
                yield page + 28, page + PAGE_HEADER_SIZE, page + length
                page += length
            at = read_uvarint(octets, footer + entry.at)[1] + 24
            at = read_uvarint(octets, read_uvarint(octets, at)[1])[1]
            columns.append((at + 11, entry.first_page_offset, end))
    for region in file.regions[2:]:
        yield region.offset + 28, region.offset + PAGE_HEADER_SIZE, region.end
    yield from columns
    first = read_uvarint(octets, read_uvarint(octets, read_uvarint(octets, footer)[1])[1])[1]
    for place, region in enumerate(file.regions):
        yield first + _REGION_ENTRY * place + 17, region.offset, region.end
    yield len(octets) - TRAILER_SIZE + 4, footer, len(octets) - TRAILER_SIZE
    yield HEADER_SIZE - 4, 0, HEADER_SIZE - 4


KNOWN_REGIONS = frozenset(("header", "footer", "trailer", *REGION_NAMES.values()))


def read_all(path: Path) -> bool:
    """Run every query on *path*; return whether it could be read. Anything but our error is raised."""
    try:
        with FrontierFile.open(path) as file:
            file.due(0xFFFF_FFFF)
            file.rows(np.arange(min(file.url_rows, 10)), ["url_ref", "lambda"])
            partition_in(file)
            verify(file)
    except FrontierFileError as refused:
        if (
            refused.region.split(".")[0] not in KNOWN_REGIONS
            or not 0 <= refused.offset <= path.stat().st_size
        ):
            raise AssertionError("the error names no place of the file") from refused
        return False
    return True
