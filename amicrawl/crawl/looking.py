"""The commands of Scrapy that only show a page, or what a spider makes of it, archive nothing.

`shell`, `fetch`, `view`, `parse`, `check` and `bench` fetch by Scrapy's own downloader: without a
frontier, a pace or an output directory, and with its rules about addresses and robots.txt, not ours.
What they send looks like what a crawl would send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError as ScrapyUsageError
from scrapy.settings import SETTINGS_PRIORITIES

from amicrawl.errors import AmicrawlError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler, CrawlerProcessBase


def only_looks(crawler: Crawler) -> bool:
    """Tell whether *crawler* belongs to a command that archives nothing."""
    # No command says so. But all give the spider a `start` of their own, except for the shell, which
    # sets a crawler up before there is a spider. So do tests of projects, but without its settings.
    start = getattr(crawler.spidercls, "start", None)
    is_shell = crawler.spider is None and _has_shell_settings(crawler)
    return is_shell or getattr(start, "__module__", "").startswith("scrapy.commands.")


def _has_shell_settings(crawler: Crawler) -> bool:
    from scrapy.commands.shell import Command  # noqa: PLC0415  # most crawlers have a spider

    priority, command = crawler.settings.getpriority, SETTINGS_PRIORITIES["command"]
    return any(priority(name) == command for name in Command.default_settings)


def check_spider(
    process: CrawlerProcessBase | None, name: str | None, *, arguments: Mapping[str, str], command: str
) -> None:
    """Check that the spider *name* takes *arguments*, by building it; do nothing without a name.

    Raises Scrapy's UsageError, a sentence, where there is no such spider or it takes no such arguments.
    """
    if name is None:
        return
    assert process is not None
    try:
        crawler = process.create_crawler(name)
    except KeyError:
        raise ScrapyUsageError(
            f"There is no spider {name!r} here; `scrapy list` names those there are.", print_help=False
        ) from None
    try:
        crawler.spidercls.from_crawler(crawler, **arguments)
    except AmicrawlError as error:
        hint = "" if command == "parse" else f" `scrapy {command}` has no -a: leave --spider away."
        raise ScrapyUsageError(f"{error}{hint}", print_help=False) from error
