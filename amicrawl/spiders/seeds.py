"""`scrapy crawl seeds -a file=seeds.jsonl`: fetch every URL of a list, and nothing else."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

from scrapy import Spider

from amicrawl.crawl.arguments import JOB_ARGUMENT, SeedArguments, configured, explained, job_argument
from amicrawl.crawl.processes import as_process
from amicrawl.crawl.seedlist import SeedList, seeds_come_in_batches

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings


class SeedsSpider(Spider):
    """Fetches a seed list. Arguments: `amicrawl.crawl.arguments.SeedArguments`."""

    name = "seeds"

    resumes = True
    """Whether a URL that an earlier crawl into the directory has fetched is done."""

    reads_responses = False
    """Whether `parse` looks at responses; a subclass with a `parse` of its own says True.

    Where it does not, the add-on leaves out of Scrapy what only serves callbacks.
    """

    seed_list: SeedList | None
    """None where the seeds come in batches."""

    def __init__(self, *, arguments: SeedArguments, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.arguments = arguments
        self.fresh = arguments.fresh
        self.share = arguments.share
        self.asked = {name: str(value) for name, value in asdict(arguments).items() if value is not None}

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Fetch every distinct line, unless the project has another idea of what makes URLs the same."""
        super().update_settings(settings)
        settings.set("AMICRAWL_IDENTITY", "exact", "addon")

    @classmethod
    @explained
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Check the arguments and open the seed list, before anything is made or asked.

        Raises UsageError or InputError.
        """
        kwargs = configured(crawler, kwargs, spider="seeds")
        arguments = as_process(
            crawler, SeedArguments.parse(kwargs), job=str(kwargs.get(JOB_ARGUMENT, ""))
        )
        for name, value in (("AMICRAWL_OUT", arguments.out), ("AMICRAWL_RUN_ID", arguments.run_id)):
            if value is not None:
                crawler.settings.set(name, value, "cmdline")
        job = job_argument(kwargs, out=arguments.out)
        spider = super().from_crawler(crawler, *args, arguments=arguments, **job)
        spider.seed_list = None if arguments.share else SeedList(crawler, arguments)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Feed the seed list into the frontier; no request of it passes through here."""
        if self.seed_list is None:
            seeds_come_in_batches(self.crawler)
        else:
            await self.seed_list.feed()
        # An empty loop makes this the asynchronous generator that Scrapy asks for.
        nothing: tuple[Any, ...] = ()
        for item in nothing:
            yield item

    def parse(self, response: Response, **_: Any) -> None:
        """Do nothing: the page is archived by now, and a list crawl follows no links."""
