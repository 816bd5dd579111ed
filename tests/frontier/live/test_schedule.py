"""When a row comes back: within the run, after a restart, and in a recrawl; never earlier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from frontier.live.crawls import (
    HOUR,
    Clock,
    as_killed,
    fetched,
    frontier_on,
    offer_of,
    opened,
    statuses_in,
    taken,
)

from amicrawl.capture import Failure
from amicrawl.errors import AmicrawlError
from amicrawl.frontier import DurableFrontier, Found, Offer, Outcome, Settled, Source
from amicrawl.meguri import Status
from amicrawl.meguri.states import MANY
from amicrawl.politeness import Gates, HostBreaker, InflightLimit, backoff
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WEEK = 168
YEAR = 8760
DIGEST = "0123456789abcdef" + "0" * 24
LABEL = "sha1:" + "B" * 32
FOUND = Found(DIGEST, '"one"', "Mon, 01 Jan 2024 00:00:00 GMT", 1_700_000_000_123, payload_digest=LABEL)
OK = Outcome(200, found=FOUND, latency_ms=120)
BUSY = Outcome(503)
MISSING = Outcome(404)
TIMEOUT = Outcome(failure=Failure.RESPONSE_TIMEOUT)


class Crawl:
    """A frontier in a directory, restarted as often as a test likes; its clock goes on."""

    def __init__(self, directory: Path) -> None:
        self.clock = Clock()
        self._directory = directory
        self.frontier = self._open(None)

    def restart(self, *, recrawl_before: int | None = None, clean: bool = True) -> DurableFrontier:
        """End the process, or kill it, and begin the next."""
        if clean:
            self.frontier.close()
        else:
            self.frontier.flush()
            self.frontier.partition.abandon()
        self.frontier = self._open(recrawl_before)
        return self.frontier

    def recrawl(self, *, clean: bool = True) -> DurableFrontier:
        """Begin the next process as a recrawl of what is due now."""
        return self.restart(recrawl_before=self.clock.hour, clean=clean)

    def _open(self, recrawl_before: int | None) -> DurableFrontier:
        partition = opened(self._directory, hour=self.clock.hour)
        return frontier_on(partition, self.clock, recrawl_before=recrawl_before)


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    made = Crawl(tmp_path)
    yield made
    made.frontier.partition.abandon()


def due_of(frontier: DurableFrontier, key: tuple[int, int]) -> int:
    number = frontier.partition.find(*key)
    assert number is not None
    return frontier.partition.get(number).next_due


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("outcome", [BUSY, TIMEOUT])
def test_what_came_to_nothing_comes_back_after_its_hours_within_the_run_and_after_a_restart(
    crawl: Crawl, outcome: Outcome, clean: bool
) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    for in_a_row, restarts in [(1, False), (2, True), (3, False), (4, True)]:
        frontier = crawl.frontier
        assert fetched(frontier, outcome) == [(1, 1)]
        assert (frontier.later, frontier.queued, frontier.has_pending()) == (1, 0, False)
        pause = 2 ** (in_a_row - 1)
        for hours in range(pause):
            if restarts:
                frontier = crawl.restart(clean=clean)
            assert (frontier.next(0.0), frontier.later) == (None, 1), hours
            crawl.clock.hour += 1
        if restarts:
            frontier = crawl.restart(clean=clean)
            assert frontier.queued == 1
    assert fetched(crawl.frontier, outcome) == [(1, 1)]
    assert statuses_in(crawl.frontier.partition) == {(1, 1): Status.GONE}
    crawl.clock.hour += 2 * YEAR
    assert crawl.frontier.next(0.0) is None


def test_retry_after_is_heeded_after_a_restart_too(crawl: Crawl) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    fetched(crawl.frontier, Outcome(503, retry_after=5 * 3600))
    crawl.clock.hour += 4
    assert crawl.restart(clean=False).next(0.0) is None
    crawl.clock.hour += 1
    assert set(taken(crawl.frontier)) == {(1, 1)}


def test_a_host_in_flight_at_a_kill_waits_for_the_delay_of_all_hosts_at_least(tmp_path: Path) -> None:
    """By the settings of the crawl that begins: the killed one had none."""
    killed = frontier_on(opened(tmp_path))
    killed.offer(offer_of(1, 1))
    assert set(taken(killed)) == {(1, 1)}
    killed.flush()
    killed.partition.abandon()
    again = frontier_on(opened(tmp_path), delay=2.0)
    assert [again.next(0.0), again.next(1.9)] == [None, None]
    assert again.next(2.0) is not None
    again.partition.abandon()


def test_a_host_that_is_left_alone_for_seconds_is_so_after_a_kill_at_any_moment(tmp_path: Path) -> None:
    """Also where it comes before the next flush: in flight, and after the response."""
    directory = tmp_path / "frontier"
    crawl = frontier_on(opened(directory), delay=12.0)
    for path in (1, 2):
        crawl.offer(offer_of(1, path))
    crawl.flush()
    row = crawl.next(0.0)
    assert row is not None
    for number in range(2):
        again = frontier_on(opened(as_killed(directory, f"killed-{number}")), delay=12.0)
        assert again.lapsed == 1 - number
        assert [again.next(0.0), again.next(11.0)] == [None, None]
        again.partition.abandon()
        if not number:
            crawl.settle(row.key, OK, 0.5)
    # Taken back, since its robots.txt was requested first.
    second = crawl.next(12.0)
    assert second is not None
    crawl.release(second.key, 12.5)
    again = frontier_on(opened(as_killed(directory)), delay=12.0)
    assert [again.lapsed, again.next(0.0), again.next(11.0)] == [0, None, None]
    again.partition.abandon()
    crawl.partition.abandon()


@pytest.mark.parametrize("opened_between", [False, True])
def test_a_host_in_flight_at_a_kill_keeps_its_own_delay(crawl: Crawl, opened_between: bool) -> None:
    """Its Crawl-delay, not that of all hosts; also where the index was reconciled before the crawl."""
    crawl.frontier.offer(offer_of(1, 1))
    crawl.frontier.offer(offer_of(2, 1))
    host = crawl.frontier.hosts.row(1)
    assert host is not None
    crawl.frontier.hosts.put(host.changed(crawl_delay=120))
    assert set(taken(crawl.frontier)) == {(1, 1), (2, 1)}
    frontier = crawl.restart(clean=False)
    if opened_between:
        frontier = crawl.restart(clean=False)
    dispatch = frontier.next(0.0)
    assert dispatch is not None
    assert dispatch.key == (2, 1)
    assert frontier.next(11.9) is None
    dispatch = frontier.next(13.0)
    assert dispatch is not None
    assert dispatch.key == (1, 1)


@pytest.mark.parametrize(
    ("address", "octets"),
    [
        ("192.0.2.7", "00000000000000000000ffffc0000207"),
        ("2001:db8::7", "20010db8000000000000000000000007"),
        ("fe80::7%eth0", "fe800000000000000000000000000007"),
        ("::ffff:192.0.2.7", "00000000000000000000ffffc0000207"),
        ("a.name", "00000000000000000000000000000000"),
    ],
)
def test_the_row_of_a_host_has_the_address_that_was_dialled_last(
    crawl: Crawl, address: str, octets: str
) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    fetched(crawl.frontier, OK._replace(ip_address=address))
    row = crawl.frontier.hosts.row(1)
    assert row is not None
    assert row.resolved_ip.hex() == octets
    assert row.ip_expiry == crawl.clock.hour + 1


@pytest.mark.parametrize("outcome", [OK, MISSING, Outcome(410), Outcome(301, redirect="http://b.test/")])
def test_a_settled_row_comes_back_in_a_recrawl_only(crawl: Crawl, outcome: Outcome) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    fetched(crawl.frontier, outcome)
    due = due_of(crawl.frontier, (1, 1))
    crawl.clock.hour = due - 1
    assert crawl.frontier.next(0.0) is None
    assert crawl.restart().next(0.0) is None
    frontier = crawl.recrawl()
    assert (frontier.next(0.0), frontier.later, frontier.queued) == (None, 1, 0)
    crawl.clock.hour = due
    assert crawl.restart().next(0.0) is None
    frontier = crawl.recrawl()
    assert frontier.queued == 1
    assert set(taken(frontier)) == {(1, 1)}


def test_a_recrawl_goes_on_as_rows_fall_due(crawl: Crawl) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    fetched(crawl.frontier, OK)
    frontier = crawl.recrawl()
    for _ in range(4):
        assert frontier.next(0.0) is None
        due = due_of(frontier, (1, 1))
        crawl.clock.hour = due - 1
        assert frontier.next(0.0) is None
        crawl.clock.hour = due
        assert fetched(frontier, OK._replace(found=FOUND._replace(unchanged=True))) == [(1, 1)]


def test_a_row_that_a_rule_left_out_never_comes_back(crawl: Crawl) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    fetched(crawl.frontier, Outcome(failure=Failure.REFUSED_BY_CRAWL))
    crawl.clock.hour += 10 * YEAR
    frontier = crawl.recrawl()
    assert (frontier.next(0.0), frontier.later, frontier.queued) == (None, 0, 0)
    assert frontier.counts[Status.WITHHELD] == 1


@pytest.mark.parametrize("clean", [True, False])
def test_a_recrawl_of_an_earlier_hour_takes_what_was_due_then_and_the_rest_later(
    crawl: Crawl, clean: bool
) -> None:
    for path in range(3):
        crawl.frontier.offer(offer_of(1, path))
        fetched(crawl.frontier, OK)
        crawl.clock.hour += 10
    assert [due_of(crawl.frontier, (1, path)) - HOUR for path in range(3)] == [168, 178, 188]
    crawl.clock.hour = HOUR + 180
    frontier = crawl.restart(recrawl_before=HOUR + 170, clean=clean)
    assert (frontier.queued, frontier.later) == (1, 2)
    assert set(taken(frontier)) == {(1, 0)}
    crawl.clock.hour = HOUR + 188
    assert set(taken(frontier)) == {(1, 1), (1, 2)}


@pytest.mark.parametrize("clean", [True, False])
def test_a_recrawl_ahead_of_time_that_dies_is_due_again_at_once(crawl: Crawl, clean: bool) -> None:
    """What was in flight is leased, not lost: its old hour, still to come, must not hold it back."""
    crawl.frontier.offer(offer_of(1, 1))
    crawl.frontier.offer(offer_of(1, 2))
    fetched(crawl.frontier, OK)
    ahead = HOUR + 2 * WEEK
    frontier = crawl.restart(recrawl_before=ahead)
    one = frontier.next(0.0)
    assert one is not None
    assert frontier.next(0.0) is not None
    frontier.release(one.key, 0.0)
    frontier = crawl.restart(clean=clean)
    assert frontier.lapsed == 1
    assert set(taken(frontier)) == {(1, 1), (1, 2)}


@pytest.mark.parametrize("clean", [True, False])
def test_what_the_last_capture_was_comes_back_with_the_dispatch(crawl: Crawl, clean: bool) -> None:
    given = Seed("http://a.test/é", meta_json='{"a":1}')
    key = UrlKey(1, 1)
    crawl.frontier.offer(Offer(given, key, Source.SITEMAP, 2.5, 3, {"depth": 3}))
    assert fetched(crawl.frontier, OK) == [key]
    crawl.clock.hour += WEEK
    dispatch = taken(crawl.recrawl(clean=clean))[key]
    seed = given._replace(
        digest=FOUND.digest,
        etag=FOUND.etag,
        last_modified=FOUND.last_modified,
        captured_at=FOUND.captured_at,
        payload_digest=LABEL,
    )
    assert dispatch.offer == Offer(seed, key, Source.SITEMAP, 2.5, 3, {"depth": 3})


def test_what_the_producer_knew_gives_way_to_what_was_captured(crawl: Crawl) -> None:
    seed = Seed(
        "http://a.test/",
        digest="f" * 40,
        etag='"theirs"',
        captured_at=5,
        original_url="http://b.test/",
        payload_digest="sha1:" + "A" * 32,
        meta_json='{"a":1}',
    )
    key = UrlKey(1, 1)
    crawl.frontier.offer(Offer(seed, key, Source.SEED))
    assert taken(crawl.restart())[key].offer.seed == seed
    assert taken(crawl.restart(clean=False))[key].offer.seed == seed
    crawl.frontier.settle(key, OK, 0.0)
    crawl.clock.hour += WEEK
    found = taken(crawl.recrawl())[key].offer.seed
    assert (found.digest, found.etag, found.original_url) == (DIGEST, '"one"', "")
    assert found.payload_digest == LABEL
    assert found.meta_json == '{"a":1}'


def test_unchanged_pages_do_not_grow_the_arena(crawl: Crawl) -> None:
    """Nor do they over restarts: a page requested every day for a year costs what it did at first."""
    for path in range(5):
        crawl.frontier.offer(offer_of(1, path))
    fetched(crawl.frontier, OK)
    size = len(crawl.frontier.partition.state.arena)
    for visit in range(6):
        crawl.clock.hour += 12 * WEEK
        frontier = crawl.recrawl(clean=bool(visit % 2))
        outcome = [Outcome(304, found=FOUND._replace(unchanged=True)), OK][visit % 2]
        assert len(fetched(frontier, outcome)) == 5
    assert len(crawl.frontier.partition.state.arena) == size
    crawl.clock.hour += 12 * WEEK
    changed = OK._replace(found=FOUND._replace(etag='"two"', digest="9" * 40))
    assert len(fetched(crawl.recrawl(), changed)) == 5
    assert len(crawl.frontier.partition.state.arena) > size
    crawl.clock.hour += 12 * WEEK
    seeds = [dispatch.offer.seed for dispatch in taken(crawl.recrawl()).values()]
    assert {(seed.etag, seed.digest) for seed in seeds} == {('"two"', "9" * 40)}


def test_the_history_of_a_page_is_kept(crawl: Crawl) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    fetched(crawl.frontier, OK)
    digests = ["1" * 40, "1" * 40, "2" * 40]
    for visit, digest in enumerate(digests):
        crawl.clock.hour += 12 * WEEK
        frontier = crawl.recrawl(clean=bool(visit % 2))
        outcome = OK._replace(found=FOUND._replace(digest=digest))
        assert fetched(frontier, outcome) == [(1, 1)]
    row = crawl.frontier.partition.get(0)
    assert (row.crawl_count, row.change_count, row.no_change_streak) == (4, 2, 0)
    assert (row.first_seen, row.last_crawled) == (HOUR, HOUR + 36 * WEEK)
    assert row.last_changed == HOUR + 36 * WEEK
    assert row.content_fp == 0x2222_2222_2222_2222
    assert row.rate > 0
    assert row.next_due > crawl.clock.hour


def test_a_redirect_is_kept_and_forgotten_when_there_is_none_any_more(crawl: Crawl) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    target = "http://b.test/é\udc80"
    fetched(crawl.frontier, Outcome(301, redirect=target))
    size = len(crawl.frontier.partition.state.arena)
    for outcome, kept in [(Outcome(302, redirect=target), True), (MISSING, True), (OK, False)]:
        crawl.clock.hour += YEAR
        frontier = crawl.recrawl()
        row = frontier.partition.get(0)
        text = frontier.partition.texts_at(row.redirect_ref)[0]
        assert text.decode("utf-8", "surrogateescape") == target
        assert len(frontier.partition.state.arena) == size
        assert fetched(frontier, outcome) == [(1, 1)]
        assert bool(frontier.partition.get(0).redirect_ref) is kept


def test_a_redirect_to_another_place_replaces_the_one_before(crawl: Crawl) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    for target in (b"http://b.test/", b"http://c.test/"):
        crawl.clock.hour += YEAR
        frontier = crawl.recrawl()
        assert fetched(frontier, Outcome(301, redirect=target.decode())) == [(1, 1)]
        assert frontier.partition.texts_at(frontier.partition.get(0).redirect_ref)[0] == target


@pytest.mark.parametrize("clean", [True, False])
def test_the_order_of_rows_survives_a_restart(crawl: Crawl, clean: bool) -> None:
    priorities = [0, 5, -5, 0, 5, 300, 0.5, -0.0]
    for path, priority in enumerate(priorities):
        crawl.frontier.offer(offer_of(1, path, priority=priority))
    crawl.restart(clean=clean)
    crawl.frontier.offer(offer_of(1, 8, priority=5))
    crawl.frontier.offer(offer_of(1, 9))
    assert [path for _, path in fetched(crawl.frontier, OK)] == [5, 1, 4, 8, 6, 0, 3, 7, 9, 2]


def test_a_row_that_comes_back_keeps_its_place(crawl: Crawl) -> None:
    for path in range(3):
        crawl.frontier.offer(offer_of(1, path))
    one = crawl.frontier.next(0.0)
    assert one is not None
    crawl.frontier.settle(one.key, BUSY, 0.0)
    crawl.clock.hour += 1
    assert [path for _, path in fetched(crawl.frontier, OK)] == [0, 1, 2]


@pytest.mark.parametrize("clean", [True, False])
def test_what_is_counted_per_host_goes_on_over_restarts(crawl: Crawl, clean: bool) -> None:
    for path in range(4):
        crawl.frontier.offer(offer_of(1, path))
    crawl.frontier.offer(offer_of(2, 9))
    crawl.frontier.offer(offer_of(1, 0))
    crawl.restart(clean=clean)
    assert fetched(crawl.frontier, OK)[:2] == [(1, 0), (2, 9)]
    crawl.frontier.offer(offer_of(1, 4))
    crawl.restart(clean=clean)
    fetched(crawl.frontier, TIMEOUT)
    crawl.restart(clean=clean)
    host = crawl.frontier.partition.host(1)
    assert host is not None
    assert (host.url_count, host.crawl_total, host.error_total) == (5, 4, 1)
    assert host.avg_latency == 120
    assert crawl.frontier.partition.texts_at(host.host_ref)[0] == b"host-1.test"
    other = crawl.frontier.partition.host(2)
    assert other is not None
    assert (other.url_count, other.crawl_total, other.error_total) == (1, 1, 0)


@pytest.mark.parametrize("clean", [True, False])
def test_lapsed_rows_are_counted_once(crawl: Crawl, clean: bool) -> None:
    for path in range(5):
        crawl.frontier.offer(offer_of(1, path))
    assert crawl.frontier.lapsed == 0
    for _ in range(3):
        crawl.frontier.next(0.0)
    frontier = crawl.restart(clean=clean)
    assert (frontier.lapsed, frontier.queued, frontier.in_flight) == (3, 5, 0)
    assert frontier.counts[Status.SCHEDULED] == 5
    assert crawl.restart(clean=clean).lapsed == 0


def test_a_wall_clock_that_goes_back_hands_out_nothing_early(crawl: Crawl) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    fetched(crawl.frontier, BUSY)
    crawl.clock.hour -= 5
    assert crawl.frontier.next(0.0) is None
    crawl.clock.hour += 6
    assert fetched(crawl.frontier, OK) == [(1, 1)]


def test_hours_that_were_slept_through_bring_each_row_once(crawl: Crawl) -> None:
    for path in range(6):
        crawl.frontier.offer(offer_of(1, path))
    for hours in range(3):
        for outcome in (BUSY, TIMEOUT):
            dispatch = crawl.frontier.next(0.0)
            assert dispatch is not None
            after = outcome._replace(retry_after=hours * 3600)
            crawl.frontier.settle(dispatch.key, after, 0.0)
    crawl.clock.hour += 10_000_000
    assert len(taken(crawl.frontier)) == 6
    assert crawl.frontier.later == 0


@pytest.mark.parametrize("clean", [True, False])
def test_a_lost_capture_is_due_again_at_once_and_once(crawl: Crawl, clean: bool) -> None:
    """Whatever became of the row: settled, to be tried again later, or due anyway."""
    outcomes = [OK, MISSING, Outcome(503, retry_after=5 * 3600)]
    for path, outcome in enumerate(outcomes):
        crawl.frontier.offer(offer_of(1, path))
        fetched(crawl.frontier, outcome)
    for path in range(len(outcomes)):
        assert crawl.frontier.due_again(UrlKey(1, path), is_lost=True)
        assert not crawl.frontier.due_again(UrlKey(1, path), is_lost=True)
    assert not crawl.frontier.due_again(UrlKey(1, 7), is_lost=True)
    frontier = crawl.recrawl(clean=clean)
    assert (frontier.queued, frontier.later) == (3, 0)
    assert len(taken(frontier)) == 3
    assert not frontier.due_again(UrlKey(1, 0), is_lost=True)


def test_nothing_is_known_of_a_page_whose_capture_is_lost(crawl: Crawl) -> None:
    """A response equal to the lost one would become a revisit of a record that is not there."""
    crawl.frontier.offer(offer_of(1, 1))
    fetched(crawl.frontier, OK._replace(found=FOUND))
    assert crawl.frontier.due_again(UrlKey(1, 1), is_lost=True)
    [dispatch] = taken(crawl.frontier).values()
    seed = dispatch.offer.seed
    assert (seed.digest, seed.etag, seed.last_modified, seed.captured_at) == ("", "", "", 0)


def test_what_the_index_says_is_settled_once(crawl: Crawl) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    assert crawl.frontier.settle_found(UrlKey(1, 1), OK, HOUR)
    assert not crawl.frontier.settle_found(UrlKey(1, 1), OK, HOUR)
    with pytest.raises(AmicrawlError, match="not in the frontier"):
        crawl.frontier.settle_found(UrlKey(1, 2), OK, HOUR)
    frontier = crawl.restart()
    assert (frontier.counts[Status.CRAWLED], frontier.queued) == (1, 0)


def test_a_failure_that_the_frontier_knows_is_not_counted_again_by_the_index(crawl: Crawl) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    fetched(crawl.frontier, BUSY)
    assert not crawl.frontier.settle_found(UrlKey(1, 1), BUSY, HOUR)
    assert due_of(crawl.frontier, (1, 1)) == HOUR + 1


def test_a_fetch_that_may_go_better_is_tried_again_after_a_pause_and_not_for_ever(
    tmp_path: Path,
) -> None:
    breaker = HostBreaker(1000, max_retries=2)
    partition = opened(tmp_path)
    frontier = DurableFrontier(
        partition, Gates(0.0, 1), breaker, InflightLimit(100, 1, 1000), wall=Clock()
    )
    frontier.offer(offer_of(1, 1))
    now, settled = 0.0, []
    for attempt in (1, 2, 3):
        dispatch = frontier.next(now)
        assert dispatch is not None
        assert dispatch.attempt == attempt
        settled.append(frontier.settle(dispatch.key, Outcome(failure=Failure.CONNECTION_RESET), now))
        assert frontier.next(now) is None
        now += backoff(attempt)
    assert settled == [Settled.AGAIN, Settled.AGAIN, Settled.DONE]
    assert frontier.next(now) is None
    partition.abandon()


def test_a_row_that_was_never_fetched_is_handed_out_again_and_its_attempt_is_not_counted(
    tmp_path: Path,
) -> None:
    breaker = HostBreaker(1000, max_retries=2)
    partition = opened(tmp_path)
    frontier = DurableFrontier(
        partition, Gates(0.0, 1), breaker, InflightLimit(100, 1, 1000), wall=Clock()
    )
    frontier.offer(offer_of(1, 1))
    attempts: list[int] = []
    for is_fetched in (False, True, False, False):
        dispatch = frontier.next(10.0 * len(attempts))
        assert dispatch is not None
        attempts.append(dispatch.attempt)
        if is_fetched:
            frontier.settle(dispatch.key, Outcome(failure=Failure.CONNECTION_RESET), 0.0)
        else:
            frontier.release(dispatch.key, 0.0)
    assert attempts == [1, 1, 2, 2]
    partition.abandon()


def test_the_rows_of_a_host_that_is_given_up_are_skipped_without_its_delay(tmp_path: Path) -> None:
    partition = opened(tmp_path)
    frontier = DurableFrontier(
        partition,
        Gates(60.0, 2),
        HostBreaker(1, max_retries=0),
        InflightLimit(100, 1, 1000),
        wall=Clock(),
    )
    for path in (1, 2):
        frontier.offer(offer_of(1, path))
    first = frontier.next(0.0)
    assert first is not None
    assert not first.skip
    assert frontier.next(0.0) is None
    frontier.settle(first.key, Outcome(failure=Failure.NAME_NOT_FOUND), 0.0)
    second = frontier.next(0.0)
    assert second is not None
    assert second.skip
    partition.abandon()


def test_a_silent_host_whose_response_came_makes_room_for_one_other_and_not_for_two(
    tmp_path: Path,
) -> None:
    partition = opened(tmp_path)
    frontier = DurableFrontier(
        partition,
        Gates(0.0, 1),
        HostBreaker(1000, max_retries=0),
        InflightLimit(4, 4, 4),
        wall=Clock(),
    )
    for host in range(8):
        frontier.offer(offer_of(host, 1))
    first = frontier.next(0.0)
    assert first is not None
    assert len(taken(frontier)) == 2, "one of four is kept for hosts that have sent something"
    frontier.response_received(first.key, 0.0)
    frontier.settle(first.key, OK, 0.0)
    assert len(taken(frontier)) == 1
    partition.abandon()


def test_a_host_may_be_contacted_again_once_its_response_has_come(tmp_path: Path) -> None:
    partition = opened(tmp_path)
    frontier = DurableFrontier(
        partition,
        Gates(0.0, 1),
        HostBreaker(1000, max_retries=0),
        InflightLimit(1, 1, 1),
        wall=Clock(),
    )
    for path in (1, 2):
        frontier.offer(offer_of(1, path))
    first = frontier.next(0.0)
    assert first is not None
    assert frontier.next(0.0) is None
    frontier.response_received(first.key, 0.0)
    second = frontier.next(0.0)
    assert second is not None
    for each in (first, second):
        frontier.settle(each.key, OK, 0.0)
    assert frontier.counts[Status.CRAWLED] == 2
    partition.abandon()


def test_a_row_is_pending_from_its_offer_until_it_is_settled(crawl: Crawl) -> None:
    assert not crawl.frontier.has_pending()
    crawl.frontier.offer(offer_of(1, 1))
    assert crawl.frontier.has_pending()
    [key] = taken(crawl.frontier)
    assert crawl.frontier.has_pending()
    crawl.frontier.settle(key, OK, 0.0)
    assert not crawl.frontier.has_pending()


def test_the_robots_txt_of_a_host_is_kept_until_another_one_is_noted(crawl: Crawl) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    kept: list[tuple[int, int, int, int]] = []
    for body, missing in [(b"Disallow: /a", False), (None, False), (b"", True)]:
        begin = (100 + len(kept)) * 3600
        crawl.frontier.hosts.note_robots(
            1, body, fetched=begin + 1, expires=begin + 7199, missing=missing
        )
        row = crawl.restart(clean=False).partition.host(1)
        assert row is not None
        kept.append((row.robots_fetched, row.robots_expiry, row.flags & 2, row.robots_ref))
    first, last = kept[0][3], kept[2][3]
    assert 0 < first != last > 0
    assert kept == [(100, 101, 0, first), (101, 102, 0, first), (102, 103, 2, last)]


@pytest.mark.parametrize("fault", [{"extra": {"a": object()}}, {"priority": 1e39}])
def test_an_offer_that_cannot_be_kept_leaves_nothing_behind(crawl: Crawl, fault: dict[str, Any]) -> None:
    """Its key must be free still, and lead to no other row."""
    with pytest.raises((AmicrawlError, OverflowError)):
        crawl.frontier.offer(offer_of(1, 1)._replace(**fault))
    assert crawl.frontier.partition.find(1, 1) is None
    assert len(crawl.frontier) == crawl.frontier.queued == 0
    assert crawl.frontier.offer(offer_of(2, 2))
    assert crawl.frontier.offer(offer_of(1, 1))
    assert set(taken(crawl.frontier)) == {(1, 1), (2, 2)}


def test_a_row_is_given_up_after_as_many_runs_as_it_may_fail(crawl: Crawl) -> None:
    crawl.frontier.offer(offer_of(1, 1))
    for _ in range(MANY):
        assert fetched(crawl.restart(clean=False), TIMEOUT) == [(1, 1)]
        crawl.clock.hour += WEEK
    assert crawl.restart().counts[Status.GONE] == 1


def test_a_frontier_that_is_closed_takes_nothing_that_comes_late(tmp_path: Path) -> None:
    """A second signal closes it while requests are cut off, and while a list is read."""
    partition = opened(tmp_path)
    frontier = frontier_on(partition)
    for path in range(3):
        frontier.offer(offer_of(1, path))
    rows = [frontier.next(0.0) for _ in range(3)]
    frontier.close()
    first, second, third = [row.key for row in rows if row is not None]
    assert not frontier.offer(offer_of(2, 1))
    frontier.release(first, 0.0)
    frontier.settle(second, OK, 0.0)
    frontier.response_received(third, 0.0)
    again = opened(tmp_path)
    assert set(taken(frontier_on(again))) == {first, second, third}
    again.abandon()
