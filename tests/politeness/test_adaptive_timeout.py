"""The adaptive timeout follows the latencies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.politeness.throttle import AdaptiveTimeout


@pytest.mark.parametrize(
    ("latencies", "seconds"),
    [
        ([], 30.0),
        ([0.05] * 63, 30.0),  # nothing is said before 64 responses
        ([0.05] * 64, 0.2),
        ([0.1] * 64, 0.5),  # an edge that is met belongs to the next range
        ([0.3] * 64, 1.0),
        ([0.7] * 64, 2.0),
        ([1.5] * 64, 4.0),
        ([3.0] * 64, 7.0),
        ([4.0] * 64, 10.0),
        ([9.0] * 64, 20.0),
        ([10.0] * 64, 30.0),  # beyond the last edge only the ceiling is left
        # 95 in 100 of 64 are 61: three slow ones do not count, four do.
        ([0.3] * 61 + [4.0] * 3, 1.0),
        ([0.3] * 60 + [4.0] * 4, 10.0),
        # Between two multiples of 64 nothing changes; at the next, all responses so far count.
        ([0.3] * 64 + [4.0] * 63, 1.0),
        ([0.3] * 64 + [4.0] * 64, 10.0),
        ([4.0] * 64 + [0.3] * 64 * 18, 10.0),
        ([4.0] * 64 + [0.3] * 64 * 19, 1.0),
    ],
)
def test_it_is_twice_what_95_in_100_stay_below(latencies: list[float], seconds: float) -> None:
    timeout = AdaptiveTimeout(0.15, 30.0)
    for latency in latencies:
        timeout.responded(latency)
    assert timeout.seconds == seconds


@pytest.mark.parametrize(("latency", "seconds"), [(0.05, 5.0), (3.0, 7.0), (4.0, 8.0), (60.0, 8.0)])
def test_it_stays_between_floor_and_ceiling(latency: float, seconds: float) -> None:
    timeout = AdaptiveTimeout(5.0, 8.0)
    for _ in range(64):
        timeout.responded(latency)
    assert timeout.seconds == seconds


@pytest.mark.slow
@given(st.lists(st.floats(0, 1e6), min_size=64, max_size=200))
def test_at_most_one_response_in_twenty_took_longer_than_half_of_it(latencies: list[float]) -> None:
    timeout = AdaptiveTimeout(0.0, 1e9)
    for latency in latencies:
        timeout.responded(latency)
    counted = latencies[: len(latencies) // 64 * 64]
    assert 20 * sum(latency > timeout.seconds / 2 for latency in counted) <= len(counted)
