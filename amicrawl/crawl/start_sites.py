"""The sites of start URLs: which of what they redirect to is in scope, and which sitemaps are theirs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from amicrawl.crawl.links import SITEMAP
from amicrawl.frontier import Hop, Offer, Source
from amicrawl.seed import Seed
from amicrawl.urls import Refused, text_of, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amicrawl.discovery import Selection
    from amicrawl.meguri import LivePartition
    from amicrawl.urls import UrlKey

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
