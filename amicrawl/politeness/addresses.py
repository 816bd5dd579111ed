"""Address gates: many small hosts on one machine take turns, not all at once.

    enter --- address open, line empty ---> True: the request starts, the delay runs
      '------ else: the host joins the line ---> False
    called -- address open: its first in line, one for each address ---> that host enters again

Hosts that wait for an address do not wait for a moment. If they did, all would wake when it opens, one
would get in and the others go back to sleep: the square of their number. Here a host is woken once, when
it is its turn, however many wait behind it.

A host that is called and does not come loses its turn after a while, so that a host that was given up
in between cannot block its neighbours; `leave` gives the turn away at once. One that comes later than
that is still ahead of all others: it had its turn before them. Left out: which addresses a host has,
and the host's own gate, which is entered besides.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heappop, heappush
from math import inf

_SWEEP_FROM = 1024
"""Gates that may be held before the first look for some to forget."""
_NOWHERE = frozenset(("", "0.0.0.0", "::"))  # noqa: S104  # nothing is bound here: addresses that say nothing


class _AddressGate:
    """One address; an address without a gate is open and has no line."""

    __slots__ = ("ahead", "called", "lapses", "late", "line", "opens", "wakes")

    def __init__(self) -> None:
        self.opens = -inf
        self.line: OrderedDict[int, None] | None = None
        """Hosts that wait, first come first; None where there never was a line."""
        self.ahead: OrderedDict[int, None] | None = None
        """Hosts that were called and found it shut: they come before the line. None as above."""
        self.called: int | None = None
        """The host whose turn it is."""
        self.lapses = -inf
        """When the turn of `called` is over."""
        self.late: set[int] | None = None
        """Hosts that were called and did not come in time; None where there never was one."""
        self.wakes = inf
        """The moment under which the gate is in the heap; infinity if it is not."""

    @property
    def awaited(self) -> bool:
        """Whether a host waits for it."""
        return bool(self.line) or bool(self.ahead)

    def first(self) -> int:
        """Take out the host that comes first; there must be one."""
        host, _ = (self.ahead or self.line or OrderedDict()).popitem(last=False)
        return host

    def drop(self, host: int) -> None:
        """Forget that *host* waits, or was called and is late."""
        for waiting in (self.line, self.ahead):
            if waiting:
                waiting.pop(host, None)
        if self.late:
            self.late.discard(host)


class AddressGates:
    """The gates of all addresses.

    Nothing depends on how many hosts wait: entering and leaving take constant time, calling a host the
    logarithm of the number of addresses with a line. Gates that are open and have no line are forgotten
    in time. Addresses are texts; an empty one, unknown, is never gated.
    """

    def __init__(self, delay: float, *, patience: float = 5.0) -> None:
        """Leave *delay* seconds between requests to an address; a turn lapses after *patience*."""
        self._delay = delay
        self._patience = patience
        self._gates: dict[str, _AddressGate] = {}
        self._heap: list[tuple[float, str]] = []
        self._sweep_at = _SWEEP_FROM

    def __len__(self) -> int:
        """Return how many gates are held in memory."""
        return len(self._gates)

    def opens_at(self, address: str) -> float:
        """Return the moment from which *address* gets requests; minus infinity where nothing holds it.

        Those who stand in line come first, so entering may fail even then.
        """
        gate = self._gates.get(address)
        return -inf if gate is None else gate.opens

    def start(self, address: str, now: float, *, interval: float = 0.0) -> None:
        """Note that a request to *address* starts at *now*; *interval* can lengthen the delay after it.

        For what must go ahead out of turn (a redirect of robots.txt). All others `enter`.
        """
        if address in _NOWHERE:
            return
        gate = self._gates.get(address)
        if gate is None:
            if len(self._gates) >= self._sweep_at:
                self._sweep(now)
            gate = self._gates[address] = _AddressGate()
        self._start(address, gate, now, interval)

    def enter(self, address: str, host: int, now: float, *, interval: float = 0.0) -> bool:
        """Start a request of *host* at *address*, or return False and have it stand in line.

        In line it keeps its place until `called` names it; another call before changes nothing.
        """
        if address in _NOWHERE:
            return True
        gate = self._gates.get(address)
        if gate is None:
            self.start(address, now, interval=interval)
            return True
        was_called = gate.called == host or (gate.late is not None and host in gate.late)
        is_nobodys = not gate.awaited and (gate.called is None or gate.lapses <= now)
        if gate.opens <= now and (was_called or is_nobodys):
            if gate.called == host:
                gate.called = None
            elif is_nobodys:
                self._lapse(gate)
            gate.drop(host)
            self._start(address, gate, now, interval)
            return True
        if was_called:
            # Another host went ahead, out of turn or late.
            self._comes_first(address, gate, host)
        else:
            self._line_up(address, gate, host)
        return False

    def called(self, now: float) -> list[int]:
        """Return the hosts whose turn it is at *now*, one for each address that is open: they enter.

        Each is named once. A host whose own gate is shut by now should `leave` and enter later.
        """
        heap = self._heap
        hosts: list[int] = []
        while heap and heap[0][0] <= now:
            moment, address = heappop(heap)
            gate = self._gates.get(address)
            if gate is None or gate.wakes != moment:
                continue  # filed anew in the meantime
            gate.wakes = inf
            self._lapse(gate)
            if not gate.awaited:
                continue
            if gate.opens > now:
                self._file(address, gate, gate.opens)
                continue
            host = gate.first()
            gate.called, gate.lapses = host, now + self._patience
            self._file(address, gate, gate.lapses)
            hosts.append(host)
        return hosts

    def leave(self, address: str, host: int, now: float) -> None:
        """Note that *host* has nothing for *address* any more: it loses its place or its turn."""
        gate = self._gates.get(address)
        if gate is None:
            return
        gate.drop(host)
        if gate.called == host:
            gate.called = None
            if gate.awaited:
                self._file(address, gate, max(gate.opens, now))

    def next_moment(self) -> float | None:
        """Return a moment before which `called` names no host; None while every line is empty."""
        heap = self._heap
        while heap:
            moment, address = heap[0]
            gate = self._gates.get(address)
            if gate is not None and gate.wakes == moment and gate.awaited:
                return moment
            heappop(heap)
            if gate is not None and gate.wakes == moment:
                gate.wakes = inf
        return None

    def _lapse(self, gate: _AddressGate) -> None:
        """End the turn of the host that was called and is not here."""
        if gate.called is not None:
            gate.late = gate.late or set()
            gate.late.add(gate.called)
            gate.called = None

    def _comes_first(self, address: str, gate: _AddressGate, host: int) -> None:
        """Have *host*, which was called, called again before all that were not."""
        if gate.called == host:
            gate.called = None
        gate.drop(host)
        gate.ahead = gate.ahead or OrderedDict()
        gate.ahead[host] = None
        self._file_line(address, gate)

    def _line_up(self, address: str, gate: _AddressGate, host: int) -> None:
        if gate.line is None:
            gate.line = OrderedDict()
        if not gate.ahead or host not in gate.ahead:
            gate.line.setdefault(host)
        self._file_line(address, gate)

    def _file_line(self, address: str, gate: _AddressGate) -> None:
        if gate.called is None:
            self._file(address, gate, gate.opens)
        elif gate.wakes == inf:
            # Behind a host that was called, the next one's turn comes when that turn is taken or over.
            self._file(address, gate, gate.lapses)

    def _start(self, address: str, gate: _AddressGate, now: float, interval: float) -> None:
        gate.opens = max(gate.opens, now + max(self._delay, interval))
        if gate.awaited and gate.called is None:
            self._file(address, gate, gate.opens)

    def _file(self, address: str, gate: _AddressGate, moment: float) -> None:
        """Have the gate come up in `called` at *moment*, and not at the moment before."""
        if gate.wakes != moment:
            gate.wakes = moment
            heappush(self._heap, (moment, address))

    def _sweep(self, now: float) -> None:
        """Forget the gates that say nothing any more; each sweep waits for as many new as were left."""
        self._gates = {
            address: gate
            for address, gate in self._gates.items()
            if gate.opens > now or gate.awaited or gate.lapses > now
        }
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._gates))
