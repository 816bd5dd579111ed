"""Address gates: hosts on one machine are contacted in turn, and each is woken once."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.politeness.addresses import AddressGates

ADDRESS, ELSEWHERE = "192.0.2.1", "2001:db8::1"


def test_an_address_never_contacted_may_be_contacted_at_once() -> None:
    gates = AddressGates(0.5)
    assert gates.opens_at(ADDRESS) == -inf
    assert gates.enter(ADDRESS, 1, 10.0)
    assert gates.opens_at(ADDRESS) == 10.5


def test_an_unknown_address_is_never_gated() -> None:
    gates = AddressGates(0.5)
    for address in ("", "0.0.0.0", "::"):
        gates.start(address, 10.0)
        assert gates.enter(address, 1, 10.0)
        assert gates.enter(address, 2, 10.0)
        assert gates.opens_at(address) == -inf
    assert len(gates) == 0


def test_addresses_do_not_hold_up_each_other() -> None:
    gates = AddressGates(0.5)
    assert gates.enter(ADDRESS, 1, 10.0)
    assert gates.enter(ELSEWHERE, 2, 10.0)


def test_the_interval_of_a_host_can_lengthen_the_delay_but_not_shorten_it() -> None:
    gates = AddressGates(0.5)
    gates.start(ADDRESS, 10.0, interval=2.25)
    assert gates.opens_at(ADDRESS) == 12.25
    gates.start(ADDRESS, 11.0, interval=0.1)
    assert gates.opens_at(ADDRESS) == 12.25


def test_hosts_in_line_are_called_one_by_one_in_the_order_in_which_they_came() -> None:
    gates = AddressGates(0.5)
    assert gates.enter(ADDRESS, 1, 10.0)
    assert not gates.enter(ADDRESS, 2, 10.0)
    assert not gates.enter(ADDRESS, 3, 10.1)
    assert not gates.enter(ADDRESS, 2, 10.2)  # another call changes nothing
    assert gates.next_moment() == 10.5
    assert gates.called(10.4) == []
    assert gates.called(10.5) == [2]
    assert gates.called(10.5) == []
    assert gates.enter(ADDRESS, 2, 10.6)
    assert gates.next_moment() == 11.1
    assert gates.called(11.1) == [3]
    assert gates.enter(ADDRESS, 3, 11.1)
    assert gates.next_moment() is None


def test_nobody_gets_ahead_of_those_in_line() -> None:
    gates = AddressGates(0.5)
    gates.enter(ADDRESS, 1, 10.0)
    gates.enter(ADDRESS, 2, 10.0)
    assert not gates.enter(ADDRESS, 3, 20.0)
    assert gates.called(20.0) == [2]
    assert not gates.enter(ADDRESS, 4, 20.0)
    assert gates.enter(ADDRESS, 2, 20.0)
    assert gates.called(20.5) == [3]


def test_a_host_that_comes_after_the_line_has_gone_does_not_wait_for_a_turn_that_was_taken() -> None:
    gates = AddressGates(0.5, patience=60.0)
    gates.enter(ADDRESS, 1, 10.0)
    gates.enter(ADDRESS, 2, 10.0)
    assert gates.called(10.5) == [2]
    assert gates.enter(ADDRESS, 2, 10.5)
    assert not gates.enter(ADDRESS, 3, 10.6)
    assert gates.next_moment() == 11.0
    assert gates.called(11.0) == [3]


def test_a_turn_that_is_not_taken_lapses() -> None:
    gates = AddressGates(0.5, patience=5.0)
    gates.enter(ADDRESS, 1, 10.0)
    gates.enter(ADDRESS, 2, 10.0)
    gates.enter(ADDRESS, 3, 10.0)
    assert gates.called(10.5) == [2]
    assert gates.next_moment() == 15.5
    assert gates.called(15.5) == [3]
    assert gates.enter(ADDRESS, 3, 15.5)


def test_who_comes_after_its_turn_is_ahead_of_those_that_were_called_later() -> None:
    gates = AddressGates(0.5, patience=0.25)
    for host in (1, 2, 3, 4):
        gates.enter(ADDRESS, host, 10.0)
    assert gates.called(10.5) == [2]
    assert gates.called(10.75) == [3]
    assert gates.called(11.0) == [4]
    assert gates.enter(ADDRESS, 3, 11.1)
    assert not gates.enter(ADDRESS, 2, 11.2)
    assert not gates.enter(ADDRESS, 4, 11.3)
    assert gates.called(11.6) == [2]
    assert gates.enter(ADDRESS, 2, 11.6)
    assert gates.called(12.1) == [4]
    assert gates.enter(ADDRESS, 4, 12.1)


def test_who_comes_after_its_turn_does_not_cost_the_host_its_turn_that_is_called_now() -> None:
    gates = AddressGates(0.5, patience=0.25)
    for host in (1, 2, 3, 4):
        gates.enter(ADDRESS, host, 10.0)
    assert gates.called(10.5) == [2]
    assert gates.called(10.75) == [3]
    assert gates.enter(ADDRESS, 2, 10.8)
    assert not gates.enter(ADDRESS, 3, 10.9)
    assert gates.called(11.3) == [3]


def test_who_comes_after_its_turn_to_an_address_that_is_shut_does_not_cost_it_either() -> None:
    gates = AddressGates(0.5, patience=0.25)
    for host in (1, 2, 3, 4):
        gates.enter(ADDRESS, host, 10.0)
    assert gates.called(10.5) == [2]
    assert gates.called(10.75) == [3]
    gates.start(ADDRESS, 10.8)
    assert [gates.enter(ADDRESS, host, 10.9) for host in (2, 3)] == [False, False]
    assert gates.called(11.3) == [2]
    assert gates.enter(ADDRESS, 2, 11.3)
    assert gates.called(11.8) == [3]


def test_a_turn_that_lapses_while_the_address_is_shut_is_given_to_the_next_when_it_opens() -> None:
    gates = AddressGates(0.5, patience=5.0)
    for host in (1, 2, 3):
        gates.enter(ADDRESS, host, 10.0)
    assert gates.called(10.5) == [2]
    gates.start(ADDRESS, 15.4)
    assert gates.called(15.5) == []
    assert gates.next_moment() == 15.9
    assert gates.called(15.9) == [3]


def test_a_turn_that_lapsed_with_nobody_in_line_leaves_the_address_open() -> None:
    gates = AddressGates(0.5, patience=5.0)
    gates.enter(ADDRESS, 1, 10.0)
    gates.enter(ADDRESS, 2, 10.0)
    assert gates.called(10.5) == [2]
    assert not gates.enter(ADDRESS, 3, 15.4)
    assert gates.next_moment() == 15.5
    gates.leave(ADDRESS, 3, 15.4)
    assert gates.next_moment() is None
    assert gates.enter(ADDRESS, 4, 15.5)


def test_who_leaves_gives_its_turn_to_the_next_at_once() -> None:
    gates = AddressGates(0.5)
    for host in (1, 2, 3, 4):
        gates.enter(ADDRESS, host, 10.0)
    gates.leave(ADDRESS, 3, 10.1)
    assert gates.called(10.5) == [2]
    gates.leave(ADDRESS, 2, 10.75)
    assert gates.next_moment() == 10.75
    assert gates.called(10.75) == [4]
    gates.leave(ELSEWHERE, 4, 10.8)


def test_who_goes_ahead_out_of_turn_puts_off_the_host_that_was_called() -> None:
    gates = AddressGates(0.5)
    for host in (1, 2, 3):
        gates.enter(ADDRESS, host, 10.0)
    assert gates.called(10.5) == [2]
    gates.start(ADDRESS, 10.6)
    assert not gates.enter(ADDRESS, 2, 10.7)
    assert gates.called(11.0) == []
    assert gates.called(11.1) == [2]
    assert gates.enter(ADDRESS, 2, 11.1)


def test_who_goes_ahead_out_of_turn_takes_no_turn_from_the_host_that_was_called() -> None:
    gates = AddressGates(0.5)
    for host in (1, 2, 3):
        gates.enter(ADDRESS, host, 10.0)
    assert gates.called(10.5) == [2]
    gates.start(ADDRESS, 10.6)
    assert gates.called(11.1) == []
    assert gates.enter(ADDRESS, 2, 11.2)


def test_three_thousand_hosts_on_eight_addresses_are_each_woken_once() -> None:
    gates, now, waiting, woken = AddressGates(0.5), 0.0, 0, 0
    address_of = {host: f"192.0.2.{host % 8 + 1}" for host in range(3000)}
    for host, address in address_of.items():
        waiting += not gates.enter(address, host, now)
    while waiting:
        moment = gates.next_moment()
        assert moment is not None
        now = moment
        for host in gates.called(now):
            woken += 1
            assert gates.enter(address_of[host], host, now)
            waiting -= 1
    assert woken == 3000 - 8
    assert now == (3000 / 8 - 1) * 0.5


def test_addresses_contacted_long_ago_are_forgotten() -> None:
    gates = AddressGates(0.5)
    for number in range(100_000):
        gates.enter(f"2001:db8::{number:x}", number, number / 100)
    assert len(gates) <= 1100


def test_a_turn_is_not_forgotten_with_the_addresses_contacted_long_ago() -> None:
    gates = AddressGates(0.5, patience=5.0)
    gates.enter(ADDRESS, 1, 10.0)
    gates.enter(ADDRESS, 2, 10.0)
    assert gates.called(10.5) == [2]
    for number in range(2000):
        gates.start(f"2001:db8::{number:x}", 9.0 if number < 1000 else 12.0)
    assert not gates.enter(ADDRESS, 3, 12.0)
    assert gates.enter(ADDRESS, 2, 12.0)


@pytest.mark.parametrize("looks_ahead", [False, True])
def test_of_an_address_that_was_forgotten_nobody_is_called(looks_ahead: bool) -> None:
    gates = AddressGates(0.5)
    gates.enter(ADDRESS, 1, 10.0)
    gates.enter(ADDRESS, 2, 10.0)
    gates.leave(ADDRESS, 2, 10.0)
    for number in range(2000):
        gates.start(f"2001:db8::{number:x}", 20.0)
    assert gates.opens_at(ADDRESS) == -inf
    if looks_ahead:
        assert gates.next_moment() is None
    assert gates.called(20.0) == []


steps = st.lists(
    st.tuples(
        st.sampled_from(["enter", "enter", "enter", "start", "leave", "called"]),
        st.integers(0, 5),
        st.integers(0, 1),
        st.floats(0, 2),
    ),
    max_size=120,
)


@pytest.mark.slow
@given(steps)
def test_every_start_keeps_its_distance_and_everybody_comes_to_its_turn(
    steps: list[tuple[str, int, int, float]],
) -> None:
    gates = AddressGates(0.5, patience=1.0)
    now, last, waiting = 0.0, dict[str, float](), dict[tuple[str, int], None]()

    def enter(address: str, host: int) -> None:
        if gates.enter(address, host, now):
            assert now >= last.get(address, -inf) + 0.5
            last[address] = now
            waiting.pop((address, host), None)
        else:
            waiting[address, host] = None

    for what, host, which, rest in steps:
        now += rest
        address = f"192.0.2.{which}"
        if what == "enter":
            enter(address, host)
        elif what == "start":
            gates.start(address, now)
            last[address] = now
        elif what == "leave":
            gates.leave(address, host, now)
            waiting.pop((address, host), None)
        else:
            for called in gates.called(now):
                # Some do not come; they try again, or do not, later.
                for other, waits in list(waiting):
                    if waits == called and called % 3:
                        enter(other, called)
    # From now on everybody comes when called; who was called before tries again.
    for address, host in list(waiting):
        enter(address, host)
    rounds = 0
    while waiting:
        rounds += 1
        assert rounds < 100
        moment = gates.next_moment()
        assert moment is not None
        now = max(now, moment)
        for called in gates.called(now):
            for other, waits in list(waiting):
                if waits == called and gates.opens_at(other) <= now:
                    enter(other, called)
