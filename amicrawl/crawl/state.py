"""How a crawl stands: what made it fail, at which limits it ends, with which exit code.

Limits count in this process: a crawl that is started again after one resumes, and the limit counts from
zero. What was in flight when a limit was reached is still drained and kept.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from amicrawl.crawl.decision import NotBegun, Tally
from amicrawl.crawl.recorder import Recorder
from amicrawl.errors import AmicrawlError, ExitCode

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from amicrawl.crawl.internals import EngineControls

logger = logging.getLogger(__name__)

STOP_FILE = "stop-file"
ABORTED = "aborted"
STOPPED_ON_REQUEST = frozenset({"shutdown", "stopped at once", STOP_FILE, ABORTED})
"""The finish reasons of a crawl that was asked to end: by one signal, by a second one, by a file, as a
job."""


PAGES = "limit-pages"
BYTES = "limit-bytes"
ERRORS = "limit-errors"
TIME = "limit-time"
DISK = "limit-disk"
LIMITS = frozenset({PAGES, BYTES, ERRORS, TIME, DISK})
"""The finish reasons of a crawl that a limit of its own ended."""


class CrawlState:
    """The state of one crawl, and the ways to change it."""

    def __init__(self, engine: EngineControls, *, strict: bool) -> None:
        """Steer *engine*. With *strict*, a seed that could not be read makes the exit code 7."""
        self.tally = Tally()
        self.recorder = Recorder()
        self.paused: frozenset[str] = frozenset()
        """The reasons for which nothing new is started; empty while the crawl runs."""
        self.stopping = False
        """Whether the crawl is to end; what is in flight is being waited for."""
        self.finish_reason = ""
        """Scrapy's word for how the crawl ended; empty while it runs."""
        self.opening_fault: AmicrawlError | None = None
        """What kept the output from being opened, and the crawl from beginning."""
        self.seed_fault: AmicrawlError | None = None
        """What ended the reading of the seed list early, if anything did."""
        self.upload_fault: AmicrawlError | None = None
        """Why files were not uploaded to the bucket, if any were not."""
        self.are_uploads_stopped = False
        """Whether a signal has ended the uploads before all files were in the bucket."""
        self.upload_step: Callable[[], str] = str
        """Returns how far the uploads at the end are; empty where there are none, and before the end."""
        self._engine = engine
        self._strict = strict

    @property
    def state(self) -> str:
        """One word for how the crawl stands: `running`, `paused`, `stopping` or `finished`."""
        if self.finish_reason:
            return "finished"
        if self.stopping:
            return "stopping"
        return "paused" if self.paused else "running"

    @property
    def step(self) -> str:
        """How far its end is: `sealed`, `uploading 3 of 7, 41 %`, `listed`; empty before it."""
        return self.upload_step() or "sealed" if self.finish_reason else ""

    def pause(self, reason: str) -> None:
        """Start nothing new until every reason is gone; what is in flight comes to its end."""
        self.paused |= {reason}
        self._engine.pause()

    def resume(self, reason: str) -> None:
        """Take *reason* back; where it was the last, the crawl continues at once."""
        if reason not in self.paused:
            return
        self.paused -= {reason}
        if not self.paused:
            self._engine.resume()
            self.wake()

    def check_begins(self) -> None:
        """Raise NotBegun where the crawl begins nothing new: it is paused, or ending."""
        if self.paused or self.stopping:
            raise NotBegun

    def wake(self) -> None:
        """Have the scheduler look whether something may start by now."""
        self._engine.wake()

    def end(self, reason: str) -> None:
        """Have the crawl drained and sealed; *reason* is its finish reason unless it ends already."""
        if self._engine.close(reason):
            self.stopping = True

    def fail(self, fault: AmicrawlError) -> None:
        """Have the crawl end for *fault*, unless it fails already."""
        self.recorder.fault = self.recorder.fault or fault

    def fail_if_raised(self, task: asyncio.Task[Any], what: str) -> None:
        """Have the crawl end for what *task*, which has ended, has raised while it did *what*."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(fault_of(what, error))

    @property
    def fault(self) -> AmicrawlError | None:
        """What made the crawl fail, if anything did: the output, then the seed list, then the bucket."""
        return self.recorder.fault or self.opening_fault or self.seed_fault or self.upload_fault

    def exit_code(self) -> ExitCode:
        """Return what the process ends with, as the manual's table says."""
        if self.fault is not None:
            return self.fault.exit_code
        if self.finish_reason in STOPPED_ON_REQUEST or self.are_uploads_stopped:
            return ExitCode.STOPPED
        if self.finish_reason in LIMITS:
            return ExitCode.LIMIT
        if self._strict and self.tally.seeds_bad:
            return ExitCode.SEEDS_BAD
        return ExitCode.UNREACHED if self.tally.reached_nothing else ExitCode.DONE


def fault_of(what: str, error: BaseException) -> AmicrawlError:
    """Return what a crawl ends for where *what* it did raised *error*, which is logged if unexpected."""
    if isinstance(error, AmicrawlError):
        return error
    logger.error("%s failed.", what, exc_info=error)
    return AmicrawlError(f"{what} failed: {error!r}. This is a fault of amicrawl.")
