"""The log of a crawl: without a line per page, and in lines that nothing from the web can forge.

Every fetch has its row in the index; at 2,000 pages a second a log line for each would be most of the
work and all of the noise. What goes wrong in a spider is still logged.

Scrapy makes its log handler three times before a crawl begins, each time anew, and has no place for a
formatter. So `format_handlers` is called after each; what is logged between has Scrapy's own format.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.logformatter import LogFormatter
from scrapy.utils.log import get_scrapy_root_handler

from amicrawl.config import LogFormat
from amicrawl.crawl.watching.log_lines import JsonFormatter, TextFormatter

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

_GREETING = ("scrapy.utils.log", "scrapy.crawler", "asyncio")
"""The loggers that speak before any crawler is there: of versions and the like."""


def _nothing(_: logging.LogRecord) -> bool:
    """Let no record pass."""
    return False


def format_handlers(log_format: LogFormat) -> None:
    """Have what Scrapy's log handler writes pass *log_format*; nothing where it has none."""
    handler = get_scrapy_root_handler()
    if handler is None:
        return
    for name in _GREETING:
        logging.getLogger(name).removeFilter(_nothing)
    if log_format is LogFormat.JSON:
        handler.setFormatter(JsonFormatter())
    elif not isinstance(handler.formatter, TextFormatter):
        handler.setFormatter(TextFormatter(handler.formatter or logging.Formatter()))


def drop_early_lines() -> None:
    """Leave out the lines before `format_handlers` can be called: they are not JSON."""
    for name in _GREETING:
        # Not by its level, which Scrapy is about to set anew.
        logging.getLogger(name).addFilter(_nothing)


class QuietLogFormatter(LogFormatter):
    """Says nothing of pages that came, and says failed fetches at DEBUG: the index has both."""

    def crawled(  # type: ignore[override]  # Scrapy takes None for "no line", its signature does not
        self,
        request: Request,  # noqa: ARG002
        response: Response,  # noqa: ARG002
        spider: Spider,  # noqa: ARG002
    ) -> None:
        """Say nothing."""
        return

    def download_error(
        self, failure: Failure, request: Request, spider: Spider, errmsg: str | None = None
    ) -> LogFormatterResult:
        """Say it where DEBUG is wanted."""
        return {**super().download_error(failure, request, spider, errmsg), "level": logging.DEBUG}
