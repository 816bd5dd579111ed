"""The exchange of a partition: batches acknowledged when they are on disk, a lease kept or lost."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError
from amicrawl.fleet.database.connection import RedisSettings, connect
from amicrawl.fleet.database.redis_values import dead_letters
from amicrawl.fleet.sharing.creation import begin, seeds_given
from amicrawl.fleet.sharing.exchange import BatchExchange, News
from amicrawl.fleet.sharing.record import ShareRecord
from amicrawl.fleet.sharing.share import NEXT, Share, TakenPartition
from amicrawl.frontier import Source
from amicrawl.partition.batch import PartitionLink, encoded_batch, encoded_link
from amicrawl.partition.messages import Standing
from amicrawl.partition.outbox import Outbox
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore

PATIENCE = 60.0


def link(name: str) -> str:
    return encoded_link(PartitionLink(Seed(f"http://example.org/{name}"), Source.LINK))


class Crawl:
    """One partition in a test: its exchange, and what the event loop would have heard."""

    def __init__(
        self,
        share: Share,
        directory: Path,
        *,
        ttl: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        taken = share.take("me", data="here")
        assert isinstance(taken, TakenPartition)
        self.taken = taken
        self.share = share
        self.forced = 0
        self.newer = ""
        self.news: list[News] = []
        self.told = threading.Condition()
        directory.mkdir(exist_ok=True)
        self.outbox = Outbox(directory, disk=Disk())
        self.exchange = BatchExchange(
            share,
            taken.number,
            taken.token,
            force=self._force,
            tell=self._tell,
            fence=lambda: self.newer,
            ttl=timedelta(seconds=ttl),
            turn=timedelta(0),
            clock=clock,
        )
        self.exchange.outbox = self.outbox

    def _force(self) -> Future[None]:
        self.forced += 1
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _tell(self, news: News) -> None:
        with self.told:
            self.news.append(news)
            self.told.notify_all()

    def round(self, standing: Standing) -> News:
        """Feed *standing*, and return what is told next."""
        with self.told:
            count = len(self.news)
            self.exchange.feed(standing)
            assert self.told.wait_for(lambda: len(self.news) > count, PATIENCE)
            return self.news[-1]

    def until(self, standing: Standing, found: Callable[[News], bool]) -> News:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            news = self.round(standing)
            if found(news):
                return news
        raise AssertionError("it was not told")


BUSY = Standing(idle=False, has_room=True)
IDLE = Standing(idle=True, has_room=True)


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[JobStore]:
    store = connect(RedisSettings(url=redis_server.url))
    yield store
    store.close()


@pytest.fixture
def share(store: JobStore) -> Share:
    share, token = begin(store, ShareRecord("exchange", 2, inbox=3))
    share.send(-1, token, [(number, encoded_batch([link(f"seed-{number}")])) for number in range(2)])
    seeds_given(share)
    return share


def test_a_batch_is_acknowledged_when_its_links_are_on_disk_and_not_before(
    share: Share, store: JobStore, tmp_path: Path
) -> None:
    crawl = Crawl(share, tmp_path / "a")
    crawl.exchange.begin()
    news = crawl.until(BUSY, lambda news: bool(news.batches))
    inbox = share.keys.links(crawl.taken.number)
    assert [each.seed.url for each in news.batches[0].links] == [
        f"http://example.org/seed-{crawl.taken.number}"
    ]
    crawl.round(BUSY)
    assert (crawl.forced, store.client.xlen(inbox)) == (0, 1)
    assert not crawl.round(IDLE).reply.ended
    crawl.round(Standing(idle=False, has_room=True, kept=(news.batches[0].name,)))
    assert (crawl.forced, store.client.xlen(inbox)) == (1, 0)
    crawl.exchange.finish(IDLE, PATIENCE)
    assert store.client.hget(share.keys.claim(crawl.taken.number), "idle") == "1"


def test_links_go_from_an_outbox_to_an_inbox_and_the_crawl_ends_with_the_last(
    share: Share, tmp_path: Path
) -> None:
    one, two = Crawl(share, tmp_path / "a"), Crawl(share, tmp_path / "b")
    one.exchange.begin()
    two.exchange.begin()
    for crawl in (one, two):
        news = crawl.until(BUSY, lambda news: bool(news.batches))
        crawl.round(Standing(idle=False, has_room=True, kept=(news.batches[0].name,)))
    one.outbox.append(two.taken.number, [link(str(number)) for number in range(1200)])
    one.outbox.sync()
    assert not two.round(IDLE).reply.ended
    one.round(IDLE)
    assert one.outbox.is_empty
    assert one.exchange.sent == 1200
    found = two.until(IDLE, lambda news: bool(news.batches))
    names = [batch.name for batch in found.batches]
    assert sum(len(batch.links) for batch in found.batches) == 1200
    assert not one.round(IDLE).reply.ended
    assert two.round(Standing(idle=True, has_room=True, kept=tuple(names))).reply.ended
    assert one.round(IDLE).reply.ended


def test_a_full_inbox_leaves_links_in_the_outbox(share: Share, store: JobStore, tmp_path: Path) -> None:
    crawl = Crawl(share, tmp_path / "a")
    crawl.exchange.begin()
    other = 1 - crawl.taken.number
    crawl.outbox.append(other, [link(str(number)) for number in range(5000)])
    crawl.outbox.flush()
    crawl.round(IDLE)
    assert store.client.xlen(share.keys.links(other)) == share.record.inbox
    assert not crawl.outbox.is_empty
    assert "idle" not in store.client.hgetall(share.keys.claim(crawl.taken.number))


def test_an_invalid_batch_is_a_dead_letter_and_the_others_arrive(
    share: Share, store: JobStore, tmp_path: Path
) -> None:
    crawl = Crawl(share, tmp_path / "a")
    inbox = share.keys.links(crawl.taken.number)
    store.client.xadd(inbox, {"b": "noise"})
    store.client.xadd(inbox, {"whatever": "else", "v": "9"})
    store.client.xadd(inbox, {"b": encoded_batch(['{"u":7}', link("good")])})
    crawl.exchange.begin()
    news = crawl.until(BUSY, lambda news: bool(news.batches))
    urls = [each.seed.url for batch in news.batches for each in batch.links]
    assert urls[-1] == "http://example.org/good"
    assert len(news.batches) == 4
    assert len(dead_letters(store)) == 3
    crawl.round(Standing(idle=False, has_room=True, kept=tuple(batch.name for batch in news.batches)))
    assert store.client.xlen(inbox) == 0


def test_a_crawl_that_feeds_nothing_loses_its_lease(
    share: Share, store: JobStore, tmp_path: Path
) -> None:
    crawl = Crawl(share, tmp_path / "a", ttl=1.5)
    crawl.exchange.begin()
    crawl.round(BUSY)
    lease = share.keys.lease(crawl.taken.number)
    deadline = time.monotonic() + PATIENCE
    while store.client.exists(lease):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not crawl.exchange.is_held
    assert not crawl.exchange.lost
    assert crawl.round(BUSY).reply.lease == "regained"
    assert crawl.exchange.is_held


def test_the_lease_is_kept_while_the_output_is_opened(
    share: Share, store: JobStore, tmp_path: Path
) -> None:
    crawl = Crawl(share, tmp_path / "a", ttl=2.0)
    crawl.exchange.begin()
    assert crawl.exchange.in_grace
    # Nothing is fed: a lease that lasts longer than it did a moment ago was renewed all the same.
    lease, renewals, left = share.keys.lease(crawl.taken.number), 0, 2000
    deadline = time.monotonic() + PATIENCE
    while renewals < 3:
        assert time.monotonic() < deadline
        before, left = left, int(store.client.pttl(lease))
        renewals += left > before
        time.sleep(0.02)
    crawl.round(BUSY)
    assert not crawl.exchange.in_grace


def test_the_lease_runs_out_by_a_clock_that_no_hand_turns(share: Share, tmp_path: Path) -> None:
    now = 1000.0
    crawl = Crawl(share, tmp_path / "a", ttl=30.0, clock=lambda: now)
    crawl.exchange.begin()
    assert crawl.exchange.is_held
    now += 24.0
    assert crawl.exchange.is_held
    # The machine slept, or the process was frozen, beyond the lease less its margin of 5 s.
    now += 2.0
    assert not crawl.exchange.is_held


def test_nothing_that_cannot_wait_is_begun_shortly_before_the_lease_runs_out(
    share: Share, tmp_path: Path
) -> None:
    now = 1000.0
    crawl = Crawl(share, tmp_path / "a", ttl=30.0, clock=lambda: now)
    crawl.exchange.begin()
    assert crawl.exchange.may_begin
    now += 24.9
    assert crawl.exchange.is_held
    assert not crawl.exchange.may_begin


def test_a_newer_token_in_the_directory_ends_it_even_without_redis(share: Share, tmp_path: Path) -> None:
    crawl = Crawl(share, tmp_path / "a")
    crawl.exchange.begin()
    crawl.round(BUSY)
    crawl.newer = "a newer owner has this directory"
    assert crawl.round(BUSY).reply.lease == "lost"
    assert not crawl.exchange.is_held
    assert "newer owner" in crawl.exchange.lost


def test_a_partition_that_was_taken_over_is_not_begun(
    share: Share, store: JobStore, tmp_path: Path
) -> None:
    crawl = Crawl(share, tmp_path / "a")
    store.client.delete(share.keys.lease(crawl.taken.number))
    store.client.hset(share.keys.claim(crawl.taken.number), "token", "999")
    with pytest.raises(AmicrawlError, match="Nothing was written"):
        crawl.exchange.begin()


def test_a_batch_whose_reply_was_lost_is_read_again_and_the_others_are_not(
    share: Share, store: JobStore, tmp_path: Path
) -> None:
    crawl = Crawl(share, tmp_path / "a")
    number, token = crawl.taken.number, crawl.taken.token
    crawl.exchange.begin()
    first = crawl.until(BUSY, lambda news: bool(news.batches)).batches[0]
    crawl.round(BUSY)
    store.client.xadd(share.keys.links(number), {"b": encoded_batch([link("second")])})
    # Handed out, and nobody heard of it.
    assert share.receive(number, token, most=10, after=NEXT)
    store.client.rename(share.keys.record, "elsewhere")
    deadline = time.monotonic() + PATIENCE
    while not crawl.exchange.trouble:
        assert time.monotonic() < deadline
        crawl.exchange.feed(BUSY)
        time.sleep(0.02)
    store.client.rename("elsewhere", share.keys.record)
    news = crawl.until(BUSY, lambda news: bool(news.batches))
    assert [each.seed.url for batch in news.batches for each in batch.links] == [
        "http://example.org/second"
    ]
    kept = (first.name, news.batches[0].name)
    crawl.round(Standing(idle=False, has_room=True, kept=kept))
    assert store.client.xlen(share.keys.links(number)) == 0


def test_a_lease_that_ran_out_while_redis_was_away_is_regained_with_batches_on_their_way(
    share: Share, store: JobStore, tmp_path: Path
) -> None:
    """There is one worker only: no other has the partition, however long the outage."""
    crawl = Crawl(share, tmp_path / "a")
    crawl.exchange.begin()
    batch = crawl.until(BUSY, lambda news: bool(news.batches)).batches[0]
    crawl.outbox.append(1 - crawl.taken.number, [link("x")])
    crawl.outbox.flush()
    lease = share.keys.lease(crawl.taken.number)
    store.client.delete(lease)
    news = crawl.round(Standing(idle=False, has_room=True, kept=(batch.name,)))
    assert news.reply.is_ours
    assert not crawl.exchange.lost
    assert store.client.get(lease) == str(crawl.taken.token)
    assert crawl.outbox.is_empty
    assert store.client.xlen(share.keys.links(crawl.taken.number)) == 0


def test_redis_away_and_back_again_loses_nothing(share: Share, store: JobStore, tmp_path: Path) -> None:
    crawl = Crawl(share, tmp_path / "a")
    crawl.exchange.begin()
    crawl.outbox.append(1 - crawl.taken.number, [link("x")])
    crawl.outbox.flush()
    # The server responds to no client for a moment: as long as the client waits, and longer.
    store.client.config_set("maxclients", "1")
    store.client.client_kill_filter(_type="normal", skipme=False)
    for _ in range(3):
        crawl.exchange.feed(BUSY)
        time.sleep(0.1)
    store.client.config_set("maxclients", "10000")
    crawl.until(BUSY, lambda news: news.reply.is_ours and crawl.outbox.is_empty)
    assert crawl.exchange.is_held
    assert not crawl.exchange.trouble
