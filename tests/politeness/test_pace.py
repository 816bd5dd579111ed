"""The pace of a host is the longest of what bears on it."""

from __future__ import annotations

from collections import deque
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.politeness.pace import HostPace, Pace, PaceRules, PaceState

HOST, OTHER = 1, 2
RULES = PaceRules()
Response = tuple[int, float]


def told(pace: HostPace, *results: Response) -> list[float]:
    """Tell *pace* of responses of HOST, each a status and a latency; return the intervals after each."""
    return [
        pace.responded(HOST, status, latency=latency, now=0.0).interval for status, latency in results
    ]


@pytest.mark.parametrize(
    ("state", "interval"),
    [
        (PaceState(), 1.0),
        (PaceState(crawl_delay=0.5), 1.0),
        (PaceState(crawl_delay=2.5), 2.5),
        (PaceState(latency=0.25), 1.0),
        (PaceState(latency=0.75), 1.5),
        (PaceState(latency=100.0), 30.0),
        (PaceState(back_off=4.0), 4.0),
        (PaceState(crawl_delay=2.5, latency=2.0, back_off=3.0), 4.0),
        (PaceState(crawl_delay=5.0, latency=2.0, back_off=3.0), 5.0),
        (PaceState(crawl_delay=2.5, latency=2.0, back_off=6.0), 6.0),
    ],
)
def test_the_longest_counts(state: PaceState, interval: float) -> None:
    assert RULES.interval(state) == interval


@pytest.mark.parametrize(
    ("state", "status", "latency", "after"),
    [
        # Errors double the interval, from a second on, up to the ceiling.
        (PaceState(), 429, 0.0, PaceState(back_off=2.0)),
        (PaceState(), 500, 0.0, PaceState(back_off=2.0)),
        (PaceState(), 599, 0.0, PaceState(back_off=2.0)),
        (PaceState(back_off=2.0), 503, 0.0, PaceState(back_off=4.0)),
        (PaceState(back_off=200.0), 503, 0.0, PaceState(back_off=300.0)),
        (PaceState(crawl_delay=10.0), 503, 0.0, PaceState(crawl_delay=10.0, back_off=20.0)),
        (PaceState(latency=2.0), 503, 0.0, PaceState(latency=2.0, back_off=8.0)),
        # Of a host most of whose responses are errors, other responses take an eighth from the back-off,
        # a tenth of a second at least; so they do of one that says 429.
        (PaceState(back_off=80.0, errors=0.5), 200, 0.0, PaceState(back_off=70.0)),
        (PaceState(back_off=80.0, errors=0.5), 404, 0.0, PaceState(back_off=70.0)),
        (PaceState(back_off=80.0, errors=0.5), 428, 0.0, PaceState(back_off=70.0)),
        (PaceState(back_off=80.0, errors=0.5), 430, 0.0, PaceState(back_off=70.0)),
        (PaceState(back_off=80.0, errors=0.5), 600, 0.0, PaceState(back_off=70.0)),
        (PaceState(back_off=1.1, errors=0.5), 200, 0.0, PaceState()),
        (PaceState(crawl_delay=70.0, back_off=80.0, errors=0.5), 301, 0.0, PaceState(crawl_delay=70.0)),
        (PaceState(back_off=80.0, is_limited=True), 200, 0.0, PaceState(back_off=70.0)),
        # Of any other, they end it: the URL was at fault, and not the host.
        (PaceState(back_off=80.0), 200, 0.0, PaceState()),
        (PaceState(back_off=80.0, errors=0.2), 404, 0.0, PaceState()),
        # No response says nothing.
        (PaceState(back_off=80.0), 0, 5.0, PaceState(back_off=80.0)),
        (PaceState(), 0, 5.0, PaceState()),
        # The first latency counts as it is, later ones for a quarter; an error's too.
        (PaceState(), 200, 3.0, PaceState(latency=3.0)),
        (PaceState(latency=3.0), 200, 7.0, PaceState(latency=4.0)),
        (PaceState(latency=3.0), 503, 7.0, PaceState(latency=4.0, back_off=12.0)),
        (PaceState(latency=3.0), 200, 0.0, PaceState(latency=3.0)),
        (PaceState(), 200, 1e9, PaceState(latency=15.0)),
        (PaceState(), 200, inf, PaceState(latency=15.0)),
        (PaceState(), 200, nan, PaceState()),
        (PaceState(), 200, 0.5, PaceState()),  # twice of it is no more than the delay
        (PaceState(latency=0.6), 200, 0.1, PaceState()),
    ],
)
def test_what_follows_from_a_response(
    state: PaceState, status: int, latency: float, after: PaceState
) -> None:
    # What it remembers of errors besides has claims of its own.
    assert RULES.after(state, status, latency=latency)[:3] == after[:3]


def test_errors_in_a_row_double_the_interval_and_responses_bring_it_back() -> None:
    pace = HostPace(PaceRules())
    assert told(pace, *[(503, 0.0)] * 10) == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    back = told(pace, *[(200, 0.0)] * 150)
    assert back == sorted(back, reverse=True)
    assert back[:3] == [262.5, 229.6875, 1.0]
    assert len(pace) == 0


def test_errors_of_requests_under_way_together_lengthen_the_interval_once() -> None:
    pace = HostPace(PaceRules())
    together = [pace.responded(HOST, 503, started=1.0 + n / 10, now=2.0 + n / 10) for n in range(10)]
    assert {each.interval for each in together} == {2.0}
    assert pace.responded(HOST, 503, started=4.0, now=4.1).interval == 4.0
    # What went well meanwhile makes an error of a request that was under way no older.
    pace.responded(HOST, 200, started=5.0, now=9.0)
    assert pace.responded(HOST, 503, started=8.0, now=9.1).interval > 4.0


@pytest.mark.parametrize("bad", [{*range(600, 610)}, {*range(0, 6800, 680)}])
def test_ten_urls_that_always_fail_cost_a_host_of_thousands_a_bounded_share_of_its_time(
    bad: set[int],
) -> None:
    """Taken in turn, and after an error from the far end, as the queue does."""
    pace, rows, elapsed, far = HostPace(PaceRules(delay=0.01)), deque(range(6800)), 0.0, False
    while rows:
        row = rows.pop() if far else rows.popleft()
        far = row in bad
        elapsed += pace.responded(HOST, 503 if far else 200, started=elapsed, now=elapsed).interval
    assert elapsed < 1.5 * 6800 * 0.01


def test_a_host_with_nothing_but_errors_is_contacted_ever_more_rarely_and_not_forgiven_soon() -> None:
    pace = HostPace(PaceRules())
    told(pace, *[(503, 0.0)] * 40)
    assert told(pace, *[(200, 0.0)] * 5)[-1] > 150


def test_a_host_that_fails_every_second_time_is_contacted_more_rarely_after_a_while() -> None:
    pace = HostPace(PaceRules())
    assert told(pace, *[(503, 0.0), (200, 0.0)] * 60)[-1] > 100


def test_a_host_with_a_limit_is_contacted_close_to_it() -> None:
    # It responds with 429 whenever it is contacted more often than every two and a half seconds.
    pace, interval, refused = HostPace(PaceRules()), 1.0, 0
    for _ in range(1000):
        status = 429 if interval < 2.5 else 200
        refused += status == 429
        interval = pace.responded(HOST, status, now=0.0).interval
    assert refused < 200


def test_an_error_of_another_kind_does_not_lift_the_limit_that_a_429_showed() -> None:
    assert told(HostPace(PaceRules()), (429, 0.0), (503, 0.0), (200, 0.0)) == [2, 4, 3.5]
    assert told(HostPace(PaceRules()), (503, 0.0), (503, 0.0), (200, 0.0)) == [2, 4, 1]


def test_a_short_delay_backs_off_from_a_second() -> None:
    assert told(HostPace(PaceRules(delay=0.001)), (503, 0.0)) == [2.0]


@pytest.mark.parametrize(
    ("status", "requested", "until"),
    [
        (429, 60.0, 160.0),
        (503, 60.0, 160.0),
        (500, 0.25, 100.25),
        (503, 1e9, 3700.0),
        (503, 0.0, -inf),
        (503, -5.0, -inf),
        (503, nan, -inf),
        (200, 60.0, -inf),
        (301, 60.0, -inf),
        (0, 60.0, -inf),
    ],
)
def test_retry_after_is_a_moment_and_believed_with_an_error(
    status: int, requested: float, until: float
) -> None:
    pace = HostPace(PaceRules())
    assert pace.responded(HOST, status, retry_after=requested, now=100.0).until == until
    # It says nothing of how often the host may be contacted from then on.
    assert pace.interval(HOST) <= 2.0


@pytest.mark.parametrize(
    ("requested", "interval"),
    [(2.5, 2.5), (0.5, 1.0), (0.0, 1.0)],
)
def test_crawl_delay_lengthens_the_interval(requested: float, interval: float) -> None:
    pace = HostPace(PaceRules())
    assert pace.set_crawl_delay(HOST, requested) == interval
    assert pace.interval(HOST) == interval
    assert pace.interval(OTHER) == 1.0
    assert len(pace) == (interval != 1.0)


def test_a_later_robots_txt_replaces_the_crawl_delay() -> None:
    pace = HostPace(PaceRules())
    pace.set_crawl_delay(HOST, 20.0)
    assert pace.set_crawl_delay(HOST, 5.0) == 5.0
    assert pace.set_crawl_delay(HOST, 0.0) == 1.0
    assert len(pace) == 0


def test_the_latency_need_not_count() -> None:
    pace = HostPace(PaceRules(latency_factor=0.0))
    assert told(pace, (200, 20.0)) == [1.0]
    assert len(pace) == 0


def test_a_host_with_a_delay_of_its_own_is_paced_by_that_and_not_at_all_without_one() -> None:
    pace = HostPace(PaceRules(), delays={HOST: 0.0, OTHER: 5.0})
    assert told(pace, (200, 20.0)) == [0.0]
    assert (pace.interval(HOST), pace.interval(OTHER), pace.interval(3)) == (0.0, 5.0, 1.0)
    assert len(pace) == 0


def test_hosts_at_the_usual_pace_are_not_remembered() -> None:
    pace = HostPace(PaceRules())
    for host in range(1000):
        assert pace.responded(host, 200, latency=0.2, now=0.0) == Pace(1.0, -inf)
    assert len(pace) == 0


def test_beyond_the_capacity_the_one_told_of_longest_ago_is_forgotten() -> None:
    pace = HostPace(PaceRules(), capacity=2)
    for host in (1, 2, 1, 3):
        pace.responded(host, 503, now=0.0)
    assert [pace.interval(host) for host in (1, 2, 3)] == [4.0, 1.0, 2.0]


results = st.tuples(
    st.sampled_from([0, 200, 304, 404, 429, 500, 503, 599, 600]), st.floats(0, 100), st.floats(0, 1e6)
)


@pytest.mark.slow
@given(
    st.lists(results, max_size=100),
    st.floats(0, 20),
    st.floats(0, 1000),
    st.floats(0, 5),
)
def test_it_is_never_shorter_than_requested_nor_longer_than_its_ceilings(
    outcomes: list[tuple[int, float, float]], delay: float, crawl_delay: float, factor: float
) -> None:
    rules = PaceRules(delay=delay, latency_factor=factor)
    pace = HostPace(rules)
    pace.set_crawl_delay(HOST, crawl_delay)
    least = max(delay, crawl_delay)
    before = pace.interval(HOST)
    for status, latency, retry_after in outcomes:
        interval, until = pace.responded(HOST, status, latency=latency, retry_after=retry_after, now=5.0)
        assert least <= interval <= max(least, rules.latency_ceiling, rules.back_off_ceiling)
        assert until <= 5.0 + rules.retry_after_cap
        if status in {429, 500, 503, 599}:
            assert interval >= min(2 * before, rules.back_off_ceiling)
        if status == 0:
            assert interval == before
        assert interval == pace.interval(HOST)
        before = interval


@given(st.floats(0.01, 300), st.floats(0, 10))
def test_enough_responses_bring_every_host_back_to_its_usual_pace(back_off: float, delay: float) -> None:
    rules = PaceRules(delay=delay)
    state = PaceState(back_off=back_off)
    for _ in range(60):
        state = rules.after(state, 200)
    assert state == PaceState()
    state = PaceState(back_off=back_off, errors=1.0, is_limited=True)
    for _ in range(200):
        state = rules.after(state, 200)
    assert state == PaceState()
