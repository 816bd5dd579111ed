"""`scrapy crawl recrawl -a dir=ami-out`: fetch again what is due, and store what has changed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from amicrawl.config import PREFIX
from amicrawl.crawl import (
    RecrawlArguments,
    configured,
    ends_with_sentence,
    read_starts,
    run_of,
    site_crawled_in,
)
from amicrawl.spiders import FrontierSpider

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from amicrawl.crawl import SiteArguments
    from amicrawl.seed import Seed

AGES = f"{PREFIX}RECRAWL_AFTER"


class RecrawlSpider(FrontierSpider):
    """Fetches what is due of an earlier crawl. Arguments: `amicrawl.crawl.arguments.RecrawlArguments`.

    Each request says what is known of the last capture (`ETag`, `Last-Modified`). A response that brings
    nothing new becomes a revisit record, which points at the record that holds the payload.
    """

    name = "recrawl"

    follows_links = False
    """Whether the crawl takes what its pages lead to: where the spider `site` was there before."""

    recrawl_by_age = False
    """Whether what is due follows from the age of captures, and not from how often pages change."""

    starts: tuple[Seed, ...] = ()
    depth = ""

    def __init__(self, *, arguments: RecrawlArguments, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.recrawl_before = arguments.before
        self.asked = {name: str(value) for name, value in asdict(arguments).items() if value is not None}

    @classmethod
    @ends_with_sentence
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Check the arguments. Raises UsageError."""
        arguments = RecrawlArguments.parse(configured(crawler, kwargs))
        crawler.settings.set("AMICRAWL_OUT", arguments.dir, "cmdline")
        crawler.settings.set("AMICRAWL_RUN_ID", "", "cmdline")
        if arguments.after is not None:
            crawler.settings.set(AGES, arguments.after, "cmdline")
        spider = super().from_crawler(crawler, *args, arguments=arguments)
        spider.recrawl_by_age = bool(crawler.settings.get(AGES)) and not kwargs.get("before")
        site = site_crawled_in(Path(arguments.dir))
        if site is not None:
            spider.follow(site)
        return spider

    def follow(self, site: SiteArguments) -> None:
        """Take what the pages lead to, as the spider `site` did with these arguments."""
        self.follows_links = True
        self.starts = read_starts(site)
        self.depth = site.depth
        said = {name: value for name, value in asdict(site).items() if value and name != "config"}
        self.asked |= {name: str(value) for name, value in said.items()} | {"url": " ".join(site.url)}

    async def offer(self) -> None:
        """Offer nothing: the frontier knows what is due."""
        run = run_of(self.crawler)
        run.tally.seeds_ended = True
