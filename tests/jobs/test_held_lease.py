"""A lease counts for less time than Redis keeps it: a slow clock or a late write does no harm."""

from __future__ import annotations

import pytest

from amicrawl.jobs.lease_time import HeldLease


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("ttl", "margin"), [(60.0, 5.0), (25.0, 5.0), (10.0, 2.0), (2.0, 0.4)])
def test_a_lease_does_not_count_in_the_last_five_seconds_or_the_last_fifth(
    ttl: float, margin: float
) -> None:
    clock = Clock()
    lease = HeldLease(ttl, clock=clock, renewed=clock.now)
    assert lease.seconds_left == pytest.approx(ttl - margin)
    clock.now += ttl - margin - 0.001
    before = lease.is_held
    clock.now += 0.002
    assert (before, lease.is_held, lease.lost) == (True, False, "")


@pytest.mark.parametrize(("ttl", "moment"), [(60.0, 0.25), (2.0, 0.1)])
def test_nothing_that_cannot_wait_begins_in_the_last_moment_of_a_lease(
    ttl: float, moment: float
) -> None:
    clock = Clock()
    lease = HeldLease(ttl, clock=clock, renewed=clock.now)
    clock.now += lease.seconds_left - moment - 0.001
    before = lease.may_begin
    clock.now += 0.002
    assert (before, lease.is_held, lease.may_begin) == (True, True, False)


def test_a_lease_that_was_never_renewed_or_was_lost_is_not_held() -> None:
    clock = Clock()
    assert not HeldLease(60.0, clock=clock).is_held
    lease = HeldLease(60.0, clock=clock, renewed=clock.now)
    lease.lose("first")
    lease.lose("second")
    assert (lease.is_held, lease.may_begin, lease.lost) == (False, False, "first")
