"""FSST: golden octets, every cut, and whatever octets a string may have."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urls.vectors import FULL, lines

from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.format.fsst import PackedStrings, SymbolTable, pack, train, unpack

golden = pytest.mark.parametrize(
    "directory",
    [
        Path(__file__).parent / "data",
        pytest.param(
            FULL,
            marks=pytest.mark.skipif(
                not FULL.exists(), reason="the full golden vectors are not at hand"
            ),
        ),
    ],
)
STRINGS = st.lists(
    st.one_of(st.binary(max_size=30), st.sampled_from([b"http://a.example/", b"aaaa", b"\xff\xff"])),
    max_size=20,
)

REFUSED = {
    "dangling escape": "the reference leaves the escape out: the string is another than was meant",
    "unknown code is skipped": "as it says",
    "reference 0": "the reference reads no string; a writer gives every string a place",
    "reference past the end": "likewise",
    "span overruns": "likewise",
    "table cut short": "the reference reads with the symbols that are left, and so another string",
    "table symbol longer than 8": "the reference reads with no symbols at all",
    "span length 2^64-1 wraps": "the reference crashes",
}
"""What the reference makes something of, and we refuse, with the reason."""


def strings_in(line: dict[str, Any]) -> list[bytes]:
    if "strings_hex" in line:
        return [bytes.fromhex(text) for text in line["strings_hex"]]
    return [text.encode() for text in line["strings"] or []]


@golden
def test_golden_strings_are_packed_into_their_octets(directory: Path) -> None:
    compared = 0
    for line in lines(directory, "wire.jsonl", kind="fsst"):
        strings = strings_in(line)
        packed = pack(strings)
        assert packed.references == line["refs"]
        assert packed.table.hex() == line["table"]
        assert packed.spans.hex() == line["spans"]
        assert unpack(packed) == strings
        compared += 1
    assert compared >= 7


@golden
def test_golden_spans_are_read_or_refused(directory: Path) -> None:
    refused = set()
    for line in lines(directory, "wire.jsonl", kind="fsst_read"):
        table, spans = bytes.fromhex(line["table"]), bytes.fromhex(line["spans"])
        packed = PackedStrings([int(line["ref"])], table, spans)
        if line["what"] in REFUSED:
            with pytest.raises(Malformed):
                unpack(packed)
            refused.add(line["what"])
        else:
            assert unpack(packed)[0].hex() == line["text_hex"], line["what"]
    assert refused == set(REFUSED)


@given(STRINGS)
def test_strings_are_unpacked_as_they_were_packed(strings: list[bytes]) -> None:
    packed = pack(strings)
    assert unpack(packed) == strings
    assert pack(strings) == packed


@given(STRINGS, STRINGS)
def test_a_table_encodes_strings_that_it_was_not_trained_on(
    strings: list[bytes], others: list[bytes]
) -> None:
    table = train(strings)
    assert [table.decode(table.encode(text)) for text in others] == others
    assert SymbolTable.from_bytes(table.to_bytes()).symbols == table.symbols


def test_a_table_has_255_symbols_at_most_and_the_rest_is_escaped() -> None:
    noise = Random(3).randbytes(4000)
    table = train([noise])
    assert len(table.symbols) == 255
    assert 0xFF in table.encode(noise)
    assert table.decode(table.encode(noise)) == noise


def test_urls_of_one_host_take_half_their_room() -> None:
    strings = [b"https://www.example.com/archive/%d/page.html" % number for number in range(500)]
    packed = pack(strings)
    assert len(packed.table) + len(packed.spans) < sum(map(len, strings)) / 2


def test_every_cut_is_refused() -> None:
    references, table, spans = pack([b"https://a.example/one", b"https://a.example/two", b"\xff\x00"])
    cuts = [PackedStrings(references, table[:cut], spans) for cut in range(len(table))]
    cuts += [PackedStrings(references, table, spans[:cut]) for cut in range(len(spans))]
    for packed in cuts:
        with pytest.raises(Malformed):
            unpack(packed)
    for packed in (
        PackedStrings(references, table + b"\0", spans),
        PackedStrings(references, table, spans + b"\0"),
    ):
        with pytest.raises(Malformed, match="more behind"):
            unpack(packed)


@pytest.mark.parametrize(
    "table",
    [
        "8002" + "0161" * 256,  # 256 symbols
        "0100",  # one of no octets
        "020161" + "0161",  # one twice
        "808080808080808080808001",  # a count of more than 64 bits
    ],
)
def test_a_table_that_no_writer_makes_is_refused(table: str) -> None:
    with pytest.raises(Malformed):
        SymbolTable.from_bytes(bytes.fromhex(table))


@given(
    st.lists(st.integers(0, 30), max_size=5),
    st.binary(max_size=12),
    st.binary(max_size=12).map(lambda octets: b"\0" + octets),
)
def test_hostile_octets_are_refused_or_give_strings_of_bounded_length(
    references: list[int], table: bytes, spans: bytes
) -> None:
    try:
        strings = unpack(PackedStrings(references, table, spans))
    except Malformed:
        return
    assert sum(map(len, strings)) <= 8 * len(spans)
