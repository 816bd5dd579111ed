"""A crawl of 1,000 hosts by a scripted clock: nobody is contacted too early, and nobody is left waiting.

Everything that decides is real: the frontier, the gates of hosts, the lines in front of addresses, the
pace. Made up are the hosts: slow and fast ones, with and without a Crawl-delay, some with a limit of
their own that they defend with 429, some that want no requests for a while, some that hang up; most
share an address with many others. Besides pages, robots.txt is requested once per host, now and then a
picture, and where a page redirects to: another host, often enough one of those that are in demand.

`Watch` looks on. It reckons by itself what each host may expect, from what the host said alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING

import pytest
from contract.frontiers import durable as durable_frontier
from contract.frontiers import make_world, offer

from amicrawl.capture import Failure
from amicrawl.crawl.pacing import AddressPace
from amicrawl.frontier import Outcome, Settled
from amicrawl.politeness.pace import HostPace, PaceRules

if TYPE_CHECKING:
    from amicrawl.urls import UrlKey

HOSTS, PAGES = 1000, 20
ADDRESS_DELAY = 0.05
RULES = PaceRules(delay=0.5, latency_factor=2.0, back_off_ceiling=60.0, retry_after_cap=120.0)
EXACT = 1e-6
"""What the rounding of floats may cost, in seconds."""


@dataclass
class Host:
    """A made-up host, and what it remembers of the requests to it."""

    key: int
    address: str
    latency: float
    crawl_delay: float = 0.0
    limit: float = 0.0
    """Seconds: a request that comes sooner gets 429."""
    busy: float = 0.0
    """How often it responds with 503, with or without a Retry-After of seven and a half seconds."""
    hangs_up: float = 0.0
    requested: float = -inf

    def respond(self, now: float, chance: random.Random) -> tuple[int, float, float]:
        """Return the status, the latency and the Retry-After of a request that starts at *now*."""
        rest, self.requested = now - self.requested, now
        latency = self.latency * chance.uniform(1.0, 1.5)
        if chance.random() < self.hangs_up:
            return 0, latency, 0.0
        if rest < self.limit:
            return 429, latency, 0.0
        if chance.random() < self.busy:
            return 503, latency, chance.choice([0.0, 7.5])
        return 200, latency, 0.0


def made_up_hosts(chance: random.Random) -> dict[int, Host]:
    hosts = {}
    for key in range(1, HOSTS + 1):
        shared = key <= 600
        host = Host(key, f"192.0.2.{key % 12}" if shared else f"2001:db8::{key:x}", 0.0)
        host.latency = chance.choice([0.01, 0.05, 0.2, 0.2, 0.6, 1.5])
        host.crawl_delay = chance.choice([0, 0, 0, 0, 0, 0.75, 1.5, 3.3])
        host.limit = chance.choice([0] * 19 + [1.3])
        host.busy = chance.choice([0] * 29 + [0.05, 0.6])
        host.hangs_up = chance.choice([0] * 29 + [0.2])
        hosts[key] = host
    return hosts


@dataclass
class Watch:
    """What each host may expect, reckoned from what it said."""

    crowd: dict[str, int]
    """How many hosts there are on each address."""
    starts: int = 0
    started: dict[int, float] = field(default_factory=dict)
    ended: dict[int, float] = field(default_factory=dict)
    address_started: dict[str, float] = field(default_factory=dict)
    until: dict[int, float] = field(default_factory=dict)
    streak: dict[int, int] = field(default_factory=dict)
    wanted_since: dict[int, float] = field(default_factory=dict)
    """When there was something to request from a host again, where there had been nothing."""
    crawl_delay: dict[int, float] = field(default_factory=dict)
    least_latency: dict[int, float] = field(default_factory=dict)
    longest_streak: int = 0

    def start(self, host: Host, now: float, pace: HostPace) -> None:
        key = host.key
        self.starts += 1
        assert now >= self.address_started.get(host.address, -inf) + ADDRESS_DELAY - EXACT
        self.address_started[host.address] = now
        if key in self.started:
            before = self.started[key]
            assert self.ended[key] >= before, "one request at a time"
            assert now >= before + self.due(key) - EXACT
            assert now >= before + pace.interval(key) - EXACT
            paced = max(self.until.get(key, -inf), before + pace.interval(key))
            allowed = max(self.ended[key], self.wanted_since.get(key, -inf), paced)
            # In the line of its address each of the others comes at most once before it; half a second
            # is what a second attempt waits.
            assert now <= allowed + (self.crowd[host.address] + 1) * ADDRESS_DELAY + 0.5 + EXACT
        assert now >= self.until.get(key, -inf) - EXACT
        self.started[key] = now

    def due(self, key: int) -> float:
        """Return the seconds after its last start that a host may expect at least."""
        streak = self.streak.get(key, 0)
        latency = self.least_latency.get(key, 0.0)
        backed_off = min(2.0**streak, RULES.back_off_ceiling) if streak else 0.0
        by_latency = min(RULES.latency_factor * latency, RULES.latency_ceiling)
        return max(RULES.delay, self.crawl_delay.get(key, 0.0), backed_off, by_latency)

    def end(self, host: Host, now: float, status: int, latency: float, retry_after: float) -> None:
        key = host.key
        self.ended[key] = now
        if not status:
            return
        self.streak[key] = self.streak.get(key, 0) + 1 if status in {429, 503} else 0
        self.longest_streak = max(self.longest_streak, self.streak[key])
        self.least_latency[key] = min(self.least_latency.get(key, inf), latency)
        if retry_after:
            self.until[key] = now + retry_after


@dataclass(slots=True)
class Request:
    """Something under way; `key` is None for what the frontier knows nothing of."""

    host: int
    key: UrlKey | None
    started: float = 0.0
    respond: tuple[int, float, float] = (0, 0.0, 0.0)
    robots: bool = False


class Crawl:
    """The loop that a crawl is, with a clock that is put forward from event to event."""

    def __init__(self, pages: int) -> None:
        self.chance = random.Random(20)
        self.hosts = made_up_hosts(self.chance)
        crowd: dict[str, int] = {}
        for host in self.hosts.values():
            crowd[host.address] = crowd.get(host.address, 0) + 1
        self.world = make_world(durable_frontier, delay=RULES.delay, inflight=(2000, 1, 2000))
        self.pace = HostPace(RULES)
        self.addresses = AddressPace(ADDRESS_DELAY, self.world.gates, self.world.breaker)
        self.watch = Watch(crowd)
        self.now = 0.0
        self.under_way: list[tuple[float, int, Request]] = []
        """By when they end; a host has one at most."""
        self.waits = 0
        """How often a host had to stand in line for its address."""
        self.redirects = 0
        self.left = dict.fromkeys(self.hosts, pages)
        """How many pages of a host are not done yet."""
        self.parked: dict[int, None] = {}
        """Hosts of which a picture waits for their address."""
        self.pictures: list[tuple[float, int]] = []
        """When a picture may be requested next, and of which host."""
        self.wanted: dict[int, int] = {}
        """How many pictures of a host are still to be requested."""
        self.robots_known: set[int] = set()
        for page in range(pages):
            for key in self.hosts:
                self.world.frontier.offer(offer(key, page))

    def run(self) -> None:
        frontier = self.world.frontier
        while True:
            while self.under_way and self.under_way[0][0] <= self.now:
                self.finish(heappop(self.under_way)[2])
            self.addresses.call(self.now)
            for host in list(self.parked):
                if self.world.gates.may_start(host, self.now):
                    del self.parked[host]
                    self.request_picture(host)
            while self.pictures and self.pictures[0][0] <= self.now:
                self.request_picture(heappop(self.pictures)[1])
            while (dispatch := frontier.next(self.now)) is not None:
                host = dispatch.key.host
                assert not dispatch.skip
                if not self.may_enter(host):
                    frontier.release(dispatch.key, self.now)
                elif host in self.robots_known:
                    self.request(Request(host, dispatch.key))
                else:
                    self.robots_known.add(host)
                    frontier.release(dispatch.key, self.now)
                    self.world.gates.start(host, self.now)
                    self.request(Request(host, None, robots=True))
            moments = [frontier.next_moment(self.now), self.addresses.next_moment()]
            if self.under_way:
                moments.append(self.under_way[0][0])
            if self.pictures:
                moments.append(self.pictures[0][0])
            if not (known := [moment for moment in moments if moment is not None]):
                return
            assert min(known) > self.now, "the clock must go on"
            self.now = min(known)

    def may_enter(self, key: int) -> bool:
        """Tell whether the host, whose gate is entered, has its turn; otherwise the start is undone."""
        if self.addresses.enter(self.hosts[key].address, key, self.now):
            return True
        self.world.gates.withdraw(key, self.now)
        self.waits += 1
        return False

    def request(self, request: Request) -> None:
        host = self.hosts[request.host]
        self.watch.start(host, self.now, self.pace)
        request.started = self.now
        request.respond = host.respond(self.now, self.chance)
        heappush(self.under_way, (self.now + request.respond[1], host.key, request))

    def finish(self, request: Request) -> None:
        host, gates = self.hosts[request.host], self.world.gates
        status, latency, retry_after = request.respond
        self.watch.end(host, self.now, status, latency, retry_after)
        interval, until = self.pace.responded(
            host.key, status, latency=latency, retry_after=retry_after, now=self.now
        )
        if request.robots and host.crawl_delay:
            interval = self.pace.set_crawl_delay(host.key, host.crawl_delay)
            self.watch.crawl_delay[host.key] = host.crawl_delay
        # From the start on the wire, which an address may have put off; and before the gate opens.
        gates.keep_shut(host.key, max(request.started + interval, until))
        if request.key is None:
            gates.end(host.key, self.now)
        else:
            failure = None if status else Failure.CONNECTION_RESET
            outcome = Outcome(status, failure, responded=True, latency_ms=int(latency * 1000))
            if self.world.frontier.settle(request.key, outcome, self.now) is Settled.DONE:
                self.left[host.key] -= 1
            if self.chance.random() < 0.08:
                self.redirect()
            if self.chance.random() < 0.03:
                self.wanted[host.key] = self.wanted.get(host.key, 0) + 1
        if host.key in self.wanted:
            heappush(self.pictures, (gates.opens_at(host.key), host.key))

    def redirect(self) -> None:
        """Offer what a page points at: half of the time a page of one of ten hosts."""
        self.redirects += 1
        key = self.chance.randint(1, 10 if self.chance.random() < 0.5 else HOSTS)
        assert self.world.frontier.offer(offer(key, PAGES + self.redirects))
        if not self.left[key]:
            self.watch.wanted_since[key] = self.now
        self.left[key] += 1

    def request_picture(self, host: int) -> None:
        gates = self.world.gates
        if host not in self.wanted or gates.opens_at(host) == inf:
            return  # the end of what is under way comes back to it
        if not gates.may_start(host, self.now):
            heappush(self.pictures, (gates.opens_at(host), host))
            return
        gates.start(host, self.now)
        if not self.may_enter(host):
            self.parked[host] = None
            gates.end(host, self.now)
            return
        self.wanted[host] -= 1
        if not self.wanted[host]:
            del self.wanted[host]
        self.request(Request(host, None))


def test_no_host_is_contacted_earlier_than_its_pace_allows_and_none_is_starved() -> None:
    crawl = Crawl(PAGES)
    try:
        crawl.run()
        frontier = crawl.world.frontier
        assert crawl.watch.starts >= HOSTS * PAGES
        assert not frontier.has_pending()
        assert not any((crawl.parked, crawl.under_way, crawl.wanted))
        assert set(crawl.watch.started) == set(crawl.hosts)
        # Every rule had its say.
        assert crawl.watch.longest_streak >= 6
        assert crawl.redirects > 1000
        assert crawl.waits > 10_000
        # Who has to wait is woken when its turn has come, and not to go back to sleep.
        assert crawl.waits < 1.1 * crawl.watch.starts
        # What deviates is remembered, and who has failed of late.
        slowed = [key for key in crawl.hosts if crawl.pace.interval(key) > RULES.delay]
        assert len(slowed) <= len(crawl.pace) < HOSTS
    finally:
        crawl.world.close()


@pytest.mark.parametrize(
    ("status", "retry_after", "in_time"), [(200, 0.0, 0.5), (429, 0.0, 2.0), (503, 7.5, 7.6)]
)
def test_the_watch_sees_who_is_contacted_too_early_or_much_too_late(
    status: int, retry_after: float, in_time: float
) -> None:
    host = Host(1, "192.0.2.1", 0.1)
    for rest, is_fine in [(in_time - 0.01, False), (in_time, True), (in_time + 1.0, False)]:
        watch, pace = Watch({host.address: 1}), HostPace(RULES)
        watch.start(host, 0.0, pace)
        pace.responded(host.key, status, latency=0.1, retry_after=retry_after, now=0.1)
        watch.end(host, 0.1, status, 0.1, retry_after)
        if is_fine:
            watch.start(host, rest, pace)
        else:
            with pytest.raises(AssertionError):
                watch.start(host, rest, pace)
