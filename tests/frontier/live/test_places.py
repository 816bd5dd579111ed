"""Places: numbers that compare as rows are to come."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier.places import number_at, order_at, order_of, orders_of, place

PRIORITIES = st.floats(width=32, allow_nan=False)
OFFSETS = st.integers(0, 2**64 - 1)
NUMBERS = st.integers(0, 2**32 - 1)


@given(PRIORITIES, PRIORITIES)
def test_greater_priority_comes_first(one: float, other: float) -> None:
    assert (order_of(one) < order_of(other)) is (one > other)
    assert (order_of(one) == order_of(other)) is (one == other)


def test_the_order_of_a_row_is_pinned() -> None:
    assert [order_of(each) for each in (math.inf, 1.0, 0.0, -1.0, -math.inf)] == [
        0x007F_FFFF,
        0x407F_FFFF,
        0x7FFF_FFFF,
        0xBF80_0000,
        0xFF80_0000,
    ]


def test_both_zeros_are_one_priority() -> None:
    assert order_of(-0.0) == order_of(0.0)
    assert len(set(orders_of(np.array([0.0, -0.0], np.float32)).tolist())) == 1


@given(st.integers(-(2**24), 2**24), st.integers(-(2**24), 2**24))
def test_whole_priorities_up_to_24_bits_are_all_different(one: int, other: int) -> None:
    assert (order_of(float(one)) < order_of(float(other))) is (one > other)


@given(st.lists(st.floats(width=32), max_size=50))
def test_many_orders_are_those_of_each(priorities: list[float]) -> None:
    orders = orders_of(np.array(priorities, np.float32))
    assert orders.dtype == np.uint32
    assert orders.tolist() == [order_of(priority) for priority in priorities]


@pytest.mark.slow
@given(st.lists(st.tuples(PRIORITIES, OFFSETS, NUMBERS), max_size=30))
def test_places_sort_by_priority_and_then_by_offset(rows: list[tuple[float, int, int]]) -> None:
    places = sorted(place(order_of(priority), offset, number) for priority, offset, number in rows)
    expected = sorted((-priority, offset, number) for priority, offset, number in rows)
    assert [number_at(each) for each in places] == [number for _, _, number in expected]


@given(PRIORITIES, OFFSETS, NUMBERS)
def test_a_place_tells_order_and_row(priority: float, offset: int, number: int) -> None:
    made = place(order_of(priority), offset, number)
    assert (order_at(made), number_at(made)) == (order_of(priority), number)


@pytest.mark.parametrize("priority", [1e39, -1e39])
def test_a_priority_beyond_single_precision_has_no_order(priority: float) -> None:
    with pytest.raises(OverflowError):
        order_of(priority)
