"""Run: what the components of one crawl share.

Scrapy builds each component by itself and copies settings deeply, so live objects cannot travel in
settings. The add-on holds one `Run`; a component takes it with `run_of(crawler)`.
"""

from __future__ import annotations

import time
from functools import cached_property, partial
from typing import TYPE_CHECKING

from amicrawl.capture import Capture, Failure
from amicrawl.clock import unix_ms_now
from amicrawl.config import Identity
from amicrawl.crawl.credentials import Credentials
from amicrawl.crawl.feeding import LeftOut
from amicrawl.crawl.host_overrides import HostOverrides
from amicrawl.crawl.in_force import InForce
from amicrawl.crawl.opening import Opening, check_directory, opened_partition
from amicrawl.crawl.output import HeldArchive, Output
from amicrawl.crawl.pacing import Pacing
from amicrawl.crawl.requests import ResponsesInUse
from amicrawl.crawl.resumed import Resumed
from amicrawl.crawl.spec import CrawlSpec
from amicrawl.crawl.state import CrawlState
from amicrawl.crawl.visit import Exchanges, Visit
from amicrawl.crawl.wiring import make_resolver, make_wire, most_at_once
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, UsageError
from amicrawl.meguri import IDENTITY
from amicrawl.politeness import HostBreaker, InflightLimit
from amicrawl.record import OF_SEED, CaptureItem, Provenance
from amicrawl.urls import Refused, UrlKey, fetchable, url_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy import Request
    from scrapy.crawler import Crawler

    from amicrawl.config import CrawlConfig
    from amicrawl.crawl.decision import Ticket
    from amicrawl.crawl.dispatcher import Dispatcher
    from amicrawl.crawl.following import Following
    from amicrawl.crawl.internals import EngineControls
    from amicrawl.crawl.partition_member import Outgoing
    from amicrawl.crawl.visit import Exchanger, Links, Rule
    from amicrawl.fetch import Resolver, Wire, WireRequest
    from amicrawl.frontier import DurableFrontier
    from amicrawl.listing import SealedFile
    from amicrawl.record import Unkept
    from amicrawl.seed import Seed

_NO_SPEC = CrawlSpec()


class Run(CrawlState):
    """The frontier, the politeness rules, the recorder and the counts of one crawl."""

    metrics_url = ""
    """Where the metrics are served; empty where they are not."""
    user_agent = ""
    """The `User-Agent` of requests; empty where it is not known."""
    part_of = ""
    """What the crawl is called: its run, its job, or the crawl that several machines share."""
    obeys = True
    """Whether robots.txt counts, at whatever host."""
    following: Following | None = None
    """What is taken of the pages; None for a crawl that follows no links."""
    unkept: Unkept | None = None
    """What of the pages the crawl could not keep; None where that cannot be known."""
    credentials = Credentials({})
    """The secrets that single hosts are given, and the proxy."""
    dispatcher: Dispatcher | None = None
    """What visits rows directly; None where they go by Scrapy's engine."""
    visits_by: Callable[[Visit], Visit] | None = None
    """Returns what visits rows in place of the visit that it is given; None for that one itself."""
    is_archived_by_browser: Callable[[str], bool] | None = None
    """Returns whether the browser of a guest has fetched a URL; None without one."""
    elsewhere: Outgoing | None = None
    """What takes the offers of other partitions; None where there are none."""

    def __init__(
        self,
        config: CrawlConfig,
        identity: Identity,
        spec: CrawlSpec = _NO_SPEC,
        *,
        engine: EngineControls,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Steer *engine*; *clock* gives monotonic seconds."""
        super().__init__(engine, strict=spec.strict)
        self.config, self.identity, self.spec, self.clock = config, identity, spec, clock
        self.in_force = InForce(config)
        """What paces the crawl and what it ignores, by who says so."""
        self.limit = InflightLimit(config.inflight_start, config.inflight_min, config.inflight_max)
        self.limit.change_maximum(most_at_once(config.inflight_max))
        self.limit.on_growth = self.wake
        self.breaker = HostBreaker(config.host_fail_threshold, max_retries=config.max_retries)
        self.overrides = HostOverrides(config.host_overrides, key_of=self.key_of)
        """What holds for single hosts."""
        self.pacing = Pacing(config, self.breaker, self.overrides)
        self.gates, self.pace = self.pacing.gates, self.pacing.pace
        self.left_out = LeftOut(config.directory, record=self.record_skipped)
        """The lines of the seed list for which nothing is requested."""
        # Late: the visit opens the frontier.
        self.reading = ResponsesInUse(lambda ticket: self.visit.response_read(ticket))  # noqa: PLW0108
        """The rows whose responses callbacks are reading."""
        self.exchanges = Exchanges()
        """The exchanges on the wire."""
        self.held: HeldArchive | None = None
        """The archive of a guest, which other crawls of this process may write into, too."""
        self.resumed = Resumed()
        """What was found in the directory when the frontier was opened."""
        self.on_sealed: list[Callable[[SealedFile], None]] = []
        """Called with every file that was finished and listed; on the writer thread."""
        self.on_sitemaps: list[Callable[[list[str], str], None]] = [self._take_sitemaps]
        """Called with the sitemaps that a robots.txt names, once for each origin."""
        self.disk, self.status_disk = Disk(), Disk()
        """What the output is written with, and what may be left out: the latter never waits."""
        self.may_write: Callable[[], bool] = partial(bool, True)  # noqa: FBT003
        """Tells whether the directory is this crawl's to write to at the moment."""
        self.has_frontier = False
        """Whether the frontier is open: it was used, and is not closed yet."""
        self._frontier_closed = False

    def lease_output(self, may_write: Callable[[], bool], *, disk: Disk, status_disk: Disk) -> None:
        """Write while *may_write*, with these disks; to be called before the output is opened."""
        self.may_write, self.disk, self.status_disk = may_write, disk, status_disk

    def share_with(self, others: Outgoing) -> None:
        """Give *others* the offers of hosts that are not ours; to be called before any is made."""
        self.elsewhere = others
        if self.following is not None:
            self.following.elsewhere = others

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
            patience=self.pacing.first_byte_timeout,
            on_lag=self.limit.lagged,
        )

    @cached_property
    def visit(self) -> Visit:
        """What visits URLs for Scrapy's engine, whose middlewares have the rules."""
        return self.make_visit(links=self.following)

    def make_visit(
        self,
        *,
        links: Links | None,
        wire: Exchanger | None = None,
        rules: Sequence[Rule] = (),
        request_of: Callable[[Seed], WireRequest | Refused] | None = None,
    ) -> Visit:
        """Return what visits URLs, over *wire* in place of the run's own.

        *rules* and *request_of* are for rows that are visited whole.
        """
        return Visit(
            self.frontier,
            self.pacing,
            wire or self.wire,
            keep=self.recorder.record,
            count=self.tally.count,
            record_skipped=self.record_skipped,
            fail=self.fail,
            breaker=self.breaker,
            limit=self.limit,
            exchanges=self.exchanges,
            clock=self.clock,
            rules=rules,
            request_of=request_of,
            refusal_of=None if self.following is None else self.following.refusal_of,
            links=links,
        )

    @cached_property
    def output(self) -> Output:
        """The output directory, taken over when it is first used.

        Late, since a crawl that cannot start must leave nothing behind. Raises OutputError, UsageError
        or DamagedFileError as `Output` does.
        """
        check_directory(self.config, self.spec)
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

        The identity of what is there is the run's from then on. Raises as `output` and `LivePartition`
        do.
        """
        repaired = self.output.archive.repaired
        partition = opened_partition(self.config, self.spec, self.identity, disk=self.disk)
        self.identity = Identity(partition.state.meta[IDENTITY].decode("ascii"))
        opening = Opening(
            partition,
            self.config,
            self.spec,
            pacing=self.pacing,
            breaker=self.breaker,
            limit=self.limit,
            disk=self.disk,
            key_of=self.key_of,
            following=self.following,
            obeys=self.obeys,
            lost_urls=repaired.lost_urls,
            rows_added=repaired.rows_added,
        )
        frontier, self.resumed = opening.frontier(now=self.clock())
        self.has_frontier = True
        return frontier

    @property
    def index_rows(self) -> int:
        """How many rows the index has: those of earlier crawls, and those that are kept by now."""
        return self.resumed.index_rows + self.tally.rows

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
    def urls_by_state(self) -> dict[str, int]:
        """How many rows of the frontier have each state; none where the crawl never got that far."""
        counts = self.frontier.counts if "frontier" in vars(self) else {}
        return {status.name.lower(): number for status, number in counts.items()}

    @property
    def later(self) -> int:
        """How many URLs were busy or did not respond, and are to be tried again when they are due."""
        if "frontier" not in vars(self) or self.spec.continues:
            return 0
        return self.frontier.later

    @property
    def reads(self) -> bool:
        """Whether callbacks find what pages lead to, and not the crawl itself."""
        return self.spec.reads and self.following is None

    @property
    def sealed(self) -> Sequence[SealedFile]:
        """The files that this crawl has finished so far, oldest first."""
        return tuple(self.output.sealed) if "output" in vars(self) else ()

    def wake(self) -> None:
        """Have dispatcher and scheduler look whether something may start by now."""
        if self.dispatcher is not None:
            self.dispatcher.wake()
        super().wake()

    def follow_in_force(self) -> None:
        """Have gates, pace and in-flight limit follow what is in force, which has changed."""
        said = self.in_force
        config = self.config.model_copy(update={"delay": said.delay})
        self.pacing.follow(config, per_host=said.per_host, jitter=said.jitter)
        self.limit.change_maximum(most_at_once(said.concurrency))
        self.wake()

    def key_of(self, url: str) -> UrlKey | Refused:
        """Return the key of *url* under this crawl's identity, or why it cannot be fetched."""
        target = fetchable(url)
        if isinstance(target, Refused):
            return target
        return url_key(url, self.identity)

    def is_ours(self, host: int) -> bool:
        """Tell whether the host key *host* belongs to this crawl's shard."""
        return self.spec.takes(host)

    def _take_sitemaps(self, urls: list[str], robots: str) -> None:
        """Offer the sitemaps that the file *robots* names, where the crawl reads such."""
        if self.following is None or not self.config.sitemaps:
            return
        for offer in self.following.sites.sitemaps(urls, via=robots):
            self.frontier.offer(offer)
        self.wake()

    async def record(self, item: CaptureItem) -> None:
        """Keep *item*, then count it. Raises OutputError where the disk fails."""
        await self.recorder.record(item)
        self.tally.count(item)

    async def record_skipped(
        self,
        seed: Seed,
        failure: Failure,
        detail: str,
        found: Provenance = OF_SEED,
        *,
        page: str = "",
        resource_type: str = "",
    ) -> None:
        """Give a URL that was requested of no server its row in the index.

        *page* and *resource_type* are those of the columns.
        """
        capture = Capture(
            url=seed.url,
            started_ms=unix_ms_now(),
            duration_ms=0,
            failure=failure,
            failure_detail=detail,
        )
        item = CaptureItem(capture=capture, seed=seed, attempts=0, provenance=found)
        item.page, item.resource_type = page, resource_type
        await self.record(item)

    def abort(self) -> None:
        """End every exchange that is still under way; their rows go back to the frontier."""
        self.exchanges.abort()

    def finish(self, reason: str) -> None:
        """Write down how the crawl ended, once its files are sealed."""
        self.finish_reason = reason
        # Only a crawl that came as far as to take its output over has anything to account for.
        if self.has_frontier:
            self._close_frontier()
        if self.recorder.fault is None and self.held is not None:
            self.held.finish(self, reason, self.tally.as_dict())
        elif self.recorder.fault is None and "output" in vars(self):
            following = self.following
            self.output.finish(
                reason,
                self.tally.as_dict(),
                unfinished=self.waiting > 0 or not self.tally.seeds_ended,
                links=None if following is None else following.counts,
                ignored=None if following is None else following.selection.ignores.kept_out,
                unkept=self.unkept.as_dict() if self.unkept is not None else None,
            )

    def _close_frontier(self) -> None:
        """Write the frontier down as it stands; what keeps it from that is the run's fault."""
        frontier, self.has_frontier, self._frontier_closed = self.frontier, False, True
        if self.recorder.fault is not None or not self.may_write():
            frontier.abandon()
            return
        try:
            frontier.close(index_rows=self.index_rows)
        except AmicrawlError as error:
            self.recorder.fault = error
            frontier.abandon()

    def leave(self, ticket: Ticket, *, read_as: Request | None = None) -> None:
        """Take back *ticket*, which a request of Scrapy's engine brought.

        A row whose response a callback is to read, as that of the request *read_as*, is settled when it
        was read.
        """
        if read_as is not None and ticket.dispatch is not None and self.visit.response_received(ticket):
            self.reading.begin(read_as, ticket)
            return
        self.visit.leave(ticket)


class RunHolder:
    """What holds the `Run` of a crawler: the add-on, found by this class so as not to import it."""

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
