"""`scrapy crawl`: Scrapy's own, with errors said as sentences and the exit codes of the manual."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, cast

from scrapy.commands import crawl
from scrapy.exceptions import UsageError as ScrapyUsageError

from amicrawl.config import PREFIX
from amicrawl.crawl.run import RunHolder
from amicrawl.crawl.watching.screen import fault_line
from amicrawl.errors import AmicrawlError, ExitCode

if TYPE_CHECKING:
    import argparse
    import asyncio

    from scrapy.crawler import Crawler


class Command(crawl.Command):
    """Runs a spider and ends with the exit code that fits what came of it."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the spider named in *args* with the arguments in *opts*."""
        if len(args) != 1:
            raise ScrapyUsageError("Name exactly one spider, as in: scrapy crawl seeds -a file=F")
        assert self.crawler_process is not None
        try:
            crawler = self._create_crawler(args[0])
        except KeyError:
            raise ScrapyUsageError(
                f"There is no spider {args[0]!r} here; `scrapy list` names those there are.",
                print_help=False,
            ) from None
        _spare_the_collector()
        task = self.crawler_process.crawl(crawler, **opts.spargs)
        self.crawler_process.start()
        self.exitcode = _conclude(crawler, cast("asyncio.Task[None]", task))


def _spare_the_collector() -> None:
    """Let the garbage collector look less often, and not at what was imported.

    A page makes some hundred objects, nearly all of them freed by their reference counts; with Python's
    thresholds the collector runs every few pages over everything in flight.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def _conclude(crawler: Crawler, task: asyncio.Task[None]) -> int:
    """Return the exit code, having said on standard error what went wrong."""
    error = task.exception() if task.done() and not task.cancelled() else None
    holder = crawler.get_addon(RunHolder)
    run = holder.run if holder is not None else None
    fault = error if isinstance(error, AmicrawlError) else (run.fault if run is not None else None)
    if fault is not None:
        log_format = crawler.settings.get(f"{PREFIX}LOG_FORMAT")
        sys.stderr.write(fault_line(str(fault), exit_code=fault.exit_code, log_format=log_format))
        return fault.exit_code
    if error is not None:
        raise error
    return run.exit_code() if run is not None else ExitCode.DONE
