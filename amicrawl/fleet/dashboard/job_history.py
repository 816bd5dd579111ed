"""The history of a job as charts, drawn by the server as those of a report are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.archive.report import TimedValue, series_chart
from amicrawl.fleet.dashboard.wording import clock, moment, number, size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amicrawl.fleet.dashboard.shapes import HistoryPoint

_MOST_BARS = 96
_SHORT_SPAN = 600.0
"""Seconds below which a minute would stand under several bars."""


def history_charts(points: Sequence[HistoryPoint]) -> list[str]:
    """Return a chart of HTML for each series of *points*, oldest first; none below two points.

    The first shows what was done a minute, the others what was reported at the last point of each bar.
    """
    if len(points) < 2:
        return []
    each = -(-(len(points) - 1) // _MOST_BARS)
    ends = [*range(len(points) - 1, 0, -each)][::-1]
    steps = [(points[max(end - each, 0)], points[end]) for end in ends]
    series: Mapping[
        str, tuple[str, Callable[[HistoryPoint, HistoryPoint], int], Callable[[int], str]]
    ] = {
        "pace": ("Pages a minute", _pace, number),
        "downloaded": ("Pages, in all", lambda _, point: point["downloaded"], number),
        "bytes": ("Size in bytes", lambda _, point: point["bytes"], size),
        "todo": ("URLs queued", lambda _, point: point["todo"], number),
        "errors": ("Errors, in all", lambda _, point: point["errors"], number),
    }
    shown = 8 if points[-1]["ts"] - points[0]["ts"] < _SHORT_SPAN else 5
    figures: list[str] = []
    for key, (title, value_of, worded) in series.items():
        values = [(last["ts"], value_of(first, last)) for first, last in steps]
        label = f"{title}, {moment(points[0]['ts'])} to {moment(points[-1]['ts'])} UTC"
        timed = [TimedValue(clock(at)[:shown], moment(at), each, worded(each)) for at, each in values]
        figures.append(series_chart(key, title, label, timed))
    return figures


def _pace(first: HistoryPoint, last: HistoryPoint) -> int:
    """Return pages a minute; 0 where a crawl that started again has fewer than before, or in no time."""
    seconds = last["ts"] - first["ts"]
    # Crawls report once a minute: what is closer together was made up, down to a quotient of infinity.
    return round(60 * max(last["downloaded"] - first["downloaded"], 0) / seconds) if seconds >= 1 else 0
