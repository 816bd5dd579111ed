"""Figures as people read them."""

from __future__ import annotations

import pytest

from amicrawl.fleet.dashboard import wording


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KiB"),
        (102_348, "99.9 KiB"),
        (102_400, "100 KiB"),
        (1_023_487, "999 KiB"),
        (1_023_488, "1.0 MiB"),
        (12_800_000_000, "11.9 GiB"),
        (4 * 2**50, "4.0 PiB"),
        (5 * 2**60, "5,120.0 PiB"),
        (None, "–"),
    ],
)
def test_sizes(value: float | None, shown: str) -> None:
    assert wording.size(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (9_949, "9.9k"), (74_400, "74k"), (10**9, "1.0G")],
)
def test_short_counts(value: int, shown: str) -> None:
    assert wording.short(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 s"),
        (-5, "0 s"),
        (59.9, "59 s"),
        (60, "1 min 00 s"),
        (3_600, "1 h 00 min"),
        (90_000, "1 d 01 h"),
    ],
)
def test_spans(value: float, shown: str) -> None:
    assert wording.span(value) == shown


def test_a_moment_out_of_range_is_not_known() -> None:
    assert wording.moment(1_700_000_000.9) == "2023-11-14 22:13:20"
    assert wording.iso(1_700_000_000.9) == "2023-11-14T22:13:20Z"
    for wrong in (None, -1, 1e300, float("nan"), float("inf")):
        assert wording.moment(wrong) == wording.UNKNOWN
        assert wording.iso(wrong) == ""
        assert wording.clock(wrong) == "--:--:--"


def test_a_bar_is_as_wide_as_its_parts() -> None:
    parts = wording.bar({"r2xx": 60, "r3xx": 30, "runk": 10})
    assert [(part.mark, part.begin, part.width) for part in parts if part.amount] == [
        ("2", 0.0, 60.0),
        ("3", 60.0, 30.0),
        ("k", 90.0, 10.0),
    ]
    assert sum(part.width for part in wording.bar({})) == 0


def test_how_full_something_is_has_three_levels() -> None:
    assert [wording.level(value) for value in (None, 79.9, 80, 89.9, 90)] == [
        "good",
        "good",
        "warn",
        "warn",
        "bad",
    ]
