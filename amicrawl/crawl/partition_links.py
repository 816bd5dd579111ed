"""Links between partitions: those for others go into the outbox, those from others become offers.

What leaves is on disk before the page that gave it is settled.

A batch comes out of Redis, which anything may have written to. The key of a URL is worked out here, its
host must be one of this partition, and of what else a link says only that passes which a page could have
said: `extra` ends up in the `meta` of a request, where a proxy or a time limit would be followed.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from amicrawl.config import Durability
from amicrawl.crawl.feeding import offer_seed
from amicrawl.crawl.links import CARRIED_NUMBERS, PRIMARY
from amicrawl.frontier import Offer, Source
from amicrawl.partition import LONGEST_URL, PartitionLink, encoded_link
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from amicrawl.crawl.run import Run
    from amicrawl.partition import Outbox
    from amicrawl.urls import UrlKey

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
