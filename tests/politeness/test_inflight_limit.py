"""The in-flight limit follows what the network bears."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.politeness import InflightLimit


def test_every_response_adds_one_up_to_the_greatest() -> None:
    limit = InflightLimit(64, 32, 70)
    limits = []
    for _ in range(8):
        limit.responded()
        limits.append(limit.limit)
    assert limits == [65, 66, 67, 68, 69, 70, 70, 70]


@pytest.mark.parametrize(
    ("losses", "expected"),
    # The average passes 0.25 at the 15th loss (1 - 0.98 ** 15 = 0.261); halved, at every 8th after it.
    [(0, 64), (14, 64), (15, 54), (22, 54), (23, 45), (30, 45), (31, 38), (39, 32), (47, 32), (500, 32)],
)
def test_losses_in_a_row_shrink_it_step_by_step(losses: int, expected: int) -> None:
    limit = InflightLimit(64, 32, 2000)
    for _ in range(losses):
        limit.lost()
    assert limit.limit == expected


@pytest.mark.parametrize(("losses", "expected"), [(0, False), (5, False), (6, True), (15, True)])
def test_congestion_begins_above_a_tenth(losses: int, expected: bool) -> None:
    # 1 - 0.98 ** 5 = 0.096; 1 - 0.98 ** 6 = 0.114.
    limit = InflightLimit(64, 32, 2000)
    for _ in range(losses):
        limit.lost()
    assert limit.congested is expected


@pytest.mark.parametrize(("responses", "expected"), [(0, True), (13, True), (14, False)])
def test_a_shrink_does_not_end_the_congestion_but_responses_do(responses: int, expected: bool) -> None:
    # 0.261 halved is 0.131, and 0.131 * 0.98 ** 14 is below 0.1.
    limit = InflightLimit(64, 32, 2000)
    for _ in range(15):
        limit.lost()
    assert limit.limit == 54
    for _ in range(responses):
        limit.responded()
    assert limit.congested is expected


def test_a_loss_in_ten_never_shrinks_it() -> None:
    limit = InflightLimit(64, 32, 2000)
    previous = 64
    for outcome in range(20_000):
        if outcome % 10 == 9:
            limit.lost()
        else:
            limit.responded()
        assert limit.limit >= previous
        previous = limit.limit
    assert limit.limit == 2000


def test_a_loss_in_two_brings_it_to_its_least_from_wherever_it_stood() -> None:
    limit = InflightLimit(2000, 32, 2000)
    for outcome in range(2000):
        if outcome % 2:
            limit.lost()
        else:
            limit.responded()
    assert 32 <= limit.limit < 100


@given(
    outcomes=st.lists(st.booleans(), max_size=300),
    bounds=st.tuples(st.integers(1, 50), st.integers(0, 50), st.integers(0, 50)),
)
def test_it_never_leaves_its_bounds(outcomes: list[bool], bounds: tuple[int, int, int]) -> None:
    minimum, above_minimum, above_start = bounds
    start = minimum + above_minimum
    maximum = start + above_start
    limit = InflightLimit(start, minimum, maximum)
    for has_responded in outcomes:
        limit.responded() if has_responded else limit.lost()
        assert minimum <= limit.limit <= maximum
        assert isinstance(limit.limit, int)


def test_while_the_loop_is_late_it_shrinks_towards_its_start_and_does_not_grow() -> None:
    limit = InflightLimit(64, 32, 2000)
    for _ in range(1000):
        limit.responded()
    limit.lagged(0.1)
    assert limit.limit == 1064
    for _ in range(10):
        limit.lagged(1.0)
        limit.responded()
    assert 600 < limit.limit < 650
    for _ in range(1000):
        limit.lagged(1.0)
        limit.responded()
    assert limit.limit == 64
    limit.lagged(0.0)
    limit.responded()
    assert limit.limit == 65


def looked_at(limit: InflightLimit, *, seconds: float = 0.0) -> bool:
    """Look at the loop as often as one judgement takes; return whether the limit has grown."""
    grown: list[int] = []
    limit.on_growth = lambda: grown.append(limit.limit)
    for _ in range(5):
        limit.lagged(seconds)
    return len(grown) > 0


def test_it_grows_by_a_quarter_where_it_holds_rows_back_and_nothing_completes() -> None:
    limit = InflightLimit(64, 32, 120)
    limit.holds_back = True
    assert looked_at(limit)
    assert limit.limit == 80
    assert not looked_at(limit), "no row was held back since"
    for expected in (100, 120, 120):
        limit.holds_back = True
        looked_at(limit)
        assert limit.limit == expected


def test_it_does_not_grow_by_itself_while_responses_complete() -> None:
    limit = InflightLimit(64, 32, 2000)
    for _ in range(6):
        limit.responded()
    limit.holds_back = True
    assert not looked_at(limit)
    assert limit.limit == 70


def test_it_does_not_grow_by_itself_while_the_network_loses_what_hosts_send() -> None:
    limit = InflightLimit(64, 32, 2000)
    for _ in range(10):
        limit.lost()
    limit.holds_back = True
    assert not looked_at(limit)
    assert limit.limit == 64
    late = InflightLimit(64, 32, 2000)
    late.holds_back = True
    assert not looked_at(late, seconds=1.0)


def test_what_this_machine_lacks_lowers_it_for_good_and_below_its_minimum() -> None:
    limit = InflightLimit(64, 32, 2000)
    assert limit.exhausted(), "for the first time"
    assert limit.limit == 56
    assert not limit.exhausted()
    for _ in range(40):
        limit.exhausted()
    assert limit.limit == 1
    limit.responded()
    assert limit.limit == 1
    for _ in range(40):
        limit.lost()
    assert limit.limit == 1
