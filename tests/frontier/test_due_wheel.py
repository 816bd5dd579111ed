"""The due wheel: each row once, in order, whatever hours rows are due at."""

from __future__ import annotations

import numpy as np
import pytest
from frontier.signal_vectors import VECTOR_FILES, lines
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from amicrawl.frontier.wheel import DueWheel

LAST = 2**32 - 1
BASE = 480_000
# Near hours, hours about where the wheel's reach ends, and any.
HOURS = st.one_of(
    st.integers(BASE - 10, BASE + 200), st.integers(BASE + 65_500, BASE + 65_600), st.integers(0, LAST)
)


def test_golden_rows_fire_in_the_same_order() -> None:
    for line in lines(VECTOR_FILES, "map.jsonl", kind="wheel"):
        wheel = DueWheel(line["base"])
        for step in line["steps"]:
            match step:
                case "add", row, hour:
                    wheel.add(row, hour)
                case "next", _:
                    pass  # which hour comes next is not asked of ours
                case "due", now, rows, _, left:
                    assert wheel.fire(now).tolist() == (rows or []), step
                    assert len(wheel) == left, step
                case _:
                    pytest.fail(f"an operation that is not known: {step}")


def test_a_row_of_years_ahead_is_due_in_its_hour_and_no_hour_later() -> None:
    wheel = DueWheel(BASE)
    wheel.add(1, BASE + 70_000)
    assert wheel.fire(BASE + 70_000).tolist() == [1]


class AgainstAList(RuleBasedStateMachine):
    """The wheel beside a list that is sorted, stably, whenever something is taken out."""

    @initialize()
    def begin(self) -> None:
        self.wheel = DueWheel(BASE)
        self.waiting: list[tuple[int, int]] = []
        self.cursor = BASE
        self.rows = 0

    def expect(self, hours: list[int]) -> list[int]:
        """Note rows due at *hours* in the list, and return their numbers."""
        numbers = list(range(self.rows, self.rows + len(hours)))
        self.rows += len(hours)
        pairs = zip(hours, numbers, strict=True)
        self.waiting += [(max(hour, self.cursor), number) for hour, number in pairs]
        return numbers

    @rule(hour=HOURS)
    def add(self, hour: int) -> None:
        (row,) = self.expect([hour])
        self.wheel.add(row, hour)

    @rule(hours=st.lists(HOURS, max_size=50))
    def add_many(self, hours: list[int]) -> None:
        rows = self.expect(hours)
        self.wheel.add_many(np.array(rows, np.uint32), np.array(hours, np.uint32))

    @rule(now=HOURS)
    def fire(self, now: int) -> None:
        self.cursor = max(self.cursor, now + 1)
        self.waiting.sort(key=lambda pair: pair[0])
        due = [row for hour, row in self.waiting if hour <= now]
        del self.waiting[: len(due)]
        assert self.wheel.fire(now).tolist() == due

    @rule(ahead=st.integers(0, 40_000))
    def let_time_pass(self, ahead: int) -> None:
        self.fire(min(self.cursor + ahead, LAST))

    @invariant()
    def agrees(self) -> None:
        assert len(self.wheel) == len(self.waiting)


TestAgainstAList = AgainstAList.TestCase


@given(st.lists(HOURS, max_size=200))
def test_each_row_fires_once_and_in_order(hours: list[int]) -> None:
    wheel = DueWheel(BASE)
    wheel.add_many(np.arange(len(hours), dtype=np.uint32), np.array(hours, np.uint32))
    rows = wheel.fire(LAST).tolist()
    assert sorted(rows) == list(range(len(hours)))
    effective = [max(hours[row], BASE) for row in rows]
    assert effective == sorted(effective)
    assert len(wheel) == 0


def test_bulk_that_takes_several_pages_keeps_its_order() -> None:
    hours = (BASE + (np.arange(600_000) * 7919) % 1000).astype(np.uint32)
    wheel = DueWheel(BASE)
    wheel.add_many(np.arange(600_000, dtype=np.uint32), hours)
    fired = wheel.fire(BASE + 999)
    assert np.array_equal(fired, np.argsort(hours, kind="stable"))


def test_hours_that_are_all_different_do_not_become_arrays_of_their_own() -> None:
    wheel = DueWheel(BASE)
    hours = np.linspace(BASE, LAST, 500_000).astype(np.uint32)
    wheel.add_many(np.arange(500_000, dtype=np.uint32), hours)
    assert len(wheel._slots) <= 65_536
    wheel.fire(BASE + 1_000_000)
    assert len(wheel._slots) <= 65_536


def test_the_last_hour_can_be_fired_and_added_to() -> None:
    wheel = DueWheel(BASE)
    wheel.fire(LAST)
    wheel.add(1, 5)
    wheel.add_many(np.array([2], np.uint32), np.array([LAST], np.uint32))
    assert wheel.fire(LAST + 1).tolist() == [1, 2]
