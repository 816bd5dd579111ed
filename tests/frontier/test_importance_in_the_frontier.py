"""Importance and admission as the durable frontier applies them, and what of it outlives the process."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import pytest
from frontier.live.crawls import HOUR
from frontier.ranked import HUB, Crawl, link, page, seed

from amicrawl.capture import Failure
from amicrawl.frontier import Found, Outcome, Settled, Status
from amicrawl.frontier.admission import Admission
from amicrawl.frontier.ranking import TRAP_SUSPECT, Ranking
from amicrawl.frontier.soft404 import Soft404Detector
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Open = Callable[..., Crawl]

WEEK = 7 * 24
A, B, C, D = (UrlKey(1, path) for path in range(1, 5))


@pytest.fixture
def open_crawl(tmp_path: Path) -> Iterator[Open]:
    made: list[Crawl] = []

    def made_in(name: str = "frontier", **options: object) -> Crawl:
        made.append(Crawl(tmp_path / name, **options))  # type: ignore[arg-type]
        return made[-1]

    yield made_in
    for crawl in made:
        # One that has ended is left alone by this.
        crawl.partition.abandon()


def test_a_late_important_url_overtakes_those_that_wait_on_its_host(open_crawl: Open) -> None:
    """In the reference the places of the first three are bound, and it comes last."""
    crawl = open_crawl(ranking=Ranking())
    for key in (A, B, C):
        crawl.seed(key, 0.1)
    crawl.seed(D, 0.99)
    assert crawl.fetch_all() == [D, A, B, C]


def test_rows_come_up_by_the_links_to_them(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking())
    crawl.seed(HUB)
    assert crawl.fetch() == HUB
    assert crawl.frontier.offer_links(HUB, [link(A), link(B), link(C), link(B)]) == 3
    assert crawl.frontier.queued == 3
    assert crawl.fetch_all() == [B, A, C]


def test_a_row_that_waits_moves_up_when_it_is_linked_to_again(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking())
    for key in (HUB, UrlKey(200, 1)):
        crawl.seed(key)
        crawl.fetch()
    crawl.frontier.offer_links(HUB, [link(A), link(B), link(C)])
    waited = crawl.row(C).priority
    assert crawl.frontier.offer_links(UrlKey(200, 1), [link(C)]) == 0
    assert crawl.row(C).priority > waited
    assert crawl.frontier.queued == 3
    assert crawl.fetch_all() == [C, A, B]


def test_the_host_of_a_row_that_moved_up_moves_up(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking())
    for host in (1, 2, 3):
        crawl.seed(UrlKey(host, 1), 0.5)
    crawl.seed(HUB, 0.9)
    assert crawl.fetch() == HUB
    crawl.frontier.offer_links(HUB, [link(UrlKey(3, 1))])
    assert [key.host for key in crawl.fetch_all()] == [3, 1, 2]


def test_a_row_that_is_worth_less_falls_back_and_its_host_with_it(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking())
    crawl.seed(A, 0.9)
    crawl.seed(B, 0.7)
    crawl.seed(UrlKey(2, 1), 0.8)
    crawl.frontier.import_scores({A: 0.0}, {})
    assert crawl.row(A).priority < crawl.row(B).priority
    assert crawl.fetch_all() == [UrlKey(2, 1), B, A]


def test_an_older_place_spends_no_politeness(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking(), delay=10.0)
    crawl.seed(A, 0.9)
    crawl.seed(B, 0.5)
    crawl.seed(C, 0.4)
    crawl.frontier.import_scores({A: 1e6}, {})  # it has two places now, one of them before B
    moments = []
    while crawl.frontier.has_pending():
        moment = crawl.frontier.next_moment(crawl.now)
        assert moment is not None
        crawl.now = moment
        moments.append((moment, crawl.fetch()))
        assert crawl.take() is None
    assert moments == [(0.0, A), (10.0, B), (20.0, C)]
    assert crawl.frontier.next_moment(crawl.now) is None


def test_a_row_that_waits_for_its_next_attempt_waits_as_long_and_comes_up_as_what_it_is_worth(
    open_crawl: Open,
) -> None:
    crawl = open_crawl(ranking=Ranking())
    crawl.seed(HUB, 0.9)
    assert crawl.fetch() == HUB
    crawl.seed(A, 0.2)
    key = crawl.take()
    assert key == A
    reset = Outcome(failure=Failure.CONNECTION_RESET)
    assert crawl.frontier.settle(key, reset, crawl.now) is Settled.AGAIN
    crawl.seed(B, 0.3)
    crawl.frontier.offer_links(HUB, [link(A)])
    assert crawl.frontier.queued == 2
    crawl.now = 0.01
    assert crawl.take() == B
    crawl.frontier.release(B, crawl.now)
    crawl.now = 1.0
    assert crawl.fetch_all() == [A, B]


def test_a_row_in_flight_stays_there_and_comes_back_as_what_it_is_worth(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking())
    crawl.seed(HUB, 0.9)
    crawl.fetch()
    crawl.seed(A, 0.2)
    crawl.seed(B, 0.25)
    assert crawl.take() == B
    crawl.now = 1.0
    crawl.frontier.import_scores({B: 0.0}, {})
    assert (crawl.frontier.in_flight, crawl.frontier.queued) == (1, 1)
    assert crawl.row(B).status == Status.IN_FLIGHT
    crawl.frontier.release(B, crawl.now)
    assert crawl.row(B).priority < crawl.row(A).priority
    assert crawl.fetch_all() == [A, B]


def test_a_page_keeps_its_worth_when_its_cash_is_spread_and_the_links_of_a_stranger_carry_none(
    open_crawl: Open,
) -> None:
    crawl = open_crawl(ranking=Ranking())
    crawl.seed(HUB)
    worth = crawl.row(HUB).priority
    crawl.fetch()
    crawl.frontier.offer_links(HUB, [link(A)])
    assert crawl.row(HUB).priority >= worth
    assert crawl.frontier.offer_links(UrlKey(9, 9), [link(B), link(A)]) == 1
    assert crawl.row(B).priority < crawl.row(A).priority
    assert crawl.host(1).url_budget == 64 + 2 * 16  # but a host it has


def test_cash_is_spread_over_all_links_but_for_what_goes_to_all_pages_alike(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking())
    crawl.seed(HUB, 1.0)
    assert crawl.row(HUB).priority == pytest.approx(log(2))
    crawl.fetch()
    crawl.frontier.offer_links(HUB, [link(A), link(B, hops=3)])
    assert crawl.row(A).priority == pytest.approx(log(1 + 0.425 + 0.15 / 2))
    assert crawl.row(B).priority == pytest.approx(log(1 + 0.425 + 0.15 / 3) * 0.95**3)
    assert crawl.row(HUB).priority == pytest.approx(log(1 + 0.9998 * 0 + 1 + 0.15 / 3))


def test_imported_scores_raise_a_page_and_all_rows_of_a_host(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking())
    renowned, later, plain = UrlKey(2, 1), UrlKey(3, 1), UrlKey(4, 1)
    for key in (A, B, renowned, plain):
        crawl.seed(key, 0.5)
    crawl.frontier.import_scores({B: 50.0, UrlKey(9, 9): 1.0}, {2: 8.0, 3: 4.0})
    assert (crawl.host(2).host_score, crawl.partition.host(3)) == (8.0, None)
    crawl.seed(later, 0.5)
    assert crawl.host(3).host_score == 4.0
    assert crawl.fetch_all() == [B, renowned, later, plain, A]


@pytest.mark.parametrize("killed", [False, True])
def test_a_restart_keeps_priorities_and_links_go_on_from_there(open_crawl: Open, killed: bool) -> None:
    crawl = open_crawl(ranking=Ranking())
    for key in (HUB, UrlKey(200, 1)):
        crawl.seed(key)
        crawl.fetch()
    crawl.frontier.offer_links(HUB, [link(A), link(B), link(C)])
    crawl.frontier.offer_links(UrlKey(200, 1), [link(C)])
    crawl.frontier.import_scores({B: 3.0}, {1: 2.0})
    worth = {key: crawl.row(key).priority for key in (A, B, C)}
    budget = crawl.host(1).url_budget
    crawl.end(killed=killed)
    crawl = open_crawl(ranking=Ranking())
    assert {key: crawl.row(key).priority for key in (A, B, C)} == worth
    assert crawl.host(1).host_score == 2.0
    # What is known of cash is gone; A is worth what it was, and a little more.
    crawl.frontier.offer_links(UrlKey(300, 1), [link(A)])
    assert crawl.row(A).priority == pytest.approx(worth[A], rel=1e-4)
    crawl.frontier.offer_links(HUB, [link(A)])
    assert crawl.row(A).priority > worth[A]
    assert crawl.host(1).url_budget == budget
    assert crawl.frontier.queued == 3
    rest = sorted((A, B, C), key=lambda key: -crawl.row(key).priority)
    assert crawl.fetch_all() == rest


def test_rows_of_the_backlog_can_be_moved_wherever_they_stand(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking())
    keys = [UrlKey(1 + number % 3, number) for number in range(30)]
    for number, key in enumerate(keys):
        crawl.seed(key, 0.5 + number / 100)
    crawl.end()
    crawl = open_crawl(ranking=Ranking())
    first = crawl.fetch()
    assert first == keys[29]
    crawl.frontier.import_scores({key: key.path * 7 % 31 for key in keys[:-1]}, {})
    assert crawl.frontier.queued == 29
    worth = {key: crawl.row(key).priority for key in keys[:-1]}
    assert crawl.fetch_all() == sorted(keys[:-1], key=lambda key: -worth[key])
    assert not crawl.frontier.has_pending()


def test_however_often_a_row_is_moved_its_host_keeps_few_older_places(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking())
    crawl.seed(A, 0.5)
    crawl.seed(B, 0.4)
    for score in range(5_000):
        crawl.frontier.import_scores({A: score + 1.0}, {})
    (lane,) = crawl.frontier._queue._lanes.values()
    assert len(lane._places) < 200
    assert crawl.frontier.queued == 2
    assert crawl.fetch_all() == [A, B]


def test_a_spam_farm_gets_what_its_renown_allows(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking(), admission=Admission())
    crawl.seed(HUB)
    crawl.fetch()
    farm = [UrlKey(7, path) for path in range(200)]
    admitted = sum(crawl.frontier.offer_links(HUB, [link(key)]) for key in farm)
    assert admitted == crawl.host(7).url_budget == 64 + 16  # one host links there
    assert crawl.frontier.counts[Status.TRAPPED] == 120
    assert crawl.host(7).url_count == len(crawl.frontier) - 1 == 200
    assert crawl.row(farm[-1]).status == Status.TRAPPED
    assert not crawl.frontier.offer(link(farm[-1]))
    # A link from elsewhere makes room; what is parked takes none, and stays parked.
    crawl.seed(UrlKey(200, 1))
    crawl.frontier.offer_links(UrlKey(200, 1), [link(farm[-1])])
    more = [UrlKey(7, path) for path in range(200, 300)]
    assert crawl.frontier.offer_links(UrlKey(200, 1), [link(key) for key in more]) == 16
    handed_out = set(crawl.fetch_all())
    assert handed_out == {*farm[:80], *more[:16], UrlKey(200, 1)}


def test_a_restart_keeps_budgets_and_who_is_parked(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking(), admission=Admission())
    crawl.seed(HUB)
    farm = [UrlKey(7, path) for path in range(100)]
    assert crawl.frontier.offer_links(HUB, [link(key) for key in farm]) == 80
    crawl.end()
    crawl = open_crawl(ranking=Ranking(), admission=Admission())
    assert crawl.frontier.counts[Status.TRAPPED] == 20
    assert crawl.frontier.offer_links(HUB, [link(UrlKey(7, 500))]) == 0
    assert crawl.frontier.due_again(farm[99])
    assert (crawl.frontier.counts[Status.TRAPPED], crawl.frontier.queued) == (20, 82)
    assert farm[99] in crawl.fetch_all()


def test_budgets_do_not_hold_for_what_was_asked_for_by_name(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking(), admission=Admission())
    crawl.frontier.offer_links(HUB, [link(UrlKey(7, 1000))])
    assert all(crawl.frontier.offer(seed(UrlKey(7, path))) for path in range(100))
    assert crawl.frontier.offer_links(HUB, [link(UrlKey(7, 1001))]) == 0


def test_a_calendar_without_end_flags_its_host_for_good(open_crawl: Open) -> None:
    crawl = open_crawl(ranking=Ranking(), admission=Admission())
    crawl.seed(UrlKey(7, 999))
    months = [
        link(UrlKey(7, number), f"http://host-7.test/{2040 + number // 12}/{number % 12 + 1}/")
        for number in range(20)
    ]
    assert [crawl.frontier.offer(month) for month in months] == [True] * 15 + [False] * 5
    assert crawl.host(7).flags == TRAP_SUSPECT
    assert crawl.frontier.offer(link(UrlKey(7, 50)))
    crawl.end()
    crawl = open_crawl(ranking=Ranking(), admission=Admission())
    session = link(UrlKey(7, 60), "http://host-7.test/x?sid=abc123def456ghi")
    assert not crawl.frontier.offer(session)
    assert crawl.frontier.offer(link(UrlKey(7, 61)))
    # What is found on a suspected host is worth a tenth.
    crawl.seed(UrlKey(8, 1), 0.5)
    crawl.seed(UrlKey(7, 62), 0.5)
    assert crawl.row(UrlKey(7, 62)).priority == pytest.approx(crawl.row(UrlKey(8, 1)).priority / 10)


def test_without_a_ranking_links_are_offers_by_their_own_priority(open_crawl: Open) -> None:
    crawl = open_crawl(admission=Admission(depth_cap=2))
    crawl.frontier.import_scores({A: 9.0}, {1: 9.0})
    offers = [link(A, hops=2), link(B, hops=3), seed(C, 5.0), link(A)]
    assert crawl.frontier.offer_links(HUB, offers) == 2
    assert crawl.host(1).url_budget == 0
    assert crawl.fetch_all() == [C, A]
    assert crawl.frontier.counts[Status.TRAPPED] == 1


def test_by_default_nothing_of_this_happens(open_crawl: Open) -> None:
    crawl = open_crawl()
    months = [
        link(UrlKey(7, number), f"http://host-7.test/{2040 + number}/01/", hops=number)
        for number in range(300)
    ]
    assert crawl.frontier.offer_links(HUB, months) == 300
    assert crawl.frontier.offer_links(HUB, months) == 0
    crawl.frontier.import_scores({months[9].key: 9.0}, {7: 1.0})
    assert [crawl.fetch(page(1)).path for _ in range(300)] == list(range(300))
    assert crawl.frontier.counts[Status.CRAWLED] == 300
    assert crawl.host(7) == crawl.host(7)._replace(flags=0, url_budget=0, host_score=1.0)


def test_an_error_page_that_answers_200_is_gone(open_crawl: Open) -> None:
    crawl = open_crawl(soft404=Soft404Detector())
    keys = [UrlKey(1, path) for path in range(10)]
    for key in keys:
        crawl.seed(key)
        crawl.fetch(page(0xDEAD))
    taken_at_face_value, gone = keys[:7], keys[7:]
    assert {crawl.row(key).status for key in taken_at_face_value} == {Status.CRAWLED}
    for key in gone:
        row = crawl.row(key)
        assert (row.status, row.http_status, row.next_due) == (Status.GONE, 200, HOUR + 2 * WEEK)
        assert (row.crawl_count, row.error_count, row.content_fp) == (1, 0, 0xDEAD)
    crawl.seed(UrlKey(1, 99))
    crawl.fetch(page(0xBEEF))
    assert crawl.row(UrlKey(1, 99)).status == Status.CRAWLED


def test_a_redirect_with_the_text_of_others_is_no_error_page(open_crawl: Open) -> None:
    crawl = open_crawl(soft404=Soft404Detector(threshold=1))
    crawl.seed(A)
    crawl.fetch(Outcome(301, found=Found(digest="dead" * 10)))
    assert crawl.row(A).status == Status.CRAWLED


@pytest.mark.parametrize("again", [page(0xDEAD), Outcome(304, found=Found(unchanged=True))])
def test_an_error_page_is_looked_for_as_what_is_missing_and_stays_gone(
    open_crawl: Open, again: Outcome
) -> None:
    """In the reference its rate of change takes over, and the detector forgets with the process."""
    crawl = open_crawl(soft404=Soft404Detector(threshold=1))
    crawl.seed(A)
    crawl.fetch(page(0xDEAD))
    hour = HOUR
    for pause in (2, 4, 8):
        assert crawl.row(A).status == Status.GONE
        assert crawl.row(A).next_due == hour + pause * WEEK
        hour = crawl.row(A).next_due
        crawl.end()
        crawl = open_crawl(soft404=Soft404Detector(), hour=hour, recrawls=True)
        crawl.fetch(again)
    assert crawl.row(A).crawl_count == 4
    crawl.end()
    crawl = open_crawl(soft404=Soft404Detector(), hour=hour + 16 * WEEK, recrawls=True)
    crawl.fetch(page(0xBEEF))
    assert (crawl.row(A).status, crawl.row(A).retry_count) == (Status.CRAWLED, 0)
