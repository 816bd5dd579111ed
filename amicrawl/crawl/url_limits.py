"""Limits of URLs: how many the crawl, a host and a page may bring, the latter of requisites.

Those of a page include those of its requisites: a style sheet that imports a hundred others, each of
which imports a hundred, would have no end that a number of steps could set. The rows of the frontier say
what a requisite was found on, so that a count needs no more than the pages of late, and goes on where a
crawl was killed, from nought for its pages.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from amicrawl.crawl.links import REQUISITE
from amicrawl.frontier import Revisits, Source, offer_of
from amicrawl.urls import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.frontier import DurableFrontier, Offer
    from amicrawl.meguri import LivePartition
    from amicrawl.urls import UrlKey

_PAGES = 10_000
"""Pages whose requisites are counted; those that began to be counted first are forgotten first."""
_LONGEST_WAY = 100
"""Rows between a requisite and its page, redirects among them."""


class UrlLimits:
    """The limits *of_crawl* and *of_host*, 0 for any number of URLs, and *of_page*."""

    def __init__(
        self,
        *,
        of_crawl: int = 0,
        of_host: int = 0,
        of_page: int = 5000,
        key_of: Callable[[str], UrlKey | Refused],
    ) -> None:
        self.are_set = bool(of_crawl or of_host)
        """Whether the crawl or a host has one."""
        self._of_crawl = of_crawl
        self._of_host = of_host
        self._of_page = of_page
        self._key_of = key_of
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._revisits = Revisits()

    def are_reached(self, frontier: DurableFrontier, host: int) -> bool:
        """Return whether crawl or *host* have as many URLs in *frontier* as they may."""
        return bool(
            (self._of_crawl and len(frontier) >= self._of_crawl)
            or (self._of_host and frontier.hosts.urls(host) >= self._of_host)
        )

    def has_room(self, offer: Offer, partition: LivePartition) -> bool:
        """Return whether *offer* is known, or no requisite, or one for which its page has room.

        In the latter case it is counted.
        """
        extra = offer.extra
        return (
            not extra
            or REQUISITE not in extra
            or offer.source is Source.REDIRECT
            or partition.find(*offer.key) is not None
            or self._take(offer, partition)
        )

    def _take(self, offer: Offer, partition: LivePartition) -> bool:
        # Nearly all are named by their page itself.
        is_first = (offer.extra or {}).get(REQUISITE) == 1
        page = offer.via if is_first else self.way_of(offer.via, partition)[-1]
        count = self._counts.get(page, 0)
        if count >= self._of_page:
            return False
        if not count and len(self._counts) >= _PAGES:
            self._counts.popitem(last=False)
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
