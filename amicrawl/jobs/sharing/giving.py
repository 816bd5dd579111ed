"""Giving seeds: from a seed list into the inboxes of a shared crawl, no faster than they are emptied.

Seeds are gathered by partition and sent in letters. An inbox that is full is waited for; the others get
theirs meanwhile, as far as memory for what waits goes. A list may have any number of lines.
"""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING

from amicrawl.errors import UsageError
from amicrawl.frontier import Source, shard_of
from amicrawl.jobs.sharing.letter import MOST_CHARACTERS, MOST_LINKS, Link, encoded_link, letter_of
from amicrawl.urls import Refused, octets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amicrawl.jobs.sharing.share import Share
    from amicrawl.seed import Seed
    from amicrawl.urls import UrlKey

_HELD_BACK = 20_000
"""Seeds in memory for full inboxes beyond which no more are read."""
_AT_ONCE = 16
_PAUSE = 0.2


class SeedGiver:
    """Gives seeds to the crawl *share*, for which *token* says that its seeds are still being given."""

    def __init__(
        self,
        share: Share,
        token: str,
        *,
        key_of: Callable[[str], UrlKey | Refused],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._share = share
        self._token = token
        self._key_of = key_of
        self._sleep = sleep
        self._waiting: dict[int, list[str]] = {}
        self._held = 0
        self.given = 0
        """Seeds that lie in inboxes."""

    def give(self, seeds: Iterable[Seed]) -> None:
        """Send all of *seeds*. Raises UsageError where another process gives seeds to this crawl now."""
        for seed in seeds:
            number = self.partition_of(seed.url)
            waiting = self._waiting.setdefault(number, [])
            waiting.append(encoded_link(Link(seed, Source.SEED)))
            self._held += 1
            if len(waiting) % MOST_LINKS == 0 or self._held >= _HELD_BACK:
                self._send(all_of_it=False)
                while self._held >= _HELD_BACK:
                    self._sleep(_PAUSE)
                    self._send(all_of_it=True)
        while self._held:
            if not self._send(all_of_it=True):
                self._sleep(_PAUSE)

    def partition_of(self, url: str) -> int:
        """Return the partition of *url*; one that cannot be fetched gets its row in any."""
        key = self._key_of(url)
        partitions = self._share.record.partitions
        if isinstance(key, Refused):
            return zlib.crc32(octets(url)) % partitions
        return shard_of(key.host, partitions)

    def _send(self, *, all_of_it: bool) -> bool:
        """Send what makes whole letters, or *all_of_it*; tell whether an inbox took something."""
        letters: list[tuple[int, str, int]] = []
        for number, links in self._waiting.items():
            count = _fitting(links)
            if count and (all_of_it or len(links) >= MOST_LINKS):
                letters.append((number, letter_of(links[:count]), count))
        moved = False
        for start in range(0, len(letters), _AT_ONCE):
            some = letters[start : start + _AT_ONCE]
            answers = self._share.send(-1, self._token, [(number, letter) for number, letter, _ in some])
            if answers is None:
                raise UsageError(
                    f"Another process gives seeds to the shared crawl {self._share.record.name!r} now, "
                    "or it was removed. See `amicrawl share status`."
                )
            for (number, _, count), answer in zip(some, answers, strict=True):
                if answer == "taken":
                    del self._waiting[number][:count]
                    self._held -= count
                    self.given += count
                    moved = True
        return moved


def _fitting(links: list[str]) -> int:
    """Return how many of the first *links* make one letter."""
    size = 0
    for count, link in enumerate(links[:MOST_LINKS]):
        size += len(link)
        if size > MOST_CHARACTERS and count:
            return count
    return min(len(links), MOST_LINKS)
