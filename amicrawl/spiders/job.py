"""`scrapy crawl job -a ident=IDENT`: crawl a job that Redis knows of, for a pipeline or by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from amicrawl.crawl.arguments import explained
from amicrawl.spiders.site import SiteSpider

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from amicrawl.crawl.job.opening import Job


class JobSpider(SiteSpider):
    """The spider `site`, with what the record of a job asks for in place of arguments."""

    name = "job"

    job: Job
    """Reports the crawl to Redis, and brings the changes made there to the crawl."""

    @classmethod
    @explained
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Read and claim the job. Raises UsageError, InputError, RedisUnavailable or LeaseLost."""
        # Scrapy loads every spider for any crawl, and the way to Redis takes a third of a second.
        from amicrawl.crawl.job.specification import JobArguments, opened  # noqa: PLC0415

        job, site, starts = opened(crawler, JobArguments.parse(kwargs))
        # The class above would read its own arguments out of a crawl file.
        spider = super(SiteSpider, cls).from_crawler(crawler, *args, arguments=site, starts=starts)
        spider.job = job
        spider.asked = {"ident": job.ident, **spider.asked}
        return spider
