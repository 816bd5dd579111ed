"""What every frontier must do, whatever happens in whatever order.

A machine offers, fetches, fails, waits and interferes at random, and compares each response with a model
that looks at all rows anew. At the end everything that is left must come out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

import pytest
from contract.frontiers import FRONTIERS, Death, make_world, offer
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from amicrawl.capture import Failure
from amicrawl.frontier import Outcome, Settled
from amicrawl.politeness import backoff

if TYPE_CHECKING:
    from contract.frontiers import Maker

    from amicrawl.frontier import Dispatch, Offer

EXAMPLES = 25 * int(os.environ.get("AMICRAWL_HISTORIES", "1"))
HOSTS = 4
OUTCOMES = [
    Outcome(200),
    *(
        Outcome(failure=failure)
        for failure in (
            Failure.NAME_NOT_FOUND,
            Failure.CONNECT_TIMEOUT,
            Failure.CONNECTION_RESET,
            Failure.CONNECTION_REFUSED,
            Failure.REFUSED_BY_CRAWL,
        )
    ),
]


@dataclass
class Row:
    """What the model knows of a row that is not settled."""

    offer: Offer
    number: int
    attempt: int = 1
    due: float = -inf
    flight: Dispatch | None = None


class History(RuleBasedStateMachine):
    """One crawl, invented as it goes."""

    make: ClassVar[Maker]

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.known: set[tuple[int, int]] = set()
        self.rows: dict[tuple[int, int], Row] = {}
        self.foreign = [0] * HOSTS
        self.last_start = [-inf] * HOSTS
        self.lifted = [False] * HOSTS

    @initialize(per_host=st.integers(1, 2), delay=st.sampled_from([0.0, 1.0]), limit=st.integers(1, 5))
    def begin(self, per_host: int, delay: float, limit: int) -> None:
        self.per_host, self.delay = per_host, delay
        self.world = make_world(
            type(self).make,
            delay=delay,
            per_host=per_host,
            inflight=(limit, 1, 6),
            threshold=2,
            max_retries=2,
        )
        self.frontier = self.world.frontier

    @rule(
        host=st.integers(0, HOSTS - 1),
        path=st.integers(0, 30),
        priority=st.sampled_from([0, 0, 0, 1, -1]),
    )
    def offer(self, host: int, path: int, priority: int) -> None:
        given = offer(host, path, priority=priority, extra={"path": path} if path % 3 == 0 else None)
        assert self.frontier.offer(given) is (given.key not in self.known)
        if given.key not in self.known:
            self.known.add(given.key)
            self.rows[given.key] = Row(given, len(self.known))

    @rule()
    def next(self) -> None:
        may_start = [self.world.gates.may_start(host, self.now) for host in range(HOSTS)]
        given_up = [host in self.world.breaker.given_up for host in range(HOSTS)]
        available = [
            row
            for row in self.rows.values()
            if row.flight is None
            and row.due <= self.now
            and (may_start[row.offer.key.host] or given_up[row.offer.key.host])
        ]
        dispatch = self.frontier.next(self.now)
        if len(self.flights()) >= self.world.limit.limit or not available:
            assert dispatch is None
            moment = self.frontier.next_moment(self.now)
            assert moment is None or moment > self.now
            return
        assert dispatch is not None
        row = self.rows[dispatch.key]
        assert row in available
        assert row.offer.priority == max(each.offer.priority for each in available)
        of_host = [each for each in available if each.offer.key.host == dispatch.key.host]
        first = min(of_host, key=lambda each: (-each.offer.priority, each.number))
        assert (row, dispatch.offer, dispatch.attempt) == (first, row.offer, row.attempt)
        assert dispatch.skip is given_up[dispatch.key.host]
        row.flight = dispatch
        if not dispatch.skip:
            self.started(dispatch.key.host)

    def started(self, host: int) -> None:
        if not self.lifted[host]:
            assert self.now >= self.last_start[host] + self.delay
        self.lifted[host] = False
        self.last_start[host] = self.now

    def flights(self) -> list[Row]:
        return [row for row in self.rows.values() if row.flight is not None]

    @precondition(lambda self: self.flights())
    @rule(choice=st.integers(0, 10), outcome=st.sampled_from(OUTCOMES), decides_first=st.booleans())
    def settle(self, choice: int, outcome: Outcome, decides_first: bool) -> None:
        row = self.flights()[choice % len(self.flights())]
        assert row.flight is not None
        host = row.offer.key.host
        decided = self.frontier.decide(row.flight, outcome) if decides_first else None
        settled = self.frontier.settle(row.offer.key, outcome, self.now)
        assert decided in {None, settled}
        self.lifted[host] |= host in self.world.breaker.given_up
        if settled is Settled.DONE:
            del self.rows[row.offer.key]
            return
        assert outcome.failure is not None
        assert row.attempt <= 2
        row.flight = None
        row.due = self.now + backoff(row.attempt)
        row.attempt += 1

    @precondition(lambda self: self.flights())
    @rule(choice=st.integers(0, 10))
    def release(self, choice: int) -> None:
        row = self.flights()[choice % len(self.flights())]
        self.frontier.release(row.offer.key, self.now)
        row.flight = None
        row.due = -inf

    @rule(seconds=st.sampled_from([0.01, 0.1, 0.5, 1.0, 3.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def wait_for_the_timer(self) -> None:
        moment = self.frontier.next_moment(self.now)
        if moment is not None:
            assert moment >= self.now
            self.now = moment

    @rule(host=st.integers(0, HOSTS - 1))
    def request_robots(self, host: int) -> None:
        self.world.gates.start(host, self.now)
        self.last_start[host] = self.now
        self.foreign[host] += 1

    @precondition(lambda self: any(self.foreign))
    @rule(host=st.integers(0, HOSTS - 1))
    def have_robots(self, host: int) -> None:
        if self.foreign[host]:
            self.world.gates.end(host, self.now)
            self.foreign[host] -= 1

    @rule(death=st.sampled_from(Death))
    def die(self, death: Death) -> None:
        """What was offered is there again, what was settled stays so, what was in flight is due."""
        self.world = self.world.reborn(death, self.now)
        self.frontier = self.world.frontier
        for row in self.rows.values():
            row.flight, row.due, row.attempt = None, -inf, 1
        self.foreign = [0] * HOSTS
        self.last_start = [-inf] * HOSTS
        self.lifted = [False] * HOSTS

    @rule(host=st.integers(0, HOSTS - 1), seconds=st.sampled_from([0.1, 2.0]))
    def keep_shut(self, host: int, seconds: float) -> None:
        self.world.gates.keep_shut(host, self.now + seconds)

    @invariant()
    def the_numbers_agree(self) -> None:
        if not hasattr(self, "frontier"):
            return
        flights = len(self.flights())
        assert len(self.frontier) == len(self.known)
        assert self.frontier.in_flight == flights
        assert self.frontier.queued == len(self.rows) - flights
        assert sum(self.frontier.counts.values()) == len(self.known)
        assert self.frontier.has_pending() is bool(self.rows)

    @invariant()
    def no_host_has_more_in_flight_than_allowed(self) -> None:
        for host in range(HOSTS):
            requested = [row for row in self.flights() if row.offer.key.host == host]
            requested = [row for row in requested if row.flight is not None and not row.flight.skip]
            assert len(requested) <= getattr(self, "per_host", 0)

    def teardown(self) -> None:
        """Let everything end well: what is left comes out, with nothing but the timer to help."""
        for host, requests in enumerate(self.foreign):
            for _ in range(requests):
                self.world.gates.end(host, self.now)
        while self.rows:
            for row in self.flights():
                self.frontier.settle(row.offer.key, Outcome(200), self.now)
                del self.rows[row.offer.key]
            self.next()
            if not self.flights() and self.rows:
                moment = self.frontier.next_moment(self.now)
                assert moment is not None
                self.now = moment
        if hasattr(self, "frontier"):
            assert not self.frontier.has_pending()
            self.world.close()


@pytest.mark.parametrize("make", FRONTIERS)
def test_whatever_happens_every_row_comes_out_in_its_turn_and_no_sooner(make: Maker) -> None:
    class OfThisFrontier(History):
        pass

    OfThisFrontier.make = staticmethod(make)
    run_state_machine_as_test(
        OfThisFrontier, settings=settings(max_examples=EXAMPLES, stateful_step_count=60)
    )
