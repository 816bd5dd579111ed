"""Start a crawl: `scrapy crawl`, without the other commands of Scrapy.

    python -P -m amicrawl.crawl.start SPIDER [-a NAME=VALUE]... [-s NAME=VALUE]...

Scrapy's command line imports every command to find one of them, a tenth of a crawl's start. In a project
that has commands of its own, or another event loop, this is Scrapy's command line nonetheless.

A crawl in several processes begins here, too, before there is an event loop: the spider becomes their
parent while it is made.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from scrapy import cmdline
from scrapy.commands import ScrapyHelpFormatter
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.exceptions import UsageError
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.project import get_project_settings

from amicrawl.config import PREFIX
from amicrawl.crawl.commands.crawl import Command
from amicrawl.crawl.processes import IS_PARENT, START
from amicrawl.crawl.processes.specification import is_child
from amicrawl.crawl.watching.screen import fault_line
from amicrawl.errors import AmicrawlError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from scrapy.settings import Settings

_OUR_COMMANDS = "amicrawl.crawl.commands"
_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"


def start_crawl(arguments: Sequence[str]) -> NoReturn:
    """Run `scrapy crawl` with *arguments* in this process, and exit with its exit code."""
    sys.argv[:] = ["scrapy", "crawl", *arguments]
    # The parent of several processes starts the crawl by this command line.
    sys.orig_argv[:] = [sys.executable, "-P", "-m", START, *arguments]
    settings = get_project_settings()
    if _needs_scrapys_command_line(settings) and not os.environ.get(IS_PARENT):
        cmdline.execute()
    else:
        _run(Command(), settings, list(arguments))
    raise AssertionError("Scrapy's command line ends the process")


def _needs_scrapys_command_line(settings: Settings) -> bool:
    """Return whether the project has commands of its own, or runs its crawls in another way."""
    return bool(
        settings["COMMANDS_MODULE"] not in {None, "", _OUR_COMMANDS}
        or settings["TWISTED_REACTOR"] != _REACTOR
        or settings.getbool("FORCE_CRAWLER_PROCESS")
    )


def _run(command: Command, settings: Settings, arguments: list[str]) -> NoReturn:
    """Do with *command* what `scrapy.cmdline.execute` does once it has found it."""
    parser = cmdline.ScrapyArgumentParser(
        formatter_class=ScrapyHelpFormatter,
        usage=f"scrapy crawl {command.syntax()}",
        conflict_handler="resolve",
        description=command.long_desc(),
    )
    settings.setdict(command.default_settings, priority="command")
    command.settings = settings
    command.add_options(parser)
    options, named = parser.parse_known_args(arguments)
    try:
        command.process_options(named, options)
        is_asked = options.spargs.get("processes", "1") != "1"
        if not is_child() and (os.environ.pop(IS_PARENT, "") or is_asked):
            _divide(named, options, settings)
        command.crawler_process = AsyncCrawlerProcess(settings)
        command.run(named, options)
    except UsageError as error:
        parser.error(str(error))
    sys.exit(command.exitcode)


def _divide(named: Sequence[str], options: argparse.Namespace, settings: Settings) -> None:
    """Make the spider in *named* without a crawl, as the parent of several processes if it becomes that.

    Returns where it does not.
    """
    loader = get_spider_loader(settings)
    spider = named[0] if len(named) == 1 else ""
    if spider not in loader.list() or not hasattr(found := loader.load(spider), "reads_responses"):
        return
    try:
        found.from_crawler(Crawler(found, settings), **options.spargs)
    except AmicrawlError as error:
        log_format = settings.get(f"{PREFIX}LOG_FORMAT")
        sys.stderr.write(fault_line(str(error), exit_code=error.exit_code, log_format=log_format))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    start_crawl(sys.argv[1:])
