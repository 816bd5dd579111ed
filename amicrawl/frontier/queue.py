"""The queue: which waiting row comes next, given which hosts may be contacted.

    push -> HostQueue (one host) -> Rotation (hosts that may be contacted) -> take
            Backlog (rows that were due when the partition was opened) -^

A host has one queue. Of the hosts that may be contacted, the one comes first whose first row does; of
equals, the one that has waited longest. Rows are places and hosts are keys here; the fields of a row are
the frontier's.
"""

from __future__ import annotations

from array import array
from collections import deque
from heapq import heapify, heappop, heappush, nlargest
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Final

from amicrawl.frontier.places import number_at, order_at, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amicrawl.frontier.inventory import Backlog
    from amicrawl.politeness import Gates, HostBreaker

_HELD_BACK = -1
_NO_ROW = -1
_STALE_FROM = 64
_TAKEN_KEPT = 1024
_NO_PLACES: Final[list[int]] = []


class HostQueue:
    """The waiting rows of one host: a run, in order, and a heap of those that came out of order.

    In the run, rows are numbers in the order in which they come up: 4 octets each. A row that is new
    comes behind all others of its order, so the run takes nearly all there are; the heap has places
    (see `places`), which are objects.
    """

    __slots__ = ("_at", "_last_order", "_numbers", "_places", "first", "host", "order", "turn")

    def __init__(self, host: int) -> None:
        self.host = host
        self._numbers: array[int] = array("I")
        self._at = 0
        """Where in the run its first row is; what is before was taken out."""
        self._last_order = 0
        """The order of the last row of the run, or of one that was behind it."""
        # Most hosts never have one, and a list of their own would be a tenth of what a host takes.
        self._places: list[int] = _NO_PLACES
        self.first = _NO_ROW
        """The order of its first row; less than any where it has none."""
        self.turn = 0
        """The number under which it is filed; 0 for nowhere, less while it is held back."""
        self.order: int | None = None
        """The order under which it is filed as ready; None where it is not."""

    def __len__(self) -> int:
        return len(self._numbers) - self._at + len(self._places)

    def follow(self, numbers: array[int], place_of: Callable[[int], int]) -> None:
        """Begin with the rows *numbers*; *place_of* returns the place of a row by its number."""
        self._numbers = numbers
        self.first, self._last_order = (order_at(place_of(numbers[end])) for end in (0, -1))

    def append(self, order: int, reference: int, number: int) -> bool:
        """Add a row that was never here, with a reference greater than those of all others.

        Return whether it may come first; it does not where it comes last.
        """
        numbers = self._numbers
        if order == self._last_order and numbers:
            numbers.append(number)
            return False
        if numbers and order < self._last_order:
            self.push(place(order, reference, number))
            return True
        if self.first < 0 or order < self.first:
            self.first = order
        self._last_order = order
        numbers.append(number)
        return True

    def push(self, place: int) -> None:
        """Add a row that comes back."""
        if self._places is _NO_PLACES:
            self._places = []
        heappush(self._places, place)
        if self.first < 0 or order_at(place) < self.first:
            self.first = order_at(place)

    def pop(self, place_of: Callable[[int], int]) -> int:
        """Take out the number of the first row; there must be one."""
        numbers, at, places = self._numbers, self._at, self._places
        if at == len(numbers) or (places and places[0] < place_of(numbers[at])):
            number = number_at(heappop(places))
        else:
            number = numbers[at]
            self._at = at = at + 1
            if at == len(numbers) or (at > _TAKEN_KEPT and 2 * at > len(numbers)):
                del numbers[:at]
                self._at = 0
        # In a run of one order, as nearly all are, the next comes first that the last does.
        if places or not numbers or self.first != self._last_order:
            self._find_first(place_of)
        return number

    def pop_far(self, place_of: Callable[[int], int]) -> int:
        """Take out the number of a row from the far end, in constant time; there must be a row."""
        if len(self._numbers) - self._at > 1:
            return self._numbers.pop()
        if not self._places:
            return self.pop(place_of)
        # The last leaf of a heap: one of its later places, and the rest stays a heap.
        number = number_at(self._places.pop())
        self._find_first(place_of)
        return number

    def _find_first(self, place_of: Callable[[int], int]) -> None:
        """Note the order of its first row, which is that of the run or of the heap."""
        firsts = self._places[:1]
        if self._numbers:
            firsts.append(place_of(self._numbers[self._at]))
        self.first = order_at(min(firsts)) if firsts else _NO_ROW


class Rotation:
    """The queues of hosts that have rows, in the order in which they come up.

    A queue is filed as ready (may be contacted now) or as waiting (from a moment on), or it is nowhere:
    then only the end of a request can bring it back. A queue is filed anew by a second entry, and the
    first is left where it is: it no longer matches its queue, is skipped when it comes up, and all such
    are removed when they outnumber the others.

    Turns are numbered when a queue is filed: those of one priority follow each other by when they
    were last taken, whether they have been waiting for a gate or not.
    """

    def __init__(self) -> None:
        self._ready: list[tuple[int, int, HostQueue]] = []
        self._waiting: list[tuple[float, int, HostQueue]] = []
        self._turns = 0
        self._stale = 0

    def file(self, lane: HostQueue, opens: float, now: float) -> None:
        """File *lane*, which has rows, by the moment *opens* from which its host may be contacted.

        It is ready where that has passed by *now*, and else waiting; for infinity it is filed nowhere.
        """
        if opens == inf:
            return
        filed = lane.turn
        self._turns += 1
        lane.turn = self._turns
        if opens <= now:
            lane.order = lane.first
            heappush(self._ready, (lane.first, lane.turn, lane))
        else:
            lane.order = None
            heappush(self._waiting, (opens, lane.turn, lane))
        if filed > 0:
            self._count_stale()

    def hurry(self, lane: HostQueue) -> None:
        """Move *lane* up, among those that are ready, if a row of greater priority came in."""
        if lane.order is not None and lane.first < lane.order:
            lane.order = lane.first
            heappush(self._ready, (lane.order, lane.turn, lane))
            self._count_stale()

    def take(self, now: float) -> HostQueue | None:
        """Take out the queue whose turn it is at *now*, or return None where none is ready."""
        if self._waiting:
            self._open_gates(now)
        ready = self._ready
        while ready:
            order, turn, lane = heappop(ready)
            if lane.turn == turn and lane.order == order:
                lane.turn = 0
                lane.order = None
                return lane
            self._stale -= 1
        return None

    def first_order(self, now: float) -> int | None:
        """Return the order of the queue whose turn it is at *now*, or None where none is ready."""
        ready = self._ready
        self._open_gates(now)
        while ready:
            order, turn, lane = ready[0]
            if lane.turn == turn and lane.order == order:
                return order
            heappop(ready)
            self._stale -= 1
        return None

    def first_moment(self) -> float | None:
        """Return a moment before which `take` finds none; minus infinity where a queue is ready."""
        if self._ready:
            return -inf
        return self._waiting[0][0] if self._waiting else None

    def _open_gates(self, now: float) -> None:
        """Move the lanes that may be contacted at *now* to those that are ready."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= now:
            _, turn, lane = heappop(waiting)
            if lane.turn == turn:
                lane.order = lane.first
                heappush(self._ready, (lane.order, turn, lane))
            else:
                self._stale -= 1

    def _count_stale(self) -> None:
        """Note that an entry was left behind; sweep when most are."""
        self._stale += 1
        if self._stale > _STALE_FROM + (len(self._ready) + len(self._waiting)) // 2:
            self._ready = [
                entry
                for entry in self._ready
                if entry[2].turn == entry[1] and entry[2].order == entry[0]
            ]
            self._waiting = [entry for entry in self._waiting if entry[2].turn == entry[1]]
            heapify(self._ready)
            heapify(self._waiting)
            self._stale = 0


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
        rotation, backlog = self._rotation, self._backlog
        is_usual = silent and not (self._held_back or backlog.hosts_left)
        while True:
            lane = rotation.take(now) if is_usual else self._take_lane(now, silent=silent)
            if lane is None:
                return None
            host = lane.host
            skip = host in self._breaker.given_up
            opens = -inf if skip else self._gates.start_if_open(host, now)
            if opens is None:
                # The gate was shut for longer after the queue was filed.
                rotation.file(lane, self._gates.opens_at(host), now)
                continue
            pop = lane.pop_far if host in self._gates.probed else lane.pop
            number = pop(self._place_of)
            self.waiting -= 1
            if lane.first < 0:
                del self._lanes[host]
            elif opens < inf:
                rotation.file(lane, opens, now)
            return number, host, skip

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
        return bool(self._held_back) or self._backlog.hosts_left > 0

    def next_moment(self, now: float, *, silent: bool = True) -> float | None:
        """Return the earliest moment at which `take` may return a row, *now* included; None for none."""
        if silent and (self._held_back or self._backlog.hosts_left):
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
        if (never_contacted := self._backlog.first_order()) is None:
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
            if lane.turn == _HELD_BACK and ready is not None and ready < lane.first:
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
