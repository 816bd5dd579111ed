"""How a crawl stands: its counts, what made it fail, at which limits it ends, with which exit code.

Limits count in this process: a crawl that is started again after one resumes, and the limit counts from
zero. What was in flight when a limit was reached is still drained and kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amicrawl.crawl.decision import NotBegun
from amicrawl.crawl.recorder import Recorder
from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.capture import Failure
    from amicrawl.crawl.internals import EngineControls
    from amicrawl.errors import AmicrawlError
    from amicrawl.record import CaptureItem

CLASSES = ("ok", "unchanged", "redirect", "client_error", "server_error", "failed", "skipped")
"""The counts of which each row of the index is in exactly one."""

STATS = {
    **{name: f"amicrawl/fetches/{name}" for name in CLASSES},
    "rows": "amicrawl/rows",
    "bytes_received": "amicrawl/bytes_received",
    "seeds_read": "amicrawl/seeds/read",
    "seeds_bad": "amicrawl/seeds/bad",
    "seeds_elsewhere": "amicrawl/seeds/elsewhere",
    "seeds_known": "amicrawl/seeds/known",
}
"""The stats key under which each count is found when the crawl has ended."""


@dataclass(slots=True)
class Tally:
    """Counts of one crawl. Every row of the index is in exactly one of the classes."""

    ok: int = 0
    """2xx and other responses that are in no class below, unchanged ones excepted."""
    unchanged: int = 0
    """Responses equal to an earlier capture."""
    redirect: int = 0
    """3xx responses."""
    client_error: int = 0
    """4xx responses."""
    server_error: int = 0
    """5xx responses."""
    failed: int = 0
    """Fetches that brought no response."""
    skipped: int = 0
    """URLs that were not requested: host given up, robots.txt, the crawl's own rules."""
    bytes_received: int = 0
    """Bytes of response heads and bodies as received."""
    seeds_read: int = 0
    """Seeds that the reader delivered."""
    seeds_bad: int = 0
    """Lines of the seed list that could not be used."""
    seeds_elsewhere: int = 0
    """Seeds that belong to another shard."""
    seeds_known: int = 0
    """Seeds that were already in the frontier."""
    seeds_ended: bool = False
    """Whether the seed list was read to its end, so that the total is known."""
    seeds_announced: int | None = None
    """How many entries the seed list has, counted ahead of the reading; None where not known yet."""
    failures: Counter[str] = field(default_factory=Counter)
    """Rows without a response, by the first word of the index's `error` column."""
    on_count: list[Callable[[CaptureItem], None]] = field(default_factory=list)
    """Called with every row of the index once it is counted; each costs time per fetch."""

    @property
    def responses(self) -> int:
        """Fetches that brought a response, whatever its status."""
        return self.ok + self.unchanged + self.redirect + self.client_error + self.server_error

    @property
    def rows(self) -> int:
        """Rows of the index so far."""
        return self.responses + self.failed + self.skipped

    @property
    def reached_nothing(self) -> bool:
        """Whether something was requested and no response came, or no seed was for this shard."""
        is_elsewhere = bool(self.seeds_read) and self.seeds_elsewhere == self.seeds_read
        return is_elsewhere or (self.failed > 0 and not self.responses)

    def count(self, item: CaptureItem) -> None:
        """Put *item*, which is kept, into its class, and tell those who listen."""
        capture = item.capture
        self.bytes_received += capture.received
        if 200 <= capture.status < 300 and not item.unchanged and capture.failure is None:
            self.ok += 1
        else:
            self.add(capture.status, capture.failure, unchanged=item.unchanged)
        for heard in self.on_count:
            heard(item)

    def add(self, status: int, failure: Failure | None, *, unchanged: bool, rows: int = 1) -> None:
        """Count *rows* rows of the index that say this."""
        if failure is not None:
            name = "skipped" if failure.never_requested else "failed"
            self.failures[failure.value] += rows
        elif unchanged:
            name = "unchanged"
        elif status >= 500:
            name = "server_error"
        else:
            name = {3: "redirect", 4: "client_error"}.get(status // 100, "ok")
        setattr(self, name, getattr(self, name) + rows)

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name, `rows` included."""
        return {name: getattr(self, name) for name in STATS}

    def as_stats(self) -> dict[str, int]:
        """Return the counts by Scrapy's stats key, for tools that look there when a crawl has ended."""
        counts = self.as_dict()
        return {key: counts[name] for name, key in STATS.items()}


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
