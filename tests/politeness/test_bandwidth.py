"""Caps on bandwidth, over all hosts and for each."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.errors import AmicrawlError
from amicrawl.politeness.throttle import Bandwidth

HOST, OTHER = 1, 2
Step = tuple[int, int, float]


def opens_at(bandwidth: Bandwidth, host: int, now: float) -> float:
    return max(now, bandwidth.total_opens_at(), bandwidth.host_opens_at(host))


@pytest.mark.parametrize(
    ("caps", "spent", "opens"),
    # Spent by HOST or OTHER, so many bytes, at a moment; then when HOST opens, at 100.
    [
        ({}, [(HOST, 10**12, 100.0)], 100.0),
        ({"per_host": 1000}, [], 100.0),
        ({"per_host": 1000}, [(HOST, 1000, 100.0)], 100.0),  # a burst of a second
        ({"per_host": 1000}, [(HOST, 1500, 100.0)], 100.5),
        ({"per_host": 1000}, [(HOST, 1000, 100.0), (HOST, 250, 100.0)], 100.25),
        ({"per_host": 1000}, [(HOST, 1500, 99.0), (HOST, 1000, 100.0)], 100.5),
        ({"per_host": 1000}, [(HOST, 1500, 0.0), (HOST, 1500, 100.0)], 100.5),  # a rest is a burst only
        ({"per_host": 1000}, [(OTHER, 10**6, 100.0)], 100.0),
        ({"per_host": 1000, "burst": 0.0}, [(HOST, 10, 100.0)], 100.01),
        ({"per_host": 1000, "burst": 5.0}, [(HOST, 5000, 100.0)], 100.0),
        ({"total": 1000}, [(OTHER, 3000, 100.0)], 102.0),
        ({"total": 1000}, [(OTHER, 600, 100.0), (HOST, 600, 100.0)], 100.2),
        ({"total": 1000, "per_host": 100}, [(HOST, 1100, 100.0)], 110.0),
        ({"total": 1000, "per_host": 100}, [(HOST, 110, 100.0), (OTHER, 2890, 100.0)], 102.0),
    ],
)
def test_what_was_spent_is_waited_for(caps: dict[str, float], spent: list[Step], opens: float) -> None:
    bandwidth = Bandwidth(**caps)
    for host, nbytes, now in spent:
        bandwidth.spend(host, nbytes, now)
    assert opens_at(bandwidth, HOST, 100.0) == pytest.approx(opens, abs=1e-9)


@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5000), st.floats(0, 2)), max_size=80),
    burst=st.floats(0, 3),
)
def test_no_window_carries_more_than_its_share(steps: list[Step], burst: float) -> None:
    total, per_host = 1000.0, 400.0
    bandwidth = Bandwidth(total=total, per_host=per_host, burst=burst)
    now, spent = 10.0, list[Step]()
    for host, nbytes, rest in steps:
        now = opens_at(bandwidth, host, now + rest)
        bandwidth.spend(host, nbytes, now)
        spent.append((host, nbytes, now))
    for hosts, rate in [({0, 1, 2, 3}, total), ({0}, per_host), ({1}, per_host)]:
        ours = [step for step in spent if step[0] in hosts]
        for first in range(len(ours)):
            carried = 0
            for _, nbytes, moment in ours[first:]:
                # All but what came last, which nobody could know the size of.
                assert carried <= rate * (moment - ours[first][2] + burst) + 1e-3
                carried += nbytes


def test_full_buckets_are_forgotten() -> None:
    bandwidth = Bandwidth(per_host=1000)
    for host in range(100_000):
        bandwidth.spend(host, 1000, host / 100)
    assert len(bandwidth) <= 2100


@pytest.mark.parametrize(
    "caps",
    [{"total": 0}, {"per_host": -1}, {"total": nan}, {"burst": -1}, {"burst": inf}, {"burst": nan}],
)
def test_what_lets_nothing_through_is_refused(caps: dict[str, float]) -> None:
    with pytest.raises(AmicrawlError):
        Bandwidth(**caps)


def test_what_is_expected_is_paid_before_it_comes_and_made_up_for_afterwards() -> None:
    """Twenty at once of 1,000 bytes, at 1,000 bytes/s: after the first few are known, few are let go."""
    bandwidth = Bandwidth(total=1000, burst=1.0)
    bandwidth.spend(1, 1000, 0.0, expected=bandwidth.expect(0.0))
    for number in range(40):
        bandwidth.spend(1, 1000, 100.0 + number, expected=bandwidth.expect(100.0 + number))
    now, let_go = 1000.0, []
    while bandwidth.total_opens_at() <= now:
        let_go.append(bandwidth.expect(now))
    assert 2 <= len(let_go) <= 4
    for expected in let_go:
        bandwidth.spend(1, 1000, now, expected=expected)
    assert bandwidth.total_opens_at() == pytest.approx(now - 1 + len(let_go))


def test_what_brings_nothing_is_not_charged_and_changes_no_average() -> None:
    bandwidth = Bandwidth(total=1000, burst=1.0)
    for number in range(100):
        bandwidth.spend(1, 500, 10.0 * number, expected=bandwidth.expect(10.0 * number))
    before = bandwidth.expect(5000.0)
    bandwidth.spend(1, 0, 5000.0, expected=before)
    assert bandwidth.total_opens_at() == pytest.approx(4999.0)
    assert bandwidth.expect(6000.0) == before


def test_without_a_cap_over_all_hosts_nothing_is_expected() -> None:
    bandwidth = Bandwidth(per_host=1000)
    bandwidth.spend(1, 5000, 10.0)
    assert bandwidth.expect(10.0) == 0.0
    assert bandwidth.total_opens_at() < 10.0
    assert (bandwidth.host_opens_at(1), bandwidth.host_opens_at(2) < 10.0) == (14.0, True)
