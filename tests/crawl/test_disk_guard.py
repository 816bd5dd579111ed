"""The disk guard pauses below a threshold, and goes on well above it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.crawl.watching.stopping import DiskGuard


@pytest.mark.parametrize(
    ("measured", "paused"),
    [
        ([1000], [False]),
        ([999], [True]),
        ([0], [True]),
        ([999, 1000, 1099, 1100], [True, True, True, False]),
        ([999, 1100, 1050, 1000, 999], [True, False, False, False, True]),
    ],
)
def test_it_goes_on_a_tenth_above_the_threshold(measured: list[int], paused: list[bool]) -> None:
    guard = DiskGuard(1000)
    assert not guard.paused
    assert [guard.measured(free) for free in measured] == paused
    assert guard.paused is paused[-1]


def test_a_tenth_of_little_is_rounded_up() -> None:
    guard = DiskGuard(1)
    assert [guard.measured(free) for free in (0, 1, 2)] == [True, True, False]


def test_a_threshold_of_nothing_never_pauses() -> None:
    assert not DiskGuard(0).measured(0)


def test_every_byte_of_a_large_disk_counts() -> None:
    threshold = 10**19
    guard = DiskGuard(threshold)
    assert guard.measured(threshold - 1)
    assert guard.measured(11 * 10**18 - 1)
    assert not guard.measured(11 * 10**18)


@given(st.integers(1, 1 << 50), st.lists(st.floats(0.5, 1.5), max_size=50))
def test_it_changes_only_beyond_its_two_marks(threshold: int, parts: list[float]) -> None:
    guard = DiskGuard(threshold)
    for part in parts:
        free, before = int(threshold * part), guard.paused
        if guard.measured(free) != before:
            assert 10 * free >= 11 * threshold if before else free < threshold
