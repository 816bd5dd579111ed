"""The string arena: references that lead somewhere and nowhere, annexes, robots.txt entries."""

from __future__ import annotations

import json

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from meguri.format.golden_dumps import VECTOR_FILES, golden_files

from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.format.schema import Codec
from amicrawl.meguri.format.strings import (
    MOST_ROBOTS_BYTES,
    ArenaBuilder,
    annex_at,
    annex_spans,
    pack_robots,
    spans,
    string_at,
    unpack_robots,
)

ODD_OCTETS = st.lists(st.sampled_from(b"\0\1\2\3a\x7f\x80\x81\xff"), max_size=60).map(bytes)


def test_a_string_is_read_at_its_offset() -> None:
    assert string_at(b"\0\3abc\0", 1) == b"abc"
    assert string_at(memoryview(b"\0\3abc\0"), 1) == b"abc"
    assert string_at(b"\0\3abc\0", 5) == b""


@pytest.mark.parametrize(
    ("arena", "ref"),
    [
        (b"\3abc", 0),
        (b"\0\3ab", 1),
        (b"\0\3abc", 5),
        (b"\0\3abc", 2**64 - 1),
        (b"\0\x80\x80", 1),
        (b"\0" + b"\xff" * 9 + b"\2" + b"a" * 9, 1),
        (b"\0" + b"\x80" * 10 + b"\0", 1),
        (b"", 1),
    ],
)
def test_a_reference_that_leads_nowhere_reads_as_absent(arena: bytes, ref: int) -> None:
    assert string_at(arena, ref) is None
    assert spans(arena, np.array([ref], np.uint64))[1].tolist() == [-1]


@given(ODD_OCTETS, st.lists(st.integers(0, 70) | st.just(2**64 - 1), min_size=1))
def test_many_strings_read_as_each_does_alone(arena: bytes, refs: list[int]) -> None:
    starts, lengths = spans(arena, np.array(refs, np.uint64))
    begins, sizes = annex_spans(arena, starts, lengths)
    for at, ref in enumerate(refs):
        alone, annex = string_at(arena, ref), annex_at(arena, ref)
        assert lengths[at] == (-1 if alone is None else len(alone))
        assert sizes[at] == (-1 if annex is None else len(annex))
        if alone is not None:
            assert alone == arena[starts[at] : starts[at] + lengths[at]]
        if annex is not None:
            assert annex == arena[begins[at] : begins[at] + sizes[at]]


def test_equal_strings_are_stored_once_unless_set_otherwise() -> None:
    shared, apart = ArenaBuilder(), ArenaBuilder(shared=False)
    assert [shared.add(text) for text in (b"ab", b"", b"ab")] == [1, 4, 1]
    assert [apart.add(text) for text in (b"ab", b"", b"ab")] == [1, 4, 5]
    assert shared.arena() == b"\0\2ab\0"
    assert len(apart) == 8


def test_an_annex_lies_directly_behind_its_string() -> None:
    builder = ArenaBuilder()
    plain, annexed = builder.add(b"http://h/"), builder.add(b"http://h/", b'{"d":1}')
    empty = builder.add(b"", b"{}")
    assert builder.add(b"http://h/", b'{"d":1}') == annexed != plain
    arena = builder.arena()
    assert arena[annexed:].startswith(b'\x09http://h/\x09\0a{"d":1}')
    assert (string_at(arena, annexed), annex_at(arena, annexed)) == (b"http://h/", b'{"d":1}')
    assert (string_at(arena, empty), annex_at(arena, empty)) == (b"", b"{}")
    assert annex_at(arena, plain) is None
    assert annex_at(arena, 0) is None


def test_a_string_that_looks_like_an_annex_is_kept_apart() -> None:
    builder = ArenaBuilder()
    url, odd = builder.add(b"http://h/"), builder.add(b"\0a{}")
    assert string_at(builder.arena(), odd) == b"\0a{}"
    assert annex_at(builder.arena(), url) is None


def test_strings_are_carried_with_their_annexes_in_the_order_given() -> None:
    old = ArenaBuilder(shared=False)
    twice = [old.add(b"b"), old.add(b"b")]
    annexed = old.add(b"a", b"{}")
    new = ArenaBuilder()
    refs = np.array([annexed, twice[1], 0, 9999, twice[0], annexed], np.uint64)
    carried = new.carry(memoryview(old.arena()), refs).tolist()
    assert carried == [1, 8, 0, 0, 8, 1]
    assert new.arena() == b"\0\1a\4\0a{}\1b"
    assert annex_at(new.arena(), 1) == b"{}"
    assert annex_at(new.arena(), 8) is None


def test_overlapping_strings_cannot_fill_the_memory() -> None:
    """Each offset of this arena begins a string that reaches to its end: half a terabyte in all."""
    arena = bytes([0x80, 0x80, 0x20]) * 350_000 + bytes(1 << 20)
    refs = np.arange(3, 1_050_000, 3, dtype=np.uint64)
    with pytest.raises(Malformed, match="overlap"):
        ArenaBuilder().carry(arena, refs)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("body", [b"", b"Disallow: /q", b"Disallow: /\n" * 5000, bytes(range(256))])
def test_a_robots_body_comes_out_as_it_went_in(body: bytes, codec: Codec) -> None:
    packed = pack_robots(body, codec)
    assert unpack_robots(packed, codec) == body
    assert len(packed) <= len(body) + 1


def test_packed_robots_bodies_are_pinned() -> None:
    assert pack_robots(b"", Codec.ZSTD) == b"\0"
    assert pack_robots(b"Disallow: /q", Codec.ZSTD).hex() == "01446973616c6c6f773a202f71"


@pytest.mark.parametrize(
    ("blob", "fault"),
    [
        (b"", FileFault.CORRUPT),
        (b"\0x", FileFault.CORRUPT),
        (b"\3abc", FileFault.CORRUPT),
        (b"\2no zstd", FileFault.DECOMPRESSION),
        (b"\2", FileFault.DECOMPRESSION),
        (b"\2" + zstandard.compress(bytes(5000))[:-1], FileFault.DECOMPRESSION),
        (b"\2" + zstandard.compress(bytes(MOST_ROBOTS_BYTES + 1)), FileFault.DECOMPRESSION),
    ],
)
def test_a_broken_robots_entry_is_malformed(blob: bytes, fault: FileFault) -> None:
    with pytest.raises(Malformed) as raised:
        unpack_robots(blob, Codec.ZSTD)
    assert raised.value.fault is fault


def test_golden_robots_entries_unpack() -> None:
    for codec in Codec:
        said = json.loads((VECTOR_FILES / "files" / f"robots-{codec.name.lower()}.json").read_text())
        arena = bytes.fromhex(said["arena_hex"])
        for entry in said["robots"]:
            blob = string_at(arena, int(entry["robots_ref"]))
            assert blob is not None
            assert blob.hex() == entry["packed"]
            assert unpack_robots(blob, codec).hex() == entry["body_hex"]


def test_golden_strings_are_found() -> None:
    for _, said, dump in golden_files():
        arena = bytes.fromhex(dump["arena_hex"])
        for table, names in (
            ("url", ("url_ref", "etag_ref", "redirect_ref")),
            ("host", ("host_ref", "registrable_ref")),
        ):
            places = [dump[f"{table}_fields"].index(name) for name in names]
            for row, texts in zip(dump[f"{table}s"], said.get(f"{table}_strings") or (), strict=False):
                found = [string_at(arena, int(row[place])) for place in places]
                assert texts == [None if text is None else text.decode() for text in found]
