"""Discovery batches: golden bodies, every cut, and what is refused."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urls.vectors import FULL, lines

from amicrawl.frontier.format.discovery_batch import Discovery, decode_batch, encode_batch
from amicrawl.frontier.format.faults import Malformed
from amicrawl.urls import UrlKey, text_of

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
WORDS = st.integers(0, 2**64 - 1)
DISCOVERIES = st.builds(
    Discovery,
    st.builds(UrlKey, st.one_of(WORDS, st.integers(0, 2)), st.one_of(WORDS, st.integers(0, 2))),
    st.one_of(st.text(), st.binary().map(text_of), st.builds("http://a.example/{}".format, WORDS)),
    st.integers(0, 65_535),
    st.integers(0, 255),
    WORDS,
    st.floats(width=32, allow_nan=False),
    st.integers(0, 255),
    st.integers(0, 2**32 - 1),
)

REFUSED = {
    "trailing byte": "the reference leaves it unread; a body that was put together wrongly is found out",
    "zero rows, empty tables": "no links are said by an empty body; nothing writes this",
    "span reference out of range": "the reference reads an empty URL, and crawls that",
}
"""Bodies that the reference accepts and we refuse, with the reason."""

FOUR = bytes.fromhex(
    "04c9f0818cf3c8a2c46c0098e8fa9d809ffdf136d5abcd98c1e3ebbd3982fad6b09cacbaeaba01c8efdd98bcc7e0b0d601ec"
    "96c3c3a8b4c2d20a90d08dfd8bf2b9b7ac0101020003010100021600152c0000803e0000003f0000803f0000000003020001"
    "d00f13b10fd6120104040135070868747470733a2f2f08612e6578616d706c08622e6578616d706c08652fe697a5e69cac05"
    "652f6f6e6505652f74776f03e8aa9e0f000300010403000105000400020306"
)
FOUR_ROWS = [
    Discovery(
        UrlKey(0x6C888A4731807849, 0x5D6A74B0E30ADE81), "https://a.example/one", 1, 1, 11, 0.25, 3, 1000
    ),
    Discovery(
        UrlKey(0x6C888A4731807849, 0xC89B35CEC4969A65), "https://a.example/two", 2, 1, 11, 0.5, 2, 990
    ),
    Discovery(UrlKey(0xA36C7F3F353F2C61, 0xCDEDBAA008CF001B), "", 0, 0, 0, 1.0, 0, 5),
    Discovery(
        UrlKey(0xDCE82E5B48528236, 0x24252E6868A0B423),
        "https://b.example/日本語",
        3,
        2,
        22,
        0.0,
        1,
        1200,
    ),
]


def row_of(fields: dict[str, Any]) -> Discovery:
    (weight,) = struct.unpack("<f", int(fields["link_weight"], 0).to_bytes(4, "little"))
    return Discovery(
        UrlKey(int(fields["key"][0], 0), int(fields["key"][1], 0)),
        fields["url"],
        fields["depth"],
        fields["source"],
        int(fields["source_host"], 0),
        weight,
        fields["anchor_hint"],
        fields["observed_at"],
    )


@golden
def test_golden_batches_have_their_octets(directory: Path) -> None:
    compared = 0
    for line in lines(directory, "wire.jsonl", kind="batch"):
        body = bytes.fromhex(line["body"])
        assert encode_batch(map(row_of, line["rows"])) == body, line["name"]
        assert decode_batch(body) == [row_of(fields) for fields in line["decoded"]], line["name"]
        compared += 1
    assert compared >= 4


@golden
def test_golden_bodies_are_refused_where_they_are_broken(directory: Path) -> None:
    stricter = set()
    for line in lines(directory, "wire.jsonl", kind="batch_bad"):
        if line["accepted"] and line["what"] not in REFUSED:
            assert len(decode_batch(bytes.fromhex(line["body"]))) == line["rows"]
            continue
        with pytest.raises(Malformed):
            decode_batch(bytes.fromhex(line["body"]))
        if line["accepted"]:
            stricter.add(line["what"])
    assert stricter == set(REFUSED)


@golden
def test_golden_cuts_are_refused_alike(directory: Path) -> None:
    for line in lines(directory, "wire.jsonl", kind="batch_prefixes"):
        body = bytes.fromhex(line["body"])
        for length, accepted, rows in line["prefixes"]:
            if accepted:
                assert len(decode_batch(body[:length])) == rows
            else:
                with pytest.raises(Malformed):
                    decode_batch(body[:length])


def test_the_octets_of_four_links_are_pinned() -> None:
    assert encode_batch(reversed(FOUR_ROWS)) == FOUR
    assert decode_batch(FOUR) == FOUR_ROWS


@given(st.lists(DISCOVERIES, max_size=30))
def test_links_come_back_sorted_by_key(rows: list[Discovery]) -> None:
    body = encode_batch(rows)
    kept = [row._replace(url=text_of(row.url)) for row in sorted(rows, key=lambda row: row.key)]
    assert decode_batch(body) == kept
    assert encode_batch(kept) == body


def test_a_weight_is_handed_on_whatever_it_is() -> None:
    nan = encode_batch([FOUR_ROWS[0]._replace(weight=float("nan"))])
    assert encode_batch(decode_batch(nan)) == nan
    assert decode_batch(encode_batch([FOUR_ROWS[0]._replace(weight=float("inf"))]))[0].weight == float(
        "inf"
    )


@pytest.mark.parametrize("cut", range(1, len(FOUR)))
def test_every_cut_is_refused(cut: int) -> None:
    with pytest.raises(Malformed):
        decode_batch(FOUR[:cut])


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([FOUR_ROWS[0], FOUR_ROWS[1]._replace(depth=65_536)], "depth"),
        ([FOUR_ROWS[0]._replace(observed_at=2**32)], "hour"),
    ],
)
def test_a_number_that_has_no_room_in_a_row_is_refused(rows: list[Discovery], what: str) -> None:
    with pytest.raises(Malformed, match=what):
        decode_batch(encode_batch(rows))


def test_keys_out_of_order_are_refused() -> None:
    sound = encode_batch([Discovery(UrlKey(1, path), "http://e/") for path in (2, 3)])
    assert sound[1:5].hex() == "01000402"
    for hosts_and_paths in (
        "01000401",  # the second path before the first
        "01ffffffffffffffffff010402",  # the second host before the first, by a sum that wraps around
    ):
        with pytest.raises(Malformed, match="sorted"):
            decode_batch(sound[:1] + bytes.fromhex(hosts_and_paths) + sound[5:])


@given(st.binary(max_size=80))
def test_hostile_octets_are_refused_or_read(body: bytes) -> None:
    try:
        rows = decode_batch(body)
    except Malformed:
        return
    assert len(rows) * 13 <= len(body)


@given(st.integers(0, len(FOUR) - 1), st.integers(1, 255))
def test_a_changed_octet_is_refused_or_read(at: int, change: int) -> None:
    damaged = bytearray(FOUR)
    damaged[at] ^= change
    with suppress(Malformed):
        assert len(decode_batch(bytes(damaged))) == 4
