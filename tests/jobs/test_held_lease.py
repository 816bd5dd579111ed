"""A lease counts for less time than Redis keeps it: a slow clock or a late write does no harm."""

from __future__ import annotations

import pytest

from amicrawl.fleet.leases.lease_time import HeartbeatMonitor, HeldLease


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


def test_the_lease_of_a_crawl_that_starts_is_renewed_for_it_every_quarter() -> None:
    pulse = HeartbeatMonitor(40.0, 1000.0)
    assert [pulse.is_our_turn(moment) for moment in (1009.9, 1010.0)] == [False, True]
    pulse.renewed(1010.0)
    assert [pulse.is_our_turn(moment) for moment in (1019.9, 1020.0)] == [False, True]


def begun_pulse() -> HeartbeatMonitor:
    """Return the renewals of a crawl that was last heard of at 1012, with a lease of 40 s."""
    pulse = HeartbeatMonitor(40.0, 1000.0)
    pulse.looked(30.0, 1010.0, 1010.0, has_begun=False)
    assert not pulse.has_begun
    pulse.looked(40.0, 1011.0, 1012.0, has_begun=True)
    assert (pulse.has_begun, pulse.heard) == (True, 1012.0)
    return pulse


def test_a_crawl_that_has_begun_renews_its_lease_itself() -> None:
    assert not begun_pulse().is_our_turn(2000.0)


def test_of_a_lease_that_was_looked_at_the_time_of_the_look_does_not_count() -> None:
    pulse = HeartbeatMonitor(1000.0, 1000.0)
    pulse.looked(900.0, 1000.0, 1200.0, has_begun=True)
    assert pulse.seconds_left == pytest.approx(900.0 - 200.0 - 5.0, abs=100.0)


def test_a_crawl_is_hung_once_three_quarters_of_its_lease_passed_without_a_renewal() -> None:
    pulse = begun_pulse()
    assert [pulse.is_hung(moment) for moment in (1042.0, 1042.1)] == [False, True]


@pytest.mark.parametrize(("requested", "heard"), [(1042.0, 1012.0), (1042.1, 1043.0)])
def test_after_a_long_time_without_a_look_the_wait_for_a_renewal_begins_anew(
    requested: float, heard: float
) -> None:
    pulse = begun_pulse()
    pulse.looked(9.0, requested, 1043.0, has_begun=True)
    assert pulse.heard == heard


def test_while_redis_was_away_a_crawl_could_not_renew_its_lease_and_is_not_hung() -> None:
    pulse = begun_pulse()
    pulse.could_not_look()
    pulse.looked(0.0, 1042.0, 1043.0, has_begun=True)
    assert [pulse.is_hung(moment) for moment in (1073.0, 1073.1)] == [False, True]


def test_a_crawl_that_never_renews_its_lease_is_hung_once_its_time_to_start_is_over() -> None:
    pulse = HeartbeatMonitor(40.0, 1000.0, startup=60.0)
    assert [pulse.is_hung(moment) for moment in (1060.0, 1060.1)] == [False, True]
    pulse.begin_anew(1050.0)
    assert [pulse.is_hung(moment) for moment in (1110.0, 1110.1)] == [False, True]


def test_a_lease_that_lasts_as_long_as_before_was_not_renewed() -> None:
    pulse = begun_pulse()
    pulse.looked(38.3, 1014.0, 1015.0, has_begun=True)
    assert pulse.heard == 1012.0
    pulse.looked(38.0, 1016.0, 1017.0, has_begun=True)
    assert pulse.heard == 1017.0
