"""Log formatting without a line per page.

Every fetch has its row in the index; at 2,000 pages a second a log line for each would be most of the
work and all of the noise. What goes wrong in a spider is still told.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.logformatter import LogFormatter

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure


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
