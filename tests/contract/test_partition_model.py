"""A frontier on disk against a plain dictionary: offers, outcomes, hours, kills, damage, restarts.

Nothing is known of files here. What was flushed must be there after a kill, and what was not must be
gone as if it had never been; what is in flight comes back at once, what was settled at its hour and no
sooner.
"""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

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
from amicrawl.disk import Disk
from amicrawl.frontier import DurableFrontier, Found, Offer, Outcome, Settled, Source
from amicrawl.meguri import LivePartition, Status
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

EXAMPLES = 25 * int(os.environ.get("AMICRAWL_HISTORIES", "1"))
START = 472_222
WEEK = 168
MANY = 5
META = {b"amicrawl.identity": b"exact"}
FOUND = [Found(str(n) * 40, f'"{n}"', "Mon" * n, 1_700_000_000_000 + n) for n in range(3)]
OUTCOMES = [
    *(Outcome(200, found=found) for found in FOUND),
    Outcome(301, redirect="http://elsewhere.test/"),
    Outcome(404),
    Outcome(410),
    Outcome(503),
    Outcome(503, retry_after=5 * 3600),
    Outcome(failure=Failure.RESPONSE_TIMEOUT),
    Outcome(failure=Failure.ROBOTS_DENIED),
    Outcome(failure=Failure.REFUSED_BY_CRAWL),
]


@st.composite
def offers(draw: st.DrawFn) -> Offer:
    """One of some two hundred URLs on four hosts."""
    host, path = draw(st.integers(0, 3)), draw(st.integers(0, 50))
    seed = Seed(f"http://host-{host}.test/{path}", meta_json='{"n":1}' if path % 3 == 0 else "")
    priority = draw(st.sampled_from([0, 0, 0, 1, -1, 0.5]))
    extra = draw(st.sampled_from([None, None, {"a": [1, "é"]}]))
    return Offer(seed, UrlKey(host, path), Source.LINK, priority, path % 4, extra)


class QuickDisk(Disk):
    """A disk that forces nothing: no power is cut here. A snapshot's file is begun when it may."""

    def __init__(self) -> None:
        self.go_on = Event()
        self.go_on.set()

    def create(self, path: Path) -> int:
        if path.name.startswith("snap-"):
            assert self.go_on.wait(60)
        return super().create(path)

    def sync(self, descriptor: int) -> None:
        pass

    def sync_directory(self, directory: Path) -> None:
        pass

    def reserve(self, descriptor: int, at: int, length: int) -> None:
        os.ftruncate(descriptor, at + length)


@dataclass
class Row:
    """What the model knows of a row."""

    offer: Offer
    number: int
    status: Status = Status.SCHEDULED
    due: int = 0
    """The hour at which it may be handed out again; 0 for at once."""
    again: bool = True
    """Whether it comes back at all, when its hour has come, in a recrawl."""
    failures: int = 0
    captured: Found | None = None
    flies: bool = field(default=False)
    landed: bool = False
    """Whether it is in flight though its request is over."""
    behind: int = -1
    """Where it waits and was offered anew, the number in whose place it may come by now; -1 for none."""


Model = dict[UrlKey, Row]


class PartitionHistory(RuleBasedStateMachine):
    """The life of one directory."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="amicrawl-model-"))
        self.hour = START
        # A recrawl is offered nothing: it is one or the other.
        self.recrawls = self.renews = False
        self.rows: Model = {}
        self.known: set[UrlKey] = set()
        """Keys of rows that were there when the directory was opened, and are not offered since."""
        self.offered = 0
        self.kept: Model = {}
        """The rows as they were when they were last flushed."""

    @initialize(offers=st.lists(offers(), min_size=4, max_size=20))
    def begin(self, offers: list[Offer]) -> None:
        self.open()
        self.offer(offers)

    def open(self) -> None:
        self.disk = QuickDisk()
        partition = LivePartition(self.directory, disk=self.disk, hour=self.hour, meta=META)
        self.frontier = DurableFrontier(
            partition,
            Gates(0.0, 100),
            HostBreaker(1000, max_retries=0),
            InflightLimit(100, 1, 1000),
            wall=lambda: self.hour * 3600.0,
            recrawl_before=self.hour if self.recrawls else None,
            renews=self.renews,
        )
        lapsed = 0
        self.known = set(self.rows) if self.renews else set()
        for row in self.rows.values():
            row.landed = False
            row.number, row.behind = max(row.number, row.behind), -1
            if row.flies:
                lapsed += 1
                row.flies, row.status, row.due = False, Status.SCHEDULED, 0
        assert self.frontier.lapsed == lapsed

    def is_due(self, row: Row) -> bool:
        if row.flies or row.due > self.hour:
            return False
        return row.status is Status.SCHEDULED or (self.recrawls and row.again)

    def due(self) -> list[Row]:
        return [row for row in self.rows.values() if self.is_due(row)]

    @rule(offers=st.lists(offers(), min_size=1, max_size=12))
    def offer(self, offers: list[Offer]) -> None:
        for offer in offers:
            self.offered += 1
            row = self.rows.get(offer.key)
            if row is None:
                self.rows[offer.key] = Row(offer, self.offered)
                assert self.frontier.offer(offer)
            else:
                assert self.frontier.offer(offer) is self.renew(row, offer)

    def renew(self, row: Row, offer: Offer) -> bool:
        """Have *row* say what *offer* does, the first time; tell whether it comes again for that."""
        if offer.key not in self.known:
            return False
        self.known.remove(offer.key)
        if row.flies:
            return False
        waits = row.status is Status.SCHEDULED and row.due <= self.hour
        if row.offer.extra != offer.extra:
            row.offer = row.offer._replace(extra=offer.extra)
            if waits:
                row.behind = self.offered
            else:
                row.number = self.offered
        if not waits:
            row.status, row.due = Status.SCHEDULED, 0
        return not waits

    @rule(count=st.integers(1, 5))
    def next(self, count: int) -> None:
        for _ in range(count):
            due = self.due()
            dispatch = self.frontier.next(0.0)
            if not due:
                assert dispatch is None
                return
            assert dispatch is not None
            row = self.rows[dispatch.key]
            assert row in due
            assert row.offer.priority == max(each.offer.priority for each in due)
            siblings = [each for each in due if each.offer.key.host == dispatch.key.host]
            assert row.offer.priority == max(each.offer.priority for each in siblings)
            equals = [each for each in siblings if each.offer.priority == row.offer.priority]
            assert all(row.number <= max(each.number, each.behind) for each in equals)
            row.number, row.behind = max(row.number, row.behind), -1
            self.check_offer(row, dispatch.offer)
            row.flies, row.status = True, Status.IN_FLIGHT

    def check_offer(self, row: Row, handed_out: Offer) -> None:
        """Fail unless what is handed out is what was offered, and the last capture of it."""
        seed, was = handed_out.seed, row.captured
        if was is not None:
            assert (seed.digest, seed.etag) == (was.digest, was.etag)
            assert (seed.last_modified, seed.captured_at) == (was.last_modified, was.captured_at)
        else:
            assert seed == row.offer.seed
        assert (seed.url, seed.meta_json) == (row.offer.seed.url, row.offer.seed.meta_json)
        assert (handed_out.extra, handed_out.hops) == (row.offer.extra, row.offer.hops)

    def flying(self) -> list[Row]:
        return [row for row in self.rows.values() if row.flies]

    @precondition(lambda self: self.flying())
    @rule(choice=st.integers(0, 20))
    def response_received(self, choice: int) -> None:
        row = self.flying()[choice % len(self.flying())]
        if not row.landed:
            self.frontier.response_received(row.offer.key, 0.0)
            row.landed = True

    @precondition(lambda self: self.flying())
    @rule(choice=st.integers(0, 20), outcome=st.sampled_from(OUTCOMES))
    def settle(self, choice: int, outcome: Outcome) -> None:
        self.end(self.flying()[choice % len(self.flying())], outcome)

    @precondition(lambda self: self.due())
    @rule(outcomes=st.lists(st.sampled_from(OUTCOMES), min_size=3, max_size=12))
    def fetch(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            flew = self.flying()
            self.next(1)
            for row in self.flying():
                if row not in flew:
                    self.end(row, outcome)

    def end(self, row: Row, outcome: Outcome) -> None:
        """Settle *row* with *outcome*."""
        assert self.frontier.settle(row.offer.key, outcome, 0.0) is Settled.DONE
        row.flies = row.landed = False
        if outcome.found is not None:
            row.captured = outcome.found
        self.note(row, outcome)

    def note(self, row: Row, outcome: Outcome) -> None:
        """Say where *row* stands after *outcome*; of its hour, what need not be computed anew."""
        number = self.frontier.partition.find(*row.offer.key)
        assert number is not None
        found = self.frontier.partition.get(number)
        if 200 <= outcome.status < 400:
            row.status, row.failures = Status.CRAWLED, 0
            assert found.next_due > self.hour
        else:
            row.failures += 1
            wait, again = 1 << (row.failures - 1), outcome.failure is not Failure.REFUSED_BY_CRAWL
            if outcome.status in {404, 410}:
                row.status = Status.GONE
            elif outcome.failure is Failure.ROBOTS_DENIED:
                row.status = Status.EXCLUDED
            elif outcome.failure is Failure.REFUSED_BY_CRAWL:
                row.status = Status.WITHHELD
            elif row.failures >= MANY:
                row.status = Status.GONE
            else:
                row.status = Status.SCHEDULED
                assert found.next_due == self.hour + max(wait, outcome.retry_after // 3600)
            assert (found.next_due > self.hour) is again
        row.due, row.again = found.next_due, found.next_due > 0

    @precondition(lambda self: self.flying())
    @rule(choice=st.integers(0, 20))
    def release(self, choice: int) -> None:
        row = self.flying()[choice % len(self.flying())]
        self.frontier.release(row.offer.key, 0.0)
        row.landed = False
        row.flies, row.status, row.due = False, Status.SCHEDULED, 0

    @rule(hours=st.sampled_from([1, 1, 2, 5, WEEK, 9000]))
    def wait(self, hours: int) -> None:
        self.hour += hours
        # The hours count from the next look on.
        self.next(1)

    @rule()
    def flush(self) -> None:
        self.frontier.flush()
        self.kept = copy.deepcopy(self.rows)

    @rule()
    def snapshot(self) -> None:
        """Write one while rows are handed out, flushed before the snapshot counts."""
        self.disk.go_on.clear()
        self.frontier.snapshot()
        try:
            self.next(2)
            self.frontier.flush()
        finally:
            self.disk.go_on.set()
        self.frontier.partition._end_snapshot()
        self.kept = copy.deepcopy(self.rows)

    @rule(recrawls=st.booleans(), renews=st.booleans())
    def close(self, recrawls: bool, renews: bool) -> None:
        self.frontier.close()
        self.kept = copy.deepcopy(self.rows)
        self.recrawls, self.renews = recrawls, renews and not recrawls
        self.open()

    @rule(recrawls=st.booleans(), renews=st.booleans(), damaged=st.booleans())
    def die(self, recrawls: bool, renews: bool, damaged: bool) -> None:
        """What was not flushed is gone, whether or not the newest snapshot can be read."""
        self.frontier.partition.abandon()
        self.rows = copy.deepcopy(self.kept)
        self.recrawls, self.renews = recrawls, renews and not recrawls
        snapshots = list(self.directory.glob("snap-*"))
        if damaged and len(snapshots) > 1:
            newest = max(snapshots, key=lambda path: int(path.stem.removeprefix("snap-")))
            newest.write_bytes(newest.read_bytes()[:-20])
            self.open()
            assert any("passed over" in note for note in self.frontier.partition.opened.notes)
            # Of two only one is ever damaged here: the next is made from what the other says.
            self.frontier.snapshot()
            self.frontier.partition._end_snapshot()
            self.kept = copy.deepcopy(self.rows)
        else:
            self.open()
            assert self.frontier.partition.opened.notes == ()

    @invariant()
    def the_rows_are_those_of_the_model(self) -> None:
        if not hasattr(self, "frontier"):
            return
        partition = self.frontier.partition
        assert len(self.frontier) == len(self.rows)
        counts = dict.fromkeys(Status, 0)
        for key, row in self.rows.items():
            number = partition.find(*key)
            assert number is not None
            found = partition.get(number)
            assert (found.status, found.retry_count) == (row.status, row.failures), key
            counts[row.status] += 1
        assert self.frontier.counts == counts
        assert self.frontier.in_flight == len(self.flying())
        assert self.frontier.queued == len(self.due())

    def teardown(self) -> None:
        if hasattr(self, "frontier"):
            self.frontier.partition.abandon()
        shutil.rmtree(self.directory)


def test_a_partition_is_a_dictionary_that_outlives_its_process() -> None:
    run_state_machine_as_test(
        PartitionHistory,
        settings=settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None),
    )
