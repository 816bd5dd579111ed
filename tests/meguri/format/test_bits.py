"""Packed bits: every width, against the definition, and what does not fill its bytes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.varints import container_of, pack_bits, packed_size, unpack_narrow

WIDTHS = range(65)


def by_definition(values: list[int], width: int) -> bytes:
    """Return *values* as one number, the first in its lowest bits, and this in bytes."""
    stream = sum(value << place * width for place, value in enumerate(values))
    return stream.to_bytes((len(values) * width + 7) // 8, "little")


def numbers_of(width: int, count: int) -> np.ndarray:
    random = np.random.default_rng([width, count])
    if not width:
        return np.zeros(count, np.uint64)
    return random.integers(0, 2**64, count, np.uint64) >> np.uint64(64 - width)


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_follow_each_other_lowest_bit_first(width: int) -> None:
    for count in range(26):
        values = numbers_of(width, count)
        packed = pack_bits(values, width)
        assert packed == by_definition(values.tolist(), width)
        assert len(packed) == packed_size(width, count)
        unpacked = unpack_narrow(memoryview(packed), width, count)
        assert unpacked.tolist() == values.tolist()
        assert unpacked.dtype == container_of(width)


@pytest.mark.parametrize(
    "width", [1, 2, 3, 5, 8, 9, 13, 15, 16, 24, 29, 31, 37, 48, 57, 59, 60, 61, 63, 64]
)
@pytest.mark.parametrize("count", [32_767, 32_768, 32_769, 70_001])
def test_several_blocks_read_back(width: int, count: int) -> None:
    values = numbers_of(width, count)
    assert np.array_equal(unpack_narrow(pack_bits(values, width), width, count), values)


@given(width=st.integers(1, 64), extremes=st.lists(st.booleans(), max_size=40))
def test_full_and_empty_numbers_do_not_touch_each_other(width: int, extremes: list[bool]) -> None:
    values = [(1 << width) - 1 if full else 0 for full in extremes]
    packed = pack_bits(np.array(values, np.uint64), width)
    assert packed == by_definition(values, width)
    assert unpack_narrow(packed, width, len(values)).tolist() == values


@pytest.mark.parametrize("width", WIDTHS)
def test_blocks_that_are_too_long_or_too_short_are_refused(width: int) -> None:
    packed = pack_bits(numbers_of(width, 11), width)
    for wrong in (packed + b"\0", packed[:-1], packed + packed):
        if wrong != packed:
            with pytest.raises(Malformed, match="11 numbers"):
                unpack_narrow(wrong, width, 11)


@given(width=st.integers(1, 63), count=st.integers(1, 20), bit=st.integers(0, 7))
def test_a_set_bit_behind_the_last_number_is_refused(width: int, count: int, bit: int) -> None:
    packed = bytearray(pack_bits(numbers_of(width, count), width))
    unused = 8 * len(packed) - width * count
    if bit < unused:
        packed[-1] |= 0x80 >> bit
        with pytest.raises(Malformed, match="behind the last") as refused:
            unpack_narrow(bytes(packed), width, count)
        assert refused.value.at == len(packed) - 1


def test_no_number_has_more_than_64_bits() -> None:
    with pytest.raises(Malformed, match="65 bits"):
        unpack_narrow(b"\xff" * 65, 65, 8)


def test_a_value_too_great_for_its_width_is_not_cut() -> None:
    with pytest.raises(ValueError, match="3 bits"):
        pack_bits(np.array([1, 8], np.uint64), 3)
    with pytest.raises(ValueError, match="0 bits"):
        pack_bits(np.array([1], np.uint64), 0)


def test_the_rest_of_a_block_can_be_read() -> None:
    assert unpack_narrow(b"\xff\x05\x39\x01", 3, 8, at=1).tolist() == [5, 0, 4, 4, 3, 2, 0, 0]
    with pytest.raises(Malformed) as refused:
        unpack_narrow(b"\xff\x80", 7, 1, at=1)
    assert refused.value.at == 1


@pytest.mark.parametrize("width", [1, 7, 13, 33, 61])
def test_little_room_is_needed_beside_the_numbers(width: int) -> None:
    count = 1 << 20
    values = numbers_of(width, count)
    tracemalloc.start()
    try:
        packed = pack_bits(values, width)
        unpack_narrow(packed, width, count)
        assert tracemalloc.get_traced_memory()[1] < 40 * count
    finally:
        tracemalloc.stop()
