"""JobLink: the extension by which a crawl that is a job is reported to Redis, and steered from there.

Four times a second it looks whether the lease is good and pauses the crawl while it is not; once a
second it feeds the link. Both happen on the event loop, so that a crawl which hangs stops looking alive.
Nothing here waits for Redis but the very last flush, for a while.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

from scrapy import signals

from amicrawl.crawl import Run, run_of
from amicrawl.crawl.state import ABORTED
from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.fleet.checkpoints import write_copy
from amicrawl.fleet.database import put_dead_letter
from amicrawl.fleet.jobs.accounting import Figures, figures_in
from amicrawl.fleet.jobs.crawl.live_job_settings import LiveJobSettings
from amicrawl.fleet.jobs.crawl.opening import OPENING, end_by_hand
from amicrawl.fleet.jobs.crawl.reporting import JobFacts, JobLog
from amicrawl.fleet.jobs.link import CrawlLink, Fed
from amicrawl.fleet.jobs.live_settings import FIELDS, live_settings
from amicrawl.fleet.leases import Fence, LeasedDisk, LeaseLost
from amicrawl.listing import TABLE_NAME
from amicrawl.record import unkept_sentences
from amicrawl.threads import on_a_thread

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from scrapy.crawler import Crawler

    from amicrawl.disk import Disk
    from amicrawl.fleet.jobs.crawl.opening import HeldJob
    from amicrawl.fleet.jobs.live_settings import FlushReply
    from amicrawl.record import CaptureItem

logger = logging.getLogger(__name__)

BY_LEASE = "lease"
"""The reason for a pause since the lease cannot be kept."""
LOST = "lease lost"
"""The finish reason of a crawl whose job is another owner's."""

_LOOK_EVERY = 0.25
_FEED_EVERY = 1.0
_CLOSING = 300.0
_LAST_FLUSH = 30.0
_IN_A_HURRY = 3.0
_ABORT_DRAIN = 3.0
_DONE = frozenset({ExitCode.DONE, ExitCode.SEEDS_BAD, ExitCode.LIMIT, ExitCode.UNREACHED})


class JobLink:
    """Connects one crawl to its job."""

    def __init__(self, crawler: Crawler, run: Run, job: HeldJob) -> None:
        """Take the directory for the job and keep its lease; raises LeaseLost or OutputError."""
        self._crawler = crawler
        self._run = run
        self._job = job
        self._loop: asyncio.AbstractEventLoop | None = None
        self._link = CrawlLink(
            job.store, job.copy, ttl=job.ttl, on_reply=self._on_reply, renewed=job.renewed
        )
        self._orders = LiveJobSettings(run)
        self._facts = JobFacts(run, self._orders, self._link, job.claim)
        self._log = JobLog(run, self._link.inbox, self._orders, self._facts)
        self._found: Figures | None = None
        """What the directory held before; None while that is being counted."""
        self._new = Figures()
        self._timer: asyncio.TimerHandle | None = None
        self._fed_at = float("-inf")
        self._aborted = False
        self._ended = False
        self._counting: threading.Thread | None = None
        self._writing: asyncio.Future[None] | None = None
        self._faults: set[str] = set()
        """What in Redis could not be followed when it last responded with news."""
        self._complaints: set[asyncio.Future[None]] = set()
        self._link.grant(OPENING)
        self._link.start()
        self._take_directory()
        copy = job.copy
        self._first_settings = self._orders.follow(
            live_settings(
                "",
                {name: copy.record.get(name, "") for name in FIELDS},
                copy.ignores,
                [text for pair in copy.desired.items() for text in pair],
            )
        )
        run.tally.on_count.append(self._counted)
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closing, signals.spider_closed)
        crawler.signals.connect(self._stopped, signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*, whose spider has a job."""
        return cls(crawler, run_of(crawler), cast("Any", crawler.spider).job)

    def _take_directory(self) -> None:
        """Put up the fence, and see to it that nothing is written without the lease."""
        run, job = self._run, self._job
        directory = run.config.directory
        directory.mkdir(parents=True, exist_ok=True)
        fence = Fence(directory, job.copy.unit, job.copy.token)
        run.lease_output(
            lambda: self._link.may_begin,
            disk=LeasedDisk(self._link, fence, patient=True),
            status_disk=LeasedDisk(self._link, fence, patient=False),
        )
        fence.put_up(disk=run.disk)
        job.copy.write(directory, disk=run.disk)

    def _opened(self) -> None:
        # As in `Closing`, whose trigger is added after this one: a second signal closes no spider.
        from twisted.internet import reactor  # noqa: PLC0415  # importing it earlier would install one

        cast("Any", reactor).addSystemEventTrigger("before", "shutdown", self._hurry)
        cast("Any", reactor).addSystemEventTrigger("after", "shutdown", self._end_at_once)
        self._loop = asyncio.get_running_loop()
        # No component has received what was published until now.
        self._link.read_again()
        self._link.grant(0)
        self._count_what_was_there()
        self._log.started(self._job, self._first_settings)
        self._tick()

    def _count_what_was_there(self) -> None:
        """Count the rows of the index as it is now, on a thread."""
        try:
            # Opened before anything is added to it; the crawl replaces it as a whole when it ends.
            table: BinaryIO = (self._run.config.directory / TABLE_NAME).open("rb")
        except (OSError, AmicrawlError):
            self._found = Figures()
            return

        def count() -> None:
            with table:
                try:
                    self._found = figures_in(table)
                except Exception as error:  # noqa: BLE001  # whatever the file is: the crawl is worth more
                    logger.warning("What the directory held before cannot be counted: %r", error)
                    self._found = Figures()

        self._counting = threading.Thread(target=count, name="amicrawl-figures", daemon=True)
        self._counting.start()

    def _counted(self, item: CaptureItem) -> None:
        self._new.count(item)
        self._log.counted(item)

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY, self._tick)
        self._look_at_the_lease()
        now = time.monotonic()
        if now - self._fed_at >= _FEED_EVERY - _LOOK_EVERY / 2 and self._crawler.engine is not None:
            self._fed_at = now
            self._log.every_second()
            self._link.feed(self._fed())

    def _look_at_the_lease(self) -> None:
        run, link = self._run, self._link
        if link.lost:
            self._lose(link.lost)
        elif not link.may_begin:
            if BY_LEASE not in run.paused:
                logger.warning("The lease of the job cannot be renewed: nothing is fetched or written")
                run.pause(BY_LEASE)
        elif BY_LEASE in run.paused:
            logger.info("The lease of the job is renewed: the crawl continues")
            self._link.inbox.tell("The lease could not be renewed for a while; the crawl continues.")
            run.resume(BY_LEASE)

    def _lose(self, why: str) -> None:
        """End the crawl at once, without another octet written."""
        run = self._run
        if not isinstance(run.recorder.fault, LeaseLost):
            logger.error("The lease of the job is lost, nothing is written any more: %s", why)
            run.recorder.fault = LeaseLost(f"The lease of job {self._job.ident} is lost: {why}.")
            run.pause(BY_LEASE)
            run.end(LOST)
            run.abort()

    def _fed(self, *, is_last: bool = False) -> Fed:
        """Return what is to be reported now."""
        figures: dict[str, str | int] = {}
        total: Figures | None = None
        if self._found is not None:
            total = self._found.plus(self._new)
            run = self._run
            # Closed, it has what a crawl leaves that was aborted, stopped or reached a limit.
            waiting = run.frontier.queued + run.later if run.has_frontier else run.waiting
            figures = total.as_fields(waiting=waiting)
        if self._aborted:
            figures["aborted"] = "true"
        if self._run.step:
            figures["amicrawl_step"] = "reported" if is_last else self._run.step
        return Fed(figures, self._facts.current(total, own=self._new, is_last=is_last))

    def _on_reply(self, reply: FlushReply) -> None:
        """Take *reply* over to the event loop; on the thread of the link."""
        if self._loop is not None and not self._loop.is_closed():
            # Closed in between, there is nothing left to steer.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._follow, reply, self._job.copy.encoded())

    def _follow(self, reply: FlushReply, copy: bytes) -> None:
        """Do what *reply* says; on the event loop."""
        if reply.what == "RESTORED":
            self._facts.begin_anew()
        if self._link.lost:
            self._lose(self._link.lost)
            return
        if reply.settings is not None:
            changed = self._orders.follow(reply.settings)
            if changed:
                self._log.tell("Settings: " + ", ".join(changed))
            self._write_copy(copy)
        self._tell_of_faults(reply)
        if reply.abort or reply.failed:
            self._abort(marked=reply.abort)

    def _tell_of_faults(self, reply: FlushReply) -> None:
        """Say what in Redis cannot be followed, each thing once as long as it lasts."""
        faults = dict.fromkeys((*self._orders.faults, *reply.faults))
        new = [fault for fault in faults if fault not in self._faults]
        self._faults = set(faults)
        for fault in new:
            self._log.tell(f"Invalid, the previous value stays in force: {fault}")
        if new:
            task = asyncio.ensure_future(on_a_thread(lambda: self._complain(new)))
            self._complaints.add(task)
            task.add_done_callback(self._complaints.discard)

    def _complain(self, faults: list[str]) -> None:
        """Put *faults* among the dead letters; on a thread."""
        store = self._job.store
        for fault in faults:
            put_dead_letter(store, where=store.keys.job(self._job.ident), why=fault)

    def _abort(self, *, marked: bool) -> None:
        if self._aborted or self._run.stopping:
            return
        self._aborted = marked
        # By these words ArchiveBot's page knows an aborted job.
        self._log.tell(
            "Script requested immediate stop" if marked else "The job was marked as failed: it ends"
        )
        self._run.end(ABORTED)
        asyncio.get_running_loop().call_later(
            min(self._run.config.drain_time, _ABORT_DRAIN), self._run.abort
        )

    def _write_copy(self, copy: bytes) -> None:
        """Keep `job.json` true, on a thread; one that is missed is written the next time."""
        if self._writing is None or self._writing.done():
            directory, disk = self._run.config.directory, self._run.status_disk
            self._writing = asyncio.ensure_future(
                on_a_thread(lambda: _write(directory, copy, disk=disk))
            )

    def _closing(self, reason: str) -> None:
        # The frontier is closed on this loop, which takes its time where it is large.
        self._link.grant(_CLOSING)
        if self._job.by_hand and (unkept := self._run.unkept) is not None:
            # A pipeline passes on what the crawl prints, in which these lines are, too.
            for line in unkept_sentences(unkept.as_dict(), str(self._run.config.directory)):
                self._log.tell(line)
        self._log.tell(f"The crawl has ended: {reason}")

    async def _stopped(self) -> None:
        """Report the end; the crawl has sealed its files by now."""
        if self._ended:
            return
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
        if self._link.lost:
            self._lose(self._link.lost)
            return
        self._log.ended(self._job, is_done=self._is_done())
        if self._counting is not None:
            await on_a_thread(partial(self._counting.join, _LAST_FLUSH))
        fed = self._fed(is_last=True)
        if self._writing is not None:
            await asyncio.wait([self._writing])
        arrived = await on_a_thread(lambda: self._report_end(fed, _LAST_FLUSH))
        if not arrived:
            logger.warning("The last lines of the job did not arrive: %s", self._link.trouble)
        if self._job.by_hand and not self._link.lost:
            # A pipeline does that by itself, once the process is gone.
            await on_a_thread(self._finish_by_hand)
        self._job.store.close()

    def _report_end(self, fed: Fed, patience: float) -> bool:
        """Send *fed* and all entries, for *patience* seconds at most; return whether that arrived.

        Until then `job.json` has the entries, for the process that reports the end. On a thread.
        """
        run = self._run
        return self._link.finish(
            fed,
            patience,
            keep=lambda copy: _write(run.config.directory, copy, disk=run.status_disk),
        )

    def _is_done(self) -> bool:
        return self._run.exit_code() in _DONE

    def _finish_by_hand(self) -> None:
        """End the job in Redis, which no pipeline will; on a thread."""
        end_by_hand(self._job, self._run, is_done=self._is_done(), is_aborted=self._aborted)

    def _hurry(self) -> None:
        """Keep the lease for what a second signal still has sealed, and do not wait for it for ever."""
        if self._ended:
            return
        self._link.grant(_CLOSING)
        if not self._link.is_held:
            timer = threading.Timer(_IN_A_HURRY, self._give_up)
            timer.daemon = True
            timer.start()

    def _give_up(self) -> None:
        if not self._link.is_held:
            self._link.lose("the crawl was stopped before the lease could be had again")

    def _end_at_once(self) -> None:
        if self._ended:
            return
        self._ended = True
        if not self._link.lost:
            self._report_end(self._fed(is_last=True), _IN_A_HURRY)
            if self._job.by_hand:
                self._finish_by_hand()


def _write(directory: Path, content: bytes, *, disk: Disk) -> None:
    """Replace `job.json` in *directory*; what keeps it from that is logged."""
    try:
        write_copy(directory, content, disk=disk)
    except AmicrawlError as fault:
        logger.warning("job.json is not written, and the crawl continues: %s", fault)
