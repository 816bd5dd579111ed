"""Where a crawl's work lies: the hosts in flight, and those with the most rows that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawl.stand_in_engine import StandInEngine

from amicrawl.config import CrawlConfig, Identity
from amicrawl.crawl.run import Run
from amicrawl.crawl.watching.busy_hosts import BusyHosts
from amicrawl.disk import Disk
from amicrawl.frontier import DurableFrontier, Offer, Source
from amicrawl.meguri import LivePartition
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_700_000_000.0


def opened(directory: Path) -> DurableFrontier:
    hour = int(NOW // 3600)
    partition = LivePartition(directory, disk=Disk(), hour=hour, meta={b"amicrawl.identity": b"exact"})
    gates = Gates(0, 1)
    breaker, limit = HostBreaker(3, max_retries=1), InflightLimit(10, 1, 10)
    return DurableFrontier(partition, gates, breaker, limit, wall=lambda: NOW)


def offer(host: int, path: int) -> Offer:
    return Offer(Seed(f"http://host-{host}.test/{path}"), UrlKey(host, path), Source.SEED)


def test_the_longest_queues_are_told_before_and_after_a_restart(tmp_path: Path) -> None:
    frontier = opened(tmp_path)
    for host, rows in ((1, 3), (2, 5), (3, 1)):
        for path in range(rows):
            frontier.offer(offer(host, path))
    assert frontier.longest_queues(2) == [(2, 5), (1, 3)]
    taken = frontier.next(0.0)
    assert taken is not None
    assert frontier.hosts_in_flight() == {taken.key.host: 1}
    assert dict(frontier.longest_queues(9))[taken.key.host] == {1: 3, 2: 5, 3: 1}[taken.key.host] - 1
    assert [frontier.waiting_of(host) for host in (1, 2, 3, 4)] == [
        waiting - (host == taken.key.host) for host, waiting in ((1, 3), (2, 5), (3, 1), (4, 0))
    ]
    assert frontier.hosts.known(2) == ("host-2.test", 0)
    assert frontier.hosts.known(9) == ("", 0)
    frontier.close()
    again = opened(tmp_path)
    assert again.longest_queues(2) == [(2, 5), (1, 3)]
    assert [again.waiting_of(host) for host in (1, 2, 3, 4)] == [3, 5, 1, 0]
    for _ in range(3):
        assert again.next(0.0) is not None
    waiting = dict(again.longest_queues(9))
    assert sum(waiting.values()) == again.queued
    again.partition.abandon()


def test_the_figures_of_a_host_are_of_the_moment_in_which_they_are_shown(tmp_path: Path) -> None:
    """Which queues are long is looked up now and then; how long they are, each time."""
    run = Run(CrawlConfig(out=tmp_path), Identity.EXACT, engine=StandInEngine(), clock=lambda: 0.0)
    busy = BusyHosts(run)
    for path in range(3):
        run.frontier.offer(offer(1, path))
    assert [(host.in_flight, host.waiting) for host in busy.found(most=9)] == [(0, 3)]
    assert run.frontier.next(0.0) is not None
    run.frontier.offer(offer(1, 7))
    run.frontier.offer(offer(1, 8))
    [host] = busy.found(most=9)
    assert (host.in_flight, host.waiting) == (1, 4)
    assert run.waiting == 5
    run.finish("finished")
