"""OPIC, blending, penalties, budgets: golden vectors, and what holds whatever the numbers."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import pytest
from frontier.signal_vectors import DIRECTORIES, bits_of, lines, number, single_of
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier.importance import (
    DEFAULTS,
    BudgetSplit,
    LinkingHosts,
    Opic,
    Turn,
    blend,
    compress,
    penalised,
    priority_bucket,
    single,
    url_budget,
)

if TYPE_CHECKING:
    from pathlib import Path

CASH = st.floats(0, 1000, width=32)
golden = pytest.mark.parametrize("directory", DIRECTORIES)


def assert_one_unit_off_at_most(value: float, bits: str) -> None:
    """Compare as positive numbers of single precision, whose bits are in order."""
    assert abs(number(bits_of(value)) - number(bits)) <= 1


@golden
def test_golden_cash_is_handed_on_alike(directory: Path) -> None:
    for line in lines(directory, "map.jsonl", kind="opic"):
        opic = Opic()
        for step in line["steps"]:
            match step:
                case "distribute", row, links, weights:
                    weight = opic.distribute(row, links)
                    assert [bits_of(weight)] * links == (weights or [])
                case "seed", row, cash:
                    opic.seed(row, single_of(cash))
                case "credit", row, weight:
                    opic.credit(row, single_of(weight))
                case "scores", scores, known:
                    for row, score in enumerate(scores):
                        assert_one_unit_off_at_most(opic.score(row), score)
                    assert opic.known == known
                case _:
                    pytest.fail(f"an operation that is not known: {step}")


@golden
def test_golden_parts_are_blended_alike(directory: Path) -> None:
    for line in lines(directory, "map.jsonl", kind="blend"):
        page_rank = single_of(line["page_rank"]) if line["have_page_rank"] else None
        opic = single_of(line["opic"])
        importance = blend(opic, page_rank=page_rank, host_score=single_of(line["host"]))
        assert_one_unit_off_at_most(importance, line["blend"])
        priority = penalised(
            single_of(line["blend"]), depth=line["depth"], trap_suspect=line["trap_suspect"]
        )
        assert_one_unit_off_at_most(priority, line["penalized"])
        assert_one_unit_off_at_most(compress(opic), line["compress_of_opic"])


@golden
def test_golden_budgets_agree(directory: Path) -> None:
    for line in lines(directory, "map.jsonl", kind="host_budget"):
        for linking_hosts, budget in line["pairs"]:
            assert url_budget(linking_hosts) == budget


@golden
def test_golden_turns_agree(directory: Path) -> None:
    for line in lines(directory, "map.jsonl", kind="budget_split"):
        split = BudgetSplit(*line["shares"])
        for discovery, refresh, served in line["steps"]:
            assert split.next(discovery_ready=discovery, refresh_ready=refresh) is Turn(served)


@golden
def test_golden_buckets_agree(directory: Path) -> None:
    """Only shown, never queued by: our queues keep rows of one bucket in the order of their priority.

    The other levels of these lines (`quantize`) are used by nothing here, nor in the reference.
    """
    for line in lines(directory, "keys.jsonl", kind="priority_bucket"):
        assert priority_bucket(single_of(line["priority"])) == line["bucket"], line


@given(st.lists(st.tuples(st.integers(0, 20), CASH, st.integers(0, 5)), max_size=60))
def test_cash_is_neither_made_nor_lost(steps: list[tuple[int, float, int]]) -> None:
    """What was given is in the pages, in what everybody shares, or still to be credited to links."""
    opic = Opic()
    given_out = carried = 0.0
    for row, cash, links in steps:
        opic.seed(row, cash)
        given_out += single(cash)
        carried += links * opic.distribute(row, links)
    held = carried + opic._pool + sum(opic._cash)
    assert held == pytest.approx(given_out, rel=1e-4, abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 20), CASH), max_size=30))
def test_a_row_that_is_not_known_scores_least(steps: list[tuple[int, float]]) -> None:
    opic = Opic()
    for row, cash in steps:
        opic.credit(row, cash)
        opic.distribute(row, 0)
    assert all(opic.score(row) >= opic.score(10**6) >= 0 for row in range(21))
    assert opic.known <= 21


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(0, 65_535), st.booleans())
def test_penalties_never_raise_a_priority(importance: float, depth: int, trap_suspect: bool) -> None:
    assert abs(penalised(importance, depth=depth, trap_suspect=trap_suspect)) <= abs(importance)


@given(st.floats(width=32))
def test_an_import_may_be_anything(score: float) -> None:
    compressed = compress(score)
    assert compressed >= 0
    assert isfinite(compressed) or score == float("inf")
    assert 0 <= priority_bucket(score) <= 63


def test_hosts_are_counted_once_and_not_for_themselves() -> None:
    """The reference also counts links that name no source; they speak for nobody here."""
    linking = LinkingHosts()
    assert [linking.add(1, source) for source in (2, 2, 1, 0, 3)] == [1, 1, 1, 1, 2]
    assert linking.add(4, 1) == 1


def test_counting_stops_at_its_limit() -> None:
    linking = LinkingHosts(limit=3)
    assert [linking.add(1, source) for source in range(2, 8)] == [1, 2, 3, 3, 3, 3]


def test_shares_that_are_not_positive_count_as_halves() -> None:
    split = BudgetSplit(0, -1)
    turns = [split.next(discovery_ready=True, refresh_ready=True) for _ in range(4)]
    assert turns == [Turn.DISCOVERY, Turn.REFRESH] * 2


def test_a_budget_has_bounds() -> None:
    assert url_budget(0) == DEFAULTS.base_budget
    assert url_budget(10**6) == DEFAULTS.max_budget
