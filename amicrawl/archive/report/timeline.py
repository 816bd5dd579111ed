"""The requests of a crawl over time, a column each for as many as are drawn, and what happened when."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from amicrawl.archive.report.charts import Markup, TimeColumn, stacked_timeline
from amicrawl.archive.report.crawl_figures import CLASSES
from amicrawl.archive.report.document import chart, grid_table, section

if TYPE_CHECKING:
    from amicrawl.archive.report.crawl_figures import CrawlFigures
    from amicrawl.archive.report.figures import Grid

_STYLES = dict(zip(CLASSES, ("s2", "s3", "s4", "s5", "sf", "sn"), strict=True))
_COLUMNS = 96


def timeline(figures: CrawlFigures) -> Markup | None:
    """Return the section; None where no row has a time."""
    if not figures.bins:
        return None
    first, last = min(figures.bins), max(figures.bins)
    each = max(1, -(-(last - first + 1) // _COLUMNS))
    seconds = each * figures.bin_ms / 1000
    # Bins that have rows are few; those between them are many where the clock was once set right.
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for number, classes in figures.bins.items():
        found[(number - first) // each].update(classes)
    count = (last - first) // each + 1
    marks = _marks(figures, first, each, count)
    columns = []
    counts: Grid = {}
    for place in range(count):
        values = found[place]
        when = shown_moment((first + place * each) * figures.bin_ms)
        parts = ", ".join(f"{name} {values[name]:,}" for name in CLASSES if values[name]) or "nothing"
        mark = marks.get(place, "")
        columns.append(TimeColumn(_label(when, seconds), f"{when}: {parts}", values, mark))
        counts[when] = {name: values[name] for name in CLASSES}
    title, label = "Requests over time", "Requests over time by class of response"
    drawn = chart(
        title,
        stacked_timeline(columns, _STYLES, label),
        unit=f"Requests in {_span(seconds)}",
        behind=grid_table(label, "From (UTC)", counts),
        classes={name: _STYLES[name] for name in CLASSES if figures.classes[name]},
        note="A dashed line is a start, pause, end or kill.",
    )
    return section(title, drawn, wide=True)


def shown_moment(unix_ms: int) -> str:
    """Return a time in the years that `CrawlFigures` has, as people read it; UTC."""
    return datetime.fromtimestamp(unix_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def listed(value: Any) -> list[Any]:
    """Return *value* of `crawl.json` where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def _label(moment: str, seconds: float) -> str:
    """Return what of *moment* distinguishes columns of so many *seconds*."""
    if seconds < 5:
        return moment[11:]
    return moment[11:16] if seconds < 3600 else moment[5:10]


def _marks(figures: CrawlFigures, first: int, each: int, count: int) -> dict[int, str]:
    """Return what is marked in which of *count* columns: starts, pauses, ends and kills of the crawl.

    A crawl starts before its first row and ends after its last: those are of the columns at the edges.
    """
    events = [
        (_unix_ms(run.get("started")), "started")
        for run in [*listed(figures.crawl.get("earlier")), figures.crawl]
        if isinstance(run, dict)
    ]
    runs, moments = figures.history.runs, figures.history.moments
    last = {moment.run: moment.at for moment in moments}
    for number, run in enumerate(runs, start=1):
        if run.ended is not None:
            events.append((round(run.ended * 1000), f"ended: {run.reason}"))
        elif number < len(runs):
            events.append((round(last.get(number, run.started) * 1000), "killed"))
    for before, moment in zip([None, *moments], moments, strict=False):
        was_paused = before is not None and before.state == "paused" and before.run == moment.run
        if was_paused != (moment.state == "paused"):
            events.append((round(moment.at * 1000), "resumed" if was_paused else "paused"))
    marks: dict[int, list[str]] = {}
    for at, what in sorted(events):
        if at:
            place = min(max((at // figures.bin_ms - first) // each, 0), count - 1)
            marks.setdefault(place, []).append(f"{shown_moment(at)}: {what}")
    return {place: "; ".join(dict.fromkeys(said)) for place, said in marks.items()}


def _unix_ms(moment: object) -> int:
    """Return the Unix milliseconds of *moment* of `crawl.json`; 0 where it is none that can be shown."""
    try:
        found = datetime.fromisoformat(str(moment)).astimezone(UTC)
    except (ValueError, OverflowError):
        return 0
    return int(found.timestamp() * 1000)


def _span(seconds: float) -> str:
    for unit, length in (("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= length:
            number = seconds / length
            return f"{number:,.1f} {unit}s" if number != 1 else f"1 {unit}"
    return f"{seconds:,.0f} s"
