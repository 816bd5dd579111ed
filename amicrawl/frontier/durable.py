"""The frontier: rows in a live partition, and the queue of those that are due.

    offer   row, journal, queue                          settle  event, row, journal, due wheel
    next    queue, or due wheel -> queue; row in flight  flush   the journal to disk
    links   offers, and new priorities for what waits    import  priorities from elsewhere

Which rows are due is known when the partition is opened (the backlog) and from then on by the wheel; no
row is ever looked for. A list crawl takes what waits; a recrawl also takes what was settled and has
fallen due again. What is in flight when the process dies is due again when the partition is opened.
"""

from __future__ import annotations

from collections import Counter
from math import ceil, inf
from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError
from amicrawl.frontier.annex import offered_entries
from amicrawl.frontier.appraisal import Appraisal, Link
from amicrawl.frontier.flights import Flight, Flights
from amicrawl.frontier.hosts import HostTally, keep_gates_shut
from amicrawl.frontier.judgement import judge
from amicrawl.frontier.moves import Moves
from amicrawl.frontier.places import order_of, place
from amicrawl.frontier.queue import Queue
from amicrawl.frontier.revisits import Revisits
from amicrawl.frontier.row import Dispatch, Settled
from amicrawl.frontier.settling import Settling
from amicrawl.frontier.states import RESTING, WAITING, Event, Status, after
from amicrawl.frontier.stock import due_now, take_stock
from amicrawl.frontier.texts import offer_of
from amicrawl.frontier.url_row import UrlRow, priority_and_reference
from amicrawl.frontier.wheel import DueWheel
from amicrawl.politeness import Verdict, backoff
from amicrawl.urls import UrlKey, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amicrawl.frontier.admission import Admission
    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.ranking import Ranking
    from amicrawl.frontier.row import Offer, Outcome
    from amicrawl.frontier.soft404 import Soft404Detector
    from amicrawl.politeness import Gates, HostBreaker, InflightLimit

_HOUR = 3600
_FARTHEST = 0xFFFF
_STATUSES = {int(status): status for status in Status}


class DurableFrontier:
    """A `Frontier` whose rows outlive the process.

    It shares *gates*, *breaker* and *limit* with the crawl, which may use them for requests of its own,
    and is the one listener of *gates*. *wall* gives Unix seconds, *now* is the moment on the clock of
    the gates at which the frontier is opened. With *recrawl_before*, an hour since 1970, rows that were
    settled are handed out again if they are due at that hour or before; and from then on as they fall
    due. With *renews*, a row that was there before counts as new the first time that it is offered.

    Without *ranking*, *admission* and *soft404*, as for a plain list, a row comes up by the priority
    that it was offered with, and nothing is kept out. With *ranking*, priorities are importance so far,
    and rows that wait are moved as it changes; with *admission*, what is too much of its host is
    TRAPPED; with *soft404*, a capture of an error page leaves its row GONE. What those gather is bounded
    in memory and forgotten with the process; priorities, budgets, scores and flags stand in the rows.
    """

    def __init__(
        self,
        partition: LivePartition,
        gates: Gates,
        breaker: HostBreaker,
        limit: InflightLimit,
        *,
        wall: Callable[[], float],
        now: float = 0.0,
        recrawl_before: int | None = None,
        renews: bool = False,
        revisits: Revisits | None = None,
        ranking: Ranking | None = None,
        admission: Admission | None = None,
        soft404: Soft404Detector | None = None,
    ) -> None:
        self.partition = partition
        self._breaker = breaker
        self._limit = limit
        self._gates = gates
        self._wall = wall
        self._hour = int(wall() // _HOUR)
        self._recrawls = recrawl_before is not None
        self._renews = renews
        self._rows_before = len(partition.state.rows)
        self._renewed: set[int] = set()
        self._revisits = revisits or Revisits()
        self._hosts = HostTally(partition, crawl_delay=round(gates.delay * 10))
        self._settling = Settling(partition, self._hosts, self._revisits, soft404=soft404)
        self._appraisal = Appraisal(partition, self._hosts, ranking=ranking, admission=admission)
        self._appraises = self._appraisal.is_needed
        self._wheel = DueWheel(self._hour + 1)
        self._flights = Flights()
        self._attempts: dict[int, int] = {}
        """The number of the next attempt, by row, for those that failed since the crawl began."""
        due_at = self._hour if recrawl_before is None else recrawl_before
        stock = take_stock(partition, self._hour, due_at=due_at, recrawls=self._recrawls)
        self._counts = stock.counts
        self.lapsed = stock.lapsed
        """How many rows were found in flight: the crawl before died with them."""
        self._wheel.add_many(stock.later, stock.later_dues)
        moves = None
        if ranking is not None:
            moves = Moves(self._rows_before, stock.due, self._place_of)
        if admission is not None:
            admission.recall(stock.trapped)
        self._queue = Queue(gates, breaker, backlog=stock.backlog, place_of=self._place_of, moves=moves)
        keep_gates_shut(partition, gates, stock.lapsed_hosts, now=now, wall=wall())

    def __len__(self) -> int:
        return len(self.partition)

    @property
    def queued(self) -> int:
        """How many rows are due and still to be handed out, later attempts included."""
        return len(self._queue)

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
        return dict(self._counts)

    def urls_of(self, host: int) -> int:
        """Return how many rows the host key *host* has."""
        return self._hosts.urls(host)

    def hosts_in_flight(self) -> Counter[int]:
        """Return how many rows of each host key are handed out and not settled."""
        return Counter(key.host for key in self._flights)

    def longest_queues(self, most: int) -> list[tuple[int, int]]:
        """Return the host keys with the most rows that wait, and how many; looks at every host."""
        return self._queue.longest(most)

    def known_host(self, host: int) -> tuple[str, int]:
        """Return the name of the host key *host* and how many answers it gave; empty if unknown."""
        row = self._hosts.row(host)
        if row is None:
            return "", 0
        return text_of(self.partition.texts_at(row.host_ref)[0]), row.crawl_total

    def has_pending(self) -> bool:
        """Tell whether a row is due or in flight; takes constant time."""
        return bool(self._flights) or len(self._queue) > 0

    def offer(self, offer: Offer) -> bool:
        """Take *offer* as a new row; return False, and change nothing, if its key is known.

        False, too, where it is not admitted: it is known from then on, and TRAPPED.
        """
        return self._take(offer)

    def _take(self, offer: Offer, link: Link | None = None) -> bool:
        host, path = offer.key
        priority = float(offer.priority)
        # What cannot be kept is refused before the key is claimed, which would lead to no row.
        order, texts = order_of(priority), offered_entries(offer)
        number = self.partition.claim(host, path)
        if number is None:
            return self._renews and self._renew(offer.key)
        row = UrlRow(
            host,
            path,
            Status.SCHEDULED,
            priority,
            min(offer.hops, _FARTHEST),
            offer.source,
            first_seen=self._hour,
        )
        self._hosts.offered(host, offer.seed.url)
        if self._appraises:
            row = self._appraisal.offered(number, row, offer, link=link, hour=self._hour)
            order = order_of(row.priority)
        reference = self.partition.fill(number, row, texts)
        self._counts[_STATUSES[row.status]] += 1
        if row.status == Status.TRAPPED:
            return False
        self._queue.push(host, place(order, reference, number))
        return True

    def offer_links(self, source: UrlKey, offers: Sequence[Offer]) -> int:
        """Offer what the page at *source* links to, all of it; return how many are new and admitted.

        With a ranking, the page's cash is spread over all links, known or new, and priorities follow
        from that: those of the offers count for nothing, and rows that wait come up accordingly. No
        links at all: the cash goes to all pages alike. A *source* that is no row has nothing to spread.
        """
        if not self._appraisal.ranks:
            return sum(map(self.offer, offers))
        page, link = self._appraisal.spread(source, len(offers))
        new = 0
        for offer in offers:
            known = self.partition.find(*offer.key)
            if known is None:
                new += self._take(offer, link)
            else:
                self._appraisal.linked(known, link)
                self._rank(known)
                new += self._renews and self._renew(offer.key)
        if page is not None:
            self._rank(page)
        return new

    def import_scores(self, pages: Mapping[UrlKey, float], hosts: Mapping[int, float]) -> None:
        """Take over page ranks by URL and scores by host key; each replaces the one before.

        Ranks of URLs that are not known are left out; scores of hosts that are not are noted as soon as
        they are. Rows that wait come up accordingly. Without a ranking nothing is done but to note the
        scores in the rows of hosts. Looks at every row if there are scores.
        """
        for number in self._appraisal.imported(pages, hosts):
            self._rank(number)

    def next(self, now: float) -> Dispatch | None:
        """Hand out the row that comes next, or None where nothing may start at *now*."""
        if len(self._flights) >= self._limit.limit:
            return None
        self._turn_wheel()
        taken = self._queue.take(now)
        return None if taken is None else self._hand_out(taken.number, skip=taken.skip)

    def will_retry(self, dispatch: Dispatch, outcome: Outcome) -> bool:
        """Tell, and thereby decide, whether *dispatch* is to be handed out again after *outcome*."""
        return self._decide(self._flights.at(dispatch.key), outcome)

    def settle(self, key: UrlKey, outcome: Outcome, now: float) -> Settled:
        """Note what came of the row in flight at *key*.

        Raises AmicrawlError where it is not in flight.
        """
        flight = self._flights.at(key)
        again = self._decide(flight, outcome)
        if again:
            attempt = flight.dispatch.attempt
            self._attempts[flight.number] = attempt + 1
            row = self._move(flight, Event.POSTPONED)
            self._queue.postpone(key[0], self._place(row, flight.number), until=now + backoff(attempt))
        else:
            self._settle(flight, outcome, int(self._wall() // _HOUR))
        self._leave(flight, now)
        if not again:
            self._hosts.settled(key[0], outcome, opens=self._opens_at(key[0], now))
        return Settled.AGAIN if again else Settled.DONE

    def release(self, key: UrlKey, now: float) -> None:
        """Take back the row in flight at *key* that was never fetched; it may be handed out again.

        Raises AmicrawlError where it is not in flight.
        """
        flight = self._flights.at(key)
        if flight.dispatch.attempt > 1:
            self._attempts[flight.number] = flight.dispatch.attempt
        row = self._move(flight, Event.RELEASED)
        self._queue.push(key[0], self._place(row, flight.number))
        self._leave(flight, now)

    def next_moment(self, now: float) -> float | None:
        """Return the earliest moment at which `next` may answer, *now* included; for one timer."""
        if len(self._flights) >= self._limit.limit:
            return None
        return self._queue.next_moment(now)

    def flush(self) -> None:
        """Write every change to the journal: from here on they outlive the process."""
        self._hosts.hand_over()
        self.partition.flush()

    def sync(self) -> None:
        """Force what was flushed to disk; may run on another thread."""
        self.partition.sync()

    def snapshot(self) -> None:
        """Begin to write the partition as it stands; it goes on on a thread of its own."""
        self._hosts.hand_over(counts=True)
        self.partition.snapshot(self._hour)

    def close(self) -> None:
        """Write everything down and give the partition up."""
        self._hosts.hand_over(counts=True)
        self.partition.close(self._hour)

    def settle_found(self, key: UrlKey, outcome: Outcome, hour: int) -> bool:
        """Settle the row at *key* with an *outcome*, of the hour *hour*, that was recorded elsewhere.

        False, and nothing changes, where the frontier knows of it: the row was settled at that hour or
        later. The row may still be handed out by this frontier, but not by the next one over the same
        partition: mend first, then crawl. Raises AmicrawlError for an unknown key.
        """
        number = self.partition.find(*key)
        if number is None:
            raise AmicrawlError(f"URL key {key[0]:016x}:{key[1]:016x} is not in the frontier.")
        row = self.partition.get(number)
        # A settled row was due, and taken by a recrawl whose journal did not get as far as to say so.
        again = _STATUSES[row.status] in RESTING and row.next_due > 0 and row.last_crawled < hour
        if not (_STATUSES[row.status] in WAITING or again) or row.next_due > hour:
            return False
        self._counts[_STATUSES[row.status]] -= 1
        self._counts[Status.IN_FLIGHT] += 1
        row = row._replace(status=Status.IN_FLIGHT)
        dispatch = Dispatch(offer_of(self.partition, row, self._revisits))
        self._settle(Flight(dispatch, number, row), outcome, hour)
        return True

    def _renew(self, key: UrlKey) -> bool:
        """Have a row of an earlier crawl handed out again, the first time that this one offers it."""
        number = self.partition.find(*key)
        if number is None or number >= self._rows_before or number in self._renewed:
            return False
        self._renewed.add(number)
        if self.partition.get(number).status == Status.TRAPPED:
            return False
        return self.due_again(key)

    def due_again(self, key: UrlKey) -> bool:
        """Have the settled row at *key* handed out once more, and at once; False if there is none.

        For a row whose capture turned out to be lost. A frontier that would hand the row out anyway, now
        or later, may do so twice; the next one over the same partition does not: mend first, then crawl.
        """
        number = self.partition.find(*key)
        if number is None or key in self._flights:
            return False
        row = self.partition.get(number)
        status = _STATUSES[row.status]
        if status in WAITING and row.next_due <= self._hour:
            return False
        self._counts[status] -= 1
        self._counts[Status.SCHEDULED] += 1
        if status is Status.TRAPPED:
            self._appraisal.released(key.host)
        row = row._replace(status=Status.SCHEDULED, next_due=0)
        self.partition.put(number, row)
        self._queue.push(key.host, self._place(row, number))
        return True

    def _opens_at(self, host: int, now: float) -> int:
        """Return the Unix second from which *host* may be asked; 0 where it may be asked at *now*."""
        wait = self._gates.opens_at(host) - now
        return ceil(self._wall() + wait) if 0 < wait < inf else 0

    def _turn_wheel(self) -> None:
        """Queue the rows that have fallen due since the last look."""
        hour = int(self._wall() // _HOUR)
        if hour <= self._hour:
            return
        self._hour = hour
        for number in self._wheel.fire(hour).tolist():
            row = self.partition.get(number)
            status = _STATUSES[row.status]
            # A row that was settled meanwhile stands in the wheel once more, at its new hour.
            if 0 < row.next_due <= hour and (
                status in WAITING or (status in RESTING and self._recrawls)
            ):
                self._queue.push(row.host, self._place(row, number))

    def _hand_out(self, number: int, *, skip: bool) -> Dispatch:
        partition = self.partition
        row = partition.get(number)
        status = _STATUSES[row.status]
        self._counts[status] -= 1
        self._counts[Status.IN_FLIGHT] += 1
        if status in RESTING:
            status = after(status, Event.FELL_DUE)
        row = row.with_status(after(status, Event.DISPATCHED))
        partition.put(number, row)
        offer = offer_of(partition, row, self._revisits)
        dispatch = Dispatch(offer, self._attempts.pop(number, 1), skip)
        self._flights[dispatch.key] = Flight(dispatch, number, row)
        return dispatch

    def _rank(self, number: int) -> None:
        """Give row *number* the priority that it has by now, and the place if it waits."""
        row = self.partition.get(number)
        priority = self._appraisal.priority(number, row)
        if priority == row.priority:
            return
        row = row._replace(priority=priority)
        flight = self._flights.get(UrlKey(row.host, row.path))
        if flight is not None:
            # It keeps its turn, and comes back with what it is worth by then.
            flight.row = row
        self.partition.put(number, row)
        self._queue.move(row.host, self._place(row, number))

    def _decide(self, flight: Flight, outcome: Outcome) -> bool:
        """Tell whether *flight* is to be tried again, judging *outcome* the first time."""
        evidence = (outcome.status, outcome.failure, outcome.answered)
        if flight.evidence != evidence:
            flight.evidence = evidence
            host, attempt = flight.row.host, flight.dispatch.attempt
            verdict = judge(host, outcome, attempt=attempt, breaker=self._breaker, limit=self._limit)
            flight.again = verdict is Verdict.RETRY
            if verdict is Verdict.COUNT and self._breaker.is_open(host):
                self._queue.give_up(host)
        return flight.again

    def _settle(self, flight: Flight, outcome: Outcome, hour: int) -> None:
        known = flight.dispatch.offer.seed
        row = self._settling.settled(flight.row, known, outcome, hour=hour)
        self._counts[Status.IN_FLIGHT] -= 1
        self._counts[_STATUSES[row.status]] += 1
        self.partition.put(flight.number, row)
        if row.next_due and (row.status == Status.SCHEDULED or self._recrawls):
            self._wheel.add(flight.number, row.next_due)

    def _move(self, flight: Flight, event: Event) -> UrlRow:
        """Bring the row of *flight* back to those that wait, by *event*, and return it."""
        status = after(Status.IN_FLIGHT, event)
        self._counts[Status.IN_FLIGHT] -= 1
        self._counts[status] += 1
        row = due_now(flight.row.with_status(status), self._hour)
        self.partition.put(flight.number, row)
        return row

    def _place_of(self, number: int) -> int:
        priority, reference = priority_and_reference(self.partition.state.rows.read(number))
        return place(order_of(priority), reference, number)

    def _place(self, row: UrlRow, number: int) -> int:
        return place(order_of(row.priority), row.url_ref, number)

    def _leave(self, flight: Flight, now: float) -> None:
        del self._flights[flight.dispatch.key]
        if not flight.dispatch.skip:
            self._gates.end(flight.row.host, now)
