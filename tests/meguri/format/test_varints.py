"""Variable-length integers: golden bytes, every cut, and arrays against one number at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from urls.vectors import VECTOR_FILES, lines

from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.varints import (
    decode_uvarints,
    encode_uvarints,
    read_uvarint,
    unzigzag,
    write_uvarint,
    zigzag,
)

NUMBERS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.builds(lambda bits, less: (1 << bits) - less, st.integers(1, 64), st.integers(1, 2)),
    st.builds(lambda bits: 1 << bits, st.integers(0, 63)),
)


def words(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, np.uint64)


def of_all_sizes(count: int) -> np.ndarray:
    """Return numbers of 0 to 64 bits, in no order."""
    random = np.random.default_rng(20)
    values: np.ndarray = random.integers(0, 2**64, count, np.uint64)
    values >>= random.integers(0, 64, count, np.uint64)
    return values


def test_golden_numbers_have_their_bytes() -> None:
    golden = list(lines(VECTOR_FILES, "keys.jsonl", kind="uvarint"))
    assert golden
    for line in golden:
        value, octets = int(line["value"]), bytes.fromhex(line["bytes"])
        image = int(line["zigzag_of_signed"])
        assert write_uvarint(value) == encode_uvarints(words([value])) == octets
        assert read_uvarint(octets, 0) == (value, len(octets))
        assert zigzag(words([value])).tolist() == [image]
        assert unzigzag(words([image])).tolist() == [value]


@given(numbers=st.lists(NUMBERS, max_size=40), before=st.binary(max_size=3))
def test_arrays_are_written_and_read_as_one_number_after_the_other(
    numbers: list[int], before: bytes
) -> None:
    octets = before + b"".join(map(write_uvarint, numbers))
    assert before + encode_uvarints(words(numbers)) == octets
    values, used = decode_uvarints(memoryview(octets + b"\x80"), len(numbers), at=len(before))
    assert values.tolist() == numbers
    assert values.dtype == np.uint64
    assert used == len(octets) - len(before)


@given(numbers=st.lists(NUMBERS))
def test_differences_come_back_from_their_images(numbers: list[int]) -> None:
    signed = words(numbers).view(np.int64).tolist()
    assert zigzag(words(numbers)).tolist() == [2 * n if n >= 0 else -2 * n - 1 for n in signed]
    assert unzigzag(zigzag(words(numbers))).tolist() == numbers


@pytest.mark.parametrize("bits", [7, 8, 13, 14, 28, 29, 35, 56, 57, 63, 64])
def test_many_blocks_of_numbers_read_back(bits: int) -> None:
    values = of_all_sizes(100_003) & np.uint64((1 << bits) - 1)
    octets = encode_uvarints(values)
    read, used = decode_uvarints(octets, len(values))
    assert np.array_equal(read, values)
    assert used == len(octets)


def test_numbers_are_read_wherever_they_meet_the_end_of_a_block() -> None:
    for shift in range(12):
        values = np.concatenate([np.zeros(shift, np.uint64), np.full(7000, 2**64 - 1, np.uint64)])
        read, _ = decode_uvarints(encode_uvarints(values), len(values))
        assert np.array_equal(read, values)


def test_every_cut_is_refused() -> None:
    values = of_all_sizes(60)
    octets = encode_uvarints(values)
    for cut in range(len(octets)):
        with pytest.raises(Malformed) as refused:
            decode_uvarints(octets[:cut], len(values))
        assert refused.value.at <= cut
    for size in range(1, 10):
        with pytest.raises(Malformed, match="cut short"):
            read_uvarint(b"\x80" * size, 0)


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        pytest.param("80808080808080808080 01", "more than ten bytes", id="eleven bytes"),
        pytest.param("80808080808080808080 80", "more than ten bytes", id="no end"),
        pytest.param("ffffffffffffffffff 02", "more than 64 bits", id="65 bits"),
        pytest.param("ffffffffffffffffff 7f", "more than 64 bits", id="70 bits"),
        pytest.param("", "cut short", id="nothing"),
    ],
)
def test_what_is_no_number_of_64_bits_is_refused_where_it_stands(octets: str, reason: str) -> None:
    wrong = bytes.fromhex(octets)
    with pytest.raises(Malformed, match=reason):
        read_uvarint(wrong, 0)
    for before in (0, 1, 40_000):
        with pytest.raises(Malformed, match=reason) as refused:
            decode_uvarints(b"\0" + b"\1" * before + wrong, before + 1, at=1)
        assert refused.value.at == before + 1


def test_longer_forms_of_a_number_are_read() -> None:
    octets = bytes.fromhex("8200 80808080808080808000 05")
    assert decode_uvarints(octets, 3)[0].tolist() == [2, 0, 5]
    assert read_uvarint(octets, 0) == (2, 2)


def test_no_room_is_made_for_more_numbers_than_there_are_bytes() -> None:
    with pytest.raises(Malformed, match="cut short"):
        decode_uvarints(b"\1\2\3", 2**60)
