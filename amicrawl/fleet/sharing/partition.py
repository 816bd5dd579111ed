"""Sharing: what makes an ordinary crawl one of the partitions of a shared one. Placed by the add-on.

It ends when all partitions have nothing to do, or when another worker is to have this one. It pauses
while its lease may have run out, and when it was lost it stops without writing.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from amicrawl.crawl import PartitionMember, Run
from amicrawl.disk import Disk, explained
from amicrawl.errors import AmicrawlError, UsageError
from amicrawl.fleet.database import put_dead_letter, unit_of
from amicrawl.fleet.jobs import store_of_crawl
from amicrawl.fleet.leases import (
    LEASE,
    LEASE_VARIABLE,
    TOKEN_VARIABLE,
    UNIT_VARIABLE,
    Fence,
    LeasedDisk,
    LeaseLost,
)
from amicrawl.fleet.sharing.exchange import BatchExchange
from amicrawl.fleet.sharing.record import checked_name
from amicrawl.fleet.sharing.share import Share
from amicrawl.listing import TABLE_NAME
from amicrawl.partition import EVERY, Outbox
from amicrawl.record import opened_index

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.crawler import Crawler

    from amicrawl.fleet.sharing.exchange import News
    from amicrawl.partition import OpenedBatch, PartitionLink

logger = logging.getLogger(__name__)

TURN_SECONDS = "AMICRAWL_JOB_TURN"
BY_LEASE = "lease"
"""The reason for a pause while the lease may have run out."""
BY_SHARE = "share"
"""The reason for a pause of the shared crawl as a whole."""
GIVEN_UP = "given-up"
"""The finish reason of a crawl whose partition another worker is to have."""

_PATIENCE = 10.0


class Sharing(PartitionMember):
    """Keeps one partition of a shared crawl in touch with the others."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        """Take part for the worker that has started this crawl; raises UsageError where none has."""
        super().__init__(crawler, run)
        self._number, self._token, self._share = _what_was_taken(crawler)
        shards = self._share.record.partitions
        run.spec = replace(run.spec, shard=self._number, shards=shards)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rows_before = 0
        """Rows that earlier attempts have left in the directory."""
        self._deaf = False
        self._exchange = self._begun_exchange()

    def _begun_exchange(self) -> BatchExchange:
        """Return the exchange, with the lease renewed and the directory fenced: what writes reads it."""
        run, directory = self._run, self._run.config.directory
        with explained(directory, "made"):
            directory.mkdir(parents=True, exist_ok=True)
        fence = Fence(directory, unit_of(self._share.record.name, self._number), self._token)
        fence.put_up(disk=Disk())
        exchange = BatchExchange(
            self._share,
            self._number,
            self._token,
            force=self._outgoing.force,
            tell=self._tell,
            fence=fence.newer,
            ttl=_seconds(LEASE_VARIABLE, LEASE),
            turn=_seconds(TURN_SECONDS, timedelta(0)),
        )
        exchange.begin()
        run.lease_output(
            lambda: exchange.may_begin,
            disk=LeasedDisk(exchange, fence, patient=True),
            status_disk=LeasedDisk(exchange, fence, patient=False),
        )
        return exchange

    def _opened_outbox(self) -> Outbox:
        # The mark is written by the thread that keeps the lease: it must not wait for it.
        outbox = Outbox(self._run.config.directory, disk=self._run.disk, mark_disk=self._run.status_disk)
        self._exchange.outbox = outbox
        return outbox

    def _opened(self) -> None:
        self._loop = asyncio.get_running_loop()
        assert self._box is not None
        self._rows_before = _rows_in(self._run.config.directory / TABLE_NAME)
        self._repeat(self._tick, every=EVERY)

    def _tick(self) -> None:
        self._look_at_the_lease()
        if self._run.has_frontier:
            self._exchange.feed(self._standing())

    def _look_at_the_lease(self) -> None:
        is_paused = BY_LEASE in self._run.paused
        if self._exchange.may_begin and is_paused:
            logger.info("The lease of the partition is renewed: the crawl continues")
            self._run.resume(BY_LEASE)
        elif not self._exchange.may_begin and not is_paused:
            logger.warning("The lease of the partition cannot be renewed: nothing is fetched or written")
            self._run.pause(BY_LEASE)

    def _facts(self) -> dict[str, Any]:
        run, exchange = self._run, self._exchange
        return {
            "rows": self._rows_before + run.tally.rows,
            "queued": run.frontier.queued,
            "in_flight": run.frontier.in_flight,
            "urls": len(run.frontier),
            "sent": exchange.sent,
            "received": exchange.received,
            "state": run.state,
        }

    def _tell(self, news: News) -> None:
        """Hand *news* to the event loop; on the thread of the exchange."""
        loop = self._loop
        if loop is None or loop.is_closed() or self._deaf:
            return
        loop.call_soon_threadsafe(self._learn, news)

    def _learn(self, news: News) -> None:
        if self._deaf:
            return
        for batch in news.batches:
            self._crawler.stats.inc_value("amicrawl/sharing/batches")
            self._bring(batch)
        reply = news.reply
        if reply.lease == "lost":
            self._stop_without_writing()
        elif reply.stop:
            self._leave("shutdown")
        elif reply.ended:
            self._leave("finished")
        elif reply.give:
            self._leave(GIVEN_UP)
        elif reply.pause:
            self._run.pause(BY_SHARE)
        else:
            self._run.resume(BY_SHARE)

    async def _refuse(self, batch: OpenedBatch, link: PartitionLink, why: str) -> None:
        """Make *link* a dead letter."""
        where = f"{self._share.keys.links(self._number)} {batch.name}"
        self._crawler.stats.inc_value("amicrawl/sharing/refused")
        await asyncio.to_thread(
            put_dead_letter, self._share.store, where=where, why=why, value=link.seed.url
        )

    def _stop_without_writing(self) -> None:
        # This is why the disk has refused to write since.
        self._run.recorder.fault = LeaseLost(f"{self._exchange.lost}. Nothing more was written.")
        self._run.end("output_failed")
        # Behind that: what is broken off counts as stopped only in a crawl that ends.
        self._run.abort()

    def _closed(self) -> None:
        """Acknowledge and send what can be, and give the last word on the partition."""
        self._stop_timer()
        self._deaf = True
        exchange = self._exchange
        if exchange.lost:
            self._stop_without_writing()
        try:
            if self._run.has_frontier and self._run.recorder.fault is None:
                exchange.finish(self._standing(), _PATIENCE)
        except AmicrawlError as error:
            self._run.recorder.fault = self._run.recorder.fault or error
        stats = self._crawler.stats
        stats.inc_value("amicrawl/sharing/sent", exchange.sent)
        stats.inc_value("amicrawl/sharing/received", exchange.received)
        self._outgoing.close()
        if self._outbox is not None and exchange.is_held:
            self._outbox.close()
        elif self._outbox is not None:
            self._outbox.abandon()


def _rows_in(table: Path) -> int:
    """Return how many rows the index *table* holds; 0 where there is none that can be read."""
    try:
        with opened_index(table) as index:
            return index.rows
    except AmicrawlError:
        return 0


def _what_was_taken(crawler: Crawler) -> tuple[int, int, Share]:
    """Return the partition that this process was started for, its token, and the crawl it is of."""
    name = checked_name(str(getattr(crawler.spider, "share", "")))
    unit, token = os.environ.get(UNIT_VARIABLE, ""), os.environ.get(TOKEN_VARIABLE, "")
    number = unit.removeprefix(unit_of(name, 0)[:-1])
    if not (token.isascii() and token.isdigit() and number.isascii() and number.isdigit()):
        raise UsageError(
            f"A crawl with share={name} is started by a worker: amicrawl share work {name} --data DIR."
        )
    store = store_of_crawl(crawler.settings, os.environ)
    share = Share.open(store, name)
    if int(number) >= share.record.partitions:
        raise UsageError(f"The shared crawl {name!r} has no partition {number}.")
    return int(number), int(token), share


def _seconds(name: str, default: timedelta) -> timedelta:
    text = os.environ.get(name, "")
    try:
        return timedelta(seconds=float(text)) if text else default
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{name} is {text!r}: it is a number of seconds.") from error
