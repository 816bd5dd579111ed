"""What to crawl: the spiders `site`, `seeds`, `recrawl`, `queue` and `job`, and what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from scrapy import Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from amicrawl.crawl import CrawlArguments


class FrontierSpider(Spider):
    """A spider whose URLs are handed out by the frontier; no request of it passes through Scrapy."""

    resumes = True
    """Whether a URL that an earlier crawl into the directory has fetched is done."""

    reads_responses = False
    """Whether `parse` looks at responses; a subclass with a `parse` of its own says True.

    Where it does not, the add-on leaves out of Scrapy what only serves callbacks.
    """

    async def start(self) -> AsyncIterator[Any]:
        """Offer to the frontier what the crawl begins with, and yield nothing."""
        await self.offer()
        # An empty loop makes this the asynchronous generator that Scrapy needs.
        nothing: tuple[Any, ...] = ()
        for item in nothing:
            yield item

    async def offer(self) -> None:
        """Offer to the frontier what the crawl begins with: nothing, unless a subclass has something.

        Not an abstract method: zope.interface gives classes of `abc.ABCMeta` an attribute that feed
        exports, which read all of a spider, cannot read.
        """

    def parse(self, response: Response, **_: Any) -> None:
        """Do nothing: the page is archived by now."""


class OutputArguments(Protocol):
    """The arguments of any spider that say where its output goes."""

    @property
    def out(self) -> str | None:
        """Directory for the output."""

    @property
    def run_id(self) -> str | None:
        """Sub-directory of `out` for this run."""


def set_output(crawler: Crawler, arguments: OutputArguments) -> None:
    """Set the output directory that *arguments* name, above every other setting of it."""
    for name, value in (("AMICRAWL_OUT", arguments.out), ("AMICRAWL_RUN_ID", arguments.run_id)):
        if value is not None:
            crawler.settings.set(name, value, "cmdline")


def set_browser(crawler: Crawler, arguments: CrawlArguments) -> None:
    """Set which pages *arguments* have opened in a browser, above every other setting of it."""
    if arguments.browser is not None:
        crawler.settings.set("AMICRAWL_BROWSER", arguments.browser, "cmdline")
