"""Following: from a page that was fetched to the offers of what it leads to.

    capture -> payload, decoded -> links -> selection -> key -> limits -> offers

What is read is bounded: the payload in bytes, the links in number and characters, and both are read in
one pass; large pages are read on a thread. The offers go to the frontier before the page is settled, so
that no page counts as done whose links are not known. After a crash, a page that only the index knows
of is read again from its record.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from amicrawl.capture import REDIRECTS
from amicrawl.crawl.links import (
    AWAY,
    CHAIN,
    GROWTH,
    LONGEST_CHAIN,
    PRIMARY,
    REQUISITE,
    SITEMAP,
    Page,
    StartSites,
    UrlLimits,
)
from amicrawl.discovery import (
    Calendars,
    Kind,
    date_in,
    has_scope,
    is_shell_with,
    links_of,
    make_selection,
    names_links,
    words_of,
)
from amicrawl.frontier import Hop, Offer, Soft404Detector, Source, extended, fingerprint_of
from amicrawl.record import Unkept
from amicrawl.seed import Seed
from amicrawl.urls import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from amicrawl.config import CrawlConfig
    from amicrawl.crawl.partition_member import Outgoing
    from amicrawl.discovery import DatedUrl, Link, Selection
    from amicrawl.frontier import DurableFrontier
    from amicrawl.meguri import LivePartition
    from amicrawl.record import CaptureItem
    from amicrawl.urls import UrlKey

logger = logging.getLogger(__name__)

_LARGE = 256 << 10
"""Bytes of a response from which on it is read on a thread."""
_REMEMBERED = 1 << 16
"""URLs of each kind that are known to have been offered, so as not to work out their keys again."""
_MOST_GROWTH = 4
_URL = attrgetter("url")
_DEEPEST = 8
"""Indexes of sitemaps in a row that are followed. They count as no link, so nothing else would end such
a chain."""


class Following:
    """What one crawl takes of its pages; *widens* is that of `StartSites`."""

    of_pages = True
    deepest_page = 500
    """Links from a start beyond which only a crawler comes: calendars, lists of nothing but "next"."""

    def __init__(
        self,
        selection: Selection,
        *,
        key_of: Callable[[str], UrlKey | Refused],
        starts: Iterable[str],
        widens: bool,
        limits: UrlLimits | None = None,
        depth: str = "inf",
        calendar_pages: int = 100,
    ) -> None:
        self.selection = selection
        self.detector = Soft404Detector()
        """Which payloads are error pages; shared with the frontier."""
        self.unkept = Unkept()
        """What of the pages the crawl could not keep."""
        self.counts: Counter[str] = Counter()
        """What became of the links: `offered`, `known`, and the rules that kept others out."""
        self.key_of = key_of
        """Gives the key of a URL under the crawl's identity, or why it cannot be fetched."""
        self.starts = tuple(starts)
        self.depth = depth
        """`inf`, or `shallow` for the start URLs and their requisites alone."""
        self.sites = StartSites(self.starts, selection, widens=widens, key_of=key_of)
        """What of the start URLs' sites is in scope."""
        self._limits = limits or UrlLimits(key_of=key_of)
        self._calendars = Calendars(calendar_pages)
        self._met: dict[tuple[Kind, bool], set[str]] = {}
        self._patterns_seen = selection.ignores.added
        self.elsewhere: Outgoing | None = None
        """Takes the offers of other partitions; None where those find their links themselves."""
        self._frontier: DurableFrontier
        self._ours: Callable[[int], bool] | None
        self.on_ignored: Callable[[str, str], None] | None = None
        """Called with every link that an ignore expression kept out, and with the expression."""

    def looks_into(self, url: str, content_type: str, status: int) -> bool:
        """Return whether a response with *status* and *content_type* may lead to other URLs."""
        return status in REDIRECTS or (200 <= status <= 300 and names_links(url, content_type))

    def recall(self, partition: LivePartition) -> None:
        """Take over what *partition* knows from an earlier crawl."""
        self.unkept.way_of = lambda url: self._limits.way_of(url, partition)
        self.sites.recall(partition)

    def follow_in(self, frontier: DurableFrontier, *, ours: Callable[[int], bool] | None) -> None:
        """Offer to *frontier* from now on; *ours* says which hosts are its own, None that all are."""
        self._frontier, self._ours = frontier, ours

    async def read(self, item: CaptureItem, offer: Offer) -> list[Offer]:
        """Return what the capture of the row *offer* leads to, to be offered before that is settled.

        What belongs to other partitions is on disk by then: a page that is done has given what it leads
        to. Raises OutputError where that fails.
        """
        page = Page.of(offer)
        if item.capture.received > _LARGE and item.capture.status not in REDIRECTS:
            links = await asyncio.to_thread(self._links, item, page)
        else:
            links = self._links(item, page)
        offers = self._offers(links, page, item)
        return await self.elsewhere.keep(offers) if offers and self.elsewhere is not None else offers

    def hand_over(self, offers: Sequence[Offer]) -> None:
        """Offer what a page leads to, within the limits of the crawl."""
        frontier, ours = self._frontier, self._ours
        kept, others = [], []
        for offer in offers:
            if ours is not None and not ours(offer.key.host):
                others.append(offer)
            # Nearly all links carry nothing of their pages, and are not requisites.
            elif not offer.extra or self._limits.has_room(offer, frontier.partition):
                kept.append(offer)
            else:
                self._leave_out(offer, "requisites")
                # Another page may have room for it.
                self._met.get((Kind.REQUISITE, True), set()).discard(offer.seed.url)
        self.counts["other_shard"] += len(others)
        if others and self.elsewhere is not None:
            self.elsewhere.keep_at_once(others)
        if not self._limits.are_set:
            new = frontier.offer_all(kept)
            self.counts["offered"] += new
            self.counts["known"] += len(kept) - new
            return
        for offer in kept:
            if frontier.partition.find(*offer.key) is not None:
                self.counts["known"] += 1
            elif self._limits.are_reached(frontier, offer.key.host):
                self._leave_out(offer, "limits")
            else:
                self.counts["offered"] += frontier.offer(offer)

    def _leave_out(self, offer: Offer, rule: str) -> None:
        """Count *offer*, for which the limits that *rule* names have no room."""
        self.counts[f"kept_out/{rule}"] += 1
        if REQUISITE in (offer.extra or {}):
            self.unkept.lacks(offer.via, offer.seed.url, rule)

    def read_now(self, item: CaptureItem, offer: Offer) -> list[Offer]:
        """Do the same where no event loop runs yet."""
        page = Page.of(offer)
        return self._offers(self._links(item, page), page, item)

    def offers_of(self, links: list[Link], item: CaptureItem, offer: Offer) -> list[Offer]:
        """Return what *links*, those that a browser shows of the row *offer*, are offered as."""
        self.unkept.page(offer.seed.url, is_made_by_scripts=False)
        self.unkept.needs(offer.seed.url, map(_URL, filter(_is_requisite, links)))
        return self._offers(links, Page.of(offer), item)

    def refusal_of_requisite(self, url: str, offer: Offer) -> str:
        """Return the rule that keeps out *url*, which the page *offer* needs in a browser."""
        page = Page.of(offer)
        selected = self.selection.judge(
            url,
            kind=Kind.REQUISITE,
            hops=page.hops,
            parent_on_site=self._brings_others(page),
            primary=self._primary(page),
            steps=page.depth_in(REQUISITE) + 1,
        )
        if selected.is_taken:
            return ""
        self.counts[f"kept_out/{selected.by}"] += 1
        return f"{selected.by}: {selected.rule}"

    def refusal_of(self, offer: Offer) -> str:
        """Return the pattern that keeps the row *offer*, which waited, out by now; empty for none."""
        ignores = self.selection.ignores
        extra = offer.extra
        if self._calendars.ended and extra and AWAY in extra:
            page = Page.of(offer)
            if self._calendars.has_ended(page.url, page.depth_in(AWAY)):
                return "of a calendar that showed nothing new"
        # Rows were checked when they were found: only patterns that have come since can say anything
        # new.
        if ignores.added == self._patterns_seen:
            return ""
        page = Page.of(offer)
        if page.is_start:
            return ""
        ignored = ignores.match(page.url, primary=self._primary(page))
        return f"ignored by {ignored.expression}" if ignored is not None else ""

    def _links(self, item: CaptureItem, page: Page) -> list[Link]:
        """Return what the capture names; runs on a thread for large ones."""
        capture = item.capture
        if item.leads_on or not (200 <= capture.status <= 300 or capture.status in REDIRECTS):
            return []
        if self._is_error_page(item, page):
            self.counts["error_pages"] += 1
            return []
        # What a script imports knows no page: it is found on a script.
        document = page.via if page.extra.get(REQUISITE) == 1 else ""
        links, payload = links_of(capture, page.url, is_sitemap=page.is_sitemap, document=document)
        if not page.extra.get(REQUISITE):
            made = is_shell_with(links, payload, capture.content_type)
            if made is not None:
                self.unkept.page(page.url, is_made_by_scripts=made)
        self.unkept.needs(page.url, map(_URL, filter(_is_requisite, links)))
        return links

    def _is_error_page(self, item: CaptureItem, page: Page) -> bool:
        """Return whether the host shows this payload under so many URLs that it is none of its pages."""
        if page.is_start or page.extra.get(REQUISITE):
            return False
        fingerprint = fingerprint_of(item.digest)
        return self.detector.observe(page.key.host, fingerprint, path=page.key.path)

    def _offers(self, links: list[Link], page: Page, item: CaptureItem) -> list[Offer]:
        if item.leads_on:
            return self._redirected(item.final_url, page)
        is_last, dated = self._is_last(page), None
        # Nor is a page looked at for its date none of whose links is followed.
        if not (is_last or page.is_sitemap or page.extra.get(REQUISITE)) and self._calendars.most:
            dated = self._dated(links, page, item)
        if not links:
            return []
        of_kind: dict[Kind, list[Link]] = {Kind.REQUISITE: [], Kind.LINK: []}
        for link in links:
            of_kind[link.kind].append(link)
        on_site = self.selection.scope.links_off_site and self._brings_others(page)
        primary = self._primary(page)
        offers: list[Offer] = []
        known = beyond = 0
        # Where a limit bites, a page with its pictures is worth more than one more page.
        for kind, alike in of_kind.items():
            # Most links of a page are those of the page before: what was decided of them lately still
            # holds, however many hops away they are.
            met = self._met.setdefault((kind, on_site or kind is Kind.REQUISITE), set())
            for link in alike:
                if link.url in met:
                    known += 1
                elif is_last and kind is Kind.LINK:
                    # In a crawl of few hops most pages are such, and all their links are judged alike.
                    beyond += 1
                elif taken := self._offer(
                    link, page, met, on_site=on_site, primary=primary, dated=dated
                ):
                    offers.append(taken)
        self.counts["met"] += known
        self.counts["kept_out/scope"] += beyond
        return offers

    def _brings_others(self, page: Page) -> bool:
        """Return whether *page* is on site, where that matters: it brings what is not."""
        if not self.selection.scope.links_off_site:
            return False
        return page.is_start or self.selection.is_on_site(page.url, hops=max(page.hops, 1))

    def _is_last(self, page: Page) -> bool:
        """Return whether every link of *page* is more hops away than the crawl goes."""
        most = self.selection.scope.max_hops
        return most is not None and page.hops >= most and not page.is_sitemap

    def _dated(self, links: list[Link], page: Page, item: CaptureItem) -> DatedUrl | None:
        """Return what date *page* is about, having noted what it shows; None for none."""
        if date_in(page.url) is None:
            return None
        ended = self._calendars.ended
        dated = self._calendars.read(
            page.url,
            page.depth_in(AWAY),
            links=self._shown(links),
            words=lambda: words_of(item.capture),
            at_ms=item.capture.started_ms,
        )
        if self._calendars.ended > ended:
            logger.warning(
                "%s is the last of %d pages by date in a row that show nothing new: what leads further "
                "away from today there is left out (AMICRAWL_CALENDAR_PAGES).",
                ascii(page.url),
                self._calendars.most,
            )
        return dated

    def _shown(self, links: list[Link]) -> Iterator[str]:
        """Yield those of *links* that were not decided of lately; of requisites, without the query."""
        for url, kind, _ in links:
            if url not in self._met.get((kind, True), ()):
                # A counter of visits has another query on each page.
                yield url if kind is Kind.LINK else url.partition("?")[0]

    def _offer(
        self, link: Link, page: Page, met: set[str], *,
        on_site: bool, primary: str, dated: DatedUrl | None,
    ) -> Offer | None:  # fmt: skip
        """Return what *link* of *page* is offered as, *met* from then on; None where it is not taken."""
        url, kind, where = link
        child_is_sitemap = page.is_sitemap and where == "sitemap"
        nested = REQUISITE if kind is Kind.REQUISITE else SITEMAP if child_is_sitemap else ""
        depth = page.depth_in(nested) + 1 if nested else 1
        if nested == SITEMAP and depth > _DEEPEST:
            self.counts["kept_out/chain"] += 1
            return None
        further: dict[str, object] | None = {}
        if dated is not None or "?" in page.url:
            further = self._further(url, page, None if nested else dated)
        if further is None:
            return None
        hops = page.hops if kind is Kind.REQUISITE or child_is_sitemap else page.hops + 1
        selected = self.selection.judge(
            url, kind=kind, hops=hops, parent_on_site=on_site, primary=primary, steps=depth
        )
        if selected.is_taken or (selected.by == "scope" and self.selection.scope.max_hops is None):
            if len(met) >= _REMEMBERED:
                met.clear()
            met.add(url)
        if not selected.is_taken:
            self.counts[f"kept_out/{selected.by}"] += 1
            if selected.by == "ignores" and self.on_ignored is not None:
                self.on_ignored(url, selected.rule)
            if kind is Kind.REQUISITE and self.selection.requisites:
                self.unkept.lacks(page.url, url, selected.by)
            return None
        key = self.key_of(url)
        if isinstance(key, Refused):
            return None
        extra: dict[str, object] = {nested: depth, **further} if nested else further
        hop, source = Hop.LINK, Source.LINK
        if page.is_sitemap:
            hop, source = Hop.SITEMAP, Source.SITEMAP
        if kind is Kind.REQUISITE:
            hop = Hop.REQUISITE
        return self._as_offer(url, key, page, hop=hop, source=source, hops=hops, extra=extra)

    def _further(self, url: str, page: Page, dated: DatedUrl | None) -> dict[str, object] | None:
        """Return what *url*, a link of *page*, is the next of, counted; None where that is to end."""
        further: dict[str, object] = {}
        if _has_grown(page.url, url):
            further[GROWTH] = growth = page.depth_in(GROWTH) + 1
            if growth > _MOST_GROWTH:
                self.counts["kept_out/growth"] += 1
                return None
        if dated is not None and (away := self._calendars.steps(dated, page.depth_in(AWAY), url)):
            further[AWAY] = away
            if self._calendars.has_ended(url, away):
                self.counts["kept_out/calendar"] += 1
                return None
        return further

    def _redirected(self, target: str, page: Page) -> list[Offer]:
        """Return the offer of the *target* of *page*, a redirect, if the crawl takes that."""
        key = self.key_of(target)
        chain = page.depth_in(CHAIN) + 1
        if isinstance(key, Refused) or key == page.key:
            return []
        if chain > LONGEST_CHAIN:
            self.counts["kept_out/chain"] += 1
            return []
        if page.is_start:
            self.sites.redirected((page.url, page.key), (target, key))
        steps = page.depth_in(REQUISITE)
        selected = self.selection.judge(
            target,
            kind=Kind.REQUISITE if steps else Kind.LINK,
            hops=page.hops,
            parent_on_site=self._brings_others(page),
            primary=self._primary(page),
            steps=steps,
        )
        if not selected.is_taken:
            self.counts[f"kept_out/{selected.by}"] += 1
            return []
        extra = {**page.extra, CHAIN: chain}
        offer = self._as_offer(
            target, key, page, hop=Hop.REDIRECT, source=Source.REDIRECT, hops=page.hops, extra=extra
        )
        return [offer]

    def _as_offer(
        self,
        url: str,
        key: UrlKey,
        page: Page,
        *,
        hop: Hop,
        source: Source,
        hops: int,
        extra: dict[str, object],
    ) -> Offer:
        if len(self.starts) > 1 and self.selection.ignores.has_placeholders:
            extra[PRIMARY] = self._primary(page) or page.url
        # A page is only whole with its requisites: they come before the next pages of their host.
        priority = 1 if extra.get(REQUISITE) else 0
        route = extended(page.route, hop)
        return Offer(Seed(url), key, source, priority, hops, extra or None, page.url, route)

    def _primary(self, page: Page) -> str:
        if len(self.starts) == 1:
            return self.starts[0]
        known = page.extra.get(PRIMARY)
        return known if isinstance(known, str) else page.url if page.is_start else ""


def _is_requisite(link: Link) -> bool:
    return link.kind is Kind.REQUISITE


def _has_grown(page: str, url: str) -> bool:
    """Return whether *url* is that of the *page* that names it, and further arguments in its query.

    A list whose every page offers one more argument has as many pages as its arguments have subsets.
    """
    return "?" in page and len(url) > len(page) and url.startswith(page) and url[len(page)] in "&;"


def make_following(
    config: CrawlConfig, spider: Any, *, key_of: Callable[[str], UrlKey | Refused]
) -> Following:
    """Return what the crawl of *spider*, which has `starts` and a `depth`, takes of its pages.

    Raises UsageError as `make_selection` does.
    """
    starts = [seed.url for seed in spider.starts]
    return Following(
        make_selection(config, starts, depth=spider.depth),
        key_of=key_of,
        starts=starts,
        depth=spider.depth,
        widens=not has_scope(config),
        limits=UrlLimits(
            of_crawl=config.max_urls,
            of_host=config.max_host_urls,
            of_page=config.max_page_requisites,
            key_of=key_of,
        ),
        calendar_pages=config.calendar_pages,
    )
