"""What every frontier must do, claim by claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from contract.frontiers import FRONTIERS, World, make_world, offer

from amicrawl.capture import Failure
from amicrawl.errors import AmicrawlError
from amicrawl.frontier import Dispatch, Offer, Outcome, Settled, Source
from amicrawl.meguri import Status
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Make = Callable[..., World]

OK = Outcome(200)
RESET = Outcome(failure=Failure.CONNECTION_RESET)
NO_NAME = Outcome(failure=Failure.NAME_NOT_FOUND)
SKIPPED = Outcome(failure=Failure.HOST_SKIPPED)


@pytest.fixture(params=FRONTIERS)
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    worlds = []

    def made(**rules: Any) -> World:
        worlds.append(make_world(request.param, **rules))
        return worlds[-1]

    yield made
    for world in worlds:
        world.close()


def take(world: World, now: float) -> Dispatch:
    dispatch = world.frontier.next(now)
    assert dispatch is not None
    return dispatch


def fetch(world: World, now: float, outcome: Outcome = OK) -> UrlKey:
    """Hand out one row and settle it at once; return its key."""
    dispatch = take(world, now)
    world.frontier.settle(dispatch.key, outcome, now)
    return dispatch.key


def fetch_all(world: World, now: float) -> list[UrlKey]:
    keys = []
    while (dispatch := world.frontier.next(now)) is not None:
        world.frontier.settle(dispatch.key, OK, now)
        keys.append(dispatch.key)
    return keys


def test_a_new_frontier_has_nothing_to_do(make: Make) -> None:
    frontier = make().frontier
    assert frontier.next(0.0) is None
    assert frontier.next_moment(0.0) is None
    assert not frontier.has_pending()
    assert len(frontier) == 0
    assert set(frontier.counts.values()) == {0}


def test_what_was_offered_comes_back_as_it_was(make: Make) -> None:
    seed = Seed("http://a.test/\u00e9?\udc80", "0" * 40, '"tag"', "Mon", 1_700_000_000_123, '{"a":"b"}')
    given = Offer(seed, UrlKey(2**64 - 1, 0), Source.REDIRECT, -3, 2, {"depth": 1})
    world = make()
    world.frontier.offer(given)
    dispatch = take(world, 0.0)
    assert dispatch.offer == given
    assert dispatch.key == given.key
    assert dispatch.attempt == 1
    assert not dispatch.skip
    assert dispatch.offer.extra == given.extra


def test_a_key_is_taken_once_whatever_became_of_it(make: Make) -> None:
    world = make()
    assert world.frontier.offer(offer(1, 1))
    assert not world.frontier.offer(offer(1, 1, priority=9))
    dispatch = take(world, 0.0)
    assert not world.frontier.offer(offer(1, 1))
    world.frontier.settle(dispatch.key, OK, 0.0)
    assert not world.frontier.offer(offer(1, 1))
    assert world.frontier.next(100.0) is None
    assert len(world.frontier) == 1


def test_both_halves_make_the_key(make: Make) -> None:
    world = make()
    assert world.frontier.offer(offer(1, 2))
    assert world.frontier.offer(offer(1, 1))
    assert world.frontier.offer(offer(2, 1))
    assert len(world.frontier) == 3


def test_rows_of_a_host_come_by_priority_and_then_in_the_order_of_offers(make: Make) -> None:
    world = make(delay=0.0)
    for path, priority in enumerate([0, 5, -5, 0, 5, 300]):
        world.frontier.offer(offer(1, path, priority=priority))
    assert [path for _, path in fetch_all(world, 0.0)] == [5, 1, 4, 0, 3, 2]


def test_a_host_that_is_probed_gives_a_row_of_its_far_end_and_each_row_once(make: Make) -> None:
    world = make(delay=0.0)
    for path in range(100):
        world.frontier.offer(offer(1, path))
    first = fetch(world, 0.0)
    world.gates.probe(1, on=True)
    far = [fetch(world, 0.0) for _ in range(2)]
    world.gates.probe(1, on=False)
    near = fetch(world, 0.0)
    assert (first.path, near.path) == (0, 1)
    assert all(key.path >= 50 for key in far)
    rest = fetch_all(world, 0.0)
    assert sorted(key.path for key in [first, *far, near, *rest]) == list(range(100))


def test_a_host_is_contacted_again_only_after_its_delay(make: Make) -> None:
    world = make(delay=2.0)
    for path in range(3):
        world.frontier.offer(offer(1, path))
    fetch(world, 10.0)
    assert world.frontier.next(11.9) is None
    fetch(world, 12.0)
    assert world.frontier.next(13.9) is None


def test_a_host_is_not_contacted_while_as_many_requests_as_allowed_are_in_flight(make: Make) -> None:
    world = make(delay=0.0, per_host=2)
    for path in range(3):
        world.frontier.offer(offer(1, path))
    first, _ = take(world, 0.0), take(world, 0.0)
    assert world.frontier.next(1000.0) is None
    world.frontier.settle(first.key, OK, 1000.0)
    assert take(world, 1000.0).key == (1, 2)


def test_a_host_with_many_rows_does_not_keep_others_waiting(make: Make) -> None:
    world = make(delay=0.0)
    for path in range(1000):
        world.frontier.offer(offer(1, path))
    for host in (2, 3):
        for path in range(2):
            world.frontier.offer(offer(host, path))
    hosts = [fetch(world, 0.0)[0] for _ in range(8)]
    assert hosts == [1, 2, 3, 1, 2, 3, 1, 1]


def test_between_hosts_that_may_be_contacted_priority_decides(make: Make) -> None:
    world = make()
    world.frontier.offer(offer(1, 1))
    world.frontier.offer(offer(2, 1, priority=-1))
    world.frontier.offer(offer(3, 1, priority=2))
    world.frontier.offer(offer(3, 2, priority=2))
    assert [host for host, _ in fetch_all(world, 0.0)] == [3, 1, 2]


def test_a_row_of_greater_priority_brings_its_host_forward(make: Make) -> None:
    world = make()
    for host in (1, 2, 3):
        world.frontier.offer(offer(host, 1))
    world.frontier.offer(offer(3, 2, priority=1))
    assert fetch_all(world, 0.0) == [(3, 2), (1, 1), (2, 1)]


def test_no_more_rows_are_in_flight_than_the_limit_allows(make: Make) -> None:
    world = make(inflight=(2, 1, 2))
    for host in range(3):
        world.frontier.offer(offer(host, 1))
    first, _ = take(world, 0.0), take(world, 0.0)
    assert world.frontier.next(0.0) is None
    assert world.frontier.next_moment(0.0) is None
    world.frontier.settle(first.key, OK, 0.0)
    assert take(world, 0.0).key == (2, 1)


def test_responses_raise_the_limit(make: Make) -> None:
    world = make(inflight=(1, 1, 10))
    world.frontier.offer(offer(1, 1))
    fetch(world, 0.0)
    assert world.limit.limit == 2


def test_a_failed_fetch_is_handed_out_again_after_a_pause(make: Make) -> None:
    world = make(delay=0.0, max_retries=2)
    world.frontier.offer(offer(1, 1, extra={"depth": 3}))
    first = take(world, 10.0)
    assert world.frontier.settle(first.key, RESET, 10.0) is Settled.AGAIN
    assert world.frontier.next_moment(10.0) == pytest.approx(10.075)
    assert world.frontier.next(10.07) is None
    second = take(world, 10.08)
    assert second.attempt == 2
    assert second.offer == first.offer
    assert world.frontier.settle(second.key, RESET, 10.08) is Settled.AGAIN
    third = take(world, 11.0)
    assert third.attempt == 3
    assert world.frontier.settle(third.key, RESET, 11.0) is Settled.DONE
    assert world.frontier.counts[Status.SCHEDULED] == 1
    assert not world.frontier.has_pending()


def test_another_attempt_passes_the_gate_as_the_first_did(make: Make) -> None:
    world = make(delay=5.0)
    world.frontier.offer(offer(1, 1))
    fetch(world, 10.0, RESET)
    assert world.frontier.next(14.9) is None
    assert take(world, 15.0).attempt == 2


def test_a_row_that_waits_for_its_next_attempt_holds_up_nobody_and_keeps_its_place(make: Make) -> None:
    world = make(delay=0.0)
    for path in range(3):
        world.frontier.offer(offer(1, path))
    assert fetch(world, 10.0, RESET) == (1, 0)
    assert fetch(world, 10.01) == (1, 1)
    assert fetch(world, 10.1) == (1, 0)
    assert fetch(world, 10.1) == (1, 2)


def test_a_released_row_is_ready_again_in_its_place_and_its_attempt_did_not_count(make: Make) -> None:
    world = make(delay=2.0)
    extra: dict[str, object] = {"depth": 1}
    world.frontier.offer(offer(1, 1, extra=extra))
    world.frontier.offer(offer(1, 2))
    world.frontier.release(take(world, 0.0).key, 0.5)
    assert world.frontier.queued == 2
    assert world.frontier.next(1.9) is None
    again = take(world, 2.0)
    assert again.key == (1, 1)
    assert again.attempt == 1
    assert again.offer.extra == extra


def test_a_row_that_is_released_at_a_later_attempt_comes_back_for_that_attempt(make: Make) -> None:
    world = make(delay=0.0)
    world.frontier.offer(offer(1, 1))
    fetch(world, 0.0, RESET)
    later = take(world, 10.0)
    assert later.attempt == 2
    world.frontier.release(later.key, 10.0)
    assert take(world, 10.0).attempt == 2


def test_the_rows_of_a_host_given_up_leave_at_once_to_be_skipped(make: Make) -> None:
    world = make(delay=60.0, threshold=2)
    for path in range(5):
        world.frontier.offer(offer(1, path))
    fetch(world, 0.0, NO_NAME)
    fetch(world, 60.0, NO_NAME)
    skipped = [take(world, 60.0) for _ in range(3)]
    assert all(dispatch.skip for dispatch in skipped)
    assert [dispatch.key.path for dispatch in skipped] == [2, 3, 4]
    for dispatch in skipped:
        assert world.frontier.settle(dispatch.key, SKIPPED, 60.0) is Settled.DONE
    assert world.frontier.counts[Status.SCHEDULED] == 5
    assert not world.frontier.has_pending()


@pytest.mark.parametrize("per_host", [1, 2])
def test_giving_up_a_host_lifts_its_gate(make: Make, per_host: int) -> None:
    world = make(delay=60.0, per_host=per_host, threshold=1)
    for path in range(2):
        world.frontier.offer(offer(1, path))
    fetch(world, 0.0, NO_NAME)
    assert world.gates.may_start(1, 0.0)
    assert world.frontier.next_moment(0.0) == 0.0
    assert take(world, 0.0).skip


def test_nothing_in_flight_holds_up_the_rows_of_a_host_given_up(make: Make) -> None:
    world = make(threshold=1)
    for path in range(4):
        world.frontier.offer(offer(1, path))
    dispatch = take(world, 0.0)
    world.gates.start(1, 0.0)
    world.frontier.settle(dispatch.key, NO_NAME, 0.0)
    assert [take(world, 0.0).key.path for _ in range(3)] == [1, 2, 3]


def test_what_is_offered_for_a_host_given_up_is_to_be_skipped_too(make: Make) -> None:
    world = make(threshold=1)
    world.frontier.offer(offer(1, 1))
    fetch(world, 0.0, NO_NAME)
    world.frontier.offer(offer(1, 2))
    world.frontier.offer(offer(2, 1))
    assert [(each.key.host, each.skip) for each in (take(world, 0.0), take(world, 0.0))] == [
        (1, True),
        (2, False),
    ]


def test_a_released_row_of_a_host_given_up_is_still_to_be_skipped(make: Make) -> None:
    world = make(threshold=1)
    for path in range(2):
        world.frontier.offer(offer(1, path))
    fetch(world, 0.0, NO_NAME)
    world.frontier.release(take(world, 0.0).key, 0.0)
    assert take(world, 0.0).skip


def test_a_host_that_speaks_after_all_is_no_longer_skipped(make: Make) -> None:
    world = make(delay=0.0, per_host=2, threshold=1)
    for path in range(4):
        world.frontier.offer(offer(1, path))
    slow, dead = take(world, 0.0), take(world, 0.0)
    world.frontier.settle(dead.key, NO_NAME, 0.0)
    assert take(world, 0.0).skip
    world.frontier.settle(slow.key, OK, 1.0)
    assert not take(world, 1.0).skip


def test_a_request_of_the_crawls_own_holds_up_its_host_until_it_is_over(make: Make) -> None:
    world = make(delay=1.0)
    world.gates.start(1, 0.0)
    world.frontier.offer(offer(1, 1))
    assert world.frontier.next(50.0) is None
    assert world.frontier.next_moment(50.0) is None
    world.gates.end(1, 50.0)
    assert world.frontier.next_moment(50.0) == 50.0
    assert take(world, 50.0).key == (1, 1)


def test_a_gate_shut_behind_the_frontiers_back_stays_shut(make: Make) -> None:
    world = make()
    world.frontier.offer(offer(1, 1))
    world.gates.keep_shut(1, 30.0)
    assert world.frontier.next(29.9) is None
    assert world.frontier.next_moment(29.9) == 30.0
    assert take(world, 30.0).key == (1, 1)


def test_the_next_moment_is_when_the_first_gate_opens(make: Make) -> None:
    world = make(delay=5.0)
    for host in (1, 2):
        for path in range(2):
            world.frontier.offer(offer(host, path))
    assert world.frontier.next_moment(10.0) == 10.0
    fetch(world, 10.0)
    fetch(world, 12.0)
    assert world.frontier.next(12.0) is None
    assert world.frontier.next_moment(12.0) == 15.0


def test_while_only_work_in_flight_can_open_a_gate_there_is_no_next_moment(make: Make) -> None:
    world = make(delay=5.0)
    world.frontier.offer(offer(1, 1))
    world.frontier.offer(offer(1, 2))
    take(world, 10.0)
    assert world.frontier.next(100.0) is None
    assert world.frontier.next_moment(100.0) is None
    assert world.frontier.has_pending()


def test_the_decision_to_try_again_is_kept_whatever_happens_before_it_is_settled(make: Make) -> None:
    """The crawl leaves an attempt out of the index on the strength of the response."""
    world = make(inflight=(100, 1, 100))
    silence = Outcome(failure=Failure.RESPONSE_TIMEOUT)
    world.breaker.responded(1)
    world.frontier.offer(offer(1, 1))
    dispatch = take(world, 0.0)
    for _ in range(6):
        world.limit.lost()
    assert world.frontier.decide(dispatch, silence) is Settled.AGAIN
    for _ in range(100):
        world.limit.responded()
    assert not world.limit.congested
    assert world.frontier.decide(dispatch, silence) is Settled.AGAIN
    assert world.frontier.settle(dispatch.key, silence, 0.0) is Settled.AGAIN


def test_deciding_again_counts_the_failure_once(make: Make) -> None:
    world = make(threshold=2)
    world.frontier.offer(offer(1, 1))
    dispatch = take(world, 0.0)
    for _ in range(3):
        assert world.frontier.decide(dispatch, NO_NAME) is Settled.DONE
    assert world.frontier.settle(dispatch.key, NO_NAME, 0.0) is Settled.DONE
    assert 1 not in world.breaker.given_up


def test_a_row_is_settled_or_released_once_and_only_when_in_flight(make: Make) -> None:
    world = make()
    world.frontier.offer(offer(1, 1))
    with pytest.raises(AmicrawlError, match="is not in flight"):
        world.frontier.settle(UrlKey(1, 1), OK, 0.0)
    dispatch = take(world, 0.0)
    world.frontier.settle(dispatch.key, OK, 0.0)
    with pytest.raises(AmicrawlError, match="is not in flight"):
        world.frontier.settle(dispatch.key, OK, 0.0)
    with pytest.raises(AmicrawlError, match="is not in flight"):
        world.frontier.release(dispatch.key, 0.0)
    with pytest.raises(AmicrawlError, match="is not in flight"):
        world.frontier.decide(dispatch, RESET)


def test_the_counts_say_where_every_row_stands(make: Make) -> None:
    world = make()
    for host in range(7):
        world.frontier.offer(offer(host, 1))
    fetch(world, 0.0)
    fetch(world, 0.0, Outcome(404))
    fetch(world, 0.0, NO_NAME)
    fetch(world, 0.0, Outcome(failure=Failure.ROBOTS_DENIED))
    fetch(world, 0.0, RESET)
    take(world, 0.0)
    assert world.frontier.counts == {
        **dict.fromkeys(Status, 0),
        Status.SCHEDULED: 3,  # never handed out, to be tried again soon, and in an hour
        Status.IN_FLIGHT: 1,
        Status.CRAWLED: 1,
        Status.GONE: 1,
        Status.EXCLUDED: 1,
    }
    assert (world.frontier.queued, world.frontier.in_flight, len(world.frontier)) == (2, 1, 7)
    assert world.frontier.has_pending()


def test_a_row_that_has_landed_lets_its_host_go_and_is_settled_later(make: Make) -> None:
    world = make(delay=1.0, per_host=1, inflight=(1, 1, 1))
    for path in range(3):
        world.frontier.offer(offer(1, path))
    first = take(world, 10.0)
    assert world.frontier.next(12.0) is None
    world.frontier.response_received(first.key, 12.0)
    second = take(world, 12.0)
    assert (world.frontier.in_flight, world.frontier.queued) == (2, 1)
    assert world.frontier.next(14.0) is None, "one is on its way still"
    world.frontier.settle(second.key, OK, 14.0)
    assert world.frontier.settle(first.key, OK, 14.0) is Settled.DONE
    assert take(world, 14.0).key == (1, 2)


def test_a_row_lands_once_and_only_in_flight(make: Make) -> None:
    world = make()
    world.frontier.offer(offer(1, 1))
    with pytest.raises(AmicrawlError, match="is not in flight"):
        world.frontier.response_received(UrlKey(1, 1), 0.0)
    dispatch = take(world, 0.0)
    world.frontier.response_received(dispatch.key, 0.0)
    with pytest.raises(AmicrawlError, match="has its response"):
        world.frontier.response_received(dispatch.key, 0.0)
    assert world.frontier.has_pending()
