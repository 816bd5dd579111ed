"""Pace: however a crawl is killed, stopped, moved and dealt anew, no host sees a gap below its pace.

The frontier on disk, the gates and the rules are those of a crawl; server, processes and clock are a
model. What is tried is drawn: hosts with and without Crawl-delay, responses with Retry-After, errors
that lengthen the back-off, time limits that are tried again, kills in mid-request, other numbers of
processes, another worker that goes on with a copy of the directory.
"""

from __future__ import annotations

import shutil
import tempfile
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from frontier.live.crawls import META, offer_of
from hypothesis import example, given
from hypothesis import strategies as st

from amicrawl.capture import Failure
from amicrawl.config import CrawlConfig
from amicrawl.crawl.decision import Ticket
from amicrawl.crawl.host_overrides import HostOverrides
from amicrawl.crawl.pacing import Pacing
from amicrawl.disk import Disk
from amicrawl.frontier import DurableFrontier, Outcome
from amicrawl.meguri import LivePartition, deal_frontier, gather_frontiers
from amicrawl.politeness import HostBreaker, InflightLimit
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.frontier import Dispatch

HOSTS, PAGES = (1, 2, 3), 30
BEGAN = 1_800_000_000.0
NOTED = 2.0
"""Seconds from which on a pause must outlast a kill: a crawl takes about as long to be started again."""
SOON = 0.001


class Response(NamedTuple):
    """What the server sends, or does not."""

    status: int = 200
    retry_after: float = 0.0
    failure: Failure | None = None


RESPONSES = (
    Response(),
    Response(404),
    Response(429),
    Response(429, 40.0),
    Response(503, 7.0),
    Response(503),
    Response(0, failure=Failure.RESPONSE_TIMEOUT),
    Response(0, failure=Failure.CONNECTION_RESET),
)


class Server:
    """What the hosts see and want."""

    def __init__(self, crawl_delays: Sequence[float]) -> None:
        self.crawl_delays = dict(zip(HOSTS, crawl_delays, strict=True))
        self.now = BEGAN
        self.last: dict[int, float] = {}
        self.not_before: dict[int, float] = {}
        self.pace: dict[int, float] = {}
        """Seconds between two requests that the crawl last went by."""
        self.told: set[int] = set()
        """The hosts whose robots.txt the crawl has, which outlasts kills."""
        self.requests = 0

    def request(self, host: int, what: str) -> None:
        """Note a request, which must not come too early."""
        self.requests += 1
        gap = self.now - self.last.get(host, -inf)
        assert gap >= self.pace.get(host, 0.0) - SOON, f"{what}: {gap:g} s after the last"
        assert self.now >= self.not_before.get(host, -inf) - SOON, f"{what}: before its Retry-After"
        self.last[host] = self.now


class Process:
    """One process of the crawl: its frontier, its gates, and a clock that began at its start."""

    def __init__(self, directory: Path, server: Server) -> None:
        self.directory, self.server, self.began = directory, server, server.now
        config = CrawlConfig(delay=1.0, per_host=1, address_delay=0.0, backoff_max=300.0)
        breaker = HostBreaker(1000, max_retries=2)
        self.pacing = Pacing(config, breaker, HostOverrides({}, key_of=lambda _: UrlKey(0, 0)))
        self.partition = LivePartition(directory, disk=Disk(), hour=int(server.now // 3600), meta=META)
        self.frontier = DurableFrontier(
            self.partition,
            self.pacing.gates,
            breaker,
            InflightLimit(100, 1, 1000),
            wall=lambda: server.now,
            now=0.0,
            pace=self.pacing.pace,
        )
        self.met: set[int] = set()
        self.under_way: list[tuple[Dispatch, Ticket]] = []
        for host in HOSTS:
            # What is shorter is not noted, and has passed when a crawl has been started again.
            if server.pace.get(host, 0.0) < NOTED:
                server.pace.pop(host, None)

    @property
    def now(self) -> float:
        return self.server.now - self.began

    def offer(self, host: int) -> None:
        for path in range(PAGES):
            self.frontier.offer(offer_of(host, path + 1))

    def begin(self) -> bool:
        """Request the next page, or the robots.txt of its host; return whether there was one."""
        dispatch = self.frontier.next(self.now)
        if dispatch is None:
            return False
        host = dispatch.key.host
        ticket = Ticket(host, dispatch, started=self.now)
        if host not in self.met:
            if host not in self.server.told:
                self._robots(host, ticket)
                return True
            # Known from an earlier process: the gate must have been shut for as long.
            self._slow_down(host)
        self.server.request(host, "page")
        self.under_way.append((dispatch, ticket))
        return True

    def end(self, response: Response) -> None:
        """Let the first request under way have *response*."""
        dispatch, ticket = self.under_way.pop(0)
        ticket.outcome = Outcome(
            response.status,
            response.failure,
            responded=response.failure is None,
            retry_after=response.retry_after,
        )
        host = dispatch.key.host
        if response.retry_after:
            self.server.not_before[host] = self.server.now + response.retry_after
        self.pacing.after_exchange(ticket, self.now)
        self.frontier.settle(dispatch.key, ticket.outcome, self.now)
        self._note_pace(host)

    def end_process(self, *, killed: bool) -> None:
        """End at once, or in order: then what is under way goes back."""
        if killed:
            self.partition.abandon()
            return
        for dispatch, ticket in self.under_way:
            self.pacing.after_exchange(ticket, self.now)
            self.frontier.release(dispatch.key, self.now)
        self.frontier.close()

    def _robots(self, host: int, ticket: Ticket) -> None:
        self.server.request(host, "robots.txt")
        self._slow_down(host)
        self.server.told.add(host)
        self.frontier.hosts.note_robots(
            host, b"", fetched=self.server.now, expires=self.server.now + 86_400, missing=True
        )
        assert ticket.dispatch is not None
        self.frontier.release(ticket.dispatch.key, self.now)

    def _slow_down(self, host: int) -> None:
        self.met.add(host)
        if self.server.crawl_delays[host]:
            self.pacing.slow_down(host, self.server.crawl_delays[host])
        self._note_pace(host)

    def _interval(self, host: int) -> float:
        return max(self.pacing.gates.delay_of(host), self.pacing.pace.interval(host))

    def _note_pace(self, host: int) -> None:
        self.server.pace[host] = self._interval(host)


class Crawl:
    """A crawl of one process or several, in folders of *home*."""

    def __init__(self, home: Path, server: Server) -> None:
        self.home, self.server, self.folders = home, server, 0
        self.processes = [Process(self._folder(), server)]
        for host in HOSTS:
            self.processes[0].offer(host)
        self.processes[0].frontier.flush()

    def _folder(self) -> Path:
        self.folders += 1
        return self.home / str(self.folders)

    def do(self, word: str, values: Sequence[Any]) -> None:
        """Take the step *word*, of a process, of all, or of the clock."""
        process = self.processes[int(values[0]) % len(self.processes)]
        match word, values:
            case "begin", _:
                self.advance(20.0)
                process.begin()
            case "page", [_, response, latency]:
                self.advance(20.0)
                if process.begin() and process.under_way:
                    self.server.now += latency
                    process.end(response)
            case "wait", [seconds]:
                self.advance(seconds)
            case "flush", _:
                process.frontier.flush()
            case "again", [killed, away, moved]:
                self.start_again(killed=killed, away=away, moved=moved)
            case "deal", [number, killed]:
                self.deal(number, killed=killed)

    def advance(self, seconds: float) -> None:
        """Let time pass: to the next moment of a process, but *seconds* at most."""
        moments = [
            moment + process.began
            for process in self.processes
            if (moment := process.frontier.next_moment(process.now)) is not None
        ]
        self.server.now += min([seconds, *(max(each - self.server.now, 0.0) for each in moments)])

    def start_again(self, *, killed: bool, away: float, moved: bool) -> None:
        """End all processes, and *away* seconds later start them, or others on copies, again."""
        directories = [process.directory for process in self.processes]
        for process in self.processes:
            process.end_process(killed=killed)
        self.server.now += away
        if moved:
            directories = [shutil.copytree(each, self._folder()) for each in directories]
        self.processes = [Process(each, self.server) for each in directories]

    def deal(self, number: int, *, killed: bool) -> None:
        """Go on with *number* processes."""
        self.start_again(killed=killed, away=NOTED, moved=False)
        for process in self.processes:
            process.end_process(killed=False)
        whole = self._folder()
        whole.mkdir()
        sources = [process.directory for process in self.processes]
        gather_frontiers(sources, whole, index_rows=0, disk=Disk())
        directories = [self._folder() for _ in range(number)]
        deal_frontier(whole, directories, disk=Disk())
        self.processes = [Process(each, self.server) for each in directories]


Step = tuple[Any, ...]
WHICH = st.integers(0, 5)
PAGE = st.tuples(st.just("page"), WHICH, st.sampled_from(RESPONSES), st.floats(0, 3))
STEPS = st.one_of(
    PAGE,
    PAGE,
    st.tuples(st.just("begin"), WHICH),
    st.tuples(st.just("wait"), st.floats(0, 20)),
    st.tuples(st.just("flush"), WHICH),
    st.tuples(st.just("again"), st.booleans(), st.floats(NOTED, 9), st.booleans()),
    st.tuples(st.just("deal"), st.integers(1, 3), st.booleans()),
)
ROBOTS: list[Step] = [("begin", 0)] * 3
BUSY, RESET = Response(503), Response(0, failure=Failure.CONNECTION_RESET)


@given(
    crawl_delays=st.tuples(*[st.sampled_from([0.0, 2.5, 12.0])] * 3), steps=st.lists(STEPS, max_size=40)
)
# Of the first page after a start: its host requested a delay in an earlier run.
@example((2.5,) * 3, [*ROBOTS, ("deal", 1, False), *ROBOTS, ("deal", 1, True), *ROBOTS])
# In back-off, and cut off by a stop.
@example(
    (2.5, 12.0, 12.0), [*ROBOTS, ("page", 0, BUSY, 1.0), *ROBOTS, ("again", False, 2.0, False), *ROBOTS]
)
# Failed in passing, and to be tried again.
@example(
    (12.0,) * 3,
    [*ROBOTS, *[("page", 0, RESET, 0.0)] * 3, ("flush", 0), ("again", True, 2.0, False), *ROBOTS],
)
def test_no_gap_is_below_the_pace_whatever_becomes_of_the_processes(
    crawl_delays: Sequence[float], steps: Sequence[Step]
) -> None:
    server = Server(crawl_delays)
    with tempfile.TemporaryDirectory() as home:
        crawl = Crawl(Path(home), server)
        for word, *values in steps:
            crawl.do(word, values)
        for process in crawl.processes:
            process.end_process(killed=True)
