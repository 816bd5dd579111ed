"""Calendars, sessions, filters: what looks like a trap, which hosts are flagged, what is admitted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from frontier.signal_vectors import VECTOR_FILES, lines
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier.admission import (
    Refusal,
    Trap,
    TrapDetector,
    TrapLimits,
    admit,
    classify,
    months_at,
)
from amicrawl.meguri.states import Status
from amicrawl.urls.key import path_key

JUNE_2026 = 494_520


def test_golden_urls_are_classified_alike() -> None:
    for line in lines(VECTOR_FILES, "content.jsonl", kind="trap"):
        limits = TrapLimits(
            horizon_months=line.get("horizon_months", 12), facets=line.get("facet_limit", 3)
        )
        trap = classify(line["url"], line["now_hours"], limits=limits)
        assert trap.name == line["verdict"].upper(), line


def test_golden_months_agree() -> None:
    for line in lines(VECTOR_FILES, "content.jsonl", kind="months"):
        assert months_at(line["hours"]) == line["months"], line


def test_golden_hosts_are_flagged_at_the_same_url() -> None:
    for line in lines(VECTOR_FILES, "content.jsonl", kind="trap_sequence"):
        detector = TrapDetector(TrapLimits(flag_threshold=line["flag_threshold"]))
        for seen in line["observations"]:
            host, url = seen["host"], seen["url"]
            trap = classify(url, line["now_hours"])
            assert trap.name == seen["verdict"].upper()
            assert detector.passes(host, trap) is seen["passes_before"], seen
            newly = detector.observe(host, url, path=path_key(url), trap=trap)
            assert newly is seen["newly_suspect"], seen
            flags = detector.flags(host)
            assert bool(flags) is seen["suspect"]
            kinds = (Trap.CALENDAR, Trap.FACETED, Trap.SESSION)
            assert [kind in flags for kind in kinds] == seen["flags"], seen
            assert detector.passes(host, trap) is seen["passes_after"], seen


def test_golden_admissions_agree() -> None:
    trapped = 8  # a status of the format that our rows only have when they come from a file
    for line in lines(VECTOR_FILES, "content.jsonl", kind="admit"):
        refusal = admit(
            line["depth"],
            depth_cap=line["depth_cap"],
            url_count=line["url_count"],
            url_budget=line["url_budget"],
            suspect=line["trap_suspect"],
            passes=line["passes_patterns"],
        )
        assert (Status.SCHEDULED if refusal is None else trapped) == line["status"], line


def test_a_refusal_names_the_first_reason() -> None:
    every = {"depth_cap": 1, "url_count": 5, "url_budget": 5}
    assert admit(2, **every, suspect=True, passes=False) is Refusal.TOO_DEEP
    assert admit(1, **every, suspect=True, passes=False) is Refusal.OVER_BUDGET
    assert admit(1, depth_cap=1, url_count=4, url_budget=5, suspect=True, passes=False) is Refusal.TRAP


@given(st.integers(0, 69_000_000))
def test_months_are_those_of_the_calendar(hour: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hour)
    assert months_at(hour) == moment.year * 12 + moment.month - 1


@given(st.text(max_size=200), st.integers(0, 2**32 - 1))
def test_any_text_has_a_verdict(url: str, now: int) -> None:
    assert classify(url, now) in Trap
    assert classify(f"http://a.example/{url}?{url}={url}&sid={url}", now) in Trap


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/" + "0" * 200_000,
        "http://a.example/" + "/2040" * 50_000,
        "http://a.example/?" + "&" * 200_000,
        "http://a.example/?date=" + "+" * 100_000 + "0" * 100_000,
        "http://a.example/?sid=" + "a1" * 100_000,
        "http://a.example/?year=" + "9" * 100_000,
    ],
)
def test_a_long_url_has_a_verdict_in_no_time(url: str) -> None:
    assert classify(url, JUNE_2026) in Trap


@pytest.mark.parametrize(
    ("url", "trap"),
    [
        ("http://a.example/%zz/2040/01", Trap.NONE),
        ("http://a.example/?color=a&size=b&brand=%zz", Trap.NONE),
        ("http://a.example/?color=a&size=b&brand=1;2", Trap.NONE),
        ("http://a.example/?to=2040-01&year=x", Trap.CALENDAR),
        ("http://a.example/?to=2040%2D01", Trap.CALENDAR),
        ("http://a.example/?to=2040/01-5", Trap.NONE),
        ("http://a.example/?to=2040/01/31", Trap.CALENDAR),
        ("http://a.example?date=2040-01", Trap.NONE),
        ("http://a.example/?sid=abc123def%C3%A9456", Trap.NONE),
    ],
)
def test_the_edges_of_a_trap(url: str, trap: Trap) -> None:
    """A URL that has no path is not canonical, and not looked at."""
    assert classify(url, JUNE_2026) is trap


def observe_many(detector: TrapDetector, host: int, number: int) -> list[bool]:
    return [
        detector.observe(host, "http://a.example/", path=path, trap=Trap.CALENDAR)
        for path in range(number)
    ]


def test_a_host_is_called_newly_suspect_once() -> None:
    detector = TrapDetector()
    assert observe_many(detector, 1, 40) == [False] * 15 + [True] + [False] * 24
    faceted = [
        detector.observe(1, "http://a.example/", path=path, trap=Trap.FACETED) for path in range(16)
    ]
    assert not any(faceted)
    assert detector.flags(1) == Trap.CALENDAR | Trap.FACETED


def test_sessions_count_under_their_own_path() -> None:
    detector = TrapDetector()
    for path in range(100):
        url = f"http://a.example/{path}?sid=abc123def456"
        assert not detector.observe(1, url, path=path, trap=Trap.SESSION)


def test_a_flag_that_is_forgotten_leaves_the_host_suspect_of_everything() -> None:
    """The reference keeps every flag until a restart; its rule for afterwards is ours for both."""
    detector = TrapDetector(limit=2)
    for host in (1, 2, 3):
        observe_many(detector, host, 16)
    assert detector.flags(1) is Trap.NONE
    assert detector.passes(1, Trap.SESSION)
    assert not detector.passes(1, Trap.SESSION, suspect=True)
    assert detector.passes(1, Trap.NONE, suspect=True)
    assert detector.passes(3, Trap.SESSION, suspect=True)
