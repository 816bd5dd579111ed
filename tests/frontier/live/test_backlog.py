"""The backlog: rows of many hosts, host by host, each in the order in which it is to come."""

from __future__ import annotations

from array import array
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier.inventory import Backlog, _Stocktaking
from amicrawl.frontier.places import order_of, orders_of
from amicrawl.meguri import Status
from amicrawl.meguri.format.schema import ROW

HOSTS = st.one_of(st.integers(0, 4), st.sampled_from([2**63 - 1, 2**63, 2**64 - 1]))
PRIORITIES = st.sampled_from([0.0, 0.0, 0.0, -0.0, 1.0, -1.0, 2.5, float("inf"), -1e30])
Row = tuple[int, float, int]


def records(rows: list[Row]) -> np.ndarray:
    """Return records of host key, priority and offset."""
    made = np.zeros(len(rows), ROW)
    for number, (host, priority, reference) in enumerate(rows):
        made[number]["host_key"] = host
        made[number]["priority"] = priority
        made[number]["url_ref"] = reference
    return made


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.uint32)


def backlog_of(rows: list[Row], due: np.ndarray) -> Backlog:
    """Return the backlog of the rows *due* of a table."""
    table = records(rows)[due]
    return Backlog(due, table["host_key"], orders_of(table["priority"]), table["url_ref"])


def expected(rows: list[Row], due: list[int]) -> dict[int, list[int]]:
    """Return the numbers of *due* by host, sorted in the plainest way."""
    ranked = sorted(due, key=lambda number: (rows[number][0], -rows[number][1], rows[number][2]))
    return {host: list(of) for host, of in groupby(ranked, lambda number: rows[number][0])}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Row], list[int]]:
    """Rows with references that are all different, and the numbers of those that are due."""
    drawn = draw(st.lists(st.tuples(HOSTS, PRIORITIES), max_size=40))
    if draw(st.booleans()):
        # As a snapshot of a plain list has them: by host, and of one priority.
        drawn = [(host, 0.0) for host, _ in sorted(drawn)]
    base = draw(st.sampled_from([1, 2**40 - 20, 2**50]))
    references = draw(st.permutations(range(base, base + len(drawn))))
    rows = [(*row, reference) for row, reference in zip(drawn, references, strict=True)]
    due = [number for number in range(len(rows)) if draw(st.booleans())]
    return rows, due


@pytest.mark.slow
@given(tables())
def test_rows_come_by_host_then_priority_then_offset(table: tuple[list[Row], list[int]]) -> None:
    rows, due = table
    backlog, wanted = backlog_of(rows, numbers(*due)), expected(rows, due)
    assert len(backlog) == len(due)
    heads = []
    while (order := backlog.first_order()) is not None:
        host, run = backlog.take_first()
        assert len(run) == len(wanted[host])
        taken = run.tolist()
        assert taken == wanted.pop(host)
        assert order == order_of(rows[taken[0]][1])
        heads.append((order, rows[taken[0]][2]))
    assert not wanted
    assert heads == sorted(heads)


@pytest.mark.slow
@given(tables(), st.lists(HOSTS, max_size=8))
def test_a_host_can_be_taken_out_of_turn_and_once(
    table: tuple[list[Row], list[int]], requested: list[int]
) -> None:
    rows, due = table
    backlog, wanted = backlog_of(rows, numbers(*due)), expected(rows, due)
    for at, host in enumerate(requested):
        run = backlog.take(host)
        found = wanted.pop(host, None)
        assert found == (None if run is None else run.tolist())
        if at % 3 == 2 and backlog.first_order() is not None:
            first, run = backlog.take_first()
            assert run.tolist() == wanted.pop(first)
    while backlog.first_order() is not None:
        first, run = backlog.take_first()
        assert run.tolist() == wanted.pop(first)
    assert not wanted
    assert all(backlog.take(host) is None for host in {row[0] for row in rows})


def test_an_empty_backlog_has_nothing() -> None:
    backlog = backlog_of([], numbers())
    assert len(backlog) == 0
    assert backlog.first_order() is None
    assert backlog.take(1) is None


def test_of_rows_none_may_be_due() -> None:
    backlog = backlog_of([(1, 0.0, 1)], numbers())
    assert backlog.first_order() is None
    assert backlog.take(1) is None


def test_a_host_that_is_not_there_is_not_found() -> None:
    backlog = backlog_of([(2, 0.0, 1), (5, 0.0, 2)], numbers(0, 1))
    assert [backlog.take(host) for host in (0, 3, 2**64 - 1)] == [None] * 3


@pytest.mark.parametrize("reference", [2**40 - 1, 2**40, 2**63])
def test_offsets_of_any_size_keep_their_order(reference: int) -> None:
    rows = [(1, 0.0, reference), (1, 0.0, reference - 1), (2, 0.0, 1)]
    _, run = backlog_of(rows, numbers(0, 1)).take_first()
    assert run.tolist() == [1, 0]


def test_rows_in_flight_are_due_under_their_numbers_whatever_page_of_the_table_they_are_in() -> None:
    table = records([(1, 0.0, 10 + number) for number in range(5)])
    table["status"] = [
        Status.SCHEDULED,
        Status.IN_FLIGHT,
        Status.CRAWLED,
        Status.SCHEDULED,
        Status.IN_FLIGHT,
    ]
    taking = _Stocktaking(len(table), recrawls=False)
    for page in (table[:1], table[1:3], table[3:]):
        taking.look_at(page, numbers(), hour=1000, due_at=1000)
    found = taking.inventory()
    assert found.lapsed == [1, 4]
    assert found.backlog.take_first() == (1, array("I", [0, 1, 3, 4]))
