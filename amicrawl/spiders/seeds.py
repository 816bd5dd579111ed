"""`scrapy crawl seeds -a file=seeds.jsonl`: fetch every URL of a list, and nothing else."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

from amicrawl.crawl import (
    SeedArguments,
    SeedList,
    as_process,
    configured,
    ends_with_sentence,
    job_argument,
)
from amicrawl.spiders import FrontierSpider, set_browser, set_output

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


class SeedsSpider(FrontierSpider):
    """Fetches a seed list. Arguments: `amicrawl.crawl.arguments.SeedArguments`."""

    name = "seeds"

    seed_list: SeedList

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
    @ends_with_sentence
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Check the arguments and open the seed list, before anything is made or requested.

        Raises UsageError or InputError.
        """
        kwargs = configured(crawler, kwargs, spider="seeds")
        arguments = as_process(crawler, SeedArguments.parse(kwargs), kwargs)
        set_output(crawler, arguments)
        set_browser(crawler, arguments)
        job = job_argument(kwargs, out=arguments.out)
        spider = super().from_crawler(crawler, *args, arguments=arguments, **job)
        spider.seed_list = SeedList(crawler, arguments)
        return spider

    async def offer(self) -> None:
        """Feed the seed list into the frontier; no request of it passes through here."""
        await self.seed_list.feed()
