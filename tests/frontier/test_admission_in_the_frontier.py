"""Admission and soft 404s as the durable frontier applies them, and what of it outlives the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from frontier.admitting import Crawl, link, page, seed
from frontier.live.crawls import HOUR

from amicrawl.frontier import Found, Outcome
from amicrawl.frontier.admission import TRAP_SUSPECT, Admission
from amicrawl.frontier.outcomes import Soft404Detector
from amicrawl.meguri import Status
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


def test_a_host_gets_what_its_budget_allows_and_a_restart_keeps_who_is_parked(open_crawl: Open) -> None:
    """Budgets are noted by other software of the format; rows that it refused take no room."""
    crawl = open_crawl(admission=Admission())
    farm = [UrlKey(7, path) for path in range(20)]
    crawl.seed(UrlKey(7, 100))
    crawl.partition.put_host(crawl.host(7)._replace(url_budget=9))
    assert sum(crawl.frontier.offer(link(key)) for key in farm) == 8
    assert crawl.frontier.counts[Status.TRAPPED] == 12
    assert crawl.frontier.hosts.urls(7) == len(crawl.frontier) == 21
    assert not crawl.frontier.offer(link(farm[-1]))
    assert all(crawl.frontier.offer(seed(UrlKey(7, path))) for path in range(200, 203))
    crawl.end()
    crawl = open_crawl(admission=Admission())
    assert crawl.frontier.counts[Status.TRAPPED] == 12
    assert not crawl.frontier.offer(link(UrlKey(7, 500)))
    assert crawl.frontier.due_again(farm[19], is_lost=False)
    handed_out = set(crawl.fetch_all())
    assert handed_out == {*farm[:8], farm[19], *(UrlKey(7, path) for path in (100, 200, 201, 202))}


def test_a_calendar_without_end_flags_its_host_for_good(open_crawl: Open) -> None:
    crawl = open_crawl(admission=Admission())
    crawl.seed(UrlKey(7, 999))
    months = [
        link(UrlKey(7, number), f"http://host-7.test/{2040 + number // 12}/{number % 12 + 1}/")
        for number in range(20)
    ]
    assert [crawl.frontier.offer(month) for month in months] == [True] * 15 + [False] * 5
    assert crawl.host(7).flags == TRAP_SUSPECT
    assert crawl.frontier.offer(link(UrlKey(7, 50)))
    crawl.end()
    crawl = open_crawl(admission=Admission())
    session = link(UrlKey(7, 60), "http://host-7.test/x?sid=abc123def456ghi")
    assert not crawl.frontier.offer(session)
    assert crawl.frontier.offer(link(UrlKey(7, 61)))


def test_by_default_nothing_of_this_happens(open_crawl: Open) -> None:
    crawl = open_crawl()
    months = [
        link(UrlKey(7, number), f"http://host-7.test/{2040 + number}/01/", hops=number)
        for number in range(300)
    ]
    assert sum(map(crawl.frontier.offer, months)) == 300
    assert sum(map(crawl.frontier.offer, months)) == 0
    assert [crawl.fetch(page(1)).path for _ in range(300)] == list(range(300))
    assert crawl.frontier.counts[Status.CRAWLED] == 300
    assert crawl.host(7).flags == 0


def test_an_error_page_with_status_200_is_gone(open_crawl: Open) -> None:
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
