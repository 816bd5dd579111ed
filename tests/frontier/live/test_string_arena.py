"""The strings of a live partition: each is found again at its offset, in memory or written out."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from frontier.live.disks import CountingDisk, FailingDisk, ReadOnlyDisk, ShortDisk
from hypothesis import given, settings
from hypothesis import strategies as st

from amicrawl.errors import AmicrawlError, OutputError
from amicrawl.meguri.arena import StringArena, entry_of

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.disk import Disk

LENGTHS = [0, 1, 127, 128, 129, 509, 510, 511, 512, 513, 1024, 16_383, 16_384, 70_000]
"""Around a length of one octet or two, and around what is read at first."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arenas")


def arena_in(directory: Path, *, disk: Disk | None = None) -> StringArena:
    return StringArena(directory=directory, disk=disk or CountingDisk())


def text_of(length: int) -> bytes:
    return bytes(at % 251 for at in range(length))


@pytest.mark.parametrize(
    ("length", "head"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (16_384, "808001")],
)
def test_an_entry_is_its_length_and_its_octets(length: int, head: str) -> None:
    assert entry_of(text_of(length)) == bytes.fromhex(head) + text_of(length)


def test_the_first_string_stands_at_offset_1(directory: Path) -> None:
    arena = arena_in(directory)
    assert len(arena) == 1
    assert arena.append(entry_of(b"a")) == 1
    assert len(arena) == 3
    arena.close()


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_string_is_found_at_its_offset_whatever_its_length(
    directory: Path, length: int, written: bool
) -> None:
    arena = arena_in(directory)
    first = arena.append(entry_of(text_of(length)) + entry_of(b"behind"))
    last = arena.append(entry_of(text_of(length)))
    if written:
        arena.write_out()
    assert arena.texts_at(first) == (text_of(length), b"behind")
    assert arena.texts_at(last) == (text_of(length), b"")
    arena.close()


def test_a_string_in_the_file_is_followed_by_one_in_memory(directory: Path) -> None:
    arena = arena_in(directory)
    first = arena.append(entry_of(b"first"))
    arena.write_out()
    assert arena.texts_at(first) == (b"first", b"")
    second = arena.append(entry_of(b"second"))
    assert arena.texts_at(first) == (b"first", b"second")
    assert arena.texts_at(second) == (b"second", b"")
    arena.close()


@settings(max_examples=30)
@given(
    groups=st.lists(
        st.tuples(st.lists(st.sampled_from([*LENGTHS, 400_000]), min_size=1, max_size=3), st.booleans()),
        max_size=12,
    )
)
def test_strings_are_found_wherever_they_came_to_lie(
    directory: Path, groups: list[tuple[list[int], bool]]
) -> None:
    arena, texts = arena_in(directory), list[tuple[int, bytes]]()
    for lengths, write_out in groups:
        entries = [entry_of(text_of(length)) for length in lengths]
        offset = arena.append(b"".join(entries))
        for length, entry in zip(lengths, entries, strict=True):
            texts.append((offset, text_of(length)))
            offset += len(entry)
        if write_out:
            arena.write_out()
    behind = [*(text for _, text in texts[1:]), b""]
    for (offset, text), next_text in zip(texts, behind, strict=False):
        assert arena.texts_at(offset) == (text, next_text)
    arena.write_out()
    whole = b"\0" + b"".join(entry_of(text) for _, text in texts)
    assert len(arena) == len(whole)
    assert bytes(arena.mapped(len(whole))) == whole
    arena.close()


def test_what_waits_in_memory_is_bounded(directory: Path) -> None:
    disk = CountingDisk()
    arena = arena_in(directory, disk=disk)
    for _ in range(40):
        arena.append(entry_of(text_of(100_000)))
        assert len(arena._waiting) < 1_200_000
    assert len(arena) - len(arena._waiting) > 2_800_000
    arena.close()


@pytest.mark.parametrize("cut", [1, 2, 5, 9, 10])
def test_an_arena_can_be_loaded_from_blocks_that_end_anywhere(directory: Path, cut: int) -> None:
    whole = b"\0" + entry_of(b"first") + entry_of(b"second")
    arena = arena_in(directory)
    arena.load(lambda take: [take(whole[:cut]), take(whole[cut:])])
    assert arena.texts_at(1) == (b"first", b"second")
    assert arena.append(entry_of(b"third")) == len(whole)
    assert arena.texts_at(7) == (b"second", b"third")
    arena.close()


@pytest.mark.parametrize(
    ("octets", "offset"),
    [
        (b"", 1),  # behind the end
        (b"", 1000),
        (b"\x05abc", 1),  # longer than the arena
        (b"\xff" * 12, 1),  # a length without an end
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 1),  # a length that nothing has
        (b"\x80", 1),
    ],
)
@pytest.mark.parametrize("written", [False, True])
def test_where_no_string_is_nothing_but_our_error_comes(
    directory: Path, octets: bytes, offset: int, written: bool
) -> None:
    arena = arena_in(directory)
    arena.append(octets)
    if written:
        arena.write_out()
    with pytest.raises(AmicrawlError, match=f"offset {offset}"):
        arena.texts_at(offset)
    arena.close()


def test_a_disk_that_was_full_for_a_moment_shifts_no_string(directory: Path) -> None:
    """Otherwise every reference from there on would lead to the middle of another string."""
    arena = arena_in(directory, disk=ShortDisk())
    first = arena.append(entry_of(b"first"))
    for _ in range(2):
        with pytest.raises(OutputError, match="No space left"):
            arena.write_out()
    second = arena.append(entry_of(b"second"))
    for _ in range(10):
        with suppress(OutputError):
            arena.write_out()
    assert arena.texts_at(first) == (b"first", b"second")
    assert arena.texts_at(second) == (b"second", b"")
    assert bytes(arena.mapped(len(arena))) == b"\0\x05first\x06second"
    arena.close()


@pytest.mark.parametrize("disk", [ReadOnlyDisk(), FailingDisk(1)])
def test_an_arena_that_cannot_be_made_says_so(directory: Path, disk: Disk) -> None:
    with pytest.raises(OutputError, match=str(directory)):
        arena_in(directory, disk=disk)
