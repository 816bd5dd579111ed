"""Value encodings: golden payloads, every type and encoding, and payloads that somebody else made up."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from urls.vectors import VECTOR_FILES, lines

from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.schema import Encoding
from amicrawl.meguri.format.values import decode, encode
from amicrawl.meguri.format.varints import write_uvarint

STRICTER = {
    # A payload that does not have just the bytes of its values was not written by anybody for them.
    "rle trailing bytes": "behind the last run",
    "dict trailing bytes": "3 bytes for 2 numbers",
    "dict n=0 ignores payload": "cut short",
    "delta trailing bytes": "behind the last difference",
    "delta n=0 ignores payload": "1 bytes for no values",
    "for width 0 with trailing bytes": "2 bytes for 3 numbers",
    "delta_for n=1 ignores payload": "bit width 255",
    "raw longer than n": "4 bytes for 1 values",
    # Missing bytes are missing, not zero.
    "raw odd length": "3 bytes for 2 values",
    "dict codes truncated read as zero": "1 bytes for 9 numbers",
    "for bits truncated read as zero": "2 bytes for 4 numbers",
    "delta_for bits truncated read as zero": "1 bytes for 3 numbers",
    "delta_for empty, n=1": "bit width is missing",
    # Empty runs let a payload say anything in front of its values, and a decoder loop for nothing.
    "rle zero-length run": "run without values",
    # Wider codes than entries call for: no writer makes them, and most say nothing that can be an entry.
    "dict one entry with width 3": "codes of 3 bits",
    # No value has more than 64 bits; the reference drops those above.
    "for width 65": "bit width 65",
    "for width 255": "bit width 255",
    # A value that does not fit its column is not that column's value.
    "delta wraps a narrow width": "value 258 in 1 bytes",
    "for result wraps the width": "value 265 in 1 bytes",
}
"""Payloads that the reference reads and we refuse, and what we say."""

TABLE = [
    (4, 8, [1, 1, 2, 2, 2, 9], 0, "03 0100000000000000 02 0200000000000000 03 0900000000000000 01"),
    (4, 4, [42], 0, "01 2a000000 01"),
    (1, 1, [1, 5, 1, 5, 5, 1], 0, "02 01 05 01 1a"),
    (1, 2, [3, 3, 3], 0, "01 0300 00"),
    (1, 4, [100, 200, 300, 100, 200], 0, "03 64000000 c8000000 2c010000 02 2401"),
    (2, 8, [0, 12, 24, 36], 0, "18 18 18"),
    (2, 4, [470100, 470050, 470080, 470060], 470100, "63 3c 27"),
    (2, 8, [0, 2**64 - 1, 2**63, 0], 0, "01 fdffffffffffffffff01 ffffffffffffffffff01"),
    (3, 4, [100, 101, 100, 102, 100], 100, "02 8400"),
    (3, 2, [5, 5, 5], 5, "00"),
    (3, 8, [0, 2**40, 7], 0, "29 000000000000000000001e0000000000"),
    (6, 8, [0xAA, 0xBB, 0xCC, 0x100], 170, "07 22 008011"),
    (6, 8, [10, 17], 10, "00 0e"),
    (
        6,
        8,
        [0xF000000000000000, 1, 0x7000000000000000],
        0xF000000000000000,
        "40 8280808080808080 20 0000000000000000 fcffffffffffffbf",
    ),
    (0, 2, [], 0, ""),
    (1, 2, [], 0, "00 00"),
    (2, 2, [], 0, ""),
    (3, 2, [], 0, ""),
    (4, 2, [], 0, "00"),
    (6, 2, [], 0, ""),
    (2, 4, [77], 77, ""),
    (6, 4, [77], 77, "00 00"),
]

TYPES = [np.dtype(kind) for kind in ("u1", "<u2", "<u4", "<u8", "<f4")]
ENCODED = [encoding for encoding in Encoding if encoding is not Encoding.RAW]


def read_back(encoding: int, values: np.ndarray) -> np.ndarray:
    base, payload = encode(Encoding(encoding), values)
    return decode(encoding, payload, count=len(values), dtype=values.dtype, base=base)


@st.composite
def columns(draw: st.DrawFn) -> np.ndarray:
    """Values of any type: scattered, close together, in runs, or at the ends of their range."""
    dtype = draw(st.sampled_from(TYPES))
    limit = (1 << 8 * dtype.itemsize) - 1
    low = draw(st.integers(0, limit))
    some = st.one_of(
        st.integers(0, limit),
        st.integers(low, min(low + 9, limit)),
        st.sampled_from([0, 1, limit, limit - 1, limit // 2, limit // 2 + 1]),
    )
    runs = draw(st.lists(st.tuples(some, st.sampled_from([1, 1, 1, 2, 7, 127, 128, 300])), max_size=20))
    values = np.array([value for value, _ in runs], f"<u{dtype.itemsize}")
    return np.repeat(values, [length for _, length in runs]).view(dtype)


@pytest.mark.parametrize(("encoding", "width", "values", "base", "payload"), TABLE)
def test_the_documented_payloads_are_written_and_read(
    encoding: int, width: int, values: list[int], base: int, payload: str
) -> None:
    dtype, octets = np.dtype(f"<u{width}"), bytes.fromhex(payload)
    assert encode(Encoding(encoding), np.array(values, dtype)) == (base, octets)
    assert decode(encoding, octets, count=len(values), dtype=dtype, base=base).tolist() == values


def test_golden_values_have_their_payload() -> None:
    golden = list(lines(VECTOR_FILES, "encodings.jsonl", kind="encode"))
    assert len(golden) >= 60
    for line in golden:
        values = np.array([int(value) for value in line["values"]], f"<u{line['width']}")
        base, payload = encode(Encoding(line["encoding"]), values)
        assert (base, payload.hex()) == (int(line["base"]), line["payload"]), line
        read = decode(line["encoding"], payload, count=len(values), dtype=values.dtype, base=base)
        assert read.dtype == values.dtype
        assert read.tolist() == values.tolist(), line


def test_golden_odd_payloads_are_read_or_refused() -> None:
    golden = list(lines(VECTOR_FILES, "encodings.jsonl", kind="decode"))
    assert len(golden) >= 40
    for line in golden:
        reason = STRICTER.get(line["what"])
        if reason is None and line["error"] is None:
            assert decoded(line).tolist() == [int(value) for value in line["values"]], line
        else:
            with pytest.raises(Malformed, match=reason):
                decoded(line)


def decoded(line: dict[str, Any]) -> np.ndarray:
    return decode(
        line["encoding"],
        bytes.fromhex(line["payload"]),
        count=line["n"],
        dtype=np.dtype(f"<u{line['width']}"),
        base=int(line["base"]),
    )


@given(values=columns(), encoding=st.sampled_from(list(Encoding)))
def test_values_come_back_bit_for_bit(values: np.ndarray, encoding: Encoding) -> None:
    read = read_back(encoding, values)
    assert read.dtype == values.dtype
    assert read.tobytes() == values.tobytes()


@given(
    values=columns(), encoding=st.sampled_from(list(Encoding)), extra=st.binary(min_size=1, max_size=9)
)
def test_extra_bytes_are_refused(values: np.ndarray, encoding: Encoding, extra: bytes) -> None:
    base, payload = encode(encoding, values)
    with pytest.raises(Malformed):
        decode(encoding, payload + extra, count=len(values), dtype=values.dtype, base=base)


@given(values=columns(), encoding=st.sampled_from(list(Encoding)), by=st.sampled_from([-1, 1]))
def test_a_payload_is_for_its_number_of_values_only(
    values: np.ndarray, encoding: Encoding, by: int
) -> None:
    """Only packed bits may be of one more or less; and a first value, as no payload holds it."""
    base, payload = encode(encoding, values)
    count = len(values) + by
    if min(count, len(values)) < 1:
        return
    try:
        read = decode(encoding, payload, count=count, dtype=values.dtype, base=base)
    except Malformed:
        return
    assert encoding in {Encoding.DICT, Encoding.FOR, Encoding.DELTA_FOR}
    assert read[: len(values)].tobytes() == values[:count].tobytes()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("encoding", list(Encoding))
def test_every_cut_is_refused(encoding: Encoding, dtype: np.dtype) -> None:
    random = np.random.default_rng(8)
    words = np.repeat(random.integers(0, 200, 30), random.integers(1, 140, 30))
    values = np.concatenate([words[:90], words[-200:]]).astype(f"<u{dtype.itemsize}").view(dtype)
    base, payload = encode(encoding, values)
    for cut in range(len(payload)):
        with pytest.raises(Malformed) as refused:
            decode(encoding, payload[:cut], count=len(values), dtype=dtype, base=base)
        assert 0 <= refused.value.at <= cut


@given(
    payload=st.binary(max_size=60),
    encoding=st.integers(0, 8),
    count=st.integers(0, 40),
    dtype=st.sampled_from(TYPES),
    base=st.integers(0, 2**64 - 1),
)
def test_any_octets_are_values_or_malformed(
    payload: bytes, encoding: int, count: int, dtype: np.dtype, base: int
) -> None:
    try:
        values = decode(encoding, payload, count=count, dtype=dtype, base=base)
    except Malformed as refused:
        fault = refused.at
    else:
        fault = 0
        assert values.dtype == dtype
        assert len(values) == count
        assert read_back(encoding, values).tobytes() == values.tobytes()
    assert 0 <= fault <= len(payload)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("encoding", ENCODED)
def test_columns_of_many_blocks_come_back(encoding: Encoding, dtype: np.dtype) -> None:
    random = np.random.default_rng(9)
    scattered = random.integers(0, 2**64, 40_001, np.uint64)
    words = [
        scattered,
        scattered % np.uint64(1000),
        np.arange(40_001, dtype=np.uint64),
        np.repeat(scattered[:400], random.zipf(1.7, 400).clip(1, 3000)),
        np.repeat(scattered[:9000], np.where(np.arange(9000) % 1000 == 77, 20_000 // 9, 1)),
    ]
    for column in words:
        values = column.astype(f"<u{dtype.itemsize}").view(dtype)
        assert read_back(encoding, values).tobytes() == values.tobytes()


def test_the_payload_of_floats_is_that_of_their_bits() -> None:
    bits = np.array([0x7FC00001, 0x80000000, 0, 0xFFFFFFFF, 0x7F800000, 0x7FA00000], "<u4")
    for encoding in Encoding:
        assert encode(encoding, bits.view("<f4")) == encode(encoding, bits)
        assert read_back(encoding, bits.view("<f4")).view("<u4").tolist() == bits.tolist()


def test_columns_of_records_are_encoded_as_if_they_lay_close() -> None:
    records = np.zeros(50, [("key", "<u8"), ("state", "u1"), ("weight", "<f4"), ("ip", "V16")])
    records["key"], records["state"], records["weight"] = range(50), 3, 0.5
    records.flags.writeable = False
    for name in ("key", "state", "weight", "ip"):
        for encoding in list(Encoding) if name != "ip" else [Encoding.RAW]:
            assert encode(encoding, records[name]) == encode(encoding, records[name].copy())


def test_addresses_are_raw_and_nothing_else() -> None:
    addresses = np.array([bytes(range(16)), bytes(16)], "V16")
    base, payload = encode(Encoding.RAW, addresses)
    assert (base, payload) == (0, bytes(range(16)) + bytes(16))
    assert decode(0, payload, count=2, dtype=addresses.dtype, base=0).tobytes() == payload
    for encoding in ENCODED:
        with pytest.raises(ValueError, match="16 bytes"):
            encode(encoding, addresses)
        with pytest.raises(Malformed, match="16 bytes"):
            decode(encoding, payload, count=2, dtype=addresses.dtype, base=0)


def test_raw_values_at_an_odd_place_come_back_aligned() -> None:
    file = memoryview(b"\xff" + np.arange(9, dtype="<u8").tobytes())
    values = decode(0, file[1:], count=9, dtype=np.dtype("<u8"), base=0)
    assert values.flags.aligned
    assert values.tolist() == list(range(9))


@pytest.mark.parametrize(
    ("encoding", "count", "payload", "base"),
    [
        pytest.param(4, 3, b"\1" + b"\7" + write_uvarint(2**60), 0, id="a run of 2^60"),
        pytest.param(
            4, 3, b"\2" + b"\7\1" + b"\7" + write_uvarint(2**64 - 1), 0, id="runs that wrap around"
        ),
        pytest.param(4, 3, write_uvarint(2**60) + b"\7\3", 0, id="2^60 runs"),
        pytest.param(4, 2**32, b"\1\7\5", 0, id="few values where 2^32 are due"),
        pytest.param(4, 2**32, b"\2\7\x80\x80\x80\x80\x0f\7\1", 0, id="almost 2^32 values"),
        pytest.param(1, 3, write_uvarint(2**40) + b"\0" * 20, 0, id="2^40 dictionary entries"),
        pytest.param(1, 3, write_uvarint(2**64 - 1) + b"\0" * 20, 0, id="2^64 - 1 dictionary entries"),
        pytest.param(1, 2**32, b"\2\5\6\1\x1a", 0, id="2^32 codes in a byte"),
        pytest.param(1, 2**32, b"\0\0", 0, id="2^32 values of no entries"),
        pytest.param(2, 2**32, b"\2\2\2", 0, id="2^32 differences in three bytes"),
        pytest.param(3, 2**32, b"\1\xff", 0, id="2^32 distances in a byte"),
        pytest.param(6, 2**32, b"\1\0\xff", 0, id="2^32 packed differences in a byte"),
        pytest.param(0, 2**32, b"\1\2", 0, id="2^32 raw values in two bytes"),
        pytest.param(2, 2, b"\2", 2**64 - 1, id="base of 64 bits in a narrow column, differences"),
        pytest.param(3, 2, b"\0", 2**64 - 1, id="base of 64 bits in a narrow column, frame"),
        pytest.param(6, 2, b"\0\2", 256, id="base of 9 bits in a column of 8"),
        pytest.param(6, 2, b"\1" + write_uvarint(2**64 - 1) + b"\1", 0, id="an image of 65 bits"),
        pytest.param(6, 1, b"\0\2", 0, id="a difference of one value"),
        pytest.param(1, 2, b"\3\5\6\7\2\x0f", 0, id="a code that no entry has"),
        pytest.param(1, 2, b"\3\5\6\7\2\x10", 0, id="a bit behind the last code"),
    ],
)
def test_hostile_counts_cost_nothing(encoding: int, count: int, payload: bytes, base: int) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Malformed):
            decode(encoding, payload, count=count, dtype=np.dtype("u1"), base=base)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_differences_wrap_around_64_bits_but_not_the_type_of_a_column() -> None:
    backwards = b"\1"  # the difference is -1
    assert decode(2, backwards, count=2, dtype=np.dtype("<u8"), base=0).tolist() == [0, 2**64 - 1]
    with pytest.raises(Malformed, match="4 bytes"):
        decode(2, backwards, count=2, dtype=np.dtype("<u4"), base=0)


def test_wider_bits_than_needed_are_read_while_the_values_fit() -> None:
    assert decode(3, b"\x10\1\0\2\0", count=2, dtype=np.dtype("u1"), base=5).tolist() == [6, 7]
    with pytest.raises(Malformed, match="value 261"):
        decode(3, b"\x10\1\0\0\1", count=2, dtype=np.dtype("u1"), base=5)


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "u8"])
def test_short_and_long_pages_have_the_same_dictionary(kind: str) -> None:
    """Few words are sorted, many are hashed; entries stand by first appearance either way."""
    words = np.random.default_rng(1).integers(0, 200, 2**14 + 1).astype(kind)
    short, long = (encode(Encoding.DICT, words[:count])[1] for count in (2**14, 2**14 + 1))
    codes = 2**14  # of 8 bits each
    assert long[: len(short)] == short
    assert len(long) == len(short) + 1
    assert list(short[-codes:][:2]) == [0, 1]
