"""`scrapy shell`: the console, in which a page is looked at and nothing archived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import shell

from amicrawl.crawl.looking import check_spider

if TYPE_CHECKING:
    import argparse


class Command(shell.Command):
    """Opens a console with a page."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do so, once the spider named in *opts* was found to be one that can be used."""
        check_spider(self.crawler_process, opts.spider, arguments={}, command="shell")
        super().run(args, opts)
