"""Uploading: sealed files copied to `AMICRAWL_BUCKET` while the crawl goes on, and the rest at its end.

During the crawl WARC files go up as they are sealed, those of earlier crawls into the directory too; at
the end `captures.parquet` and `crawl.json` follow. The frontier stays here: it is what the next crawl
begins with, and it changes with every fetch. A bucket that cannot be used ends the crawl before it has
begun; one that fails later ends nothing. `record/upload.py` has the rules.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from amicrawl.crawl.extension import CrawlExtension, before_shutdown
from amicrawl.crawl.uploader import Uploader
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, UsageError
from amicrawl.record.bucket import open_bucket
from amicrawl.record.upload import Uploads

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run
    from amicrawl.record import SealedFile

logger = logging.getLogger(__name__)

_LAST_WAIT = 10.0
"""Seconds that a second signal waits for the block that is under way."""


class Uploading(CrawlExtension):
    """Ties an `Uploader` to the beginning and the end of a crawl."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        """Look at the bucket. Raises NotConfigured, and UsageError or OutputError for a bad one."""
        config = run.config
        if not config.bucket:
            if config.remove_uploaded:
                raise UsageError(
                    "AMICRAWL_REMOVE_UPLOADED is set, and there is no AMICRAWL_BUCKET to upload to. Set "
                    "it, or leave the other away."
                )
            raise NotConfigured
        super().__init__(crawler, run)
        self._stop = threading.Event()
        bucket = open_bucket(config.bucket, disk=Disk())
        self._uploads = Uploads(
            config.directory,
            bucket,
            disk=run.disk,
            now=lambda: datetime.now(UTC),
            remove=config.remove_uploaded,
            stopped=self._stop.is_set,
        )
        # Written before anything is fetched, to find out whether that is permitted.
        self._uploads.publish()
        self._uploader = Uploader(self._uploads, stop=self._stop)
        run.on_sealed.append(self._sealed)

    def _opened(self) -> None:
        before_shutdown(self._give_up)
        for file in self._uploads.warc_files():
            self._uploader.add(file, settled=True)
        self._uploader.start()

    def _sealed(self, file: SealedFile) -> None:
        """Have a WARC file sent that was just sealed; on the writer thread."""
        if file.name.endswith(".warc.gz"):
            self._uploader.add(file)

    async def _closed(self) -> None:
        """Send what is left. By now the files are sealed, and `crawl.json` says how the crawl ended."""
        if self._run.recorder.fault is not None:
            self._give_up()
            return
        try:
            last = await asyncio.to_thread(self._uploads.closing_files)
            await asyncio.to_thread(self._uploader.end, last)
        except AmicrawlError as error:
            self._run.upload_fault = error
        else:
            self._account()

    def _account(self) -> None:
        config, sent = self._run.config, self._uploader.sent
        fault = self._uploader.fault(config.directory, config.bucket, remove=config.remove_uploaded)
        if fault is not None and self._stop.is_set():
            logger.warning("%s", fault)
        else:
            self._run.upload_fault = fault
        size = sum(file.size for file in sent.values())
        logger.info("%d files, %d bytes, are in %s", len(sent), size, config.bucket)
        stats = self._crawler.stats
        assert stats is not None
        stats.inc_value("amicrawl/upload/files", len(sent))
        stats.inc_value("amicrawl/upload/bytes", size)
        stats.inc_value("amicrawl/upload/failures", self._uploader.failed)

    def _give_up(self) -> None:
        """Leave the rest to the next crawl or to `amicrawl upload`: for the second signal."""
        self._uploader.stop()
        self._uploader.join(_LAST_WAIT)
