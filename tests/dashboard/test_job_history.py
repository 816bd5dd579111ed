"""The history of a job as charts: what is done a minute, and what any client may have written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from amicrawl.fleet.dashboard.pages import history_charts

if TYPE_CHECKING:
    from amicrawl.fleet.dashboard.shapes import HistoryPoint


def point(ts: float, downloaded: int) -> HistoryPoint:
    return {"ts": ts, "downloaded": downloaded, "bytes": 0, "errors": 0, "todo": 0}


def paces(*points: HistoryPoint) -> list[str]:
    """Return the pages a minute that the first chart says."""
    return re.findall(r"<td>([^<]*)</td>", history_charts(points)[0])


def test_pages_a_minute_are_what_was_done_between_two_points() -> None:
    assert paces(point(0, 0), point(60, 30), point(180, 60), point(240, 5)) == ["30", "15", "0"]


@pytest.mark.parametrize("later", [0.0, 5e-324, 1e-320, 1e-9])
def test_points_of_one_moment_have_no_pace(later: float) -> None:
    assert paces(point(0, 0), point(later, 2**52)) == ["0"]
