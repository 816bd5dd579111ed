"""A frontier with a ranking, whatever happens in whatever order: who comes next is as the rows say.

A machine offers, links, imports, fetches, fails, waits and dies at random, and compares each answer with
all rows of the partition, looked at anew. At the end everything that is left must come out, once.
"""

from __future__ import annotations

import shutil
import tempfile
from math import inf
from pathlib import Path

from frontier.ranked import Crawl, link, seed
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
from amicrawl.frontier import Outcome, Settled, Status
from amicrawl.frontier.admission import Admission
from amicrawl.frontier.ranking import Ranking
from amicrawl.politeness import backoff
from amicrawl.urls import UrlKey

KEYS = st.builds(UrlKey, st.integers(1, 3), st.integers(0, 12))
SCORES = st.sampled_from([0.0, 0.5, 3.0, 1e9])
RESET = Outcome(failure=Failure.CONNECTION_RESET)


class Moving(RuleBasedStateMachine):
    """One crawl, invented as it goes."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="amicrawl-moving-"))
        self.crawl: Crawl | None = None
        self.due: dict[UrlKey, float] = {}
        """What waits, and from which moment on."""
        self.flying: dict[UrlKey, int] = {}
        """What is in flight, and the number of the attempt."""
        self.attempts: dict[UrlKey, int] = {}
        self.started = dict.fromkeys(range(1, 4), -inf)

    @initialize(delay=st.sampled_from([0.0, 1.0]))
    def begin(self, delay: float) -> None:
        self.delay = delay
        self._open(0.0)

    def _open(self, now: float) -> None:
        # Three links from a seed, and a redirect, are too many: some rows are parked.
        self.crawl = Crawl(
            self.directory / "frontier",
            delay=self.delay,
            ranking=Ranking(),
            admission=Admission(depth_cap=2),
        )
        self.crawl.now = now

    @property
    def it(self) -> Crawl:
        assert self.crawl is not None
        return self.crawl

    @rule(key=KEYS, priority=st.sampled_from([0.0, 0.1, 0.1, 0.9, -1.0]))
    def offer(self, key: UrlKey, priority: float) -> None:
        known = self.it.partition.find(*key) is not None
        assert self.it.frontier.offer(seed(key, priority)) is not known
        if not known:
            self.due[key] = -inf

    @rule(source=KEYS, linked=st.lists(st.tuples(KEYS, st.integers(1, 3)), max_size=5))
    def offer_links(self, source: UrlKey, linked: list[tuple[UrlKey, int]]) -> None:
        new: dict[UrlKey, int] = {}
        for key, hops in linked:
            if self.it.partition.find(*key) is None:
                new.setdefault(key, hops)
        offers = [link(key, hops=hops) for key, hops in linked]
        admitted = {key for key, hops in new.items() if hops <= 2}
        assert self.it.frontier.offer_links(source, offers) == len(admitted)
        self.due.update(dict.fromkeys(admitted, -inf))

    @rule(
        pages=st.dictionaries(KEYS, SCORES, max_size=4), hosts=st.dictionaries(st.integers(1, 4), SCORES)
    )
    def import_scores(self, pages: dict[UrlKey, float], hosts: dict[int, float]) -> None:
        self.it.frontier.import_scores(pages, hosts)

    @rule()
    def next(self) -> None:
        crawl = self.it
        available = [
            key
            for key, due in self.due.items()
            if due <= crawl.now and crawl.gates.may_start(key.host, crawl.now)
        ]
        key = crawl.take()
        if not available:
            assert key is None
            moment = crawl.frontier.next_moment(crawl.now)
            assert moment is None or moment > crawl.now
            return
        assert key in available
        assert crawl.row(key).priority == max(crawl.row(each).priority for each in available)
        of_host = [each for each in available if each.host == key.host]
        first = min(of_host, key=lambda each: (-crawl.row(each).priority, crawl.row(each).url_ref))
        assert key == first
        assert crawl.now >= self.started[key.host] + self.delay
        self.started[key.host] = crawl.now
        del self.due[key]
        self.flying[key] = self.attempts.pop(key, 1)

    @precondition(lambda self: self.flying)
    @rule(choice=st.integers(0, 10), outcome=st.sampled_from([Outcome(200), Outcome(404), RESET]))
    def settle(self, choice: int, outcome: Outcome) -> None:
        key = list(self.flying)[choice % len(self.flying)]
        attempt = self.flying.pop(key)
        if self.it.frontier.settle(key, outcome, self.it.now) is Settled.AGAIN:
            self.due[key] = self.it.now + backoff(attempt)
            self.attempts[key] = attempt + 1

    @precondition(lambda self: self.flying)
    @rule(choice=st.integers(0, 10))
    def release(self, choice: int) -> None:
        key = list(self.flying)[choice % len(self.flying)]
        self.attempts[key] = self.flying.pop(key)
        self.it.frontier.release(key, self.it.now)
        self.due[key] = -inf

    @rule(seconds=st.sampled_from([0.01, 0.5, 1.0, 3.0]))
    def wait(self, seconds: float) -> None:
        self.it.now += seconds

    @rule(killed=st.booleans())
    def die(self, killed: bool) -> None:
        worth = self._worth()
        self.it.end(killed=killed)
        self._open(self.it.now + self.delay)
        assert self._worth() == worth
        self.due = dict.fromkeys([*self.due, *self.flying], -inf)
        self.flying, self.attempts = {}, {}
        self.started = dict.fromkeys(self.started, -inf)

    def _worth(self) -> dict[tuple[int, int], float]:
        rows = map(self.it.partition.get, range(len(self.it.partition)))
        return {(row.host, row.path): row.priority for row in rows}

    @invariant()
    def the_numbers_agree(self) -> None:
        if self.crawl is None:
            return
        frontier = self.crawl.frontier
        assert frontier.queued == len(self.due)
        assert frontier.in_flight == len(self.flying)
        assert sum(frontier.counts.values()) == len(frontier)
        assert frontier.has_pending() is bool(self.due or self.flying)
        assert all(self.crawl.row(key).status == Status.SCHEDULED for key in self.due)

    def teardown(self) -> None:
        """Let everything end well, with nothing but the timer to help."""
        if self.crawl is not None:
            while self.due or self.flying:
                for key in self.flying:
                    self.crawl.frontier.settle(key, Outcome(200), self.crawl.now)
                self.flying = {}
                self.next()
                if self.due and not self.flying:
                    moment = self.crawl.frontier.next_moment(self.crawl.now)
                    assert moment is not None
                    self.crawl.now = moment
            assert not self.crawl.frontier.has_pending()
            self.crawl.partition.abandon()
        shutil.rmtree(self.directory)


def test_whatever_happens_rows_come_up_by_what_they_are_worth_and_no_sooner() -> None:
    run_state_machine_as_test(
        Moving, settings=settings(max_examples=50, stateful_step_count=50, deadline=None)
    )
