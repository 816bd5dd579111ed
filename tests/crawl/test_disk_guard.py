"""A crawl is paused below a threshold of free bytes, and resumed well above it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.crawl.watching.stopping import is_full


def measured(threshold: int, free: list[int]) -> list[bool]:
    """Return after each measurement whether the crawl is paused."""
    paused = [False]
    for each in free:
        paused.append(is_full(each, threshold, was_full=paused[-1]))
    return paused[1:]


@pytest.mark.parametrize(
    ("free", "paused"),
    [
        ([1000], [False]),
        ([999], [True]),
        ([0], [True]),
        ([999, 1000, 1099, 1100], [True, True, True, False]),
        ([999, 1100, 1050, 1000, 999], [True, False, False, False, True]),
    ],
)
def test_it_is_resumed_a_tenth_above_the_threshold(free: list[int], paused: list[bool]) -> None:
    assert measured(1000, free) == paused


def test_a_tenth_of_little_is_rounded_up() -> None:
    assert measured(1, [0, 1, 2]) == [True, True, False]


def test_every_byte_of_a_large_disk_counts() -> None:
    threshold = 10**19
    assert measured(threshold, [threshold - 1, 11 * 10**18 - 1, 11 * 10**18]) == [True, True, False]


@given(st.integers(1, 1 << 50), st.lists(st.floats(0.5, 1.5), max_size=50))
def test_it_changes_only_beyond_its_two_marks(threshold: int, parts: list[float]) -> None:
    free = [int(threshold * part) for part in parts]
    found = measured(threshold, free)
    for each, before, after in zip(free, [False, *found], found, strict=False):
        if before != after:
            assert 10 * each >= 11 * threshold if before else each < threshold
