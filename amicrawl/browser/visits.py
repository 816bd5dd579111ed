"""Visits of pages in a browser: the seam between a crawl and Chromium.

A visit's exchange goes on after the document has come (`Visit.show`): if that is a page, it is
opened in a browser, and all that its scripts request goes over the wire of the crawl (`exchanges`).
The document itself is fetched as ever, with the fields that Chromium would send, so that failures,
redirects, retries and pace are those of any crawl. Its record is the last of the page's: a crawl that is
killed before it opens the page again.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.settings import SETTINGS_PRIORITIES

from amicrawl.browser.chromium import find_chromium
from amicrawl.browser.fields import OwnFields
from amicrawl.browser.records import Excluded, Rendered, resources_of
from amicrawl.capture import REDIRECTS, Capture, Failure
from amicrawl.clock import unix_ms_now
from amicrawl.config import Rendering
from amicrawl.crawl import (
    CrawlExtension,
    Visit,
    default_headers,
    is_of_a_page,
)
from amicrawl.discovery import Kind, Link, is_shell
from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from amicrawl.browser.page import PageLife
    from amicrawl.config import CrawlConfig
    from amicrawl.crawl import Links, Run, Ticket
    from amicrawl.fetch import WireRequest
    from amicrawl.frontier import Offer
    from amicrawl.record import CaptureItem

_PAGE_TYPES = (b"text/html", b"application/xhtml+xml")
_MOST_CRASHES, _MOST_DEATHS = 2, 4
"""How often a page is opened whose process dies; and one whose browser does, for whatever reason."""
_MOST_STOPS = 4
"""How often a page is opened again because the crawl stood still while it was open."""
_LARGEST_BEHAVIOUR = 1 << 20
_WHOLE = frozenset({"quiet", "restless"})
"""How a page ends that was shown as a whole."""


@dataclass(kw_only=True)
class PageCapture(Capture):
    """The capture of a document that was shown in a browser."""

    rendered: Rendered
    used: Mapping[str, int]
    """The status of each URL that the page requested."""


@dataclass(frozen=True, eq=False)
class ShownLinks:
    """The links of pages: as the browser has shown them, where it did."""

    links: Links
    run: Run

    @property
    def of_pages(self) -> bool:
        """Whether pages are read at all."""
        return self.links.of_pages

    async def read(self, item: CaptureItem, offer: Offer) -> list[Offer]:
        """Return what the capture of the row *offer* leads to, as any crawl does."""
        capture, following = item.capture, self.run.following
        shown = capture.rendered if isinstance(capture, PageCapture) else None
        if shown is None or shown.links is None or following is None:
            return await self.links.read(item, offer)
        found = [*shown.links, *((url, "script") for url in shown.went_to)]
        links = [Link(url.partition("#")[0], Kind.LINK, where) for url, where in found]
        offers = following.offers_of(
            [link for link in links if link.url.startswith(("http:", "https:"))], item, offer
        )
        elsewhere = self.run.elsewhere
        return offers if elsewhere is None or not offers else await elsewhere.keep(offers)

    def hand_over(self, offers: Sequence[Offer]) -> None:
        """Offer what a page leads to."""
        self.links.hand_over(offers)


class Browsing(CrawlExtension):
    """The browser of a crawl: opens the pages among its rows."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        """Find the browser: UsageError where there is none, InputError without the operator's file."""
        super().__init__(crawler, run)
        config = run.config
        executable = find_chromium(config)
        # What these import may be missing, and that is said by then.
        from amicrawl.browser.archived_responses import (  # noqa: PLC0415
            ArchivedResponses,
            EarlierResponses,
        )
        from amicrawl.browser.exchanges import Crawl  # noqa: PLC0415
        from amicrawl.browser.pool import BrowserPool  # noqa: PLC0415

        self._pool = BrowserPool(config, executable, own=_own_fields(crawler.settings, config))
        self._own = _own_behaviour(config.browser_behaviours)
        earlier = EarlierResponses(self._directories_of_crawl, since=self._begins_anew())
        self._responses = ArchivedResponses(clock=time.monotonic, earlier=earlier.find)
        self._places = asyncio.Semaphore(config.browser_pages)
        self._usual: Visit | None = None
        """What visits rows that are not pages, with the rules of the crawl."""
        self._note = crawler.stats.inc_value
        self._crawl = Crawl(run, self._responses, self._excludes, self._note, self._pool.as_sent)
        run.visits_by = self._visit

    def _begins_anew(self) -> int:
        """Return the Unix milliseconds before which nothing counts: a recrawl requests again."""
        return unix_ms_now() if self._run.spec.continues else 0

    def _visit(self, visit: Visit) -> Visit:
        self._usual = visit
        links = None if visit.links is None else ShownLinks(visit.links, self._run)
        return replace(visit, keep=self._keep, links=links, show=self._show)

    async def _closed(self) -> None:
        await self._pool.close()

    async def _show(
        self, ticket: Ticket, request: WireRequest, fetch: Callable[[WireRequest], Awaitable[Capture]]
    ) -> Capture:
        """Return what *fetch* brings for *request*; opened in a browser, if it is a page."""
        assert ticket.dispatch is not None
        offer = ticket.dispatch.offer
        if not is_of_a_page(offer):
            return await fetch(request)
        if self._run.config.browser is Rendering.AUTO:
            capture = await fetch(request)
            if not (_is_page(capture) and is_shell(capture)):
                return capture
            try:
                async with self._places:
                    self._run.check_begins()
                    return await self._shown(offer, capture)
            except BaseException:
                capture.body.close()
                raise
        async with self._places:
            self._run.check_begins()
            await self._pool.ready()
            capture = await fetch(self._as_chromium(request))
            return await self._opened_page(offer, capture) if _is_page(capture) else capture

    def _as_chromium(self, request: WireRequest) -> WireRequest:
        """Return *request* with the fields that Chromium opens a page with, and its own others."""
        scheme = (request.wire_url or request.url).partition(":")[0].lower()
        usual = self._pool.fields[scheme]
        names = {name.lower() for name, _ in usual}
        return request._replace(
            fields=[*usual, *(field for field in request.fields if field[0].lower() not in names)]
        )

    async def _opened_page(self, offer: Offer, capture: Capture) -> Capture:
        """Return *capture*, the document of the row *offer*, with what a browser has shown of it."""
        try:
            return await self._shown(offer, capture)
        except BaseException:
            capture.body.close()
            raise

    async def _shown(self, offer: Offer, capture: Capture) -> Capture:
        """Do so."""
        used: dict[str, int] = {}
        self._note("amicrawl/browser/pages")
        await self._pool.ready()
        crashes = deaths = stops = 0
        while True:
            life = await self._opened_once(offer, capture, used)
            if life.has_stood_still and stops < _MOST_STOPS:
                # A laptop was closed, or a machine paused: the limits of time judged that, not the page.
                stops += 1
                await self._pool.ready()
                continue
            if not life.has_crashed:
                break
            self._note("amicrawl/browser/crashes")
            if self._pool.is_running:
                crashes += 1
            else:
                deaths += 1
                life.rendered.ended = "its browser died"
            if crashes == _MOST_CRASHES or deaths == _MOST_DEATHS:
                break
            await self._pool.ready()
        same = {each.name: getattr(capture, each.name) for each in fields(Capture)}
        return PageCapture(**same, rendered=life.rendered, used=used)

    async def _opened_once(self, offer: Offer, capture: Capture, used: dict[str, int]) -> PageLife:
        """Return the life of the page in one browser; what it *used* is added to that before."""
        from amicrawl.browser.exchanges import PageExchanges  # noqa: PLC0415
        from amicrawl.browser.page import PageLife  # noqa: PLC0415  # imports Playwright
        from amicrawl.browser.pool import BrowserDiedError  # noqa: PLC0415

        config = self._run.config
        until = time.monotonic() + config.browser_page_time
        exchanges = PageExchanges(self._crawl, offer, capture, until=until)
        given = self._pool.proxy.admit(exchanges.respond)
        life = PageLife(
            capture.url, exchanges, until=until, screenshot=config.browser_screenshots,
            killed_for=self._pool.killed_for,
        )  # fmt: skip
        try:
            async with self._pool.context() as context:
                await life.live(context, given, own=self._own)
        except BrowserDiedError:
            life.died("its browser died")
        finally:
            self._pool.proxy.dismiss(given)
            await exchanges.close()
        used |= exchanges.used
        return life

    async def _keep(self, item: CaptureItem) -> None:
        """Record *item*; a page with what was made of it."""
        capture = item.capture
        if isinstance(capture, PageCapture):
            item.page, item.resource_type = capture.url, "document"
            if capture.rendered.ended not in _WHOLE:
                item.page_fault = capture.rendered.ended
            item.resources = resources_of(capture.rendered, capture.used, url=capture.url)
        await self._run.recorder.record(item)

    async def _excludes(self, url: str, offer: Offer) -> Excluded | None:
        """Return why the crawl does not request *url*, which the page *offer* wants; or None."""
        following = self._run.following
        if following is not None and (rule := following.refusal_of_requisite(url, offer)):
            return Excluded(Failure.REFUSED_BY_CRAWL, f"kept out by {rule}")
        assert self._usual is not None
        decision = await self._usual.admit_requisite(url)
        if decision is None:
            return None
        return Excluded(decision.failure or Failure.REFUSED_BY_CRAWL, decision.reason)


def _is_page(capture: Capture) -> bool:
    """Return whether a browser would show *capture* as a page."""
    if capture.failure is not None or capture.status in REDIRECTS or capture.status in {204, 205, 304}:
        return False
    if (capture.header(b"content-disposition") or b"").lstrip().lower().startswith(b"attachment"):
        return False
    return (capture.header(b"content-type") or b"").lstrip().lower().startswith(_PAGE_TYPES)


def _own_fields(settings: BaseSettings, config: CrawlConfig) -> OwnFields:
    """Return the fields that the operator names, without those of `AMICRAWL_HEADERS`.

    Raises UsageError.
    """
    name = "DEFAULT_REQUEST_HEADERS"
    is_named = (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["addon"]
    usual = default_headers(config.headers).items()
    fields = {each: value for each, value in settings.getdict(name).items() if is_named}
    return OwnFields.of(
        {each: value for each, value in fields.items() if (each, value) not in usual},
        user_agent=settings["USER_AGENT"],
    )


def _own_behaviour(path: str) -> str:
    """Return what is in the file *path*; nothing for none. Raises InputError and UsageError."""
    if not path:
        return ""
    try:
        if Path(path).stat().st_size > _LARGEST_BEHAVIOUR:
            raise UsageError(f"{path} has more than {_LARGEST_BEHAVIOUR:,} bytes. Name a script.")
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a script: {error}. Name another file.") from error
