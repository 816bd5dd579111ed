"""The crawl of one partition, in touch with the others by a carrier, which is a subclass.

Links to hosts of other partitions go into the outbox before the page is settled; batches that come are
offered to the frontier as if a page of this crawl had named their links. The crawl does not end when it
has nothing to do: it ends when its carrier says so.

A batch comes out of Redis, which anything may have written to. The key of a URL is worked out here, its
host must be one of this partition, and of what else a link says only that passes which a page could have
said: `extra` ends up in the `meta` of a request, where a proxy or a time limit would be followed.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import DontCloseSpider

from amicrawl.config import Durability
from amicrawl.crawl.extensions import CrawlExtension
from amicrawl.crawl.feeding import offer_seed
from amicrawl.crawl.links import CARRIED_NUMBERS, PRIMARY
from amicrawl.errors import AmicrawlError
from amicrawl.frontier import Offer, Source
from amicrawl.partition import LONGEST_URL, PartitionLink, Standing, encoded_link
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run
    from amicrawl.partition import OpenedBatch, Outbox
    from amicrawl.urls import UrlKey

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


logger = logging.getLogger(__name__)

_SENT_LATELY = 200_000
"""Links that are known to be in the outbox, so as not to send what every page names again and again."""


class Outgoing:
    """Puts what belongs to other partitions than that of *run* into an outbox."""

    def __init__(self, run: Run, outbox: Callable[[], Outbox]) -> None:
        """*outbox* returns the outbox; it is not called before the output of the crawl is open."""
        self._run = run
        self._outbox = outbox
        self._forcing = ThreadPoolExecutor(1, "amicrawl-outbox")
        self._met: set[UrlKey] = set()
        run.share_with(self)

    async def keep(self, offers: list[Offer]) -> list[Offer]:
        """Return those of *offers* that are ours, when the others are in the outbox, on disk.

        Raises OutputError where that fails.
        """
        ours = [offer for offer in offers if self._run.is_ours(offer.key.host)]
        if len(ours) < len(offers) and self._append(offers):
            is_forced = self._run.config.durability is not Durability.NONE
            box = self._outbox()
            keep = box.sync if is_forced else box.flush
            await asyncio.get_running_loop().run_in_executor(self._forcing, keep)
        return ours

    def keep_at_once(self, offers: list[Offer]) -> None:
        """Do the same where no event loop can be waited for."""
        if self._append(offers):
            self._outbox().sync()

    def force(self) -> Future[None]:
        """Have the frontier forced to disk, as far as the crawl requests it, on the same thread."""
        run = self._run
        is_forced = run.has_frontier and run.config.durability is not Durability.NONE
        return self._forcing.submit(run.frontier.sync if is_forced else lambda: None)

    def close(self) -> None:
        """Wait for what is being forced to disk."""
        self._forcing.shutdown(wait=True)

    def _append(self, offers: list[Offer]) -> bool:
        """Put what belongs to others into the outbox; tell whether there was anything new."""
        spec, by_partition = self._run.spec, dict[int, list[str]]()
        for offer in offers:
            number = spec.shard_of(offer.key.host)
            if number == spec.shard or offer.key in self._met:
                continue
            if len(self._met) >= _SENT_LATELY:
                self._met.clear()
            self._met.add(offer.key)
            if len(offer.seed.url) > LONGEST_URL:
                logger.warning(
                    "A link to a host of another partition is left out: its URL has %d characters",
                    len(offer.seed.url),
                )
                continue
            by_partition.setdefault(number, []).append(encoded_link(PartitionLink.of(offer)))
        for number, links in by_partition.items():
            self._outbox().append(number, links)
        return bool(by_partition)


_GREATEST = 1000


async def take_links(run: Run, links: Iterable[PartitionLink]) -> list[tuple[PartitionLink, str]]:
    """Offer *links* to the frontier of *run*, and return those that cannot be, each with the reason."""
    frontier, offers, refused = run.frontier, [], []
    for link in links:
        if link.source is Source.SEED and not _is_elsewhere(run, link):
            await offer_seed(run, link.seed)
            continue
        offer = offer_of(link, key_of=run.key_of, ours=run.is_ours)
        if isinstance(offer, str):
            refused.append((link, offer))
        else:
            offers.append(offer)
    if run.following is not None:
        run.following.hand_over(offers)
    else:
        frontier.offer_all(offers)
    return refused


def _is_elsewhere(run: Run, link: PartitionLink) -> bool:
    key = run.key_of(link.seed.url)
    return not isinstance(key, Refused) and not run.is_ours(key.host)


def offer_of(
    link: PartitionLink, *, key_of: Callable[[str], UrlKey | Refused], ours: Callable[[int], bool]
) -> Offer | str:
    """Return the offer of *link*, or a sentence that says why there is none."""
    key = key_of(link.seed.url)
    if isinstance(key, Refused):
        return f"it cannot be fetched: {key.reason}"
    if not ours(key.host):
        return "its host belongs to another partition"
    extra = {}
    for name, value in (link.extra or {}).items():
        if not _is_carried(name, value):
            return f"a page says nothing of {name[:50]!r} with that value"
        extra[name] = value
    offer = Offer(link.seed, key, link.source, link.priority, link.hops, extra or None)
    # It ends up in the index and in a record, never in a request.
    is_sound = not link.via or not isinstance(fetchable(link.via), Refused)
    return offer._replace(via=link.via, route=link.route) if is_sound else offer


def _is_carried(name: str, value: object) -> bool:
    if name == PRIMARY:
        return isinstance(value, str) and not isinstance(fetchable(value), Refused)
    return name in CARRIED_NUMBERS and isinstance(value, int) and 0 <= value <= _GREATEST
