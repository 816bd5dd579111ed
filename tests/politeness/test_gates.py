"""Gates: a host is contacted no sooner and no more often than it should be."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.errors import AmicrawlError
from amicrawl.politeness import Gates

HOST, OTHER = 0x2883BA7DC9AA3289, 0xFFFF_FFFF_FFFF_FFFF


def test_a_host_never_contacted_may_be_contacted_at_any_moment() -> None:
    gates = Gates(1.0, 1)
    assert gates.may_start(HOST, -1e9)
    assert gates.opens_at(HOST) == -inf


def test_the_delay_runs_from_start_to_start() -> None:
    gates = Gates(2.0, 1)
    gates.start(HOST, 10.0)
    gates.end(HOST, 10.5)
    assert not gates.may_start(HOST, 11.999)
    assert gates.may_start(HOST, 12.0)


def test_a_request_that_outlasts_the_delay_keeps_the_gate_shut() -> None:
    gates = Gates(2.0, 1)
    gates.start(HOST, 10.0)
    assert gates.opens_at(HOST) == inf
    gates.end(HOST, 50.0)
    assert gates.may_start(HOST, 50.0)


def test_as_many_requests_as_allowed_may_be_in_flight_each_after_the_delay() -> None:
    gates = Gates(2.0, 2)
    gates.start(HOST, 10.0)
    assert gates.opens_at(HOST) == 12.0
    gates.start(HOST, 12.0)
    assert gates.opens_at(HOST) == inf
    gates.end(HOST, 13.0)
    assert gates.opens_at(HOST) == 14.0


def test_a_start_out_of_turn_still_counts() -> None:
    gates = Gates(1.0, 1)
    gates.start(HOST, 10.0)
    gates.start(HOST, 10.1)
    gates.end(HOST, 10.2)
    assert gates.opens_at(HOST) == inf
    gates.end(HOST, 10.3)
    assert gates.opens_at(HOST) == 11.1


def test_hosts_do_not_hold_up_each_other() -> None:
    gates = Gates(1.0, 1)
    gates.start(HOST, 10.0)
    assert gates.may_start(OTHER, 10.0)


@pytest.mark.parametrize("moments", [(20.0, 30.0), (30.0, 20.0)])
def test_of_two_moments_to_keep_shut_until_the_later_wins(moments: tuple[float, float]) -> None:
    gates = Gates(1.0, 1)
    for until in moments:
        gates.keep_shut(HOST, until)
    assert gates.opens_at(HOST) == 30.0


def test_keeping_shut_never_cuts_the_delay_short() -> None:
    gates = Gates(5.0, 1)
    gates.start(HOST, 10.0)
    gates.end(HOST, 10.0)
    gates.keep_shut(HOST, 12.0)
    assert gates.opens_at(HOST) == 15.0


def test_a_start_out_of_turn_does_not_open_what_is_kept_shut() -> None:
    gates = Gates(1.0, 1)
    gates.keep_shut(HOST, 100.0)
    gates.start(HOST, 10.0)
    gates.end(HOST, 11.0)
    assert gates.opens_at(HOST) == 100.0


def test_a_delay_set_while_the_request_is_in_flight_counts_from_its_start() -> None:
    gates = Gates(1.0, 1)
    gates.start(HOST, 10.0)
    gates.set_delay(HOST, 30.0)
    gates.end(HOST, 10.2)
    assert gates.opens_at(HOST) == 40.0
    gates.start(HOST, 40.0)
    gates.end(HOST, 41.0)
    assert gates.opens_at(HOST) == 70.0


@pytest.mark.parametrize("seconds", [0.0, 0.5, 1.0, -3.0])
def test_no_host_can_request_a_shorter_delay_than_the_crawls(seconds: float) -> None:
    gates = Gates(1.0, 1)
    gates.set_delay(HOST, seconds)
    gates.start(HOST, 10.0)
    gates.end(HOST, 10.0)
    assert gates.opens_at(HOST) == 11.0


@pytest.mark.parametrize(("later", "second"), [(5.0, 15.0), (0.5, 11.0), (0.0, 11.0)])
def test_a_delay_that_became_shorter_counts_from_the_next_start(later: float, second: float) -> None:
    gates = Gates(1.0, 1)
    gates.set_delay(HOST, 10.0)
    gates.start(HOST, 0.0)
    gates.set_delay(HOST, later)
    gates.end(HOST, 0.0)
    assert gates.opens_at(HOST) == 10.0
    gates.start(HOST, 10.0)
    gates.end(HOST, 10.0)
    assert gates.opens_at(HOST) == second


def test_a_host_with_a_delay_of_its_own_has_that_again_once_none_is_wished() -> None:
    gates = Gates(1.0, 1, delays={HOST: 3.0})
    gates.set_delay(HOST, 10.0)
    gates.set_delay(HOST, 0.0)
    assert gates.delay_of(HOST) == 3.0
    gates.change(delay=7.0, per_host=1)
    assert gates.delay_of(HOST) == 3.0


@pytest.mark.parametrize("endless", [inf, -inf, nan])
def test_a_host_cannot_be_shut_for_ever(endless: float) -> None:
    """A gate that never opens would keep the crawl waiting without an end."""
    gates = Gates(1.0, 1)
    with pytest.raises(AmicrawlError, match="cannot be kept shut"):
        gates.keep_shut(HOST, endless)
    with pytest.raises(AmicrawlError, match="cannot have a delay"):
        gates.set_delay(HOST, endless)
    assert gates.may_start(HOST, 0.0)


def test_a_lifted_gate_is_open_and_a_host_that_comes_back_has_its_delay_again() -> None:
    gates = Gates(1.0, 1, delays={OTHER: 30.0})
    gates.set_delay(HOST, 60.0)
    for host, seconds in ((HOST, 60.0), (OTHER, 30.0)):
        gates.keep_shut(host, 1000.0)
        gates.lift(host)
        assert gates.may_start(host, 0.0)
        gates.start(host, 5.0)
        gates.end(host, 5.0)
        assert gates.opens_at(host) == 5.0 + seconds


def test_lifting_a_gate_leaves_requests_in_flight_where_they_are() -> None:
    gates = Gates(1.0, 1)
    gates.start(HOST, 10.0)
    gates.lift(HOST)
    assert gates.opens_at(HOST) == inf
    gates.end(HOST, 10.1)
    assert gates.may_start(HOST, 10.1)


def test_lifting_the_gate_of_a_host_never_contacted_leaves_nothing_behind() -> None:
    gates = Gates(1.0, 1)
    gates.lift(HOST)
    assert len(gates) == 0
    assert gates.may_start(HOST, 0.0)


def test_an_end_without_a_start_is_an_error() -> None:
    gates = Gates(1.0, 1)
    with pytest.raises(AmicrawlError, match="2883ba7dc9aa3289 has no request in flight"):
        gates.end(HOST, 1.0)
    gates.start(HOST, 1.0)
    gates.end(HOST, 1.0)
    with pytest.raises(AmicrawlError, match="no request in flight"):
        gates.end(HOST, 1.0)


def test_the_listener_is_told_of_every_end_when_the_gate_has_opened() -> None:
    gates = Gates(0.0, 1)
    told: list[tuple[int, float, float]] = []
    gates.watch(lambda host, now, opens: told.append((host, now, opens)))
    gates.start(HOST, 1.0)
    gates.end(HOST, 3.0)
    assert told == [(HOST, 3.0, 1.0)]


def test_gates_that_have_opened_are_forgotten() -> None:
    gates = Gates(1.0, 1)
    for host in range(20_000):
        gates.start(host, host / 100)
        gates.end(host, host / 100)
    # A hundred are contacted a second, so a hundred gates are shut at a time.
    assert len(gates) < 2000


def test_gates_that_hold_back_a_host_are_never_forgotten() -> None:
    gates = Gates(1.0, 1)
    gates.start(0, 0.0)
    gates.keep_shut(1, 1e6)
    gates.set_delay(2, 500.0)
    gates.start(2, 0.0)
    gates.end(2, 0.0)
    for host in range(3, 10_000):
        gates.start(host, host / 100)
        gates.end(host, host / 100)
    assert gates.opens_at(0) == inf
    assert gates.opens_at(1) == 1e6
    assert gates.opens_at(2) == 500.0


def test_a_longer_delay_outlives_its_gate() -> None:
    gates = Gates(1.0, 1)
    gates.set_delay(HOST, 60.0)
    for host in range(5000):
        gates.start(host, host)
        gates.end(host, host)
    gates.start(HOST, 6000.0)
    gates.end(HOST, 6000.0)
    assert gates.opens_at(HOST) == 6060.0


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "end", "keep_shut", "set_delay", "wait"]),
        st.integers(0, 2),
        st.floats(0, 20, allow_nan=False),
    ),
    max_size=60,
)


@given(steps=STEPS, delay=st.sampled_from([0.0, 1.0, 7.5]), per_host=st.integers(1, 3))
def test_whatever_happens_a_gate_opens_when_its_history_says(
    steps: list[tuple[str, int, float]], delay: float, per_host: int
) -> None:
    """The gate against a model that remembers everything and works it out anew each time."""
    gates = Gates(delay, per_host)
    now = 0.0
    last_start = dict.fromkeys(range(3), -inf)
    delays = dict.fromkeys(range(3), delay)
    shut = dict.fromkeys(range(3), -inf)
    in_flight = dict.fromkeys(range(3), 0)
    for step, host, value in steps:
        if step == "wait":
            now += value
        elif step == "start" and gates.may_start(host, now):
            gates.start(host, now)
            last_start[host] = now
            shut[host] = max(shut[host], now + delays[host])
            in_flight[host] += 1
        elif step == "end" and in_flight[host]:
            gates.end(host, now)
            in_flight[host] -= 1
        elif step == "keep_shut":
            gates.keep_shut(host, now + value)
            shut[host] = max(shut[host], now + value)
        elif step == "set_delay":
            gates.set_delay(host, value)
            delays[host] = max(delay, value)
            shut[host] = max(shut[host], last_start[host] + delays[host])
        for each in range(3):
            opens = shut[each]
            expected = inf if in_flight[each] >= per_host else opens
            assert gates.opens_at(each) == expected
            assert gates.may_start(each, now) == (expected <= now)


@given(
    st.lists(
        st.tuples(st.sampled_from(["start", "end", "hold", "release"]), st.integers(0, 9)), max_size=30
    ),
    st.sampled_from([0.0, 3.0]),
    st.integers(1, 3),
)
def test_a_start_if_open_is_a_look_a_start_and_another_look(
    history: list[tuple[str, int]], delay: float, per_host: int
) -> None:
    one, other = Gates(delay, per_host), Gates(delay, per_host)
    now, in_flight = 0.0, 0
    for what, later in history:
        now += later
        if what == "start":
            wanted = None
            if one.may_start(1, now):
                one.start(1, now)
                wanted, in_flight = one.opens_at(1), in_flight + 1
            assert other.start_if_open(1, now) == wanted
        elif what == "end" and in_flight:
            in_flight -= 1
            one.end(1, now)
            other.end(1, now)
        elif what == "hold":
            one.hold(1)
            other.hold(1)
        elif what == "release":
            one.release(1, now)
            other.release(1, now)
        assert one.opens_at(1) == other.opens_at(1)
        assert one.started(1) == other.started(1)


def test_a_start_that_is_taken_back_counts_for_nothing() -> None:
    gates = Gates(2.0, 1)
    gates.start(HOST, 10.0)
    gates.end(HOST, 10.5)
    gates.start(HOST, 12.0)
    gates.withdraw(HOST, 12.0)
    assert gates.opens_at(HOST) == inf, "it is in flight until its end"
    gates.end(HOST, 12.0)
    assert gates.opens_at(HOST) == 12.0
    assert gates.started(HOST) == 10.0


def test_what_was_learnt_in_between_stays_when_a_start_is_taken_back() -> None:
    gates = Gates(2.0, 9)
    gates.start(HOST, 10.0)
    gates.start(HOST, 12.0)
    gates.set_delay(HOST, 5.0)
    gates.withdraw(HOST, 12.0)
    assert gates.opens_at(HOST) == 15.0
    gates.start(HOST, 15.0)
    gates.keep_shut(HOST, 40.0)
    gates.withdraw(HOST, 15.0)
    assert gates.opens_at(HOST) == 40.0


def test_only_the_latest_start_can_be_taken_back_and_once() -> None:
    gates = Gates(2.0, 3)
    gates.start(HOST, 10.0)
    gates.start(HOST, 12.0)
    gates.withdraw(HOST, 10.0)
    assert gates.opens_at(HOST) == 14.0
    gates.withdraw(HOST, 12.0)
    gates.withdraw(HOST, 10.0)
    assert (gates.opens_at(HOST), gates.started(HOST)) == (12.0, 10.0)
    gates.withdraw(OTHER, 10.0)
    assert gates.opens_at(OTHER) == -inf


def test_the_delay_runs_from_when_a_request_is_sent_if_that_is_later() -> None:
    gates = Gates(2.0, 2)
    gates.start(HOST, 10.0)
    gates.note_sent(HOST, 11.5)
    assert (gates.opens_at(HOST), gates.started(HOST)) == (13.5, 11.5)
    gates.note_sent(HOST, 12.5)
    gates.note_sent(OTHER, 12.5)
    assert (gates.opens_at(HOST), gates.opens_at(OTHER)) == (14.5, -inf)
    gates.withdraw(HOST, 10.0)
    assert gates.opens_at(HOST) == 14.5, "it has been sent"


def test_a_request_that_is_over_cannot_be_sent_any_more() -> None:
    gates = Gates(1.0, 1)
    gates.start(HOST, 0.0)
    gates.end(HOST, 0.5)
    gates.note_sent(HOST, 0.9)
    assert gates.opens_at(HOST) == 1.0


def test_a_request_that_is_sent_late_keeps_the_next_away_though_others_started_since() -> None:
    gates = Gates(2.0, 2)
    gates.start(HOST, 10.0)
    gates.start(HOST, 12.0)
    gates.note_sent(HOST, 13.0)
    gates.end(HOST, 13.5)
    assert gates.opens_at(HOST) == 15.0


def test_what_a_start_adds_to_the_delay_is_kept_when_it_is_sent_later() -> None:
    gates = Gates(2.0, 2)
    gates.change(delay=2.0, per_host=2, jitter=iter([0.5, 0.25]).__next__)
    gates.start(HOST, 10.0)
    gates.note_sent(HOST, 11.0)
    assert gates.opens_at(HOST) == 13.5
    gates.end(HOST, 12.0)
    gates.change(delay=2.0, per_host=2)
    gates.start(HOST, 20.0)
    gates.note_sent(HOST, 21.0)
    assert gates.opens_at(HOST) == 23.0, "nothing is added any more"


def test_a_gate_that_is_held_is_shut_until_it_is_let_go_and_then_told_of() -> None:
    told: list[tuple[int, float]] = []
    gates = Gates(2.0, 1)
    gates.watch(lambda host, now, _: told.append((host, now)))
    gates.hold(HOST)
    assert gates.opens_at(HOST) == inf
    gates.release(HOST, 30.0)
    gates.release(OTHER, 31.0)
    assert told == [(HOST, 30.0), (OTHER, 31.0)]
    assert gates.may_start(HOST, 30.0)


def test_a_gate_that_is_held_is_not_forgotten_but_one_given_up_is() -> None:
    gates = Gates(0.0, 1)
    gates.hold(HOST)
    for host in range(5000):
        gates.start(host, 10.0)
        gates.end(host, 10.0)
    assert gates.opens_at(HOST) == inf
    gates.lift(HOST)
    assert gates.opens_at(HOST) == -inf


def test_single_hosts_can_have_a_delay_and_a_number_of_their_own() -> None:
    gates = Gates(2.0, 1, delays={HOST: 0.5}, limits={HOST: 2})
    for host in (HOST, OTHER):
        gates.start(host, 10.0)
    assert gates.opens_at(HOST) == 10.5
    assert gates.opens_at(OTHER) == inf
    gates.set_delay(HOST, 1.0)
    assert gates.opens_at(HOST) == 11.0
    for now in (11.0, 11.2):
        gates.start(HOST, now)
    assert gates.end(HOST, 11.5) == inf
    assert gates.end(HOST, 11.6) == 12.2


def test_a_host_that_is_held_stays_shut_until_it_is_let_go() -> None:
    gates = Gates(1.0, 1)
    heard: list[tuple[int, float]] = []
    gates.watch(lambda host, now, _: heard.append((host, now)))
    gates.hold(7)
    assert not gates.may_start(7, 1000.0)
    assert gates.may_start(8, 1000.0)
    gates.start(7, 999.0)
    assert gates.end(7, 999.0) == inf
    heard.clear()
    gates.release(7, 1000.0)
    assert gates.may_start(7, 1000.0)
    gates.release(9, 1001.0)
    assert heard == [(7, 1000.0), (9, 1001.0)]


def test_the_delay_of_a_robots_txt_counts_once_that_of_the_crawl_is_shorter() -> None:
    gates = Gates(1.0, 1)
    gates.set_delay(HOST, 0.5)
    gates.change(delay=0.2, per_host=1)
    assert (gates.delay_of(HOST), gates.delay_of(OTHER)) == (0.5, 0.2)


def test_a_changed_delay_counts_from_the_next_start_and_robots_txt_still_lengthens_it() -> None:
    gates = Gates(1.0, 1)
    for host in (1, 2):
        gates.start(host, 0.0)
    gates.set_delay(2, 5.0)
    gates.change(delay=3.0, per_host=2)
    for host in (1, 2):
        gates.end(host, 0.0)
    assert gates.opens_at(1) == 1.0
    gates.start(1, 1.0)
    gates.start(2, 5.0)
    assert (gates.opens_at(1), gates.opens_at(2)) == (4.0, 10.0)
    assert gates.may_start(1, 4.0), "two at a time are allowed by now"
    gates.change(delay=7.0, per_host=2)
    gates.end(2, 9.0)
    gates.start(2, 10.0)
    assert gates.opens_at(2) == 17.0
