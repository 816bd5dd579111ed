"""Charts as SVG: timeline, stacked bars, grid. Pure.

Positions are percentages and text has pixels, so a chart fills a phone and a desk without becoming
small print. What an element stands for is said in its title, and again in the table behind the chart.
All text is escaped on its way into markup, so nothing of an index is ever obeyed.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amicrawl.archive.report.figures import Grid


_LONGEST = 300


class Markup(str):
    """Text that is markup already. Made by this module only."""

    __slots__ = ()


def element(
    name: str, attributes: dict[str, object] | None = None, *children: str | Iterable[str]
) -> Markup:
    """Return the element *name*; children that are not `Markup` are escaped.

    An attribute of None is left out, one of True stands without value.
    """
    written = "".join(_attribute(key, value) for key, value in (attributes or {}).items())
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: str | Iterable[str]) -> Markup:
    """Return *children* one after the other."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escape(shown(child)))
        else:
            parts.append(joined(*child))
    return Markup("".join(parts))


def shown(text: str) -> str:
    """Return *text* with whatever does not print made visible, cut where it is very long.

    A bidirectional override would reverse the text around it, and half a surrogate is not UTF-8.
    """
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(shown_whole(str(value)))}"'


def shown_whole(text: str) -> str:
    """Return *text*, however long, with whatever does not print made visible."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_TIMELINE_HEIGHT = 190
_AXIS = 22
_BAR = 16
_ROW = 42
_CELL = 38
_MOST_LABELS = 5


class Bar(NamedTuple):
    """One bar of a timeline."""

    label: str
    """Under the bar, where there is room; may be empty."""
    title: str
    value: int


def short(number: int) -> str:
    """Return *number* in at most five characters: `999`, `1.2k`, `34k`, `1.1M`."""
    for step, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= step:
            value = number / step
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return str(number)


def timeline(bars: Sequence[Bar], label: str) -> Markup:
    """Return bars side by side over an axis with some labels."""
    top = max((bar.value for bar in bars), default=0) or 1
    width = 100 / max(len(bars), 1)
    room = _TIMELINE_HEIGHT - _AXIS - 16
    parts = [
        _line(16.0),
        _line(16 + room / 2),
        _line(16.0 + room),
        element("text", {"x": "0", "y": 12, "class": "axis"}, short(top)),
    ]
    labelled = [index for index, bar in enumerate(bars) if bar.label]
    every = math.ceil(len(labelled) / _MOST_LABELS) or 1
    kept = set(labelled[::every])
    for index, bar in enumerate(bars):
        height = max(room * bar.value / top, 1.5) if bar.value else 0
        attributes: dict[str, object] = {
            "x": f"{index * width + width * 0.1:.3f}%",
            "y": f"{16 + room - height:.1f}",
            "width": f"{width * 0.8:.3f}%",
            "height": f"{height:.1f}",
            "class": "bar",
        }
        parts.append(element("rect", attributes, element("title", None, bar.title)))
        if index in kept:
            late = index * width > 85
            attributes = {
                "x": f"{(index + 1) * width if late else index * width:.3f}%",
                "y": _TIMELINE_HEIGHT - 6,
                "class": "axis",
                "text-anchor": "end" if late else None,
            }
            parts.append(element("text", attributes, bar.label))
    return _svg(_TIMELINE_HEIGHT, label, parts)


def stacked(grid: Grid, classes: dict[str, str], label: str) -> Markup:
    """Return a bar for each row of *grid*, longest where there is most, cut up by column."""
    rows = [(name, row) for name, row in grid.items() if any(row.values())]
    top = max((sum(row.values()) for _, row in rows), default=0) or 1
    parts = []
    for index, (name, row) in enumerate(rows):
        total = sum(row.values())
        y = index * _ROW
        parts.append(element("text", {"x": "0", "y": y + 14, "class": "name"}, name))
        attributes: dict[str, object] = {"x": "100%", "y": y + 14, "class": "axis", "text-anchor": "end"}
        parts.append(element("text", attributes, f"{total:,}"))
        begin = 0.0
        for column, value in row.items():
            if not value:
                continue
            width = max(100 * value / top, 0.4)
            attributes = {
                "x": f"{begin:.3f}%",
                "y": y + 20,
                "width": f"{width:.3f}%",
                "height": _BAR,
                "class": classes[column],
            }
            title = f"{name}, {column}: {value:,}"
            parts.append(element("rect", attributes, element("title", None, title)))
            begin += width
    return _svg(max(len(rows), 1) * _ROW, label, parts)


def heat_grid(grid: Grid, label: str) -> Markup:
    """Return the cells of *grid*, darker where there is more, by the logarithm."""
    columns = list(next(iter(grid.values()), {}))
    width = 100 / (len(columns) + 1)
    top = max((value for row in grid.values() for value in row.values()), default=0)
    parts = [
        element("text", {"x": f"{(index + 1.5) * width:.3f}%", "y": 16, "class": "axis middle"}, name)
        for index, name in enumerate(columns)
    ]
    for row_index, (name, row) in enumerate(grid.items()):
        y = 24 + row_index * _CELL
        parts.append(element("text", {"x": "0", "y": y + 23, "class": "name"}, name))
        for index, (column, value) in enumerate(row.items()):
            heat = round(8 * math.log1p(value) / math.log1p(top)) if top else 0
            attributes: dict[str, object] = {
                "x": f"{(index + 1) * width + 0.3:.3f}%",
                "y": y + 1,
                "width": f"{width - 0.6:.3f}%",
                "height": _CELL - 2,
                "class": f"heat h{heat}",
            }
            title = element("title", None, f"{name}, {column}: {value:,}")
            parts.append(element("rect", attributes, title))
            attributes = {
                "x": f"{(index + 1.5) * width:.3f}%",
                "y": y + 23,
                "class": f"cell middle on{heat}",
            }
            parts.append(element("text", attributes, short(value)))
    return _svg(24 + len(grid) * _CELL, label, parts)


def share_bar(share: float) -> Markup:
    """Return a bar that fills that part of its cell."""
    rect = element("rect", {"width": f"{100 * share:.2f}%", "height": "100%", "class": "bar"})
    return element("svg", {"class": "share", "aria-hidden": "true", "focusable": "false"}, rect)


def _line(y: float) -> Markup:
    return element(
        "line", {"x1": "0", "x2": "100%", "y1": f"{y:.1f}", "y2": f"{y:.1f}", "class": "rule"}
    )


def _svg(height: int, label: str, parts: Sequence[Markup]) -> Markup:
    attributes = {
        "width": "100%",
        "height": height,
        "role": "img",
        "aria-label": label,
        "class": "chart",
    }
    return element("svg", attributes, joined(parts))
