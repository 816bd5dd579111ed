"""The queue: which waiting row comes next, given which hosts may be contacted.

    push -> HostQueue (one host) -> Rotation (hosts that may be contacted) -> take
            Backlog (rows that were due when the partition was opened) -^

Rows are places and hosts are keys here; the fields of a row are the frontier's.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush, nlargest
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

from amicrawl.frontier.rotation import HostQueue, Rotation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amicrawl.frontier.inventory import Backlog
    from amicrawl.politeness import Gates, HostBreaker

_HELD_BACK = -1


class Queue:
    """Waiting rows, and the gates of their hosts: no other module of the frontier changes a gate.

    `take` starts the gate of the host whose row it returns, and `end` ends it.
    """

    def __init__(
        self,
        gates: Gates,
        breaker: HostBreaker,
        *,
        backlog: Backlog,
        place_of: Callable[[int], int],
    ) -> None:
        """*place_of* returns the place of a row by its number; *backlog* waits from the start."""
        self._gates = gates
        self._breaker = breaker
        self._backlog = backlog
        self._place_of = place_of
        self._lanes: dict[int, HostQueue] = {}
        self._rotation = Rotation()
        self._held_back: deque[HostQueue] = deque()
        """Queues of silent hosts whose turn came while none of these was to be contacted."""
        self._postponed: list[tuple[float, int, int]] = []
        """Moment, host and place of rows that wait for their next attempt: a heap."""
        self.waiting = len(backlog)
        """How many rows wait, postponed ones included."""
        gates.watch(self._request_ended)
        self.end = gates.end
        """Called with host key and moment when the request for a row, not skipped, is over: returns when
        the host may be contacted again; infinity where not time, but another end decides."""

    def append(self, host: int, order: int, reference: int, number: int) -> None:
        """Add a new row of *host*, whose URL stands at *reference*, behind all others."""
        self.waiting += 1
        lane = self._lanes.get(host)
        if lane is None:
            lane = self._lane(host) or self._new_lane(host)
        if lane.append(order, reference, number) or not lane.turn:
            self._refile(lane)

    def push(self, host: int, place: int) -> None:
        """Add a row of *host* that was here before."""
        self.waiting += 1
        self._queue(host, place)

    def postpone(self, host: int, place: int, *, until: float) -> None:
        """Add a row of *host* that must not be taken before the moment *until*."""
        self.waiting += 1
        heappush(self._postponed, (until, host, place))

    def take(self, now: float, *, silent: bool = True) -> tuple[int, int, bool] | None:
        """Take out the row whose turn it is at *now*, or return None where no host may be contacted.

        Returned are its number, its host, and whether that was given up: no gate was entered then.

        Without *silent*, hosts that have never sent anything keep their turn until a call with it.
        """
        while self._postponed and self._postponed[0][0] <= now:
            _, host, place = heappop(self._postponed)
            self._queue(host, place)
        while (lane := self._take_lane(now, silent=silent)) is not None:
            host = lane.host
            skip = host in self._breaker.given_up
            opens = -inf if skip else self._gates.start_if_open(host, now)
            if opens is None:
                # The gate was shut for longer after the queue was filed.
                self._rotation.file(lane, self._gates.opens_at(host), now)
                continue
            pop = lane.pop_far if host in self._gates.probed else lane.pop
            number = pop(self._place_of)
            self.waiting -= 1
            if lane:
                self._rotation.file(lane, opens, now)
            else:
                del self._lanes[host]
            return number, host, skip
        return None

    def resume(
        self,
        shut: Iterable[tuple[int, float]],
        lapsed_hosts: Iterable[int],
        *,
        now: float,
        longest: float,
    ) -> int:
        """Keep the gates shut that the crawl before left so; return how many not for as long as noted.

        *shut* are hosts and seconds, *lapsed_hosts* the hosts that it had in flight. No rule keeps a
        gate shut for more than *longest* seconds: a clock was wrong, and the host waits for its delay.
        """
        gates, disbelieved = self._gates, 0
        for host in lapsed_hosts:
            # When it was requested is unknown; a crawl killed again and again must not press it.
            gates.keep_shut(host, now + gates.delay_of(host))
        for host, wait in shut:
            disbelieved += wait > longest
            gates.keep_shut(host, now + (wait if wait <= longest else gates.delay_of(host)))
        return disbelieved

    @property
    def holds_silent(self) -> bool:
        """Whether a host that has never sent anything could be contacted, were silent hosts to be."""
        if self._held_back:
            return True
        return not self._backlog.is_empty and self._backlog.first_order() is not None

    def next_moment(self, now: float, *, silent: bool = True) -> float | None:
        """Return the earliest moment at which `take` may return a row, *now* included; None for none."""
        if silent and self.holds_silent:
            return now
        moment = self._rotation.first_moment()
        if self._postponed:
            due = self._postponed[0][0]
            moment = due if moment is None else min(moment, due)
        return None if moment is None else max(moment, now)

    def longest(self, most: int) -> list[tuple[int, int]]:
        """Return the hosts with the most rows that wait, and how many; looks at every host.

        Rows that wait for their next attempt are not counted.
        """
        lanes = ((len(lane), host) for host, lane in self._lanes.items())
        found = nlargest(most, chain(lanes, self._backlog.longest(most)))
        return [(host, waiting) for waiting, host in found]

    def length_of(self, host: int) -> int:
        """Return how many rows of *host* wait, as `longest` counts them."""
        lane = self._lanes.get(host)
        return self._backlog.length_of(host) if lane is None else len(lane)

    def give_up(self, host: int) -> None:
        """Let the rows of *host* leave at once."""
        self._gates.lift(host)
        lane = self._lane(host)
        if lane is not None:
            self._rotation.file(lane, -inf, -inf)

    def _take_lane(self, now: float, *, silent: bool) -> HostQueue | None:
        """Return the queue whose turn it is: of equals, one that was never contacted."""
        if not silent:
            return self._take_spoken(now)
        if self._held_back and (lane := self._take_held_back(now)) is not None:
            return lane
        if self._backlog.is_empty or (never_contacted := self._backlog.first_order()) is None:
            return self._rotation.take(now)
        ready = self._rotation.first_order(now)
        if ready is not None and ready < never_contacted:
            return self._rotation.take(now)
        host, numbers = self._backlog.take_first()
        lane = self._new_lane(host)
        lane.follow(numbers, self._place_of)
        return lane

    def _take_spoken(self, now: float) -> HostQueue | None:
        """Return the queue of a host that has sent something, or is given up; hold back those before."""
        while (lane := self._rotation.take(now)) is not None:
            if lane.host in self._breaker.spoken or lane.host in self._breaker.given_up:
                return lane
            lane.turn = _HELD_BACK
            self._held_back.append(lane)
        return None

    def _take_held_back(self, now: float) -> HostQueue | None:
        """Return the first queue that was held back, unless one of greater priority is ready."""
        ready = self._rotation.first_order(now)
        while self._held_back:
            lane = self._held_back[0]
            if lane.turn == _HELD_BACK and ready is not None and ready < lane.first_order:
                return None
            self._held_back.popleft()
            if lane.turn == _HELD_BACK:
                lane.turn = 0
                return lane
        return None

    def _queue(self, host: int, place: int) -> None:
        lane = self._lane(host) or self._new_lane(host)
        lane.push(place)
        self._refile(lane)

    def _refile(self, lane: HostQueue) -> None:
        """File *lane*, to which a row was added, where it belongs now."""
        if lane.turn:
            self._rotation.hurry(lane)
            return
        host = lane.host
        opens = -inf if host in self._breaker.given_up else self._gates.opens_at(host)
        self._rotation.file(lane, opens, -inf)

    def _new_lane(self, host: int) -> HostQueue:
        lane = self._lanes[host] = HostQueue(host)
        return lane

    def _lane(self, host: int) -> HostQueue | None:
        """Return the queue of *host*, if it has rows; those in the backlog join it."""
        lane = self._lanes.get(host)
        if lane is None and (numbers := self._backlog.take(host)) is not None:
            lane = self._new_lane(host)
            lane.follow(numbers, self._place_of)
        return lane

    def _request_ended(self, host: int, now: float, opens: float) -> None:
        """File the queue of *host* again if only a request in flight kept it out."""
        lane = self._lanes.get(host)
        if lane is not None and (
            not lane.turn or (lane.turn == _HELD_BACK and host in self._breaker.spoken)
        ):
            self._rotation.file(lane, -inf if host in self._breaker.given_up else opens, now)
