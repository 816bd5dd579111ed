"""`scrapy crawl queue -a redis_key=NAME`: fetch the seeds in a queue of Redis, as they come."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

from scrapy import Spider

from amicrawl.crawl.arguments import configured, explained

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from amicrawl.crawl.queued import QueueArguments, QueueFeed


class QueueSpider(Spider):
    """Fetches seeds from Redis. Arguments: `amicrawl.crawl.queued.QueueArguments`."""

    name = "queue"

    resumes = True
    """Whether a URL that an earlier crawl into the directory has fetched is done."""

    reads_responses = False
    """Whether `parse` looks at responses."""

    queue_feed: QueueFeed

    def __init__(self, *, arguments: QueueArguments, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.arguments = arguments
        self.asked = {name: str(value) for name, value in asdict(arguments).items() if value}

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Fetch every distinct URL, unless the project has another idea of what makes them the same."""
        super().update_settings(settings)
        settings.set("AMICRAWL_IDENTITY", "exact", "addon")

    @classmethod
    @explained
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Check the arguments and the settings of Redis, before anything is made or asked.

        Raises UsageError or InputError.
        """
        # Scrapy loads every spider for any crawl, and the way to Redis takes a third of a second.
        from amicrawl.crawl.queued import QueueArguments, QueueFeed  # noqa: PLC0415

        kwargs = configured(crawler, kwargs)
        default_key = str(crawler.settings.get("REDIS_START_URLS_KEY") or "")
        arguments = QueueArguments.parse(kwargs, name=cls.name, default_key=default_key)
        for name, value in (("AMICRAWL_OUT", arguments.out), ("AMICRAWL_RUN_ID", arguments.run_id)):
            if value is not None:
                crawler.settings.set(name, value, "cmdline")
        spider = super().from_crawler(crawler, *args, arguments=arguments)
        spider.queue_feed = QueueFeed(crawler, arguments)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Feed the queue into the frontier; no request of it passes through here."""
        await self.queue_feed.feed()
        # An empty loop makes this the asynchronous generator that Scrapy asks for.
        nothing: tuple[Any, ...] = ()
        for item in nothing:
            yield item

    def parse(self, response: Response, **_: Any) -> None:
        """Do nothing: the page is archived by now, and a list crawl follows no links."""
