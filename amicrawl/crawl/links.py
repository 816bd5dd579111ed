"""What pages lead to: targets of redirects in a crawl of a list, and of start URLs; sitemaps of sites.

What a URL carries of the pages that led to it is in `Offer.extra` and `Request.meta`, by the names here.

How many URLs the crawl, a host and a page may bring is limited. Those of a page include those of its
requisites: a style sheet that imports a hundred others, each of which imports a hundred, would have no
end that a number of steps could set. The rows of the frontier say what a requisite was found on, so that
a count needs no more than the pages of late, and goes on where a crawl was killed, from nought for its
pages.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from amicrawl.frontier import Hop, Offer, Revisits, Source, extended, offer_of
from amicrawl.seed import Seed
from amicrawl.urls import Refused, text_of, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from amicrawl.crawl.partition_member import Outgoing
    from amicrawl.discovery import Selection
    from amicrawl.frontier import DurableFrontier
    from amicrawl.meguri import LivePartition
    from amicrawl.record import CaptureItem
    from amicrawl.urls import UrlKey

META_JSON = "amicrawl_meta_json"
"""What goes into the `meta_json` column of a request's row; rows of the frontier have a place for it."""
MAX_BODY = "amicrawl_max_body"
"""Bytes of its response's body that are kept, where fewer than the limit are of use."""
REQUISITE = "amicrawl_requisite"
"""That a page needs this to be shown; as the which in a row."""
SITEMAP = "amicrawl_sitemap"
"""That this is read as a sitemap, whatever its type says; as the which in a row."""
PRIMARY = "amicrawl_primary"
"""The start URL that this comes from, where there is more than one and a pattern needs it."""
GROWTH = "amicrawl_growth"
"""How often in a row the query has grown by further arguments from page to page."""
AWAY = "amicrawl_away"
"""How many links between pages by date led here, each further away from today."""
CHAIN = "redirect_times"
"""How many redirects in a row have led here; the word is Scrapy's."""
CARRIED_NUMBERS = frozenset({REQUISITE, SITEMAP, GROWTH, AWAY, CHAIN})
"""What else of `Offer.extra` a page gives to what it leads to: numbers."""


PROVENANCE = "amicrawl_provenance"
"""How the URL of a request without a row was found: a `Provenance`."""
_OF_STARTS = frozenset({Source.SEED, Source.REDIRECT})


def is_of_a_page(offer: Offer) -> bool:
    """Tell whether the row *offer* is a page, and not a sitemap or what a page needs to be shown."""
    return offer.extra is None or not (REQUISITE in offer.extra or SITEMAP in offer.extra)


class Page(NamedTuple):
    """A row that was fetched: where its links come from."""

    url: str
    key: UrlKey
    hops: int
    source: Source
    extra: dict[str, object]
    via: str
    route: str
    is_start: bool
    """Whether it is a start URL, or what one redirects to."""
    is_sitemap: bool
    """Whether it is read as a sitemap."""

    @classmethod
    def of(cls, offer: Offer) -> Page:
        """Return the page that was offered as *offer*."""
        seed, key, source, _, hops, given, via, route = offer
        extra = dict(given) if given else {}
        is_start = hops == 0 and source in _OF_STARTS and not (REQUISITE in extra or SITEMAP in extra)
        is_sitemap = bool(extra.get(SITEMAP))
        return cls(seed.url, key, hops, source, extra, via, route, is_start, is_sitemap)

    def depth_in(self, nested: str) -> int:
        """Return how many in a row, this one included, are *nested*, one of `CARRIED_NUMBERS`."""
        depth = self.extra.get(nested, 0)
        return depth if isinstance(depth, int) else 0


@dataclass(frozen=True, eq=False)
class RedirectLinks:
    """The targets of redirects, each requested as the server wrote it; nothing else of a page."""

    of_pages: ClassVar = False
    frontier: DurableFrontier
    key_of: Callable[[str], UrlKey | Refused]
    ours: Callable[[int], bool]
    count: Callable[[str], None]
    """Called with the name of a statistic."""
    most: int
    """Redirects in a row that are followed."""
    priority: int
    """How far a target is ahead of what led to it."""
    elsewhere: Outgoing | None

    async def read(self, item: CaptureItem, offer: Offer) -> list[Offer]:
        """Return the offer of the target of the row *offer*, a redirect, if that can be fetched."""
        key = self.key_of(item.final_url)
        if isinstance(key, Refused):
            # `javascript:`, `file:`, no host: the row that names such a target is all there is to say.
            return []
        hops = (offer.extra or {}).get(CHAIN, 0)
        chain = hops + 1 if isinstance(hops, int) else 1
        if chain > self.most:
            self.count("amicrawl/redirects/chain_too_long")
            return []
        # What the producer knows of a seed belongs to every hop that it leads to; its digest does not.
        seed = Seed(item.final_url, meta_json=offer.seed.meta_json)
        target = Offer(
            seed=seed,
            key=key,
            source=Source.REDIRECT,
            priority=int(offer.priority) + self.priority,
            hops=chain,
            extra={CHAIN: chain},
            via=offer.seed.url,
            route=extended(offer.route, Hop.REDIRECT),
        )
        elsewhere = self.elsewhere
        return [target] if elsewhere is None else await elsewhere.keep([target])

    def hand_over(self, offers: Sequence[Offer]) -> None:
        """Offer the target."""
        for offer in offers:
            if not self.ours(offer.key.host):
                self.count("amicrawl/redirects/other_shard")
            elif self.frontier.offer(offer):
                self.count("amicrawl/frontier/enqueued")
            else:
                self.count("amicrawl/frontier/known")


logger = logging.getLogger(__name__)

LONGEST_CHAIN = 20
"""Redirects in a row that are followed."""


class StartSites:
    """The sites of *starts* in *selection*. *widens*: a start URL that redirects brings its new site."""

    def __init__(
        self,
        starts: Iterable[str],
        selection: Selection,
        *,
        widens: bool,
        key_of: Callable[[str], UrlKey | Refused],
    ) -> None:
        self._starts = tuple(starts)
        self._selection = selection
        self._widens = widens
        self._key_of = key_of

    def recall(self, partition: LivePartition) -> None:
        """Note where the start URLs redirect to, as far as *partition* knows from an earlier crawl."""
        for start in self._starts if self._widens else ():
            url = start
            for _ in range(LONGEST_CHAIN):
                key = self._key_of(url)
                number = None if isinstance(key, Refused) else partition.find(*key)
                reference = 0 if number is None else partition.get(number).redirect_ref
                if not reference or isinstance(key, Refused):
                    break
                target = text_of(partition.texts_at(reference)[0])
                target_key = self._key_of(target)
                if isinstance(target_key, Refused) or target_key.host != key.host:
                    break
                self._selection.scope.widen(target)
                url = target

    def redirected(self, start: tuple[str, UrlKey], target: tuple[str, UrlKey]) -> None:
        """Put the site of *target* in scope, which *start* redirects to, if it is the same domain's.

        Both are URLs and their keys. Another's is not: a start URL that has moved behind a log-in
        elsewhere would bring all of that.
        """
        if not self._widens:
            return
        if target[1].host == start[1].host:
            self._selection.scope.widen(target[0])
        else:
            logger.warning(
                "%s redirects to %s, on another domain: that page is archived, but nothing it links to. "
                "Start there, or name the domain with AMICRAWL_DOMAINS, to have it crawled.",
                ascii(start[0]),
                ascii(target[0]),
            )

    def sitemaps(self, urls: Iterable[str], *, via: str) -> Iterator[Offer]:
        """Yield offers of the sitemaps *urls* that robots.txt, *via*, names for hosts of this crawl."""
        starts = {key.host for key in map(self._key_of, self._starts) if not isinstance(key, Refused)}
        for url in map(without_userinfo, urls):
            key = self._key_of(url)
            if isinstance(key, Refused):
                continue
            if key.host in starts or self._selection.is_on_site(url, hops=1):
                extra = {SITEMAP: True}
                yield Offer(Seed(url), key, Source.SITEMAP, 1, 0, extra, via, Hop.SITEMAP.value)


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
