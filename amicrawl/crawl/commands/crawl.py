"""`scrapy crawl`, with errors as sentences and the exit codes of the manual."""

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
    """Runs a spider and ends with the exit code of the crawl."""

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
        _tune_garbage_collection()
        task = self.crawler_process.crawl(crawler, **opts.spargs)
        self.crawler_process.start()
        self.exitcode = _conclude(crawler, cast("asyncio.Task[None]", task))


def _tune_garbage_collection() -> None:
    """Run the garbage collector less often, and leave out what was imported.

    A page makes some hundred objects, nearly all of them freed by their reference counts; with Python's
    thresholds the collector runs every few pages over everything in flight.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def _conclude(crawler: Crawler, task: asyncio.Task[None]) -> int:
    """Return the exit code; write the error, if there is one, to standard error."""
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
