"""`scrapy crawl site -a url=https://example.org/`: archive a web site by following its links.

`scrapy crawl job -a ident=IDENT` does so for a job in Redis, for a pipeline or by hand.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

from amicrawl.crawl import (
    SiteArguments,
    as_process,
    configured,
    ends_with_sentence,
    job_argument,
    offer_starts,
    read_starts,
)
from amicrawl.spiders import FrontierSpider, set_browser, set_output
from amicrawl.wings import registered

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from amicrawl.seed import Seed


class SiteSpider(FrontierSpider):
    """Follows links and page requisites from its start URLs, within a scope.

    Arguments: `amicrawl.crawl.arguments.SiteArguments`. The scope is that of the settings (surts, hosts,
    domains, include), or else all below the directory of each start URL.
    """

    name = "site"

    follows_links = True
    """Whether the crawl takes what its pages lead to."""

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
    @ends_with_sentence
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Check the arguments and read the start URLs, before anything is made or requested.

        Raises UsageError or InputError.
        """
        kwargs = configured(crawler, kwargs, spider="site")
        arguments = as_process(crawler, SiteArguments.parse(kwargs), kwargs)
        set_output(crawler, arguments)
        set_browser(crawler, arguments)
        starts = read_starts(arguments)
        job = job_argument(kwargs, out=arguments.out)
        return super().from_crawler(crawler, *args, arguments=arguments, starts=starts, **job)

    async def offer(self) -> None:
        """Offer the start URLs; no request passes through here."""
        await offer_starts(self.crawler, self.arguments, self.starts)


class JobSpider(SiteSpider):
    """The spider `site`, with what the record of a job requests in place of arguments."""

    name = "job"

    job: Any
    """Reports the crawl to Redis, and brings the changes made there to the crawl."""

    @classmethod
    @ends_with_sentence
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Read and claim the job. Raises UsageError, InputError, RedisUnavailable or LeaseLost."""
        # Scrapy loads every spider for any crawl, and the way to Redis takes a third of a second.
        job, site, starts = registered("job")(crawler, kwargs)
        # The class above would read its own arguments out of a crawl file.
        spider = super(SiteSpider, cls).from_crawler(crawler, *args, arguments=site, starts=starts)
        spider.job = job
        spider.asked = {"ident": job.ident, **spider.asked}
        return spider
