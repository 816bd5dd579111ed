"""Requisites by page: how many a page has brought, those of its requisites included.

A style sheet that imports a hundred others, each of which imports a hundred, would have no end that a
number of steps could set. The rows of the frontier say what a requisite was found on, so that a count
needs no more than the pages of late, and goes on where a crawl was killed, from nought for its pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.crawl.links import REQUISITE
from amicrawl.frontier import Revisits, offer_of
from amicrawl.urls import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.frontier import Offer
    from amicrawl.meguri import LivePartition
    from amicrawl.urls import UrlKey

_PAGES = 10_000
"""Pages whose requisites are counted; those that began to be counted first are forgotten first."""
_LONGEST_WAY = 100
"""Rows between a requisite and its page, redirects among them."""


class PageRequisites:
    """The count; a page brings *most* at most."""

    def __init__(self, most: int, *, key_of: Callable[[str], UrlKey | Refused]) -> None:
        self._most = most
        self._key_of = key_of
        self._counts: dict[str, int] = {}
        self._revisits = Revisits()

    def take(self, offer: Offer, partition: LivePartition) -> bool:
        """Count *offer*, a requisite that is new to *partition*; False where its page has enough."""
        # Nearly all are named by their page itself.
        is_first = (offer.extra or {}).get(REQUISITE) == 1
        page = offer.via if is_first else self.way_of(offer.via, partition)[-1]
        count = self._counts.get(page, 0)
        if count >= self._most:
            return False
        if not count and len(self._counts) >= _PAGES:
            del self._counts[next(iter(self._counts))]
        self._counts[page] = count + 1
        return True

    def way_of(self, via: str, partition: LivePartition) -> list[str]:
        """Return the way from *via* to the page that needs it, both included, as far as it is known.

        That is *via* alone unless it is a requisite.
        """
        way = [via]
        while len(way) <= _LONGEST_WAY:
            key = self._key_of(way[-1])
            number = None if isinstance(key, Refused) else partition.find(*key)
            if number is None:
                break
            before = offer_of(partition, partition.get(number), self._revisits)
            if not before.via or REQUISITE not in (before.extra or {}):
                break
            way.append(before.via)
        return way
