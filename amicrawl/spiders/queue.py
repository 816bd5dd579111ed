"""`scrapy crawl queue -a redis_key=NAME`: fetch the seeds in a queue of Redis, as they come."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

from amicrawl.crawl import configured, ends_with_sentence
from amicrawl.spiders import FrontierSpider, set_output
from amicrawl.wings import registered

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


class QueueSpider(FrontierSpider):
    """Fetches seeds from Redis. Arguments: `amicrawl.fleet.jobs.crawl.queued.QueueArguments`."""

    name = "queue"

    queue_feed: Any
    """Takes seeds from Redis and acknowledges them: `amicrawl.fleet.jobs.crawl.queued.QueueFeed`."""

    def __init__(self, *, arguments: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.arguments = arguments
        self.asked = {name: str(value) for name, value in asdict(arguments).items() if value}

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Fetch every distinct URL, unless the project has another idea of what makes them the same."""
        super().update_settings(settings)
        settings.set("AMICRAWL_IDENTITY", "exact", "addon")

    @classmethod
    @ends_with_sentence
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Check the arguments and the settings of Redis, before anything is made or requested.

        Raises UsageError or InputError.
        """
        # Scrapy loads every spider for any crawl, and the way to Redis takes a third of a second.
        arguments, feed = registered("seed queue")(crawler, configured(crawler, kwargs), name=cls.name)
        set_output(crawler, arguments)
        spider = super().from_crawler(crawler, *args, arguments=arguments)
        spider.queue_feed = feed
        return spider

    async def offer(self) -> None:
        """Feed the queue into the frontier; no request of it passes through here."""
        await self.queue_feed.feed()
