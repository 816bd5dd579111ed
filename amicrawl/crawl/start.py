"""Start a crawl: `scrapy crawl`, without the other commands of Scrapy.

    python -P -m amicrawl.crawl.start SPIDER [-a NAME=VALUE]... [-s NAME=VALUE]...

Scrapy's command line imports every command to find one of them, a tenth of a crawl's start. In a project
that has commands of its own, or another event loop, this is Scrapy's command line nonetheless.
"""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, NoReturn

from scrapy import cmdline
from scrapy.commands import ScrapyHelpFormatter
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.exceptions import UsageError
from scrapy.utils.project import get_project_settings

from amicrawl.crawl.commands.crawl import Command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy.settings import Settings

_OUR_COMMANDS = "amicrawl.crawl.commands"
_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"


def start_crawl(arguments: Sequence[str]) -> NoReturn:
    """Run `scrapy crawl` with *arguments* in this process, and exit with its exit code."""
    sys.argv[:] = ["scrapy", "crawl", *arguments]
    # What starts this crawl again, as the parent of several processes does, reads its command line here.
    sys.orig_argv[:] = [sys.executable, "-P", "-m", "amicrawl.crawl.start", *arguments]
    settings = get_project_settings()
    if _needs_scrapys_command_line(settings):
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
        or entry_points(group="scrapy.commands")
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
        command.crawler_process = AsyncCrawlerProcess(settings)
        command.run(named, options)
    except UsageError as error:
        parser.error(str(error))
    sys.exit(command.exitcode)


if __name__ == "__main__":
    start_crawl(sys.argv[1:])
