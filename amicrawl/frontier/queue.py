"""The queue: which waiting row comes next, given which hosts may be asked.

    push -> Lane (one host) -> Rotation (hosts that may be asked, by priority, then by turn) -> take
            Backlog (rows that were due when the partition was opened) ----------------------^

It knows rows by their places and hosts by their keys; what a row says is the frontier's.
"""

from __future__ import annotations

from heapq import heappop, heappush, nlargest
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.frontier.places import number_at
from amicrawl.frontier.rotation import Lane, Rotation

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.frontier.backlog import Backlog
    from amicrawl.politeness import Gates, HostBreaker


class Taken(NamedTuple):
    """A row whose turn has come."""

    number: int
    host: int
    skip: bool
    """The host was given up; no gate was entered."""


class Queue:
    """Waiting rows. It enters the gate of the host whose row it hands out."""

    def __init__(
        self,
        gates: Gates,
        breaker: HostBreaker,
        *,
        backlog: Backlog,
        place_of: Callable[[int], int],
    ) -> None:
        """*place_of* tells the place of a row by its number; *backlog* waits from the start."""
        self._gates = gates
        self._breaker = breaker
        self._backlog = backlog
        self._place_of = place_of
        self._lanes: dict[int, Lane] = {}
        self._rotation = Rotation()
        self._postponed: list[tuple[float, int, int]] = []
        """Moment, host and place of rows that wait for their next attempt: a heap."""
        self._waiting = len(backlog)
        gates.watch(self._request_ended)

    def __len__(self) -> int:
        """Return how many rows wait, postponed ones included."""
        return self._waiting

    def push(self, host: int, place: int) -> None:
        """Add a row of *host*."""
        self._waiting += 1
        self._queue(host, place)

    def postpone(self, host: int, place: int, *, until: float) -> None:
        """Add a row of *host* that must not be taken before the moment *until*."""
        self._waiting += 1
        heappush(self._postponed, (until, host, place))

    def take(self, now: float) -> Taken | None:
        """Take out the row whose turn it is at *now*, or return None where no host may be asked."""
        while self._postponed and self._postponed[0][0] <= now:
            _, host, place = heappop(self._postponed)
            self._queue(host, place)
        while (lane := self._take_lane(now)) is not None:
            skip = self._breaker.is_open(lane.host)
            if not skip:
                # The gate may have been shut for longer since the lane was filed.
                if self._gates.opens_at(lane.host) > now:
                    self._file(lane)
                    continue
                self._gates.start(lane.host, now)
            return self._take_row(lane, skip=skip)
        return None

    def next_moment(self, now: float) -> float | None:
        """Return the earliest moment at which `take` may answer, *now* included; None for none."""
        if self._backlog.first_order() is not None:
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

    def give_up(self, host: int) -> None:
        """Let the rows of *host* leave at once."""
        self._gates.lift(host)
        lane = self._lane(host)
        if lane is not None:
            self._rotation.ready(lane)

    def _take_lane(self, now: float) -> Lane | None:
        """Return the lane whose turn it is: of equals, one that was never asked."""
        never_asked = self._backlog.first_order()
        if never_asked is None:
            return self._rotation.take(now)
        ready = self._rotation.first_order(now)
        if ready is not None and ready < never_asked:
            return self._rotation.take(now)
        host, run = self._backlog.take_first()
        lane = self._lanes[host] = Lane(host)
        lane.follow(run, self._place_of)
        return lane

    def _take_row(self, lane: Lane, *, skip: bool) -> Taken:
        if self._gates.is_probed(lane.host):
            place = lane.pop_far(self._place_of)
        else:
            place = lane.pop(self._place_of)
        if lane:
            self._file(lane)
        else:
            del self._lanes[lane.host]
        self._waiting -= 1
        return Taken(number_at(place), lane.host, skip)

    def _queue(self, host: int, place: int) -> None:
        lane = self._lanes.get(host)
        if lane is None and (lane := self._lane(host)) is None:
            lane = self._lanes[host] = Lane(host)
        lane.push(place)
        if not lane.turn:
            self._file(lane)
        else:
            self._rotation.hurry(lane)

    def _lane(self, host: int) -> Lane | None:
        """Return the lane of *host*, if it has rows; those in the backlog join it."""
        lane = self._lanes.get(host)
        if lane is None and (run := self._backlog.take(host)) is not None:
            lane = self._lanes[host] = Lane(host)
            lane.follow(run, self._place_of)
        return lane

    def _file(self, lane: Lane) -> None:
        """File *lane*, which has rows, by when its host may be asked."""
        if self._breaker.is_open(lane.host):
            self._rotation.ready(lane)
            return
        opens = self._gates.opens_at(lane.host)
        if opens == -inf:
            self._rotation.ready(lane)
        elif opens < inf:
            self._rotation.wait(lane, opens)

    def _request_ended(self, host: int, _now: float) -> None:
        """File the lane of *host* again if only a request in flight kept it out."""
        lane = self._lanes.get(host)
        if lane is not None and not lane.turn:
            self._file(lane)
