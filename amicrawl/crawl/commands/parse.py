"""`scrapy parse`: what a spider makes of a page; nothing is archived.

Of a spider that leaves following to the crawl, as `site` does, it shows what the crawl would take: the
links as requests, and what a rule keeps out as items, with the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import parse
from scrapy.exceptions import UsageError as ScrapyUsageError

from amicrawl.config import CrawlConfig
from amicrawl.crawl.looking import check_spider
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    import argparse


class Command(parse.Command):
    """Prints the items and requests that a callback yields."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do so, once the spider named in *opts* was found to be one that can be used."""
        assert self.crawler_process is not None
        loader = self.crawler_process.spider_loader
        spider = loader.load(opts.spider) if opts.spider in loader.list() else None
        if len(args) == 1 and getattr(spider, "follows_links", False):
            self._show_links(args[0], opts)
        check_spider(self.crawler_process, opts.spider, arguments=opts.spargs, command="parse")
        super().run(args, opts)

    def _show_links(self, url: str, opts: argparse.Namespace) -> None:
        """Have the links judged, in a crawl that starts at *url* where no other start is named."""
        # Scrapy imports every command to run one.
        from amicrawl.crawl.showing import shows_links  # noqa: PLC0415
        from amicrawl.discovery.configured import make_selection  # noqa: PLC0415

        if not opts.spargs.get("file"):
            opts.spargs.setdefault("url", url)
        starts = opts.spargs.get("url", url).split()
        try:
            config = CrawlConfig.from_settings(dict(self.settings or {}))
            selection = make_selection(config, starts, depth=opts.spargs.get("depth") or "inf")
        except UsageError as error:
            raise ScrapyUsageError(str(error), print_help=False) from error
        if not opts.callback and not opts.rules:
            opts.callback = shows_links(selection, starts)
