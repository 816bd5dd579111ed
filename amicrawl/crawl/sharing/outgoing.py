"""Links for other partitions: into the outbox, on disk, before the page that gave them is settled."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from amicrawl.config import Durability
from amicrawl.frontier import shard_of
from amicrawl.jobs.sharing.letter import Link, encoded_link

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from amicrawl.crawl.run import Run
    from amicrawl.frontier import Offer
    from amicrawl.jobs.sharing.outbox import Outbox
    from amicrawl.urls import UrlKey

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
        """Have the frontier forced to disk, as far as the crawl asks for it, on the same thread."""
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
            number = shard_of(offer.key.host, spec.shards)
            if number == spec.shard or offer.key in self._met:
                continue
            if len(self._met) >= _SENT_LATELY:
                self._met.clear()
            self._met.add(offer.key)
            by_partition.setdefault(number, []).append(encoded_link(Link.of(offer)))
        for number, links in by_partition.items():
            self._outbox().append(number, links)
        return bool(by_partition)
