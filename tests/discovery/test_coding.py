"""Content codings undone for the reading of links: whole, broken, nested, and bombs."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from itertools import chain, repeat

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.discovery.coding import charset_of, decoded

TEXT = b"".join(b'<a href="/page/%d">%d</a>\n' % (n, n * n) for n in range(5000))


def bare_deflate(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(text) + packer.flush()


PACKED = {
    b"gzip": gzip.compress(TEXT),
    b"X-GZIP": gzip.compress(TEXT),
    b"deflate": zlib.compress(TEXT),
    b"br": brotli.compress(TEXT, quality=5),
    b"zstd": zstandard.compress(TEXT),
    b"identity": TEXT,
    b"": TEXT,
    b" gzip , br ": brotli.compress(gzip.compress(TEXT), quality=5),
    b"identity, gzip": gzip.compress(TEXT),
}


@pytest.mark.parametrize("codings", PACKED)
def test_a_coded_payload_is_read(codings: bytes) -> None:
    assert decoded([PACKED[codings]], codings, limit=1 << 20) == TEXT


@pytest.mark.parametrize("codings", PACKED)
@given(size=st.integers(1, 3000))
def test_where_it_is_cut_into_blocks_does_not_matter(codings: bytes, size: int) -> None:
    packed = PACKED[codings]
    blocks = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert decoded(blocks, codings, limit=1 << 20) == TEXT


def test_deflate_without_its_header_and_gzip_in_several_members_are_read() -> None:
    assert decoded([bare_deflate(TEXT)], b"deflate", limit=1 << 20) == TEXT
    assert decoded([gzip.compress(b"a") + gzip.compress(b"b") + b"rest"], b"gzip", limit=9) == b"ab"


def test_where_a_gzip_body_is_cut_does_not_matter_to_its_members() -> None:
    members = gzip.compress(b"a") + gzip.compress(b"b") + gzip.compress(b"c")
    for cut in range(len(members) + 1):
        assert decoded([members[:cut], members[cut:]], b"gzip", limit=9) == b"abc"
    assert decoded([members[:1], members[1:-1], members[-1:], b"\x1f", b"x"], b"gzip", limit=9) == b"abc"


@pytest.mark.parametrize(
    ("codings", "begin", "nothing"),
    [(b"gzip", b"", gzip.compress(b"")), (b"deflate", b"\x78\x9c", b"\0\0\0\xff\xff")],
)
def test_a_coding_that_says_nothing_is_read_no_further_than_the_limit(
    codings: bytes, begin: bytes, nothing: bytes
) -> None:
    blocks = chain([begin], repeat(nothing * 10_000, 1000))
    assert decoded(blocks, codings, limit=1 << 20) == b""
    assert len(list(blocks)) > 900


@pytest.mark.parametrize("codings", [b"gzip", b"deflate"])
def test_what_a_cut_payload_has_is_read(codings: bytes) -> None:
    packed = PACKED[codings]
    for end in range(0, len(packed), 997):
        part = decoded([packed[:end]], codings, limit=1 << 20)
        assert TEXT.startswith(part)
    assert len(decoded([packed[: len(packed) // 2]], codings, limit=1 << 20)) > len(TEXT) // 4


@given(st.sampled_from([b"gzip", b"deflate", b"br", b"zstd", b"gzip, gzip"]), st.binary(max_size=300))
def test_what_is_not_coded_as_it_says_does_no_harm(codings: bytes, payload: bytes) -> None:
    assert len(decoded([payload], codings, limit=1000)) <= 1000


@pytest.mark.parametrize("codings", [b"utf-8", b"none", b"gzip, utf-8", b"UTF-8,gzip"])
def test_what_is_no_coding_is_passed_over_as_in_browsers(codings: bytes) -> None:
    packed = gzip.compress(TEXT) if b"gzip" in codings else TEXT
    assert decoded([packed], codings, limit=1 << 20) == TEXT


@pytest.mark.parametrize("codings", [b"gzip", b"deflate", b"br", b"zstd", b"gzip, br"])
@pytest.mark.parametrize("size", [1, 500, 1 << 20])
def test_a_body_that_is_not_in_its_coding_is_taken_as_it_stands(codings: bytes, size: int) -> None:
    page = b"<!DOCTYPE html>\n<title>stored decoded</title>" + TEXT
    blocks = [page[start : start + size] for start in range(0, len(page), size)]
    assert decoded(blocks, codings, limit=1 << 20) == page


def test_of_two_codings_one_may_be_there() -> None:
    for codings in (b"gzip, br", b"gzip, gzip", b"br, gzip"):
        assert decoded([gzip.compress(TEXT)], codings, limit=1 << 20) == TEXT


def test_a_body_that_is_damaged_at_its_beginning_is_not_taken_for_text() -> None:
    for packed, codings in ((gzip.compress(TEXT), b"gzip"), (zstandard.compress(TEXT), b"zstd")):
        damaged = packed[:4] + b"\xff" * 60 + packed[64:]
        assert decoded([damaged], codings, limit=1 << 20) == b""


def test_unknown_codings_and_too_many_are_not_read() -> None:
    assert decoded([TEXT], b"compress", limit=100) == b""
    assert decoded([TEXT], b"gzip, gzip, gzip", limit=100) == b""


@pytest.mark.parametrize("codings", [b"gzip", b"br", b"zstd", b"deflate", b"gzip, gzip"])
def test_a_bomb_costs_no_more_than_the_limit(codings: bytes) -> None:
    zeros = bytes(64 << 20)
    bombs = {
        b"gzip": gzip.compress(zeros, 1),
        b"br": brotli.compress(zeros, quality=1),
        b"zstd": zstandard.compress(zeros),
        b"deflate": zlib.compress(zeros, 1),
        b"gzip, gzip": gzip.compress(gzip.compress(zeros, 1)),
    }
    bomb = bombs[codings]
    tracemalloc.start()
    try:
        assert len(decoded([bomb], codings, limit=1 << 20)) == 1 << 20
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The pieces, the whole, and for zstd one step of 256 bytes: 64 blocks of up to 128 KiB.
    assert peak < 24 << 20


@pytest.mark.parametrize("size", [len(TEXT), 40])
@pytest.mark.parametrize("codings", [b"gzip", b"deflate"])
def test_what_a_payload_with_a_wrong_checksum_has_is_read(codings: bytes, size: int) -> None:
    packed = bytearray((gzip.compress if codings == b"gzip" else zlib.compress)(TEXT[:size]))
    packed[-5 if codings == b"gzip" else -1] ^= 1
    assert decoded([bytes(packed)], codings, limit=1 << 20) == TEXT[:size]


def test_a_fault_in_the_middle_of_a_bomb_costs_no_more_than_the_limit() -> None:
    bomb = bytearray(gzip.compress(bytes(50 << 20)))
    bomb[len(bomb) // 2 : -8] = b"\xff" * (len(bomb) - len(bomb) // 2 - 8)
    tracemalloc.start()
    assert not decoded([bytes(bomb)], b"gzip", limit=1 << 20).strip(b"\0")
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("label", "charset"),
    [
        ("x-sjis", "cp932"),
        ("X-SJIS", "cp932"),
        ("windows-31j", "cp932"),
        ("x-euc-jp", "euc_jp"),
        ("windows-949", "cp949"),
        ("x-gbk", "gb18030"),
        ("gb_2312-80", "gb18030"),
        ("x-x-big5", "big5hkscs"),
        ("windows-874", "cp874"),
        ("iso-8859-8-i", "iso8859-8"),
        ("koi8-ru", "koi8-u"),
        ("x-cp1251", "cp1251"),
        ("x-mac-cyrillic", "mac-cyrillic"),
    ],
)
def test_every_label_that_browsers_know_names_its_character_set(label: str, charset: str) -> None:
    page = b"<meta http-equiv=Content-Type content='text/html; charset=%b'>" % label.encode()
    assert charset_of(page) == charset_of(b"", f"text/html; charset={label}") == charset
