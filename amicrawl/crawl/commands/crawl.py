"""`scrapy crawl`, with errors as sentences and the exit codes of the manual.

Scrapy's command line imports every command to find one of them, a tenth of a crawl's start; `execute`
does for this one what it does. In a project that has commands of its own, or another event loop, it is
Scrapy's command line nonetheless.

A crawl in several processes begins here, too, before there is an event loop: the spider becomes their
parent while it is made.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from typing import TYPE_CHECKING, NoReturn, cast

from scrapy import cmdline
from scrapy.commands import ScrapyHelpFormatter, crawl
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.exceptions import UsageError as ScrapyUsageError
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.project import get_project_settings

from amicrawl.config import PREFIX
from amicrawl.crawl.event_loop import REACTOR
from amicrawl.crawl.processes.specification import is_child
from amicrawl.crawl.run import RunHolder
from amicrawl.crawl.spec import is_guest
from amicrawl.crawl.start import IS_PARENT, STOPPED_EARLY, end_on_signals, ignore_signals
from amicrawl.crawl.watching.screen import fault_line
from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.interpreter import prepare_interpreter

if TYPE_CHECKING:
    import argparse
    import asyncio
    from collections.abc import Sequence

    from scrapy.settings import BaseSettings, Settings

logger = logging.getLogger(__name__)

_OUR_COMMANDS = "amicrawl.crawl.commands"


class Command(crawl.Command):
    """Runs a spider and ends with the exit code of the crawl."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Follow the options that are for every command of Scrapy."""
        if is_child():
            # The file is to name the process that a signal stops the crawl by: the parent.
            opts.pidfile = None
        super().process_options(args, opts)
        assert self.settings is not None
        end_on_signals(_fault_line(self.settings, STOPPED_EARLY, ExitCode.STOPPED))

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the spider named in *args* with the arguments in *opts*."""
        if len(args) != 1:
            raise ScrapyUsageError("Name exactly one spider, as in: scrapy crawl seeds -a file=F")
        assert self.crawler_process is not None
        try:
            crawler = self._create_crawler(args[0])
        except KeyError:
            raise ScrapyUsageError(
                f"There is no spider {args[0]!r}; `scrapy list` names the spiders of this project.",
                print_help=False,
            ) from None
        prepare_interpreter()
        # What was imported is looked at by the garbage collector no more.
        gc.freeze()
        task = self.crawler_process.crawl(crawler, **opts.spargs)
        self.crawler_process.start()
        ignore_signals()
        self.exitcode = _conclude(crawler, cast("asyncio.Task[None]", task))
        # At its end Python looks for cycles and frees every object: 0.1 ms for each host of a crawl.
        gc.freeze()


def execute(arguments: list[str]) -> NoReturn:
    """Run `scrapy crawl` with *arguments*, those of `sys.argv`, and exit with its exit code."""
    settings = get_project_settings()
    command = Command()
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
    if options.profile or (_needs_scrapys_command_line(settings) and not os.environ.get(IS_PARENT)):
        cmdline.execute()
    try:
        command.process_options(named, options)
        is_chosen = options.spargs.get("processes", "1") != "1"
        if not is_child() and (os.environ.pop(IS_PARENT, "") or is_chosen):
            _divide(named, options, settings)
        command.crawler_process = AsyncCrawlerProcess(settings)
        command.run(named, options)
    except ScrapyUsageError as error:
        parser.error(str(error))
    sys.exit(command.exitcode)


def _needs_scrapys_command_line(settings: Settings) -> bool:
    """Return whether the project has commands of its own, or runs its crawls in another way."""
    return bool(
        settings["COMMANDS_MODULE"] not in {None, "", _OUR_COMMANDS}
        or settings["TWISTED_REACTOR"] != REACTOR
        or settings.getbool("FORCE_CRAWLER_PROCESS")
    )


def _divide(named: Sequence[str], options: argparse.Namespace, settings: Settings) -> None:
    """Make the spider in *named* without a crawl, as the parent of several processes if it becomes that.

    Returns where it does not.
    """
    loader = get_spider_loader(settings)
    spider = named[0] if len(named) == 1 else ""
    if spider not in loader.list() or is_guest(found := loader.load(spider)):
        return
    try:
        found.from_crawler(Crawler(found, settings), **options.spargs)
    except AmicrawlError as error:
        sys.stderr.write(_fault_line(settings, str(error), error.exit_code))
        sys.exit(error.exit_code)


def _conclude(crawler: Crawler, task: asyncio.Task[None]) -> int:
    """Return the exit code; write the error, if there is one, to standard error."""
    error = task.exception() if task.done() and not task.cancelled() else None
    holder = crawler.get_addon(RunHolder)
    run = holder.run if holder is not None else None
    fault = error if isinstance(error, AmicrawlError) else (run.fault if run is not None else None)
    if fault is not None:
        sys.stderr.write(_fault_line(crawler.settings, str(fault), fault.exit_code))
        if crawler.settings.get("LOG_FILE"):  # all that scrapyd shows of a job
            logger.error("%s", fault)
        return fault.exit_code
    if error is not None:
        raise error
    if not task.done():
        # Signals have stopped the event loop; without a reason to finish there was nothing to seal yet.
        if run is None or not run.finish_reason:
            sys.stderr.write(_fault_line(crawler.settings, STOPPED_EARLY, ExitCode.STOPPED))
        return ExitCode.STOPPED
    return run.exit_code() if run is not None else ExitCode.DONE


def _fault_line(settings: BaseSettings, fault: str, exit_code: int) -> str:
    return fault_line(fault, exit_code=exit_code, log_format=settings.get(f"{PREFIX}LOG_FORMAT"))
