"""Pacing: everything that decides when a host may be contacted, put together for one crawl.

    released    the gate starts                                 `enter`, or the frontier's `next`
    admitted    turn at the address, share of the bandwidth     `admit`
    dialled     the delays begin                                `departs`
    sent        the delays begin again                          `departs`
    received    the address of the name is known                `AddressPace.learn`
    over        pace of the host, bandwidth, and its gate       `after_exchange`, `end`

The rules are those of the politeness room. No other module of this room changes a gate.

Addresses have lines of their own, since a crawl knows hosts by their names:

    row handed out -> address known? -- no --> looked up by the politeness middleware
                          | yes
                          '-- open --> sent; else it goes back to the frontier, and its host's gate is
                                       held until it is called

A name has the address that was dialled for it last. A literal is its own. Behind a proxy no address is
known, and none is gated.
"""

from __future__ import annotations

from collections import OrderedDict
from math import inf
from typing import TYPE_CHECKING

from amicrawl.fetch import literal
from amicrawl.politeness import (
    BUSY,
    AdaptiveTimeout,
    AddressGates,
    Bandwidth,
    Gates,
    HostPace,
    PaceRules,
)
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.config import CrawlConfig
    from amicrawl.crawl.decision import Ticket
    from amicrawl.crawl.host_overrides import HostOverrides
    from amicrawl.politeness import HostBreaker


_MOST_NAMES = 100_000
_LEAST_PATIENCE = 0.25
_MOST_WAITS = 10_000
_MOST_WISHES = 100
"""Origins of a host whose Crawl-delays are kept."""
_JITTER = 1.0
"""Seconds by which a delay may be longer than it says without another reason."""


class Pacing:
    """The gates of hosts and addresses, the pace, the bandwidth, and how long a response may take."""

    def __init__(self, config: CrawlConfig, breaker: HostBreaker, overrides: HostOverrides) -> None:
        """Follow *config*, and *overrides* for single hosts."""
        delays = overrides.delays
        self.gates = Gates(config.delay, config.per_host, delays=delays, limits=overrides.per_host)
        self.pace = HostPace(pace_rules(config), delays=delays)
        self.addresses: AddressPace | None = None
        """None where addresses have no pace of their own."""
        # Behind a proxy all hosts have one address, and it is not theirs.
        if config.delay and config.address_delay and not config.proxy:
            self.addresses = AddressPace(config.address_delay, self.gates, breaker)
        self._crawl_delays: dict[int, dict[str, float]] = {}
        """By host and origin, the seconds that a robots.txt demands."""
        self.robots_waits: OrderedDict[int, float] = OrderedDict()
        """Until when hosts wait whose robots.txt was not available; the latest 10,000 of them."""
        self.bandwidth: Bandwidth | None = None
        """None where there is no cap."""
        if config.bandwidth or config.host_bandwidth:
            self.bandwidth = Bandwidth(
                total=config.bandwidth or None, per_host=config.host_bandwidth or None
            )
        self.first_byte_timeout: AdaptiveTimeout | None = None
        """None where the time for the whole exchange is all that counts."""
        if config.timeout_floor:
            self.first_byte_timeout = AdaptiveTimeout(config.timeout_floor, config.timeout)
        self.has_turns = self.addresses is not None or self.bandwidth is not None
        """Whether anything but the gates of hosts decides: if not, `may_release` and `admit` say yes."""

    def opens_at(self) -> float:
        """Return the moment from which anything may be released; it may be long past."""
        return -inf if self.bandwidth is None else self.bandwidth.total_opens_at()

    def may_release(self, now: float) -> bool:
        """Return whether anything may be released at *now*.

        Calls the hosts whose turn at an address it is by then.
        """
        if self.bandwidth is not None and self.opens_at() > now:
            return False
        if self.addresses is not None:
            self.addresses.call(now)
        return True

    def first_moment(self, *moments: float | None) -> float | None:
        """Return the earliest of *moments* and of turns at addresses, or when bandwidth allows it.

        None where there is none.
        """
        called = None if self.addresses is None else self.addresses.next_moment()
        earliest = min((inf if each is None else each for each in (*moments, called)), default=inf)
        return None if earliest == inf else max(earliest, self.opens_at())

    def may_start(self, host: int, now: float) -> bool:
        """Return whether the gate of *host* is open at *now*."""
        return self.gates.may_start(host, now)

    def enter(self, ticket: Ticket, now: float) -> None:
        """Start a request at the gate of the host of *ticket*, open or not: some must go ahead."""
        assert ticket.host is not None
        self.gates.start(ticket.host, now)
        ticket.started = now

    def end(self, ticket: Ticket, now: float) -> None:
        """Open the gate of the host of *ticket*, which is over, and has no row."""
        if ticket.host is not None:
            self.gates.end(ticket.host, now)

    def slow_down(self, host: int, seconds: float, *, origin: str = "") -> None:
        """Leave *seconds* between requests to *host*, by the robots.txt of *origin*; 0: by none.

        That replaces what an earlier one there said. A host has many origins: the longest delay counts.
        """
        wishes = self._crawl_delays.get(host, {})
        wishes.pop(origin, None)
        if seconds:
            wishes[origin] = seconds
            self._crawl_delays[host] = wishes
        elif not wishes and self._crawl_delays.pop(host, None) is None:
            return
        if len(wishes) > _MOST_WISHES:
            # The shortest: it says nothing as long as the others are there.
            del wishes[min(wishes, key=wishes.__getitem__)]
        seconds = max(wishes.values(), default=0.0)
        self.gates.set_delay(host, seconds)
        self.pace.set_crawl_delay(host, seconds)

    def follow(self, config: CrawlConfig, *, per_host: int, jitter: Callable[[], float] | None) -> None:
        """Go by the delay of *config* from now on, with *per_host* requests in flight to a host.

        *jitter* draws seconds that each request adds to the delay; None for none.
        """
        self.gates.change(delay=config.delay, per_host=per_host, jitter=jitter)
        self.pace.rules = pace_rules(config)

    def withdraw(self, ticket: Ticket) -> None:
        """Take back that *ticket* entered a gate: no server is contacted. It still has to end."""
        if ticket.host is not None:
            self.gates.withdraw(ticket.host, ticket.started)

    def wait_for_robots(self, ticket: Ticket, until: float) -> None:
        """Keep the host of *ticket* shut *until* its robots.txt, which it did not give, is due again."""
        if ticket.host is None:
            return
        self.gates.keep_shut(ticket.host, until)
        self.robots_waits.pop(ticket.host, None)
        self.robots_waits[ticket.host] = until
        if len(self.robots_waits) > _MOST_WAITS:
            self.robots_waits.popitem(last=False)

    def admit(self, ticket: Ticket, url: str, now: float) -> bool:
        """Let the request for *url* go; False where it is not its turn at its address.

        Then the gate that it entered is held, and its start is taken back: it has to end. Where the
        address is not known yet, it goes; the middleware looks it up.
        """
        if self.addresses is not None:
            address = self.addresses.address_of(url)
            if address is not None:
                assert ticket.host is not None
                if not self.addresses.enter(address, ticket.host, now):
                    self.withdraw(ticket)
                    return False
                ticket.entered = True
        if self.bandwidth is not None:
            ticket.expected = self.bandwidth.expect(now)
        return True

    def departs(self, ticket: Ticket, url: str, clock: Callable[[], float]) -> None:
        """Note that the request for *url* goes over the wire now, by *clock*: its delays begin.

        Called before a connection is dialled and before the request is sent: connecting can take longer
        than the delay, and a server that cannot be reached is to be called no more often than others.
        """
        if ticket.host is None:
            return
        now = clock()
        self.gates.note_sent(ticket.host, now)
        if self.addresses is not None and (address := self.addresses.address_of(url)) is not None:
            self.addresses.start(address, now)

    def held_back(self, host: int, now: float) -> tuple[str, float | None]:
        """Return why *host* gets no request at *now*, and for how many seconds more, None if not known.

        The reason is empty where it may be contacted, or as many requests as are allowed are in flight.
        """
        gates, opens = self.gates, self.gates.opens_at(host)
        if opens <= now:
            return "", None
        if gates.is_held(host):
            return "address", None
        if opens == inf:
            return "", None
        state, least = self.pace.state(host), gates.delay_of(host)
        interval = self.pace.interval(host)
        if opens > gates.started(host) + max(interval, least) + _JITTER:
            is_limited = self.bandwidth is not None and self.bandwidth.host_opens_at(host) >= opens
            waits = self.robots_waits.get(host, -inf) >= opens
            reason = "robots.txt" if waits else "bandwidth" if is_limited else "Retry-After"
        elif state.back_off >= interval > least:
            reason = "back-off"
        elif least > gates.delay or state.crawl_delay >= interval > gates.delay:
            reason = "Crawl-delay"
        elif state.latency and interval > least:
            reason = "latency"
        else:
            reason = "delay"
        return reason, opens - now

    def after_exchange(self, ticket: Ticket, now: float) -> None:
        """Keep the host of *ticket*, which is over, shut as long as what came of it suggests."""
        outcome, opens, host = ticket.outcome, -inf, ticket.host
        if host is None:
            return
        if outcome is None:
            # Cut off or put back: a request that went out keeps its distance, back-off included.
            opens = self.gates.started(host) + self.pace.interval(host)
        else:
            pace = self.pace.responded(
                host,
                outcome.status,
                now=now,
                started=ticket.started,
                latency=outcome.latency_ms / 1000,
                retry_after=outcome.retry_after,
            )
            # The gate keeps the usual delay by itself.
            if pace.interval > self.pace.rules.delay or pace.until > now:
                opens = max(self.gates.started(host) + pace.interval, pace.until)
            if outcome.status in BUSY:
                self.gates.probe(host, on=True)
            elif outcome.status and host in self.gates.probed:
                self.gates.probe(host, on=False)
        if self.bandwidth is not None:
            received = 0 if ticket.capture is None else ticket.capture.received
            self.bandwidth.spend(host, received, now, expected=ticket.expected)
            opens = max(opens, self.bandwidth.host_opens_at(host))
        if opens > now:
            self.gates.keep_shut(host, opens)


def pace_rules(config: CrawlConfig) -> PaceRules:
    """Return the rules for the pace of hosts that *config* requests."""
    # Who requests no delay at all wants none for slow responses either.
    return PaceRules(
        delay=config.delay,
        latency_factor=config.latency_factor if config.delay else 0.0,
        back_off_ceiling=config.backoff_max,
        retry_after_cap=config.retry_after_max,
    )


class AddressPace:
    """The pace of addresses: what is known of names, and the hosts that stand in line.

    Memory follows the names that were learnt last, at most 100,000 of them, and the hosts in line.
    """

    def __init__(self, delay: float, gates: Gates, breaker: HostBreaker) -> None:
        """Leave *delay* seconds between requests to an address; hosts in line are held in *gates*."""
        # A host that is called comes with its next row, as soon as the frontier has got to it.
        self._lines = AddressGates(delay, patience=max(2 * delay, _LEAST_PATIENCE))
        self._gates = gates
        self._breaker = breaker
        self._known: OrderedDict[str, str] = OrderedDict()
        self._stands: dict[int, str] = {}
        """The address in whose line a host stands, one for each host."""

    def address_of(self, url: str) -> str | None:
        """Return the address that *url* leads to, as far as that is known."""
        authority = _authority(url)
        address = self._known.get(authority)
        if address is None:
            target = fetchable(url)
            if not isinstance(target, Refused) and (address := literal(target.host)) is not None:
                self._know(authority, address)
        return address

    def learn(self, url: str, address: str | None) -> None:
        """Note that *url* led to *address*, None where it led to none; not what led to a proxy."""
        authority = _authority(url)
        if address is not None and self._known.get(authority) != address:
            self._know(authority, address)

    def enter(self, address: str, host: int, now: float) -> bool:
        """Start a request of *host* at *address*; or return False and hold it until it is called."""
        if self._lines.enter(address, host, now):
            return True
        stands = self._stands.setdefault(host, address)
        if stands != address:
            # One line is enough: when it is called there, all of its rows come again.
            self._lines.leave(address, host, now)
        self._gates.hold(host)
        return False

    def start(self, address: str, now: float) -> None:
        """Note a request to *address* at *now* that cannot wait for a turn."""
        self._lines.start(address, now)

    def call(self, now: float) -> None:
        """Let go of the hosts whose turn it is at *now*."""
        while hosts := self._lines.called(now):
            for host in hosts:
                address = self._stands.pop(host, "")
                self._gates.release(host, now)
                if host in self._breaker.given_up or now < self._gates.opens_at(host) < inf:
                    self._lines.leave(address, host, now)

    def next_moment(self) -> float | None:
        """Return the moment at which `call` may let a host go; None while no host is in line."""
        return self._lines.next_moment()

    def _know(self, authority: str, address: str) -> None:
        self._known[authority] = address
        if len(self._known) > _MOST_NAMES:
            self._known.popitem(last=False)


def _authority(url: str) -> str:
    # A crawl does this for every page; the urls room knows more than that, and takes ten times as long.
    parts = url.split("/", 3)
    return parts[2] if len(parts) > 2 else ""
