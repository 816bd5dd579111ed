"""Uploading: sealed files copied to `AMICRAWL_BUCKET` while the crawl runs, and the rest at its end.

During the crawl WARC files go up as they are sealed, those of earlier crawls into the directory too; at
the end `captures.parquet` and `crawl.json` follow. The frontier stays here: it is what the next crawl
begins with, and it changes with every fetch. A bucket that cannot be used ends the crawl before it has
begun; one that fails later ends nothing: everything waits, longer each time, and is tried again. At the
end of the crawl what is left is tried a few times more, then it is left to `amicrawl upload`.

A file is sent a few seconds after it was sealed, so that the frontier has forced to disk what it knows
of the pages in it: with `AMICRAWL_REMOVE_UPLOADED` the file itself will be gone by then.
`uploads/upload.py` has the rules.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from scrapy.exceptions import NotConfigured

from amicrawl.crawl.extensions import CrawlExtension, before_shutdown
from amicrawl.errors import AmicrawlError, OutputError, UsageError
from amicrawl.listing import FILE_NAME
from amicrawl.uploads import (
    ConflictError,
    NotAsSealedError,
    StoppedError,
    UploadProgress,
    Uploads,
    open_bucket,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run
    from amicrawl.listing import SealedFile


logger = logging.getLogger(__name__)

SETTLING = 2.0
"""Seconds between the sealing of a file and its upload, while the crawl runs."""
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0
"""Seconds after a failure; each further one doubles the pause, from the first to the longest."""
LAST_TRIES = 3
"""Attempts at every file once the crawl has ended."""
LAST_PAUSE = 1.0
"""Seconds between two of them."""
FAILURES_IN_A_ROW = 3
"""Failures one after the other that end an attempt at all of them."""

_LOOK_EVERY = 1.0


class Sender(Protocol):
    """What sends one file; `Uploads` does."""

    def upload(self, file: SealedFile) -> None:
        """Bring *file* into the bucket, unless it is there; raises as `Uploads.upload` does."""


class Uploader:
    """Files to be sent, and the thread that sends them."""

    def __init__(
        self,
        sender: Sender,
        *,
        stop: threading.Event,
        settling: float = SETTLING,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        """Once *stop* is set, nothing more is sent; *sender* is to look at it inside a file, too."""
        self.sent: dict[str, SealedFile] = {}
        """What was uploaded, or found to be, by name."""
        self.failed = 0
        """Attempts that failed."""
        self.progress: UploadProgress | None = None
        """How far the uploads at the end are; None before the end."""
        self._sender = sender
        self._settling = settling
        self._first_pause = first_pause
        self._changed = threading.Condition()
        self._waiting: dict[str, tuple[float, SealedFile]] = {}
        self._hopeless: dict[str, AmicrawlError] = {}
        self._last_error: AmicrawlError | None = None
        self._failures = 0
        self._resumes_at = 0.0
        self._ending = self._is_last = False
        self._stop = stop
        self._thread = threading.Thread(target=self._work, name="amicrawl-upload", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def add(self, file: SealedFile, *, settled: bool = False) -> None:
        """Have *file* sent, at once if it is *settled*; from any thread."""
        with self._changed:
            due = 0.0 if settled else time.monotonic() + self._settling
            self._waiting[file.name] = (due, file)
            self._changed.notify()

    def end(self, files: Sequence[SealedFile]) -> None:
        """Send what is left and *files*, and return when that is done or was given up."""
        for file in files:
            self.add(file, settled=True)
        with self._changed:
            self.progress = UploadProgress(file for _, file in self._waiting.values())
            self._ending = True
            self._changed.notify()
        self.join(None)

    def moved(self, size: int) -> None:
        """Count *size* bytes of the file under way, which were sent or read back."""
        if self.progress is not None:
            self.progress.moved(size)

    def stop(self, *, within: float = 0.0) -> None:
        """Begin no further file, and give up the one that is under way after *within* seconds."""
        with self._changed:
            self._is_last = True
            self._changed.notify()
        self.join(within)
        with self._changed:
            self._stop.set()
            self._changed.notify()

    def join(self, timeout: float | None) -> None:
        """Wait until the thread has ended, at most *timeout* seconds."""
        if self._thread.is_alive():
            self._thread.join(timeout)

    def fault(self, directory: Path, url: str, *, remove: bool) -> AmicrawlError | None:
        """Return what is to be said of files that were not uploaded; None where there are none.

        An OutputError where trying again may help; otherwise of the kind of what is in the way.
        """
        left = len(self._waiting) + len(self._hopeless)
        if not left:
            return None
        hopeless = next(iter(self._hopeless.values()), None)
        error = hopeless or self._last_error
        why = f" ({error})" if error is not None else ""
        command = f"amicrawl upload {shlex.quote(str(directory))} --to {shlex.quote(url)}"
        kind = OutputError if hopeless is None else type(hopeless)
        return kind(
            f"{left} files of {directory} were not uploaded{why}. They are all still there. To upload "
            f"them: {command}{' --remove' if remove else ''}"
        )

    def _work(self) -> None:
        while (due := self._next()) is not None:
            self._send(due)
        for attempt in range(LAST_TRIES):
            if attempt:
                self._rest(min(self._first_pause, LAST_PAUSE))
            self._send_rest()

    def _next(self) -> SealedFile | None:
        """Return the next file, when it is due; None once the crawl has ended."""
        with self._changed:
            while not (self._ending or self._is_last):
                now = time.monotonic()
                due = [file for at, file in self._waiting.values() if at <= now]
                if due and now >= self._resumes_at:
                    return due[0]
                self._changed.wait(_LOOK_EVERY if self._waiting else None)
        return None

    def _send_rest(self) -> None:
        """Try everything that is left once, as long as the bucket seems to be there."""
        self._failures = 0
        waiting = [file for _, file in self._waiting.values()]
        for file in sorted(waiting, key=lambda file: file.name == FILE_NAME):
            if self._is_last or self._failures >= FAILURES_IN_A_ROW:
                return
            if file.name == FILE_NAME and (len(self._waiting) > 1 or self._hopeless):
                # Who finds it in the bucket counts on all that it lists.
                return
            self._send(file)

    def _rest(self, seconds: float) -> None:
        if self._waiting:
            with self._changed:
                self._changed.wait_for(lambda: self._is_last, timeout=seconds)

    def _send(self, file: SealedFile) -> None:
        if self.progress is not None:
            self.progress.begin()
        try:
            self._sender.upload(file)
        except StoppedError:
            return
        except (ConflictError, NotAsSealedError) as error:
            # A sentence, and for the end too; a traceback would add nothing.
            logger.error("%s", error)  # noqa: TRY400
            with self._changed:
                self._hopeless[file.name] = error
                self._waiting.pop(file.name, None)
        except AmicrawlError as error:
            self._put_off(file, error)
        except Exception as error:  # noqa: BLE001  # a thread that dies in silence would hang the end
            self._put_off(file, OutputError(f"{file.name} could not be uploaded: {error!r}"))
        else:
            self._failures = 0
            self._last_error = None
            with self._changed:
                self.sent[file.name] = file
                self._waiting.pop(file.name, None)
                if self.progress is not None:
                    self.progress.end(file)

    def _put_off(self, file: SealedFile, error: AmicrawlError) -> None:
        with self._changed:
            # Behind the others: it may be this file alone that cannot be read or written.
            self._waiting[file.name] = self._waiting.pop(file.name)
        pause = min(self._first_pause * 2**self._failures, LONGEST_PAUSE)
        self._failures += 1
        self.failed += 1
        self._last_error = error
        self._resumes_at = time.monotonic() + pause
        logger.warning("%s. It is tried again in %.0f s.", str(error).rstrip("."), pause)


LAST_FILE = 10.0
"""Seconds that the file under way has to arrive in, once a signal ends the uploads."""
_LAST_WAIT = 10.0
"""Seconds that are then waited for the block that is under way."""


class Uploading(CrawlExtension):
    """JoinKeys an `Uploader` to the beginning and the end of a crawl."""

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
        self._is_open = self._has_all = False
        bucket = open_bucket(config.bucket, disk=run.disk)
        self._uploads = Uploads(
            config.directory,
            bucket,
            disk=run.disk,
            now=lambda: datetime.now(UTC),
            remove=config.remove_uploaded,
            is_jobs_own=run.disk.is_leased,
            stopped=self._stop.is_set,
        )
        self._uploads.begin()
        self._uploader = Uploader(self._uploads, stop=self._stop)
        self._uploads.on_moved = self._uploader.moved
        run.upload_step = lambda: str(self._uploader.progress or "")
        run.on_sealed.append(self._sealed)

    def _opened(self) -> None:
        self._is_open = True
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
        self._has_all = fault is None
        if fault is not None and self._stop.is_set():
            logger.warning("%s", fault)
            self._run.are_uploads_stopped = True
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
        """Leave the rest to the next crawl or to `amicrawl upload`: for a signal that ends the process.

        That is the second one, or the first while a crawl that has ended uploads what is left. It is not
        done then, whatever came of its URLs, and ends as one that was stopped.
        """
        if self._is_open and not self._has_all and self._run.upload_fault is None:
            self._run.are_uploads_stopped = True
        self._uploader.stop(within=LAST_FILE)
        self._uploader.join(_LAST_WAIT)
