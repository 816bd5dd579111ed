"""Strings that are more than one file can hold: they go on in further files, and all are read as one."""

from __future__ import annotations

import re
import shutil
import struct
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from faulty_disks import FaultyDisk, KilledError, QuickDisk
from meguri.format.frontier_files import encode_partition, made_up, same_partition

from amicrawl.errors import DamagedFileError, OutputError
from amicrawl.meguri.damage import find_damage
from amicrawl.meguri.format.header import pack_trailer
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.schema import Codec
from amicrawl.meguri.format.verification import inspect, read_partition, verify
from amicrawl.meguri.format.writer import WriteOptions, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.meguri.format.schema import Partition

ROWS = 2000
MOST = 5000
NEVER = 10**9
OPTIONS = WriteOptions(Codec.NONE, schedule=True, max_page_rows=300, most_strings=MOST)
FILES = ["f.meguri", *(f"f.strings-{number}.meguri" for number in range(1, 5))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The first of five files of a partition with 24,001 octets of strings."""
    write_partition(made_up(ROWS), tmp_path / "f.meguri", options=OPTIONS, disk=QuickDisk())
    assert sorted(found.name for found in tmp_path.iterdir()) == FILES
    return tmp_path / "f.meguri"


def flip(path: Path, at: int) -> None:
    block = bytearray(path.read_bytes())
    block[at] ^= 1
    path.write_bytes(block)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("most", [3, 11, 24_000, 24_001, 24_002])
def test_several_files_are_read_as_the_partition_that_was_written(
    tmp_path: Path, codec: Codec, most: int
) -> None:
    rows = ROWS if most > 11 else 6
    partition, path = made_up(rows), tmp_path / "f.meguri"
    size = write_partition(
        partition, path, options=replace(OPTIONS, codec=codec, most_strings=most), disk=QuickDisk()
    )
    files = [*tmp_path.iterdir()]
    assert len(files) == -(-len(partition.arena) // most)
    assert size == sum(file.stat().st_size for file in files)
    assert same_partition(read_partition(path), partition)
    pieces: list[bytes] = []
    with FrontierFile.open(path) as file:
        verify(file)
        assert file.copy_arena(pieces.append) == len(partition.arena)
        assert b"".join(pieces) == file.arena() == partition.arena
        assert file.meta == partition.meta


def test_one_file_has_the_same_bytes_whatever_more_would_have(tmp_path: Path) -> None:
    partition = made_up(ROWS)
    one = encode_partition(partition, replace(OPTIONS, most_strings=len(partition.arena)))
    assert one == encode_partition(partition, WriteOptions(Codec.NONE, schedule=True, max_page_rows=300))
    assert b"amicrawl.strings" not in one


def test_what_was_read_from_several_files_is_written_as_one(path: Path) -> None:
    """As by `amicrawl frontier pack`: what a file says of others is not said of the partition."""
    partition = made_up(ROWS)
    options = replace(OPTIONS, most_strings=1 << 20)
    assert encode_partition(read_partition(path), options) == encode_partition(partition, options)


def test_each_file_is_one_of_the_format_to_a_reader_that_knows_no_others(path: Path) -> None:
    """Header, regions and trailer as the format says; the strings of each follow those before."""
    arena, partition = made_up(ROWS).arena, made_up(ROWS)
    for number, name in enumerate(FILES):
        block = (path.parent / name).read_bytes()
        magic, major, minor, partition_id, flags = struct.unpack_from("<4sHHIH", block)
        urls, hosts, footer_offset = struct.unpack_from("<QQQ", block, 32)
        length, _, end = struct.unpack("<II4s", block[-12:])
        assert (magic, major, minor, partition_id, end) == (
            b"MEG1",
            1,
            0,
            partition.partition_id,
            b"MEG1",
        )
        assert footer_offset + length + 12 == len(block)
        assert (urls, hosts) == ((ROWS, 50) if not number else (0, 0))
        assert flags == (0x0B if not number else 0x09)
        strings = arena[number * MOST : (number + 1) * MOST]
        page = footer_offset - len(strings) - 32
        kind, _, _, _, values, plain, packed = struct.unpack_from("<BBBBIII", block, page)
        assert (kind, values, plain, packed) == (3, *[len(strings)] * 3)
        assert block[page + 32 : footer_offset] == strings


def test_inspect_says_that_others_follow_and_where_those_begin(path: Path) -> None:
    said = [inspect(path.parent / name)["meta"] for name in FILES]
    assert re.fullmatch("(?:[0-9a-f]{8} ){3}[0-9a-f]{8}", said[0]["amicrawl.strings"])
    begins = [each["amicrawl.strings_from"] for each in said[1:]]
    assert begins == ["5000", "10000", "15000", "20000"]


@pytest.mark.parametrize("name", FILES[1:])
def test_files_of_which_one_is_missing_cut_damaged_or_another_are_not_read(
    path: Path, tmp_path: Path, name: str
) -> None:
    further, other = path.with_name(name), FILES[1 + FILES.index(name) % 4]
    whole = further.read_bytes()

    def refused(why: str) -> None:
        with pytest.raises(DamagedFileError, match=why):
            read_partition(path)
        with FrontierFile.open(path) as file, pytest.raises(DamagedFileError, match=why):
            file.copy_arena(lambda _: None)
        with FrontierFile.open(path) as file, pytest.raises(DamagedFileError, match=why):
            verify(file)
        assert find_damage(path).damage
        further.write_bytes(whole)

    further.unlink()
    refused(f"go on in {name}, which is missing")
    further.write_bytes(whole[:-1])
    refused(name)
    # The payload of its strings, which begins some octets before the footer.
    flip(further, len(whole) // 4)
    refused("checksum")
    shutil.copy(path.with_name(other), further)
    refused("f.meguri does not go on with these strings")
    write_partition(made_up(5), further, options=WriteOptions(Codec.NONE), disk=QuickDisk())
    refused("f.meguri does not go on with these strings")
    assert same_partition(read_partition(path), made_up(ROWS))


def test_a_file_that_follows_is_followed_by_no_other(path: Path) -> None:
    """Otherwise few files could have a reader open ever more."""
    shutil.copy(path, path.with_name(FILES[1]))
    with pytest.raises(DamagedFileError, match="does not go on"):
        read_partition(path)


@pytest.mark.parametrize("said", [b"", b"1234567", b"123456789", b"12345678  12345678", b"XYZ45678"])
def test_what_cannot_be_read_of_further_files_is_damage(tmp_path: Path, said: bytes) -> None:
    """The bytes of such a file are made by a writer that knows nothing of further ones."""
    name = b"amicrawl.strungs"
    partition = made_up(9)
    partition.meta = ((name, said),)
    block = encode_partition(partition, WriteOptions(Codec.NONE))
    block = block.replace(name, b"amicrawl.strings")
    footer = struct.unpack_from("<Q", block, 48)[0]
    path = tmp_path / "f.meguri"
    path.write_bytes(block[:-12] + pack_trailer(block[footer:-12]))
    with FrontierFile.open(path) as file, pytest.raises(DamagedFileError, match="further files"):
        file.arena()


def found(path: Path, before: Partition | None, after: Partition) -> str:
    """Return which of two partitions is in *path*."""
    if not path.exists():
        return "none"
    try:
        read = read_partition(path)
    except DamagedFileError:
        return "damaged"
    if same_partition(read, after):
        return "new"
    assert before is not None
    assert same_partition(read, before)
    return "old"


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize(
    ("rows", "most", "ends"),
    [
        (0, MOST, {"none", "new"}),
        (100, 1 << 20, {"old", "new"}),
        (2500, MOST, {"old", "new", "damaged"}),
    ],
)
def test_wherever_writing_ends_no_half_of_it_is_taken_for_a_whole(
    tmp_path: Path, rows: int, most: int, ends: set[str], killed: bool
) -> None:
    """In place of nothing, of one file, and of more files than there are to be.

    Tried are all calls of the disk but writes between two others.
    """
    before, after = made_up(rows, seed=2) if rows else None, made_up(ROWS)
    path, outcomes = tmp_path / "d" / "f.meguri", set[str]()

    def write(fatal: int) -> list[str]:
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        if before is not None:
            options = replace(OPTIONS, most_strings=most)
            write_partition(before, path, options=options, disk=QuickDisk())
        disk = FaultyDisk(fatal, killed=killed)
        with suppress(KilledError, OutputError):
            write_partition(after, path, options=OPTIONS, disk=disk)
        outcomes.add(found(path, before, after))
        return disk.calls

    calls = write(NEVER)
    around = zip(["", *calls], calls, [*calls[1:], ""], strict=False)
    for fatal, neighbours in enumerate(around, 1):
        if set(neighbours) != {"write"}:
            write(fatal)
    write(NEVER)
    assert outcomes == ends
    assert found(path, before, after) == "new"
    assert sorted(file.name for file in path.parent.iterdir()) == FILES
