"""Gates: the moment before which a host must not be contacted.

    start ------ delay ------> opens      the delay runs from start to start, however long a
      |--- in flight ---| end             request takes; while `per_host` requests are in flight
                                          the gate is shut whatever the moment.
    start --- sent ------ delay ------> opens     what had to connect first begins when it is sent.

A gate can be shut for longer (`keep_shut`, a Retry-After) and its delay can change (`set_delay`, a
Crawl-delay); neither ever opens it earlier. It can be held until a moment that is not known yet
(`hold`, the line in front of an address). Every request to a host belongs here, that for robots.txt
included: the sender calls `start`, and `end` when it is over; one that has started and did not send
after all takes the start back with `withdraw`.

Left out: what the delay should be and how long a Retry-After may shut a host. Callers cap both.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    EndListener = Callable[[int, float, float], None]

_SWEEP_FROM = 1024
"""Gates that may be held before the first look for some to forget."""


class _Gate:
    """One host's gate; where there is none, nothing is in flight and it has been open for ever."""

    __slots__ = ("held", "in_flight", "jitter", "opened", "opens", "started", "started_before")

    def __init__(self) -> None:
        self.in_flight = 0
        self.held = False
        self.started = -inf
        self.opens = -inf
        self.started_before = -inf
        """What `started` was before the latest start, for one that is taken back."""
        self.opened = -inf
        """What `opens` would be without the latest start."""
        self.jitter = 0.0
        """Seconds that the latest start added to the delay."""


class Gates:
    """The gates of all hosts.

    Every operation takes constant time. A gate that is open and has nothing in flight is forgotten
    in time, so that the memory follows the hosts being fetched from, not the hosts of the crawl; only
    the delays given to `set_delay` are kept (about 110 bytes a host, twice where they count).
    """

    def __init__(
        self,
        delay: float,
        per_host: int,
        *,
        delays: Mapping[int, float] | None = None,
        limits: Mapping[int, int] | None = None,
    ) -> None:
        """Leave *delay* seconds between requests to a host, at most *per_host* of them in flight.

        *delays* and *limits* say otherwise for single hosts.
        """
        self._delay = delay
        self._per_host = per_host
        self._gates: dict[int, _Gate] = {}
        self._delays: dict[int, float] = dict(delays or {})
        self._own = dict(delays or {})
        """The delays of single hosts as they were given; those in `_delays` may have grown."""
        self._wished: dict[int, float] = {}
        """What `set_delay` was given, also where another delay covers it: that one may change."""
        self._limits = dict(limits or {})
        self._jitter: Callable[[], float] | None = None
        """Draws the seconds that each start adds to the delay of all hosts; None for none."""
        self._sweep_at = _SWEEP_FROM
        self._listener: EndListener | None = None
        self.probed: set[int] = set()
        """The hosts whose next row is to come from the far end of its queue."""

    def __len__(self) -> int:
        """Return how many gates are held in memory."""
        return len(self._gates)

    @property
    def delay(self) -> float:
        """Seconds between two requests to a host for which `set_delay` said nothing."""
        return self._delay

    def delay_of(self, host: int) -> float:
        """Return the seconds between two requests to *host*."""
        return self._delays.get(host, self._delay)

    def probe(self, host: int, *, on: bool) -> None:
        """Have the next row of *host* come from the far end of its queue, or in its turn again.

        For a host whose last response was an error: whether another part of it responds tells an
        overloaded host from a few URLs that fail.
        """
        if on:
            self.probed.add(host)
        else:
            self.probed.discard(host)

    def started(self, host: int) -> float:
        """Return when the latest request to *host* started; minus infinity where that was long ago."""
        gate = self._gates.get(host)
        return -inf if gate is None else gate.started

    def may_start(self, host: int, now: float) -> bool:
        """Return whether a request to *host* may start at *now*."""
        return self.opens_at(host) <= now

    def opens_at(self, host: int) -> float:
        """Return the moment from which *host* may be contacted.

        Minus infinity for a host that nothing holds back, infinity while it is held or as many requests
        as are allowed are in flight: then `release` or `end` opens it, not time.
        """
        gate = self._gates.get(host)
        if gate is None:
            return -inf
        allowed = self._limits.get(host, self._per_host) if self._limits else self._per_host
        return gate.opens if gate.in_flight < allowed and not gate.held else inf

    def is_held(self, host: int) -> bool:
        """Return whether *host* is held for a moment that is not known yet."""
        gate = self._gates.get(host)
        return gate is not None and gate.held

    def start(self, host: int, now: float) -> None:
        """Note that a request to *host* starts at *now*; it is in flight until `end`.

        The gate is not checked: a caller that must go ahead (a redirect of robots.txt) may.
        """
        self.start_if_open(host, now, anyway=True)

    def start_if_open(self, host: int, now: float, *, anyway: bool = False) -> float | None:
        """Start a request to *host* at *now*, and return what `opens_at` says from then on.

        None, and nothing happens, where *host* may not be contacted yet, unless it is *anyway*.
        """
        gate = self._gates.get(host)
        allowed = self._limits.get(host, self._per_host) if self._limits else self._per_host
        if gate is None:
            if len(self._gates) >= self._sweep_at:
                self._sweep(now)
            gate = self._gates[host] = _Gate()
        elif not anyway and (gate.opens > now or gate.in_flight >= allowed or gate.held):
            return None
        gate.in_flight += 1
        gate.started_before = gate.started
        gate.opened = gate.opens
        gate.started = now
        opens = now + (self._delays.get(host, self._delay) if self._delays else self._delay)
        if self._jitter is None:
            gate.jitter = 0.0
        else:
            gate.jitter = self._jitter()
            opens += gate.jitter
        gate.opens = max(gate.opens, opens)
        return gate.opens if gate.in_flight < allowed else inf

    def withdraw(self, host: int, started: float) -> None:
        """Take back the start at the moment *started*: nothing was sent. Its `end` must still follow.

        The next request need not keep its distance from it. Where *host* was contacted again since,
        nothing changes: the distance is that from the later start.
        """
        gate = self._gates.get(host)
        if gate is not None and gate.started == started:
            gate.started = gate.started_before
            gate.opens = gate.opened

    def note_sent(self, host: int, now: float) -> None:
        """Note that a request in flight, started earlier, is sent only at *now*: its delay begins here.

        There is no taking it back any more. One may be put off several times: it looked its host up,
        connected, and was sent again where the first connection proved dead.
        """
        gate = self._gates.get(host)
        if gate is not None and gate.in_flight:
            gate.started = now
            gate.opens = max(gate.opens, now + self._delays.get(host, self._delay) + gate.jitter)

    def hold(self, host: int) -> None:
        """Keep *host* shut, whatever the moment, until `release`."""
        gate = self._gates.get(host)
        if gate is None:
            gate = self._gates[host] = _Gate()
        gate.held = True

    def release(self, host: int, now: float) -> None:
        """End the `hold` of *host* and call the listener, even where it is not held."""
        gate = self._gates.get(host)
        if gate is not None:
            gate.held = False
        if self._listener is not None:
            self._listener(host, now, self.opens_at(host))

    def end(self, host: int, now: float) -> float:
        """Note that a request to *host* is over at *now*, and call the listener.

        Return what `opens_at` says from then on. Raises AmicrawlError where none is in flight.
        """
        gate = self._gates.get(host)
        if gate is None or not gate.in_flight:
            raise AmicrawlError(
                f"Host key {host:016x} has no request in flight: end() follows one start() once."
            )
        gate.in_flight -= 1
        allowed = self._limits.get(host, self._per_host) if self._limits else self._per_host
        opens = gate.opens if gate.in_flight < allowed and not gate.held else inf
        if self._listener is not None:
            self._listener(host, now, opens)
        return opens

    def watch(self, listener: EndListener) -> None:
        """Call *listener* after each `end` and `release`; there is one.

        It is given the host, the moment, and what `opens_at` says of the host.

        A frontier needs it: requests that are not its own (robots.txt) can hold up its URLs, and
        nothing else says when they are over.
        """
        self._listener = listener

    def keep_shut(self, host: int, until: float) -> None:
        """Keep *host* shut until the moment *until*; of several such moments the latest wins.

        Raises AmicrawlError for a moment that never comes.
        """
        if not isfinite(until):
            raise AmicrawlError(
                f"Host key {host:016x} cannot be kept shut until {until}: cap the moment."
            )
        gate = self._gates.get(host)
        if gate is None:
            gate = self._gates[host] = _Gate()
        gate.opens = max(gate.opens, until)
        gate.opened = max(gate.opened, until)

    def set_delay(self, host: int, seconds: float) -> None:
        """Leave *seconds* between requests to *host*, from its latest start on; 0 for no wish.

        It takes the place of what an earlier call said, and never goes below the delay of the crawl or
        that given for the host. A shorter one counts from the next start: the gate opens no earlier.
        For the latest start to count, call it before the `end` of the request that brought the value.
        Raises AmicrawlError for a number that is not finite.
        """
        if not isfinite(seconds):
            raise AmicrawlError(
                f"Host key {host:016x} cannot have a delay of {seconds} s: cap the delay."
            )
        self._delays.pop(host, None)
        self._wished.pop(host, None)
        if host in self._own:
            self._delays[host] = self._own[host]
        if seconds > 0:
            self._wished[host] = seconds
        if seconds <= self._own.get(host, self._delay):
            return
        self._delays[host] = seconds
        gate = self._gates.get(host)
        if gate is not None:
            gate.opens = max(gate.opens, gate.started + seconds)
            gate.opened = max(gate.opened, gate.started_before + seconds)

    def change(self, *, delay: float, per_host: int, jitter: Callable[[], float] | None = None) -> None:
        """Go by another *delay* and *per_host* from each host's next start on.

        *jitter* draws seconds that are added to every delay, so that they are not all alike.
        What was given for single hosts stays, and a longer one given to `set_delay` still counts.
        """
        self._delay, self._per_host, self._jitter = delay, per_host, jitter
        self._delays = dict(self._own)
        for host, seconds in self._wished.items():
            if seconds > self._own.get(host, delay):
                self._delays[host] = seconds

    def lift(self, host: int) -> None:
        """Open the gate of *host*, which was given up and gets no more requests.

        Its delay stays: where one that is in flight is responded to after all, the host is back, and is
        contacted no faster than before. Requests that are still in flight keep their place until `end`.
        """
        gate = self._gates.get(host)
        if gate is None:
            return
        gate.started = gate.opens = gate.started_before = gate.opened = -inf
        gate.held = False
        if not gate.in_flight:
            del self._gates[host]

    def _sweep(self, now: float) -> None:
        """Forget the gates that say nothing any more.

        Each sweep waits for as many new gates as the last one left, so it costs constant time a gate.
        """
        self._gates = {
            host: gate
            for host, gate in self._gates.items()
            if gate.in_flight or gate.held or gate.opens > now
        }
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._gates))
