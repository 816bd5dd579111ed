"""Change rates, intervals, due hours, the water level, and the history they are taken from."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from frontier.signal_vectors import AGREEMENT, VECTOR_FILES, bits_of, lines, number, single_of
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.errors import UsageError
from amicrawl.frontier.freshness import (
    DEFAULTS,
    LAST_HOUR,
    FreshnessParams,
    estimate_rate,
    g,
    gain,
    host_share,
    next_due,
    target_interval,
    value_density,
)
from amicrawl.frontier.revisits import History, Observation, is_changed, observe, recrawl

ANY_NUMBER = st.floats(width=32)
HOURS = st.integers(0, LAST_HOUR)
COUNTS = st.integers(0, 2**32 - 1)


def close(value: Any) -> Any:
    return pytest.approx(value, rel=AGREEMENT, abs=0)


def params_in() -> dict[str, FreshnessParams]:
    """Return the sets of parameters by name; the distance of simhashes is no parameter of ours."""
    return {
        line["name"]: FreshnessParams(
            **{name: value for name, value in line["params"].items() if name != "simhash_threshold"}
        )
        for line in lines(VECTOR_FILES, "freshness.jsonl", kind="params")
    }


def test_golden_defaults_are_ours() -> None:
    assert params_in()["default"] == DEFAULTS


def test_golden_rates_agree() -> None:
    params = params_in()
    for line in lines(VECTOR_FILES, "freshness.jsonl", kind="estimate"):
        rate = estimate_rate(
            line["crawl_count"],
            line["change_count"],
            no_change_streak=line["no_change_streak"],
            first_seen=line["first_seen"],
            last_crawled=line["last_crawled"],
            params=params[line["params"]],
        )
        assert rate == close(line["lambda"]), line
        assert bits_of(rate) == line["lambda_f32"], line


def test_golden_worths_agree() -> None:
    params = params_in()
    for line in lines(VECTOR_FILES, "freshness.jsonl", kind="g"):
        assert g(line["x"]) == close(line["g"]), line
    for line in lines(VECTOR_FILES, "freshness.jsonl", kind="value_density"):
        worth = value_density(
            single_of(line["lambda"]), single_of(line["priority"]), params=params[line["params"]]
        )
        assert worth == close(line["value_density"]), line


def test_golden_intervals_agree_one_by_one_and_as_arrays() -> None:
    params = params_in()
    for line in lines(VECTOR_FILES, "freshness.jsonl", kind="target_interval"):
        rate, priority = single_of(line["lambda"]), single_of(line["priority"])
        share = inf
        if "host" in line:
            share = host_share(**line["host"])
            assert share == close(line["host_rate_share"])
        level, chosen = float(line["tau"]), params[line["params"]]
        interval = target_interval(rate, priority, level=level, share=share, params=chosen)
        assert interval == close(line["interval_hours"]), line


def test_golden_due_hours_agree() -> None:
    params = params_in()
    for line in lines(VECTOR_FILES, "freshness.jsonl", kind="next_due"):
        due = next_due(
            line["last_crawled"],
            line["interval_hours"],
            now=line["now_hours"],
            path_key=number(line["path_key"]),
            params=params[line["params"]],
        )
        assert due == line["next_due"], line


def is_near(one: str, other: str) -> bool:
    return (number(one) ^ number(other)).bit_count() <= 3


def test_golden_changes_are_found() -> None:
    """The reference calls it no change where words are nearly the same; here every byte counts."""
    for line in lines(VECTOR_FILES, "freshness.jsonl", kind="observe_change"):
        if is_near(line["stored_simhash"], line["simhash"]):
            continue
        history = History(content_fp=number(line["stored_fp"]))
        visit = Observation(1, not_modified=line["not_modified"], content_fp=number(line["fp"]))
        assert is_changed(history, visit) is line["changed"], line


FAILED = range(400, 600)


def visit_in(outcome: dict[str, Any]) -> Observation:
    return Observation(
        outcome["fetched_at"],
        not_modified=outcome.get("not_modified", False),
        content_fp=number(outcome.get("content_fp", "0")),
    )


def history_in(record: dict[str, Any]) -> History:
    return History(
        **{name: record[name] for name in ("first_seen", "last_crawled", "last_changed")},
        **{name: record[name] for name in ("crawl_count", "change_count", "no_change_streak")},
        content_fp=number(record["content_fp"]),
    )


def test_golden_histories_are_kept_alike() -> None:
    """Every field of the history agrees after each step, and rate and due hour after each visit.

    Not compared: the status (the reference makes a row due at once, before its hour), and after a
    failure when the row is tried again and how often it failed. There the reference notes an hour and
    does not keep to it; our rows do what their own rules say, and have no history of it. A row that the
    reference has given up stays given up here. A page of nearly the same words ends the comparison: for
    the reference it has not changed.
    """
    params = params_in()
    for line in lines(VECTOR_FILES, "freshness.jsonl", kind="fold"):
        history, simhash = history_in(line["start"]), line["start"]["simhash"]
        for step in line["steps"]:
            outcome, after = step["outcome"], step["after"]
            if "content_fp" in outcome and number(outcome["content_fp"]) != history.content_fp:
                if history.content_fp and is_near(simhash, outcome.get("simhash", "0")):
                    break
                simhash = outcome.get("simhash", "0")
            failed = outcome.get("retryable", False) or outcome.get("http_status", 0) in FAILED
            if line["state_machine"] and failed:
                assert history_in(after) == history, step
                continue
            history = observe(history, visit_in(outcome))
            assert history_in(after) == history, step
            if not line["freshness"]:
                continue
            visit = recrawl(
                history,
                priority=single_of(line["priority"]),
                path_key=number(line["path_key"]),
                now=step["now_seconds"] // 3600,
                level=line["tau"],
                share=host_share(**line["host"]),
                params=params[line["params"]],
            )
            assert bits_of(visit.rate) == after["lambda"], step
            assert visit.due == after["next_due"], step


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_rate": 0.0},
        {"min_rate": 5.0},
        {"max_rate": inf},
        {"reprobe_rate": 0.0},
        {"reference_rate": float("nan")},
        {"alpha": 0.0},
        {"recency_half_life": 0.0},
        {"min_reprobe_gap": 0},
        {"host_spread_window": -1},
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        FreshnessParams(**wrong)


@given(COUNTS, COUNTS, st.integers(0, 2**16 - 1), HOURS, HOURS)
def test_a_rate_lies_between_the_least_and_the_greatest(
    crawls: int, changes: int, streak: int, first_seen: int, last_crawled: int
) -> None:
    rate = estimate_rate(
        crawls, changes, no_change_streak=streak, first_seen=first_seen, last_crawled=last_crawled
    )
    assert DEFAULTS.min_rate <= rate <= DEFAULTS.max_rate


@given(st.integers(2, 1000), st.data())
def test_more_changes_never_make_a_page_slower(crawls: int, data: st.DataObject) -> None:
    fewer, more = sorted(data.draw(st.tuples(st.integers(0, crawls), st.integers(0, crawls))))
    slow, fast = (
        estimate_rate(crawls, changes, no_change_streak=0, first_seen=1, last_crawled=1 + 24 * crawls)
        for changes in (fewer, more)
    )
    assert slow <= fast


@given(st.integers(2, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_a_quiet_streak_never_makes_a_page_faster(crawls: int, changes: int, streak: int) -> None:
    quiet, lively = (
        estimate_rate(crawls, changes, no_change_streak=run, first_seen=1, last_crawled=1 + 24 * crawls)
        for run in (streak, 0)
    )
    assert quiet <= lively


@given(ANY_NUMBER, ANY_NUMBER, st.floats(min_value=0), ANY_NUMBER)
def test_whatever_a_file_says_an_interval_is_within_bounds(
    rate: float, priority: float, level: float, share: float
) -> None:
    interval = target_interval(rate, priority, level=level, share=share)
    assert 1 / DEFAULTS.max_rate <= interval <= 1 / DEFAULTS.min_rate


@pytest.mark.parametrize("level", [0.0, 1e-6, 0.2, 1e12])
@pytest.mark.parametrize("rate", [0.0, 1e-12, 1e-6, 0.5])
def test_parameters_at_their_edges_keep_within_them(rate: float, level: float) -> None:
    """Rates so small that digits cancel, and a reference rate below the least."""
    params = FreshnessParams(min_rate=1e-11, reference_rate=1e-12)
    interval = target_interval(rate, 1.0, level=level, params=params)
    assert 1 / params.max_rate <= interval <= 1 / params.min_rate


@given(HOURS, st.floats(), HOURS, st.integers(0, 2**64 - 1))
def test_a_due_hour_lies_ahead_unless_time_is_up(
    last_crawled: int, interval: float, now: int, path_key: int
) -> None:
    due = next_due(last_crawled, interval, now=now, path_key=path_key)
    assert due > now or now == due == LAST_HOUR


def test_a_higher_level_never_makes_a_visit_come_sooner() -> None:
    for rate in (1e-4, 1e-3, 0.02, 0.3, 4.0):
        intervals = [target_interval(rate, 1.0, level=10.0**power) for power in range(-6, 1)]
        assert intervals == sorted(intervals)


def test_what_is_no_rate_gains_nothing() -> None:
    assert gain(0.0, 1.0) == gain(1.0, 0.0) == gain(float("nan"), 1.0) == 0.0


def test_counts_stay_within_their_fields() -> None:
    full = History(1, 2, 2, 2**32 - 1, 2**32 - 1, 2**16 - 1, 5)
    assert observe(full, Observation(3, not_modified=True)).no_change_streak == 2**16 - 1
    changed = observe(full, Observation(3, content_fp=6))
    assert (changed.crawl_count, changed.change_count) == (2**32 - 1, 2**32 - 1)
