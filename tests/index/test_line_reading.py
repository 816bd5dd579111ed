"""Lines as they are read, packed with gzip or not, whole and damaged."""

from __future__ import annotations

import gzip
import random
import zlib
from typing import TYPE_CHECKING

import pytest

from amicrawl.archive.lines.line_reader import octet_blocks
from amicrawl.errors import DamagedFileError

if TYPE_CHECKING:
    from pathlib import Path

LINES = [
    b"com,example)/%032x 20240506070809 {}\n" % random.Random(n).getrandbits(120) for n in range(6000)
]


def unpacked_by_bytes(packed: bytes) -> bytes:
    """Return what comes out of *packed*, members of gzip, before anything is wrong."""
    content = bytearray()
    unpacker = zlib.decompressobj(31)
    for place in range(len(packed)):
        try:
            content += unpacker.decompress(packed[place : place + 1])
        except zlib.error:
            break
        if unpacker.eof:
            unpacker = zlib.decompressobj(31)
    return bytes(content)


def test_a_byte_order_mark_is_not_part_of_the_first_line(tmp_path: Path) -> None:
    for name, pack in (("x.cdxj", bytes), ("x.cdxj.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(b"\xef\xbb\xbf" + LINES[0] + LINES[1]))
        assert b"".join(octet_blocks(tmp_path / name)) == LINES[0] + LINES[1]


@pytest.mark.parametrize("lines_each", [150, 2500, 6000])
@pytest.mark.parametrize("part", [0.001, 0.3, 0.5, 0.7])
def test_every_whole_line_before_a_fault_is_read(tmp_path: Path, lines_each: int, part: float) -> None:
    members = [LINES[start : start + lines_each] for start in range(0, len(LINES), lines_each)]
    packed = bytearray(b"".join(gzip.compress(b"".join(lines)) for lines in members))
    fault = int(len(packed) * part)
    packed[fault : fault + 20] = random.Random(lines_each).randbytes(20)
    path = tmp_path / "x.cdxj.gz"
    path.write_bytes(packed)
    read: list[bytes] = []
    with pytest.raises(DamagedFileError, match="what came before is read"):
        read += octet_blocks(path)  # what came is kept, though the last step fails
    assert b"".join(read).count(b"\n") == unpacked_by_bytes(bytes(packed)).count(b"\n")


@pytest.mark.parametrize("filling", [0, 1, 512, 20_000])
def test_a_fault_behind_a_filling_of_zeros_costs_no_line_and_is_where_reading_ends(
    tmp_path: Path, filling: int
) -> None:
    path = tmp_path / "x.cdxj.gz"
    first, second = (gzip.compress(b"".join(lines)) for lines in (LINES[:3000], LINES[3000:]))
    path.write_bytes(first + bytes(filling) + second[:-4])
    read: list[bytes] = []
    with pytest.raises(DamagedFileError) as fault:
        read += octet_blocks(path)
    assert b"".join(read) == b"".join(LINES)
    assert fault.value.offset == sum(map(len, LINES))
