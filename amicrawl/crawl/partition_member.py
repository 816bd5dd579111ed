"""The crawl of one partition, in touch with the others by a carrier, which is a subclass.

Links to hosts of other partitions go into the outbox before the page is settled; batches that come are
offered to the frontier as if a page of this crawl had named their links. The crawl does not end when it
has nothing to do: it ends when its carrier says so.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import DontCloseSpider

from amicrawl.crawl.extensions import CrawlExtension
from amicrawl.crawl.partition_links import Outgoing, take_links
from amicrawl.errors import AmicrawlError
from amicrawl.partition import Standing

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run
    from amicrawl.partition import OpenedBatch, Outbox, PartitionLink

_ROOM = 250_000
"""Rows that may wait in the frontier before no more batches are taken."""


class PartitionMember(CrawlExtension, ABC):
    """Keeps the crawl of one partition in touch with the others."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        super().__init__(crawler, run)
        self._outbox: Outbox | None = None
        self._outgoing = Outgoing(run, lambda: self._box)
        self._kept: list[Any] = []
        """Names of batches that were offered and are not known to be in the journal."""
        self._taking: set[asyncio.Task[None]] = set()
        self._is_leaving = False
        crawler.signals.connect(self._idle, signals.spider_idle)

    @abstractmethod
    def _opened_outbox(self) -> Outbox:
        """Return the outbox, opened."""

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """Return the figures that are sent with how the partition stands."""

    @abstractmethod
    async def _refuse(self, batch: OpenedBatch, link: PartitionLink, why: str) -> None:
        """Note that *link* of *batch* is not offered, and *why*."""

    @property
    def _box(self) -> Outbox:
        """The outbox, opened behind the output, which one process has at a time."""
        if self._outbox is None:
            assert self._run.output is not None
            self._outbox = self._opened_outbox()
        return self._outbox

    def _standing(self) -> Standing:
        quiet = self._is_quiet()
        return Standing(
            idle=quiet and self._run.tally.seeds_ended and not self._waits(),
            has_room=self._has_room(),
            quiet=quiet,
            kept=self._written_down(),
            facts=self._facts(),
        )

    def _is_quiet(self) -> bool:
        """Tell whether nothing is being done here."""
        engine, run = self._crawler.engine, self._run
        if engine is None or self._taking or self._kept or not run.has_frontier:
            return False
        return not run.frontier.in_flight and not engine.downloader.active

    def _has_room(self) -> bool:
        """Tell whether more batches would be taken at once."""
        if self._is_leaving or self._taking:
            return False
        return not self._run.has_frontier or self._run.frontier.queued < _ROOM

    def _waits(self) -> bool:
        """Tell whether anything waits in the frontier, or in a queue of Scrapy's."""
        scheduler = self._crawler.engine.scheduler
        return self._run.frontier.has_pending() or bool(scheduler and scheduler.has_pending_requests())

    def _written_down(self) -> tuple[Any, ...]:
        """Return the batches whose links came into the journal since: only those can be acknowledged.

        While the directory may not be written to, that is none of them: a journal that fails ends the
        crawl.
        """
        if not self._kept or not self._run.has_frontier or not self._run.may_write():
            return ()
        try:
            self._run.frontier.flush()
        except AmicrawlError as fault:
            self._run.fail(fault)
            return ()
        kept, self._kept = tuple(self._kept), []
        return kept

    def _bring(self, batch: OpenedBatch) -> None:
        """Have *batch* taken; returns at once."""
        task = asyncio.ensure_future(self._take(batch))
        self._taking.add(task)
        task.add_done_callback(self._taken)

    def _taken(self, task: asyncio.Task[None]) -> None:
        """Have the crawl end where a batch could not be taken: who has sent it would wait for ever."""
        self._taking.discard(task)
        self._run.fail_if_raised(task, "Taking links of another partition")

    async def _take(self, batch: OpenedBatch) -> None:
        """Offer the links of *batch*, and count it as kept, whatever cannot be offered."""
        for link, why in await take_links(self._run, batch.links):
            await self._refuse(batch, link, why)
        self._kept.append(batch.name)
        self._run.wake()

    def _leave(self, reason: str) -> None:
        if not self._is_leaving:
            self._is_leaving = True
            self._run.end(reason)

    def _idle(self) -> None:
        """Keep the crawl open: there may be batches on their way."""
        if not self._is_leaving:
            raise DontCloseSpider
