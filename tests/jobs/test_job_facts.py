"""What a crawl says of itself once a second, given what it counts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from amicrawl.fleet.jobs.accounting import Figures
from amicrawl.fleet.jobs.crawl.reporting import JobFacts
from amicrawl.fleet.leases.lease import Claim


def facts(clock: list[float], *, age: str = "1") -> JobFacts:
    """Return the facts of a crawl with nothing in it, by a clock that the test turns."""
    run: Any = SimpleNamespace(
        has_frontier=False, following=None, sealed=[], waiting=0, state="running", paused=set(), later=0,
        finish_reason="", limit=SimpleNamespace(limit=1), config=SimpleNamespace(directory=Path()),
        tally=SimpleNamespace(as_dict=dict),
    )  # fmt: skip
    orders: Any = SimpleNamespace(
        delay=0, delay_max=0, concurrency=1, suppress_ignore_reports=False, age=age, faults=Counter()
    )
    link: Any = SimpleNamespace(inbox=SimpleNamespace(dropped=0))
    return JobFacts(run, orders, link, Claim("a", 1), wall=lambda: 0.0, clock=lambda: clock[0])


def test_rates_are_of_this_attempt_whenever_the_earlier_ones_are_counted() -> None:
    clock = [0.0]
    told = facts(clock)
    own, earlier = Figures(), Figures(r2xx=324, items_downloaded=324, bytes_downloaded=10**6)
    first = told.current(None, own=own)
    assert "history" not in first, "a point of it would say that the job was set back"
    for _ in range(8):
        clock[0] += 1
        own.items_downloaded += 1
        own.bytes_downloaded += 100
        said = told.current(earlier.plus(own), own=own)
        rates = json.loads(said["now"])["rates"]
        assert (rates["items"], rates["bytes"]) == (1.0, 100.0)
        if "history" in said:
            assert json.loads(said["history"])[0]["downloaded"] >= 324


@pytest.mark.parametrize(("age", "expected"), [("7", 7), ("9" * 30, None), ("-1", None), ("", None)])
def test_an_age_of_settings_that_no_json_can_say_is_left_out(age: str, expected: int | None) -> None:
    """Any client may write it. A crawl that says nothing any more loses its lease."""
    said = facts([0.0], age=age).current(None, own=Figures())
    assert json.loads(said["now"])["settings_age"] == expected
