"""`scrapy crawl site -a url=https://example.org/`: archive a web site by following its links."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

from scrapy import Spider

from amicrawl.crawl.arguments import JOB_ARGUMENT, SiteArguments, configured, explained, job_argument
from amicrawl.crawl.processes import as_process
from amicrawl.crawl.seedlist import offer_starts, read_starts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from amicrawl.seed import Seed


class SiteSpider(Spider):
    """Follows links and page requisites from its start URLs, within a scope.

    Arguments: `amicrawl.crawl.arguments.SiteArguments`. The scope is that of the settings (surts, hosts,
    domains, include), or else all below the directory of each start URL.
    """

    name = "site"

    resumes = True
    """Whether a URL that an earlier crawl into the directory has fetched is done."""

    follows_links = True
    """Whether the crawl takes what its pages lead to."""

    reads_responses = False
    """Whether `parse` looks at responses; a subclass with a `parse` of its own says True."""

    def __init__(self, *, arguments: SiteArguments, starts: tuple[Seed, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.arguments = arguments
        self.fresh = arguments.fresh
        self.share = arguments.share
        self.depth = arguments.depth
        self.starts = starts
        given = {name: value for name, value in asdict(arguments).items() if value is not None}
        self.asked = {name: str(value) for name, value in given.items() if name != "url"}
        self.asked["url"] = " ".join(arguments.url)

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Store no payload twice, unless the project says otherwise: pages of a site share many."""
        super().update_settings(settings)
        settings.set("AMICRAWL_DEDUP", "crawl", "addon")

    @classmethod
    @explained
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Check the arguments and read the start URLs, before anything is made or asked.

        Raises UsageError or InputError.
        """
        kwargs = configured(crawler, kwargs, spider="site")
        arguments = as_process(
            crawler, SiteArguments.parse(kwargs), job=str(kwargs.get(JOB_ARGUMENT, ""))
        )
        for name, value in (("AMICRAWL_OUT", arguments.out), ("AMICRAWL_RUN_ID", arguments.run_id)):
            if value is not None:
                crawler.settings.set(name, value, "cmdline")
        starts = read_starts(arguments)
        job = job_argument(kwargs, out=arguments.out)
        return super().from_crawler(crawler, *args, arguments=arguments, starts=starts, **job)

    async def start(self) -> AsyncIterator[Any]:
        """Offer the start URLs; no request passes through here."""
        await offer_starts(self.crawler, self.arguments, self.starts)
        # An empty loop makes this the asynchronous generator that Scrapy asks for.
        nothing: tuple[Any, ...] = ()
        for item in nothing:
            yield item

    def parse(self, response: Response, **_: Any) -> None:
        """Do nothing: the page is archived by now, and its links are taken."""
