"""The item pipelines: WARC records first, the rows of the index behind them.

Captures come from the download handler and not from the spider, since redirect hops, failed fetches
and pages that a middleware drops never reach a callback. They are handed to these pipelines' stages
by the recorder, in the order of `ITEM_PIPELINES`; other pipelines of a project never see them. A
spider may also yield a `CaptureItem` of its own making.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from amicrawl.crawl.internals import check
from amicrawl.crawl.run import run_of
from amicrawl.errors import AmicrawlError
from amicrawl.record import CaptureItem

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from amicrawl.crawl.recorder import Stage


class CapturePipeline:
    """A pipeline with a stage on the writer thread; subclass it to put a step of one's own between."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.run = run_of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*."""
        return cls(crawler)

    def stage(self) -> Stage:
        """Return the stage; called once, when the spider opens."""
        raise TypeError(f"{type(self).__name__} must say which stage it drives.")

    def open_spider(self) -> None:
        """Attach the stage. Raises OutputError where the output cannot be written."""
        try:
            check(self._crawler)
            stage = self.stage()
            self.run.recorder.attach(stage)
        except AmicrawlError as fault:
            self.run.opening_fault = fault
            raise

    async def process_item(self, item: Any) -> Any:
        """Record *item* if it is a capture that a spider made; hand on everything else untouched."""
        if isinstance(item, CaptureItem) and item.location is None:
            await self.run.record(item)
        return item

    async def close_spider(self) -> None:
        """Seal the files, all stages in their order; what keeps it from that is the run's fault.

        What the dispatcher has under way is waited for: Scrapy's engine knows nothing of it.
        """
        if self.run.dispatcher is not None:
            await self.run.dispatcher.drain()
        if self.run.held is None or self.run.held.leave(self.run):
            with suppress(AmicrawlError):
                await self.run.recorder.seal()


class WarcPipeline(CapturePipeline):
    """Writes request and response records to WARC files."""

    def stage(self) -> Stage:
        """Return the writer of WARC files; the frontier beside them is opened, too."""
        if not self.run.spec.is_guest:
            assert self.run.frontier is not None
        return self.run.output.archive.warc


class CapturesPipeline(CapturePipeline):
    """Appends a row for each fetch to `captures.parquet`, by way of its journal."""

    def stage(self) -> Stage:
        """Return the journal of the index."""
        return self.run.output.archive.index
