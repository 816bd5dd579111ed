"""What a row is worth."""

from __future__ import annotations

from math import inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier.importance import LinkingHosts, single
from amicrawl.frontier.ranking import TRAP_SUSPECT, Ranking, score_of
from amicrawl.frontier.url_row import HostRow

PLAIN = HostRow(7)
SUSPECT = HostRow(7, flags=TRAP_SUSPECT)
RENOWNED = HostRow(7, host_score=3.0)
HOSTS = [PLAIN, SUSPECT, RENOWNED, HostRow(7, host_score=0.1, flags=TRAP_SUSPECT | 2), None]


def test_cash_flows_to_what_is_linked_and_history_stays() -> None:
    """The numbers are those of the reference."""
    ranking = Ranking()
    ranking.endow(0, 1.0)
    assert ranking.priority(0, depth=0, host=PLAIN) == single(0.6931472)
    weight = ranking.spread(0, 2)
    assert weight == single(0.425)
    for row in (1, 2):
        ranking.credit(row, weight)
    assert ranking.priority(1, depth=0, host=PLAIN) == single(0.38865802)
    ranking.spread(1, 0)
    assert ranking.priority(1, depth=0, host=PLAIN) == single(0.4803664)
    assert ranking.priority(3, depth=0, host=PLAIN) == single(0.1753529)


@pytest.mark.parametrize(("priority", "cash"), [(0.25, 0.25), (0, 1.0), (-1, 0.0), (nan, 0.0)])
def test_a_seed_without_a_priority_of_its_own_is_endowed_all_the_same(
    priority: float, cash: float
) -> None:
    """In the reference every seed is given one. Cash is what links carry: without, all are alike."""
    ranking = Ranking()
    ranking.endow(0, priority)
    assert ranking.spread(0, 1) == single(cash - single(cash * single(0.15)))


def test_a_page_rank_and_the_score_of_a_host_weigh_more_than_links() -> None:
    ranking = Ranking()
    for row in (0, 1, 2):
        ranking.endow(row, 1.0)
    ranking.rate(1, 5.0)
    ranking.rate(2, 0.0)
    plain, ranked, worthless = (ranking.priority(row, depth=0, host=PLAIN) for row in (0, 1, 2))
    assert worthless < plain < ranked
    assert ranking.priority(0, depth=0, host=RENOWNED) > plain


def test_distance_and_a_suspected_host_cost() -> None:
    ranking = Ranking()
    ranking.endow(0, 1.0)
    best = ranking.priority(0, depth=0, host=PLAIN)
    assert ranking.priority(0, depth=5, host=PLAIN) == pytest.approx(best * 0.95**5)
    assert ranking.priority(0, depth=0, host=SUSPECT) == pytest.approx(best * 0.1)


@given(
    st.floats(0, 10),
    st.integers(0, 100),
    st.sampled_from(HOSTS),
)
def test_what_is_recalled_is_worth_what_it_was(cash: float, depth: int, host: HostRow | None) -> None:
    before, after = Ranking(), Ranking()
    before.endow(3, cash)
    priority = before.priority(3, depth=depth, host=host)
    after.recall(3, priority, depth=depth, host=host)
    assert after.priority(3, depth=depth, host=host) == pytest.approx(priority, rel=1e-4, abs=1e-6)


def test_only_what_is_not_known_is_recalled() -> None:
    ranking = Ranking()
    ranking.endow(0, 1.0)
    best = ranking.priority(0, depth=0, host=PLAIN)
    ranking.recall(0, 9.0, depth=0, host=PLAIN)
    assert ranking.priority(0, depth=0, host=PLAIN) == best


def test_a_link_raises_what_was_recalled() -> None:
    ranking = Ranking()
    ranking.recall(0, 0.5, depth=2, host=PLAIN)
    ranking.credit(0, 0.01)
    assert ranking.priority(0, depth=2, host=PLAIN) > 0.5


def test_a_budget_follows_the_hosts_that_link_there() -> None:
    ranking = Ranking()
    budgets = [ranking.budget(7, source=source) for source in (0, 7, 1, 1, 2)]
    assert budgets == [64, 64, 80, 80, 96]


def test_linking_hosts_are_counted_as_far_as_there_is_room() -> None:
    ranking = Ranking(linking=LinkingHosts(limit=1))
    assert [ranking.budget(7, source=source) for source in (1, 2, 3)] == [80, 80, 80]


NUMBERS = st.one_of(st.floats(), st.sampled_from([inf, -inf, nan, 3e38, 1e308]))


@given(
    st.lists(st.tuples(st.sampled_from("ecrs"), st.integers(0, 3), NUMBERS), max_size=30),
    NUMBERS,
    st.integers(0, 65_535),
)
def test_a_priority_is_a_number_whatever_was_handed_in(
    steps: list[tuple[str, int, float]], score: float, depth: int
) -> None:
    ranking = Ranking()
    host = HostRow(7, host_score=score_of(score))
    for what, row, value in steps:
        match what:
            case "e":
                ranking.endow(row, value)
            case "c":
                ranking.credit(row, value)
            case "r":
                ranking.rate(row, value)
            case "s":
                ranking.spread(row, row)
    for row in range(5):
        priority = ranking.priority(row, depth=depth, host=host)
        assert isfinite(priority)
        assert priority == single(priority) >= 0
        Ranking().recall(row, priority, depth=depth, host=host)
