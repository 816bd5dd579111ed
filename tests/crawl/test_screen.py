"""The screen: what a crawl says of itself, from numbers alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from amicrawl.crawl.tally import Tally
from amicrawl.crawl.watching.screen import Moment, duration, remaining, report, status_line, summary


def moment(*, elapsed: float = 10.0, total: int | None = 400) -> Moment:
    return Moment(
        elapsed=elapsed,
        total=total,
        in_flight=7,
        inflight_limit=64,
        pages_per_second=25.4,
        bytes_per_second=3 * 1024**2,
    )


TALLY = Tally(ok=90, unchanged=3, redirect=2, client_error=1, failed=3, skipped=1, seeds_read=450)


def test_the_line_tells_done_and_total_pace_classes_limit_and_eta() -> None:
    line = status_line(TALLY, moment())
    assert line.startswith("100/400 | 25 pages/s | 3.0 MiB/s | ok 90 unchanged 3 fail 3 skip 1")
    assert line.endswith("in flight 7/64 | ETA 30s")


def test_without_a_known_total_there_is_no_eta() -> None:
    line = status_line(TALLY, moment(total=None))
    assert line.startswith("100/450+ |")
    assert line.endswith("ETA -")


def test_a_report_is_one_json_object_with_every_count() -> None:
    told = json.loads(json.dumps(report(TALLY, moment())))
    assert (told["event"], told["rows"], told["eta"], told["seeds_read"]) == ("progress", 100, 30.0, 450)


def test_the_summary_names_every_class() -> None:
    tally = Tally(ok=3, bytes_received=12 * 1024 * 205)
    assert summary(tally, 12.0) == (
        "done in 12s | 3 ok, 0 unchanged, 0 redirect, 0 4xx, 0 5xx, 0 failed, 0 skipped "
        "| 0 pages/s, 0.2 MiB/s"
    )


def test_a_pause_and_its_reasons_are_shown_first() -> None:
    paused = replace(moment(), paused_by=("disk", "signal"))
    assert status_line(TALLY, paused).startswith("PAUSED by disk and signal | 100/400 | ")
    assert report(TALLY, paused)["paused_by"] == ["disk", "signal"]
    assert "PAUSED" not in status_line(TALLY, moment())


def test_nothing_done_gives_no_estimate() -> None:
    assert remaining(Tally(), moment()) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0s"), (59.4, "59s"), (185, "3m05s"), (7620, "2h07m")]
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text
