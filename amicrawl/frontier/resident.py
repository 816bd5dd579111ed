"""The frontier in memory: nothing on disk, everything gone with the process.

A known URL costs about 20 bytes (its key, in the seen-set); while it waits, its text and about 110
more, and a host with waiting rows about 350. Offering takes time logarithmic in the rows of one host,
handing out and settling in those and in the number of hosts.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError
from amicrawl.frontier.judgement import final_event, judge
from amicrawl.frontier.packing import WaitingRow, pack, unpack
from amicrawl.frontier.rotation import Lane, Rotation
from amicrawl.frontier.row import Dispatch, Settled
from amicrawl.frontier.seen import SeenKeys
from amicrawl.frontier.states import Event, Status, after
from amicrawl.politeness import Verdict, backoff

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.row import Offer, Outcome
    from amicrawl.politeness import Gates, HostBreaker, InflightLimit
    from amicrawl.urls import UrlKey


class _Flight:
    """A row that is handed out."""

    __slots__ = ("again", "dispatch", "number", "outcome")

    def __init__(self, dispatch: Dispatch, number: int) -> None:
        self.dispatch = dispatch
        self.number = number
        """Its place among the rows of its host, to which it returns if it comes back."""
        self.outcome: Outcome | None = None
        """The outcome that `again` was decided for; None before."""
        self.again = False


class ResidentFrontier:
    """A `Frontier` that lives in memory.

    It shares *gates*, *breaker* and *limit* with the crawl, which may use them for requests of its own,
    and is the one listener of *gates*.
    """

    def __init__(self, gates: Gates, breaker: HostBreaker, limit: InflightLimit) -> None:
        self._gates = gates
        self._breaker = breaker
        self._limit = limit
        self._seen = SeenKeys()
        self._lanes: dict[int, Lane] = {}
        self._rotation = Rotation()
        self._extras: dict[UrlKey, Mapping[str, object]] = {}
        """The `extra` of rows that wait and have one."""
        self._postponed: list[tuple[float, int, bytes]] = []
        """Rows that wait for their next attempt, by the moment when it is due: a heap."""
        self._flights: dict[UrlKey, _Flight] = {}
        self._counts = dict.fromkeys(Status, 0)
        gates.watch(self._request_ended)

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def queued(self) -> int:
        """How many rows are still to be handed out, later attempts included."""
        return self._counts[Status.DISCOVERED] + self._counts[Status.SCHEDULED]

    @property
    def in_flight(self) -> int:
        """How many rows are handed out and not settled."""
        return len(self._flights)

    @property
    def counts(self) -> Mapping[Status, int]:
        """How many rows stand where; a copy, with every status."""
        return dict(self._counts)

    def has_pending(self) -> bool:
        """Tell whether a row is waiting or in flight; takes constant time."""
        return bool(self._flights) or self.queued > 0

    def offer(self, offer: Offer) -> bool:
        """Take *offer* as a new row; return False, and change nothing, if its key is known."""
        if not self._seen.add(offer.key):
            return False
        self._counts[Status.DISCOVERED] += 1
        self._queue(
            offer.key[0], self._pack(WaitingRow(offer, len(self._seen), Status.DISCOVERED, attempt=1))
        )
        return True

    def next(self, now: float) -> Dispatch | None:
        """Hand out the row that comes next, or None where nothing may start at *now*."""
        if len(self._flights) >= self._limit.limit:
            return None
        while self._postponed and self._postponed[0][0] <= now:
            _, host, row = heappop(self._postponed)
            self._queue(host, row)
        while (lane := self._rotation.take(now)) is not None:
            skip = self._breaker.is_open(lane.host)
            if not skip:
                # The gate may have been shut for longer since the lane was filed.
                if self._gates.opens_at(lane.host) > now:
                    self._file(lane)
                    continue
                self._gates.start(lane.host, now)
            return self._hand_out(lane, skip=skip)
        return None

    def will_retry(self, dispatch: Dispatch, outcome: Outcome) -> bool:
        """Tell, and thereby decide, whether *dispatch* is to be handed out again after *outcome*."""
        return self._decide(self._flight(dispatch.key), outcome)

    def settle(self, key: UrlKey, outcome: Outcome, now: float) -> Settled:
        """Note what came of the row in flight at *key*.

        Raises AmicrawlError where it is not in flight.
        """
        flight = self._flight(key)
        if not self._decide(flight, outcome):
            self._move(Status.IN_FLIGHT, final_event(outcome))
            self._leave(flight, now)
            return Settled.DONE
        attempt = flight.dispatch.attempt
        row = self._bring_back(flight, Event.POSTPONED, attempt=attempt + 1)
        heappush(self._postponed, (now + backoff(attempt), key[0], row))
        self._leave(flight, now)
        return Settled.AGAIN

    def release(self, key: UrlKey, now: float) -> None:
        """Take back the row in flight at *key* that was never fetched; it may be handed out again.

        Raises AmicrawlError where it is not in flight.
        """
        flight = self._flight(key)
        self._queue(key[0], self._bring_back(flight, Event.RELEASED, attempt=flight.dispatch.attempt))
        self._leave(flight, now)

    def next_moment(self, now: float) -> float | None:
        """Return the earliest moment at which `next` may answer, *now* included; for one timer."""
        if len(self._flights) >= self._limit.limit:
            return None
        moment = self._rotation.first_moment()
        if self._postponed:
            due = self._postponed[0][0]
            moment = due if moment is None else min(moment, due)
        return None if moment is None else max(moment, now)

    def _flight(self, key: UrlKey) -> _Flight:
        flight = self._flights.get(key)
        if flight is None:
            raise AmicrawlError(
                f"URL key {key[0]:016x}:{key[1]:016x} is not in flight: settle or release a row once, "
                "after it was handed out."
            )
        return flight

    def _decide(self, flight: _Flight, outcome: Outcome) -> bool:
        """Tell whether *flight* is to be tried again, judging *outcome* the first time."""
        if flight.outcome != outcome:
            flight.outcome = outcome
            dispatch = flight.dispatch
            verdict = judge(
                dispatch.key[0],
                outcome,
                attempt=dispatch.attempt,
                breaker=self._breaker,
                limit=self._limit,
            )
            flight.again = verdict is Verdict.RETRY
            host = flight.dispatch.key[0]
            if verdict is Verdict.COUNT and self._breaker.is_open(host):
                self._give_up(host)
        return flight.again

    def _give_up(self, host: int) -> None:
        """Let the rows of *host* leave at once."""
        self._gates.lift(host)
        lane = self._lanes.get(host)
        if lane is not None:
            self._rotation.ready(lane)

    def _queue(self, host: int, row: bytes) -> None:
        lane = self._lanes.get(host)
        if lane is None:
            lane = self._lanes[host] = Lane(host)
        heappush(lane.rows, row)
        if not lane.turn:
            self._file(lane)
        elif lane.rows[0] is row:
            self._rotation.hurry(lane)

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

    def _hand_out(self, lane: Lane, *, skip: bool) -> Dispatch:
        packed = heappop(lane.rows)
        if lane.rows:
            self._file(lane)
        else:
            del self._lanes[lane.host]
        row = unpack(packed, host=lane.host)
        offer = row.offer
        if self._extras and (extra := self._extras.pop(offer.key, None)) is not None:
            offer = replace(offer, extra=extra)
        self._move(row.status, Event.DISPATCHED)
        dispatch = Dispatch(offer, row.attempt, skip)
        self._flights[dispatch.key] = _Flight(dispatch, row.number)
        return dispatch

    def _bring_back(self, flight: _Flight, event: Event, *, attempt: int) -> bytes:
        """Return the row of *flight* as it waits after *event*, for its attempt number *attempt*."""
        status = self._move(Status.IN_FLIGHT, event)
        return self._pack(WaitingRow(flight.dispatch.offer, flight.number, status, attempt))

    def _pack(self, row: WaitingRow) -> bytes:
        offer = row.offer
        if offer.extra is not None:
            self._extras[offer.key] = offer.extra
        return pack(row)

    def _leave(self, flight: _Flight, now: float) -> None:
        del self._flights[flight.dispatch.key]
        if not flight.dispatch.skip:
            self._gates.end(flight.dispatch.key[0], now)

    def _move(self, status: Status, event: Event) -> Status:
        following = after(status, event)
        self._counts[status] -= 1
        self._counts[following] += 1
        return following
