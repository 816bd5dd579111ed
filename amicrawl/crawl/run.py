"""Run: what the components of one crawl share.

Scrapy builds each component by itself and copies settings deeply, so live objects cannot travel in
settings. The add-on holds one `Run`; a component takes it with `run_of(crawler)`.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from amicrawl.capture import Capture, Failure
from amicrawl.crawl.crawl_spec import CrawlSpec
from amicrawl.crawl.credentials import Credentials
from amicrawl.crawl.held import HeldArchive
from amicrawl.crawl.in_force import InForce
from amicrawl.crawl.left_out import LeftOut
from amicrawl.crawl.links import SiteLinks
from amicrawl.crawl.opening import check_directory, opened_frontier
from amicrawl.crawl.output import Output
from amicrawl.crawl.pacing import Pacing
from amicrawl.crawl.reading import Reading
from amicrawl.crawl.recorder import Recorder
from amicrawl.crawl.resuming import Resumed
from amicrawl.crawl.tally import Tally
from amicrawl.crawl.visit import Underway, Visit
from amicrawl.crawl.watching.stops import LIMITS
from amicrawl.crawl.wiring import make_resolver, make_wire
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, ExitCode, UsageError
from amicrawl.frontier import DurableFrontier, Offer, Source
from amicrawl.politeness import HostBreaker, InflightLimit
from amicrawl.record import CaptureItem
from amicrawl.urls import Refused, UrlKey, fetchable, url_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from scrapy import Request
    from scrapy.crawler import Crawler

    from amicrawl.config import CrawlConfig, Identity
    from amicrawl.crawl.dispatcher import Dispatcher
    from amicrawl.crawl.following import Following
    from amicrawl.crawl.visit import Exchanger, Links, Rule, Ticket
    from amicrawl.fetch import Wire, WireRequest
    from amicrawl.fetch.resolver import Resolver
    from amicrawl.frontier import Dispatch
    from amicrawl.record import SealedFile
    from amicrawl.seed import Seed

STOP_FILE = "stop-file"
ABORTED = "aborted"
STOPPED_ON_REQUEST = frozenset({"shutdown", "stopped at once", STOP_FILE, ABORTED})
"""The finish reasons of a crawl that was asked to end: by one signal, by a second one, by a file, as a
job."""

_NOTHING_ASKED = CrawlSpec()


class Run:
    """The frontier, the politeness rules, the recorder and the counts of one crawl."""

    metrics_url = ""
    """Where the metrics are served; empty where they are not."""
    user_agent = ""
    """What servers are told of who asks; empty where it is not known."""
    part_of = ""
    """What the crawl is called: its run, its job, or the crawl that several machines share."""
    obeys = True
    """Whether robots.txt counts, at whatever host."""
    strict = False
    """Whether a seed that could not be read makes the exit code 7."""
    opening_fault: AmicrawlError | None = None
    """What kept the crawl from beginning, where its output was to be opened."""
    disk = Disk()
    """What the output is written with; to be replaced before the output is opened."""
    status_disk = Disk()
    """The same for what may be left out; it keeps nobody waiting."""
    may_write: Callable[[], bool] = staticmethod(lambda: True)
    """Tells whether the directory is this crawl's to write to at the moment."""
    on_pause: Callable[[], None] | None = None
    """What has Scrapy's own scheduler asked for nothing more; None where ours pauses by itself."""
    on_end: Callable[[str], None] | None = None
    """What closes the crawl for a reason; `Closing` puts itself here."""

    deals_seeds = False
    """Whether this process alone reads the seed list, and gives others their part of it."""
    gets_seeds = False
    """Whether another process reads the seed list, and sends what is ours."""
    elsewhere_at_once: Callable[[list[Offer]], None] | None = None
    """What keeps what belongs to other partitions, where no event loop can be waited for."""

    def __init__(
        self,
        config: CrawlConfig,
        identity: Identity,
        spec: CrawlSpec = _NOTHING_ASKED,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.identity = identity
        self.spec = spec
        self.clock = clock
        self.in_force = InForce(config)
        """What paces the crawl and what it ignores, by who says so."""
        self.limit = InflightLimit(config.inflight_start, config.inflight_min, config.inflight_max)
        self.breaker = HostBreaker(config.host_fail_threshold, max_retries=config.max_retries)
        self.pacing = Pacing(config, self.breaker, key_of=self.key_of)
        self.gates, self.pace = self.pacing.gates, self.pacing.pace
        self.recorder = Recorder()
        self.left_out = LeftOut(config.directory, record=self.record_unasked)
        """The lines of the seed list for which nothing is asked."""
        self.held: HeldArchive | None = None
        """The archive of a guest, which other crawls of this process may write into, too."""
        self.tally = Tally()
        self.resumed = Resumed()
        """What was found in the directory when the frontier was opened."""
        self._frontier_closed = False
        self._paused: frozenset[str] = frozenset()
        self.stopping = False
        """Whether the crawl was asked to end; what is in flight is being waited for."""
        self.finish_reason = ""
        """Scrapy's word for how the crawl ended; empty while it runs."""
        self.credentials = Credentials({})
        """What is said to hosts that is secret, and the proxy."""
        self.following: Following | None = None
        """What is taken of the pages; None for a crawl that follows no links."""
        self.reading = Reading(self._settle)
        """The rows whose answers callbacks are reading."""
        self.on_sitemaps: Callable[[list[str]], None] | None = None
        """Who is told of the sitemaps that a robots.txt names, once for each origin; None for nobody."""
        self.underway = Underway()
        """The exchanges on the wire."""
        self.dispatcher: Dispatcher | None = None
        """What visits rows directly; None where they go by Scrapy's engine."""
        self.elsewhere: Callable[[list[Offer]], Awaitable[list[Offer]]] | None = None
        """Who keeps what belongs to other partitions, and returns the rest; None: nobody does."""
        self.on_wake: Callable[[], None] | None = None
        """What has the scheduler look again for something to start; the scheduler puts itself here."""
        self.on_count: list[Callable[[CaptureItem], None]] = []
        """What hears of every row of the index once it is counted; each costs time per fetch."""
        self.seed_fault: AmicrawlError | None = None
        """What ended the reading of the seed list early, if anything did."""
        self.on_sealed: Callable[[SealedFile], None] | None = None
        """What hears of every file that was finished and listed; on the writer thread."""
        self.upload_fault: AmicrawlError | None = None
        """Why files were not uploaded to the bucket, if any were not."""

    @cached_property
    def resolver(self) -> Resolver:
        """What looks host names up, for everything that fetches."""
        return make_resolver(self.config)

    @cached_property
    def wire(self) -> Wire:
        """What requests go over; made when the first is sent."""
        return make_wire(
            self.config,
            resolver=self.resolver,
            patience=self.pacing.answer_timeout,
            on_lag=self.limit.lagged,
        )

    @cached_property
    def site_links(self) -> SiteLinks | None:
        """What takes the links of pages; None in a crawl that follows none."""
        if self.following is None:
            return None
        elsewhere = lambda: self.elsewhere  # noqa: E731
        return SiteLinks(self.following, self.frontier, ours=self.is_ours, elsewhere=elsewhere)

    @cached_property
    def visit(self) -> Visit:
        """What visits URLs for Scrapy's engine, whose middlewares have the rules."""
        return self.make_visit(links=self.site_links)

    def make_visit(
        self,
        *,
        links: Links | None,
        wire: Exchanger | None = None,
        rules: Sequence[Rule] = (),
        request_of: Callable[[Dispatch], WireRequest | Refused] | None = None,
    ) -> Visit:
        """Return what visits URLs, over *wire* in place of the run's own.

        *rules* and *request_of* are for rows that are visited whole.
        """
        return Visit(
            self.frontier,
            self.pacing,
            wire or self.wire,
            keep=self.record,
            keep_unasked=self.record_unasked,
            fail=self.fail,
            breaker=self.breaker,
            limit=self.limit,
            underway=self.underway,
            clock=self.clock,
            rules=rules,
            request_of=request_of,
            refusal_of=self.refusal_of,
            links=links,
        )

    @cached_property
    def output(self) -> Output:
        """The output directory, taken over when it is first asked for.

        Late, since a crawl that cannot start must leave nothing behind. Raises OutputError, UsageError
        or DamagedFileError as `Output` does.
        """
        check_directory(self)
        if not self.spec.is_guest:
            return self._opened_output()
        self.held = HeldArchive.join(
            self.config.directory, self, recorder=self.recorder, opened=self._opened_output
        )
        self.recorder = self.held.recorder
        return self.held.output

    def _opened_output(self) -> Output:
        output = Output(
            self.config,
            asked=self.spec.asked,
            user_agent=self.user_agent,
            part_of=self.part_of,
            on_sealed=self.on_sealed,
            disk=self.disk,
        )
        self.recorder.keep_in(output.archive)
        return output

    @cached_property
    def frontier(self) -> DurableFrontier:
        """The frontier in the output directory, opened and made to agree with the index when first used.

        Raises as `output` and `LivePartition` do.
        """
        frontier, self.resumed = opened_frontier(self)
        return frontier

    @property
    def index_rows(self) -> int:
        """How many rows the index has: those of earlier crawls, and those that are kept by now."""
        return self.resumed.index_rows + self.tally.rows

    @property
    def has_frontier(self) -> bool:
        """Whether the frontier is open: it was used, and is not closed yet."""
        return "frontier" in vars(self) and not self._frontier_closed

    @property
    def takes_offers(self) -> bool:
        """Whether there is any use in offering URLs: the crawl is not about to end."""
        return not self.stopping and not self._frontier_closed

    @property
    def waiting(self) -> int:
        """How many URLs are due or in flight; 0 where the crawl never got as far as a frontier."""
        if "frontier" not in vars(self):
            return 0
        return self.frontier.queued + self.frontier.in_flight

    @property
    def later(self) -> int:
        """How many URLs were busy or did not answer, and are to be tried again when they are due."""
        if "frontier" not in vars(self) or self.spec.recrawl_before is not None:
            return 0
        return self.frontier.later

    @property
    def reads(self) -> bool:
        """Whether callbacks find what pages lead to, and not the crawl itself."""
        return self.spec.reads and self.following is None

    @property
    def paused(self) -> frozenset[str]:
        """The reasons for which nothing new is started; empty while the crawl goes on."""
        return self._paused

    @property
    def sealed(self) -> Sequence[SealedFile]:
        """The files that this crawl has finished so far, oldest first."""
        return tuple(self.output.sealed) if "output" in vars(self) else ()

    @property
    def state(self) -> str:
        """One word for how the crawl stands: `running`, `paused`, `stopping` or `finished`."""
        if self.finish_reason:
            return "finished"
        if self.stopping:
            return "stopping"
        return "paused" if self._paused else "running"

    def pause(self, reason: str) -> None:
        """Start nothing new until every reason is gone; what is in flight comes to its end."""
        self._paused |= {reason}
        if self.on_pause is not None:
            self.on_pause()

    def resume(self, reason: str) -> None:
        """Take *reason* back; where it was the last, the crawl goes on at once."""
        if reason not in self._paused:
            return
        self._paused -= {reason}
        if not self._paused:
            self.wake()

    def follow_in_force(self) -> None:
        """Have gates, pace and in-flight limit follow what is in force, which has changed."""
        said = self.in_force
        config = self.config.model_copy(update={"delay": said.delay})
        self.pacing.follow(config, per_host=said.per_host, further=said.further)
        self.limit.change_maximum(said.concurrency)
        self.wake()

    def wake(self) -> None:
        """Have the scheduler look whether something may start by now."""
        if self.on_wake is not None:
            self.on_wake()

    def end(self, reason: str) -> None:
        """Have the crawl drained and sealed; *reason* is its finish reason unless it ends already."""
        if self.on_end is not None:
            self.on_end(reason)

    @property
    def fault(self) -> AmicrawlError | None:
        """What made the crawl fail, if anything did: the output, then the seed list, then the bucket."""
        return self.recorder.fault or self.opening_fault or self.seed_fault or self.upload_fault

    def exit_code(self) -> ExitCode:
        """Return what the process ends with, as the manual's table says."""
        if self.fault is not None:
            return self.fault.exit_code
        if self.finish_reason in STOPPED_ON_REQUEST:
            return ExitCode.STOPPED
        if self.finish_reason in LIMITS:
            return ExitCode.LIMIT
        if self.strict and self.tally.seeds_bad:
            return ExitCode.SEEDS_BAD
        return ExitCode.UNREACHED if self.tally.reached_nothing else ExitCode.DONE

    def key_of(self, url: str) -> UrlKey | Refused:
        """Return the key of *url* under this crawl's identity, or why it cannot be fetched."""
        target = fetchable(url)
        if isinstance(target, Refused):
            return target
        return url_key(url, self.identity)

    def is_ours(self, host: int) -> bool:
        """Tell whether the host key *host* belongs to this crawl's shard."""
        return self.spec.takes(host)

    def offer(
        self,
        seed: Seed,
        key: UrlKey,
        *,
        source: Source,
        priority: int = 0,
        hops: int = 0,
        extra: Mapping[str, object] | None = None,
    ) -> bool:
        """Offer *seed* to the frontier; False where it is known already."""
        return self.frontier.offer(
            Offer(seed=seed, key=key, source=source, priority=priority, hops=hops, extra=extra)
        )

    async def record(self, item: CaptureItem) -> None:
        """Keep *item*, then count it. Raises OutputError where the disk fails."""
        await self.recorder.record(item)
        self.tally.count(item)
        for heard in self.on_count:
            heard(item)

    async def record_unasked(self, seed: Seed, failure: Failure, detail: str) -> None:
        """Give a URL that no server was asked for its row in the index."""
        now = datetime.now(UTC)
        capture = Capture(
            url=seed.url,
            started=now.replace(microsecond=now.microsecond // 1000 * 1000),
            duration_ms=0,
            failure=failure,
            failure_detail=detail,
        )
        await self.record(CaptureItem(capture=capture, seed=seed, attempts=0))

    def refusal_of(self, dispatch: Dispatch) -> str:
        """Return why the crawl does not take a row that waited any more; empty where it does."""
        return "" if self.following is None else self.following.refusal_of(dispatch.offer)

    def fail(self, fault: AmicrawlError) -> None:
        """Have the crawl end for *fault*, unless it fails already."""
        self.recorder.fault = self.recorder.fault or fault

    def abort(self) -> None:
        """End every exchange that is still under way; their rows go back to the frontier."""
        self.underway.abort()

    def finish(self, reason: str) -> None:
        """Write down how the crawl ended, once its files are sealed."""
        self.finish_reason = reason
        # Only a crawl that came as far as to take its output over has anything to account for.
        if self.has_frontier:
            self._close_frontier()
        if self.recorder.fault is None and self.held is not None:
            self.held.finish(self, reason, self.tally.as_dict())
        elif self.recorder.fault is None and "output" in vars(self):
            links = self.following.counts if self.following is not None else None
            ignored = self.following.ignored if self.following is not None else None
            self.output.finish(
                reason,
                self.tally.as_dict(),
                unfinished=self.waiting > 0 or not self.tally.seeds_ended,
                links=links,
                ignored=ignored,
            )

    def _close_frontier(self) -> None:
        """Write the frontier down as it stands; what keeps it from that is the run's fault."""
        frontier, self._frontier_closed = self.frontier, True
        if self.recorder.fault is not None or not self.may_write():
            frontier.partition.abandon()
            return
        try:
            frontier.close(index_rows=self.index_rows)
        except AmicrawlError as error:
            self.recorder.fault = error
            frontier.partition.abandon()

    def leave(self, ticket: Ticket, *, read_as: Request | None = None) -> None:
        """Take back *ticket*, which a request of Scrapy's engine brought.

        A row whose answer a callback is to read, as that of the request *read_as*, is settled when it
        was read.
        """
        if read_as is not None and ticket.dispatch is not None and self.visit.land(ticket):
            self.reading.begin(read_as, ticket)
            return
        self.visit.leave(ticket)

    def _settle(self, ticket: Ticket) -> None:
        self.visit.settle(ticket)


class RunHolder:
    """Whoever holds the `Run` of a crawler: the add-on, found by this class so as not to import it."""

    run: Run | None = None


def run_of(crawler: Crawler) -> Run:
    """Return the `Run` of *crawler*; raises UsageError where the add-on is not on."""
    holder = crawler.get_addon(RunHolder)
    if holder is None or holder.run is None:
        raise UsageError(
            "This component needs the add-on: put "
            'ADDONS = {"amicrawl.crawl.addon.ArchiveAddon": 300} into the settings.'
        )
    return holder.run
