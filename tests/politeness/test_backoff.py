"""The pause before another attempt."""

from __future__ import annotations

import pytest

from amicrawl.politeness import backoff


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(1, 0.075), (2, 0.15), (4, 0.3), (6, 0.45), (7, 0.5), (1000, 0.5)]
)
def test_the_pause_grows_with_the_attempts_up_to_half_a_second(attempt: int, seconds: float) -> None:
    assert backoff(attempt) == pytest.approx(seconds)
