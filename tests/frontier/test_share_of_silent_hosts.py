"""Hosts that have never sent anything hold at most a share of the requests in flight."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from frontier.live.crawls import Clock, offer_of, opened

from amicrawl.capture import Failure
from amicrawl.frontier import Dispatch, DurableFrontier, Outcome
from amicrawl.politeness import Gates, HostBreaker, InflightLimit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT = 16
FOR_SILENT = 12
GOOD = Outcome(status=200, responded=True)


@contextmanager
def crawl_on(directory: Path) -> Iterator[Crawl]:
    crawl = Crawl(directory)
    yield crawl
    crawl.partition.abandon()


class Crawl:
    """A frontier with a limit of sixteen and hosts without a delay, one request each."""

    def __init__(self, directory: Path) -> None:
        self.breaker = HostBreaker(3, max_retries=1)
        self.limit = InflightLimit(LIMIT, LIMIT, LIMIT)
        self.partition = opened(directory)
        gates = Gates(0.0, 1)
        self.frontier = DurableFrontier(
            self.partition, gates, self.breaker, self.limit, wall=Clock(), now=0.0
        )

    def taken(self) -> list[Dispatch]:
        """Return the rows that may be in flight now."""
        rows = []
        while (row := self.frontier.next(0.0)) is not None:
            rows.append(row)
        return rows

    def hosts(self) -> list[int]:
        return [row.key.host for row in self.taken()]


def test_a_quarter_of_the_limit_is_kept_for_hosts_that_have_sent_something(tmp_path: Path) -> None:
    with crawl_on(tmp_path) as crawl:
        for host in range(1, 101):
            assert crawl.frontier.offer(offer_of(host, 1))
        assert len(crawl.taken()) == FOR_SILENT
        assert crawl.limit.holds_back, "so that the limit may grow while there are no responses"
        assert crawl.frontier.next_moment(0.0) is None, "only the end of a request helps"
        for host in range(201, 221):
            crawl.breaker.responded(host)
            crawl.frontier.offer(offer_of(host, 1))
        assert crawl.hosts() == [201, 202, 203, 204]


def test_a_row_found_again_at_a_start_waits_for_the_share_like_others(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    for host in range(1, 31):
        crawl.frontier.offer(offer_of(host, 1))
    crawl.frontier.close()
    with crawl_on(tmp_path) as again:
        assert len(again.taken()) == FOR_SILENT
        assert again.frontier.next_moment(0.0) is None
        again.breaker.responded(77)
        again.frontier.offer(offer_of(77, 1))
        assert again.hosts() == [77]


def test_hosts_that_were_held_back_come_first_and_in_their_order(tmp_path: Path) -> None:
    with crawl_on(tmp_path) as crawl:
        for host in range(1, 41):
            crawl.frontier.offer(offer_of(host, 1))
        first = crawl.taken()
        for row in first:
            crawl.frontier.settle(row.key, GOOD, 0.0)
            crawl.breaker.responded(row.key.host)
        assert crawl.hosts() == list(range(13, 25))


def test_in_any_order_of_offers_and_ends_each_row_is_handed_out_once(tmp_path: Path) -> None:
    """Hosts that are silent, that send something, that are given up; with several rows each."""
    draw = random.Random(7)
    with crawl_on(tmp_path) as crawl:
        rows = [(host, path) for host in range(1, 60) for path in range(1, 5)]
        draw.shuffle(rows)
        expected, seen, flying = Counter(rows), Counter[tuple[int, int]](), list[Dispatch]()
        while rows or flying or crawl.frontier.queued:
            for host, path in [rows.pop() for _ in range(min(len(rows), draw.randrange(8)))]:
                crawl.frontier.offer(offer_of(host, path))
            flying += crawl.taken()
            silent = {
                r.key.host for r in flying if not r.skip and r.key.host not in crawl.breaker.spoken
            }
            assert len(silent) <= FOR_SILENT
            assert len(flying) <= LIMIT
            assert flying or not crawl.frontier.queued, "it stands still"
            draw.shuffle(flying)
            for row in [flying.pop() for _ in range(min(len(flying), draw.randrange(5)))]:
                seen[row.key.host, row.key.path] += 1
                crawl.frontier.settle(row.key, GOOD if row.key.host % 3 else dead(row), 0.0)
        assert seen == expected


def dead(row: Dispatch) -> Outcome:
    return Outcome(failure=Failure.HOST_SKIPPED if row.skip else Failure.NO_ROUTE)
