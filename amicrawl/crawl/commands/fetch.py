"""`scrapy fetch`: a page as Scrapy gets it, on standard output; nothing is archived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import fetch

from amicrawl.crawl.looking import check_spider

if TYPE_CHECKING:
    import argparse


class Command(fetch.Command):
    """Prints a page."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do so, once the spider named in *opts* was found to be one that can be used."""
        check_spider(self.crawler_process, opts.spider, arguments={}, command="fetch")
        super().run(args, opts)
