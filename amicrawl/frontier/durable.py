"""The frontier: rows in a live partition, and the queue of those that are due.

    offer   row, journal, queue                          settle  event, row, journal, due wheel
    next    queue, or due wheel -> queue; row in flight  flush   the journal to disk

Which rows are due is known when the partition is opened (the backlog), and from then on from the wheel;
the table is never searched for them.
"""

from __future__ import annotations

from collections import Counter
from math import ceil, inf
from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError
from amicrawl.frontier.inventory import due_now
from amicrawl.frontier.outcomes import judge
from amicrawl.frontier.places import place_of
from amicrawl.frontier.row import Flight, Settled
from amicrawl.frontier.row_strings import offer_of, offered
from amicrawl.frontier.wiring import HOUR, FrontierParts
from amicrawl.meguri import RESTING, WAITING, Event, Status, after
from amicrawl.politeness import Verdict, backoff

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amicrawl.frontier.row import Dispatch, Offer, Outcome
    from amicrawl.meguri import UrlRow
    from amicrawl.urls import UrlKey

_NOTED_AT_ONCE = 2.0
"""Seconds from which on it is written down at once how long a host is left alone: a crawl that is killed
and started again takes about as long, so that a shorter pause has passed."""
_SCHEDULED = int(Status.SCHEDULED)
# Bound here, as a look-up in an enumeration is a call, and these are needed for every page.
_IN_FLIGHT, _DONE, _RETRY, _COUNT = Status.IN_FLIGHT, Settled.DONE, Verdict.RETRY, Verdict.COUNT


class DurableFrontier(FrontierParts):
    """Every URL of a crawl, once; it names the next one whose host may be contacted now.

    **Order.** Within a host, greater priority first, then the order of the offers; a row that comes
    back (released, or to be tried again) keeps its place. Among the hosts that may be contacted, the one
    with the greatest priority at its head, then the one that has waited longest: a host goes to the end
    of the queue with each request, so one with a million rows gets turns like any other. Priority is
    strict: between hosts, only a gate holds a greater one back.

    **Gates.** `next` starts the gate of the host it names; `response_received`, `settle` and `release`
    end it, each through the queue; the crawl does so only for requests that the frontier does not hold.
    At most as many rows are in flight as the in-flight limit allows. The frontier is the one listener of
    *gates*;
    *gates*, *breaker* and *limit* are shared with the crawl.

    **Hosts given up.** Their rows leave through `next` like all others, with `Dispatch.skip` set, so
    that each gets its row in the index. They pass no gate, but take turns, and count as in flight until
    settled with `Failure.HOST_SKIPPED`.

    **Time.** *now* is monotonic seconds, on the clock of the gates, and must not go back; *wall* returns
    Unix seconds. A frontier is used by one thread.

    **Durability.** What was flushed outlives the process, what was synced outlives a power cut. A row in
    flight when the process ends is due again when the partition is opened. A row of a host that is to be
    left alone for seconds is flushed when it is handed out, and how long that is when it is known.

    `FrontierParts` makes it, and says what recrawls, admission and an earlier crawl change.
    """

    def __len__(self) -> int:
        return len(self.partition)

    @property
    def queued(self) -> int:
        """How many rows are due and still to be handed out, later attempts included."""
        return self._queue.waiting

    @property
    def later(self) -> int:
        """How many rows wait that are not due yet; settled ones are among them in a recrawl only."""
        return len(self._wheel)

    @property
    def in_flight(self) -> int:
        """How many rows are handed out and not settled."""
        return len(self._flights)

    @property
    def counts(self) -> Mapping[Status, int]:
        """How many rows stand where; a copy, with every status."""
        return dict(zip(Status, self.partition.counts, strict=False))

    def meta_json(self, key: UrlKey) -> str:
        """Return the `meta_json` that the row at *key* was offered with; empty where there is none."""
        number = self.partition.find(*key)
        if number is None:
            return ""
        return offered(*self.partition.texts_at(self.partition.get(number).url_ref)).seed.meta_json

    def hosts_in_flight(self) -> Counter[int]:
        """Return how many rows of each host key are handed out and not settled."""
        return Counter(key.host for key in self._flights)

    def longest_queues(self, most: int) -> list[tuple[int, int]]:
        """Return the host keys with the most rows that wait, and how many; looks at every host."""
        return self._queue.longest(most)

    def waiting_of(self, host: int) -> int:
        """Return how many rows of the host key *host* wait, as `longest_queues` counts them."""
        return self._queue.length_of(host)

    def has_pending(self) -> bool:
        """Return whether a row is due or in flight; takes constant time."""
        return bool(self._flights) or self._queue.waiting > 0

    def offer(self, offer: Offer) -> bool:
        """Take *offer* as a new row; return False, and change nothing, if its key is known.

        False, too, where it is not admitted: it is known from then on, and TRAPPED.
        """
        return self.offer_all((offer,)) > 0

    def offer_all(self, offers: Iterable[Offer]) -> int:
        """Take *offers*, as `offer` does each; return how many rows that makes."""
        return 0 if self.closed else self._offering.take(offers, hour=self._hour)

    def next(self, now: float) -> Dispatch | None:
        """Hand out the row that comes next, or None where nothing may start at *now*."""
        flights, limit = self._flights, self._limit
        if len(flights) - flights.received >= limit.limit:
            limit.holds_back = True
            return None
        if self._wall() >= self._hour_ends:
            self._turn_wheel()
        silent = not flights.silent or flights.silent < limit.for_silent
        taken = self._queue.take(now, silent=silent)
        if taken is not None:
            number, host, skip = taken
            dispatch = self._hand_out(number, host, skip=skip)
            # The gate may not know yet the delay of an earlier crawl; the pace does.
            if self._interval(host) >= _NOTED_AT_ONCE:
                self.flush()
            return dispatch
        if not silent and self._queue.holds_silent:
            limit.holds_back = True
        return None

    def decide(self, dispatch: Dispatch, outcome: Outcome) -> Settled:
        """Decide whether *dispatch* is handed out again after *outcome*.

        `settle` with an outcome of the same status, failure and `responded` keeps to the decision,
        whatever happens between, so that the crawl can leave attempts before the last out of the index.
        The row must be in flight.
        """
        again = self._decide(self._flights[dispatch.key], outcome)
        return Settled.AGAIN if again else Settled.DONE

    def settle(self, key: UrlKey, outcome: Outcome, now: float) -> Settled:
        """Note what came of the row in flight at *key*.

        Raises AmicrawlError where it is not in flight.
        """
        if self.closed:
            return _DONE
        flight = self._flights[key]
        again = self._decide(flight, outcome)
        if again:
            attempt = flight.attempt
            self._attempts[flight.number] = attempt + 1
            row = self._move(flight, Event.POSTPONED)
            self._queue.postpone(key[0], place_of(row, flight.number), until=now + backoff(attempt))
            self._leave_waiting(flight, now)
            return Settled.AGAIN
        wall, known = self._wall(), flight.offer.seed
        self._settling.settle(
            flight.number, flight.row, known, outcome, was=_IN_FLIGHT, hour=int(wall // HOUR)
        )
        wait = self._leave(flight, now) - now
        self.hosts.settled(key[0], outcome, opens=ceil(wall + wait) if 0 < wait < inf else 0)
        if _NOTED_AT_ONCE <= wait < inf:
            self.flush()
        return _DONE

    def response_received(self, key: UrlKey, now: float) -> None:
        """Note that the request of the row in flight at *key* is over: its host may be contacted again.

        The row is settled later, by the callback that reads the response, and counts as in flight until
        then, but not against the in-flight limit.
        Raises AmicrawlError where it is not in flight, or has its response already.
        """
        if self.closed:
            return
        flight = self._flights[key]
        if flight.received:
            raise AmicrawlError(f"URL key {key[0]:016x}:{key[1]:016x} has its response.")
        self._flights.response_received(flight)
        if not flight.skip:
            self._queue.end(flight.row.host, now)

    def release(self, key: UrlKey, now: float) -> None:
        """Take back the row in flight at *key* that was never fetched; it may be handed out again.

        The attempt is not counted, but the delay of the host's gate holds: its robots.txt may have been
        requested. Raises AmicrawlError where it is not in flight.
        """
        if self.closed:
            return
        flight = self._flights[key]
        if flight.attempt > 1:
            self._attempts[flight.number] = flight.attempt
        row = self._move(flight, Event.RELEASED)
        self._queue.push(key[0], place_of(row, flight.number))
        self._leave_waiting(flight, now)

    def next_moment(self, now: float) -> float | None:
        """Return the earliest moment at which `next` may return a row, *now* included; for one timer.

        None while nothing waits, or only the end of a row in flight can help. It may be too early, but
        is after *now* when `next(now)` has just returned None.
        """
        flights, limit = self._flights, self._limit
        if len(flights) - flights.received >= limit.limit:
            return None
        silent = not flights.silent or flights.silent < limit.for_silent
        return self._queue.next_moment(now, silent=silent)

    def flush(self) -> None:
        """Write every change to the journal: from here on they outlive the process."""
        self.hosts.hand_over()
        self.partition.flush()

    def sync(self) -> None:
        """Force what was flushed to disk; may run on another thread."""
        self.partition.sync()

    def snapshot(self) -> None:
        """Begin to write the partition as it stands; a thread of its own does the rest."""
        self.hosts.hand_over(counts=True)
        self.partition.snapshot(self._hour)

    def close(self, *, index_rows: int | None = None) -> None:
        """Write everything down and give the partition up; the index of the crawl has *index_rows*."""
        self.hosts.hand_over(counts=True)
        if index_rows is not None and self.partition.has_changed:
            self.partition.note_index(index_rows, all_known=not self._flights)
        self.closed = True
        self.partition.close(self._hour)

    def abandon(self) -> None:
        """Give the partition up as it is; the next to open it finds what was flushed."""
        self.closed = True
        self.partition.abandon()

    def settle_found(self, key: UrlKey, outcome: Outcome, hour: int) -> bool:
        """Settle the row at *key* with an *outcome*, of the hour *hour*, that was recorded elsewhere.

        False, and nothing changes, where the frontier knows of it: the row was settled at that hour or
        later. The row may still be handed out by this frontier, but not by the next one over the same
        partition: repair first, then crawl. Raises AmicrawlError for an unknown key.
        """
        return self._corrections.settle(key, outcome, hour)

    def due_again(self, key: UrlKey, *, is_lost: bool) -> bool:
        """Have the settled row at *key* handed out once more, and at once; False if there is none.

        With *is_lost*, its last capture is not in the archive, and is forgotten: a response equal to it
        must be stored and not refer to it, and no conditional request may refer to it. A
        frontier that would hand the row out anyway, now or later, may do so twice; the next one over the
        same partition does not: repair first, then crawl.
        """
        return self._corrections.due(key, hour=self._hour, is_lost=is_lost)

    def _turn_wheel(self) -> None:
        """Queue the rows that have fallen due since the last look."""
        hour = self._hour = int(self._wall() // HOUR)
        self._hour_ends = (hour + 1) * HOUR
        for number in self._wheel.fire(hour).tolist():
            if self._corrections.has_come_before(number, hour):
                continue
            row = self.partition.get(number)
            # A row that was settled meanwhile is in the wheel once more, at its new hour.
            if 0 < row.next_due <= hour and (
                row.status in WAITING or (row.status in RESTING and self._recrawls)
            ):
                self._queue.push(row.host, place_of(row, number))

    def _hand_out(self, number: int, host: int, *, skip: bool) -> Dispatch:
        partition = self.partition
        row = partition.put_in_flight(number)
        if (was := row.status) != _SCHEDULED:
            after(after(was, Event.FELL_DUE) if was in RESTING else was, Event.DISPATCHED)
        offer = offer_of(partition, row, self._revisits)
        attempt = self._attempts.pop(number, 1) if self._attempts else 1
        silent = not (skip or host in self._breaker.spoken)
        flight = Flight(offer, attempt, skip=skip, number=number, row=row, silent=silent)
        self._flights[offer.key] = flight
        self._flights.silent += silent
        return flight

    def _decide(self, flight: Flight, outcome: Outcome) -> bool:
        """Return whether *flight* is to be tried again, judging *outcome* the first time."""
        evidence = (outcome.status, outcome.failure, outcome.responded)
        if flight.evidence != evidence:
            flight.evidence = evidence
            host, attempt = flight.row.host, flight.attempt
            verdict = judge(host, outcome, attempt=attempt, breaker=self._breaker, limit=self._limit)
            flight.again = verdict is _RETRY
            if verdict is _COUNT and host in self._breaker.given_up:
                self._queue.give_up(host)
        return flight.again

    def _move(self, flight: Flight, event: Event) -> UrlRow:
        """Bring the row of *flight* back to those that wait, by *event*, and return it."""
        row = due_now(flight.row.with_status(after(Status.IN_FLIGHT, event)), self._hour)
        self.partition.put(flight.number, row, was=Status.IN_FLIGHT)
        return row

    def _leave_waiting(self, flight: Flight, now: float) -> None:
        """End *flight*, whose row waits again, and note how long its host is left alone, if it is long.

        The row is not in flight any more, which is what would tell the next crawl that it was requested.
        """
        wait = self._leave(flight, now) - now
        if _NOTED_AT_ONCE <= wait < inf:
            self.hosts.note_wait(flight.row.host, opens=ceil(self._wall() + wait))
            self.flush()

    def _leave(self, flight: Flight, now: float) -> float:
        """End *flight*, and return when its host may be contacted again."""
        flights, host = self._flights, flight.row.host
        del flights[flight.offer.key]
        flights.received -= flight.received
        flights.silent -= flight.silent
        if flight.skip or flight.received:
            return self._gates.opens_at(host)
        return self._queue.end(host, now)
