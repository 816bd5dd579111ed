"""Charts as SVG: timelines, stacked bars, grid, treemap. Pure.

Positions are percentages and text has pixels, so a chart fills a phone and a desk without becoming
small print. What an element stands for is said in its title, and again in the table behind the chart.
All text is escaped on its way into markup, so nothing of an index is ever obeyed.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.terminal import harmless, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
            # A bidirectional override would reverse the text around it; half a surrogate is not UTF-8.
            parts.append(escape(harmless(child, limit=_LONGEST)))
        else:
            parts.append(joined(*child))
    return Markup("".join(parts))


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(visible(str(value)))}"'


_TIMELINE_HEIGHT = 190
_AXIS = 22
_CEILING = 16
_FLOOR = _TIMELINE_HEIGHT - _AXIS
_ROOM = _FLOOR - _CEILING
"""The pixels of a timeline between the lines of its greatest value and of nothing."""
_BAR = 16
_ROW = 42
_CELL = 38
_MOST_LABELS = 5
_LAST_LABEL = 5 / 6
"""The share of a timeline behind which no label begins."""


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


def _labelled(labels: Sequence[str]) -> set[int]:
    """Return which *labels* are shown, each beginning at its column, so that none meets another.

    On a phone a time takes a sixth of the chart: what begins in the last one would not fit.
    """
    there = [index for index, label in enumerate(labels) if label]
    every = math.ceil(len(there) / _MOST_LABELS) or 1
    return {index for index in there[::every] if index <= len(labels) * _LAST_LABEL}


def timeline(bars: Sequence[Bar], label: str) -> Markup:
    """Return bars side by side over an axis with some labels."""
    top = max((bar.value for bar in bars), default=0) or 1
    width = 100 / max(len(bars), 1)
    parts = _axes(top, [bar.label for bar in bars])
    for index, bar in enumerate(bars):
        height = max(_ROOM * bar.value / top, 1.5) if bar.value else 0
        box = _box(index * width + width * 0.1, width * 0.8, _FLOOR, height, "bar")
        parts.append(element("rect", box, element("title", None, bar.title)))
    return _svg(_TIMELINE_HEIGHT, label, parts)


def _axes(top: int, labels: Sequence[str]) -> list[Markup]:
    """Return the lines of a timeline up to *top*, and those of the *labels* of its columns that fit."""
    width = 100 / max(len(labels), 1)
    parts = [
        *(_line(_CEILING + _ROOM * share) for share in (0, 0.5, 1)),
        element("text", {"x": "0", "y": 12, "class": "axis"}, short(top)),
    ]
    for index in sorted(_labelled(labels)):
        place = {"x": f"{index * width:.3f}%", "y": _TIMELINE_HEIGHT - 6, "class": "axis"}
        parts.append(element("text", place, labels[index]))
    return parts


def _box(left: float, width: float, bottom: float, height: float, css: str) -> dict[str, object]:
    """Return the attributes of a rectangle on *bottom*; *left* and *width* are percentages."""
    return {
        "x": f"{left:.3f}%",
        "y": f"{bottom - height:.1f}",
        "width": f"{width:.3f}%",
        "height": f"{height:.1f}",
        "class": css,
    }


class TimeColumn(NamedTuple):
    """One column of a timeline that is divided by class."""

    label: str
    """Under the column, where there is room; may be empty."""
    title: str
    values: Mapping[str, int]
    """By class."""
    mark: str = ""
    """What happened then, such as a resume; drawn as a line over the column."""


def stacked_timeline(columns: Sequence[TimeColumn], classes: Mapping[str, str], label: str) -> Markup:
    """Return columns side by side, each divided by class, and lines where they are marked."""
    top = max((sum(column.values.values()) for column in columns), default=0) or 1
    width = 100 / max(len(columns), 1)
    parts = _axes(top, [column.label for column in columns])
    for index, column in enumerate(columns):
        bottom: float = _FLOOR
        stack = []
        for name, css in classes.items():
            if value := column.values.get(name, 0):
                height = max(_ROOM * value / top, 0.8)
                box = _box(index * width + width * 0.08, width * 0.84, bottom, height, css)
                stack.append(element("rect", box))
                bottom -= height
        parts.append(element("g", None, element("title", None, column.title), stack))
        if column.mark:
            at = f"{index * width + width / 2:.3f}%"
            line = {"x1": at, "x2": at, "y1": _CEILING, "y2": _FLOOR, "class": "mark"}
            parts.append(element("line", line, element("title", None, column.mark)))
    return _svg(_TIMELINE_HEIGHT, label, parts)


class Leaf(NamedTuple):
    """One rectangle of a treemap."""

    name: str
    title: str
    value: int


_TREEMAP = (1000.0, 340.0)
"""Width in thousandths of the chart, and height in pixels."""
_LEAST_NAMED = (70.0, 18.0)
_LINE = 18.0


def treemap(groups: Mapping[str, Sequence[Leaf]], label: str) -> Markup:
    """Return rectangles as large as their values, those of a group side by side below its name."""
    sums = {name: sum(leaf.value for leaf in leaves) for name, leaves in groups.items()}
    ordered = sorted((name for name, total in sums.items() if total), key=lambda name: -sums[name])
    boxes = _squarified([sums[name] for name in ordered], (0.0, 0.0, *_TREEMAP))
    parts = []
    for number, (name, box) in enumerate(zip(ordered, boxes, strict=True)):
        leaves = sorted(groups[name], key=lambda leaf: -leaf.value)
        inner = _squarified([leaf.value for leaf in leaves], box)
        for leaf, place in zip(leaves, inner, strict=True):
            # The first line of a group is that of its name.
            left = place[3] - (_LINE if place[1] == box[1] else 0.0)
            is_named = leaf.name != name and place[2] >= _LEAST_NAMED[0] and left >= _LEAST_NAMED[1]
            text = _line_of(leaf.name, place[3] - _LINE - 3) if is_named else ""
            whole: dict[str, object] = {
                "width": "100%",
                "height": "100%",
                "class": f"leaf g{number % 6}",
            }
            title = element("title", None, leaf.title)
            parts.append(element("svg", _placed(place), element("rect", whole, title), text))
        if box[2] >= _LEAST_NAMED[0] and box[3] >= _LEAST_NAMED[1]:
            parts.append(element("svg", {**_placed(box), "class": "over"}, _line_of(name, 1, "name")))
    return _svg(int(_TREEMAP[1]), label, parts)


def _line_of(text: str, top: float, css: str | None = None) -> Markup:
    """Return *text* on one line of its box; what has no room there becomes an ellipsis.

    SVG has no ellipses: a host name that is cut at the edge would look like another one.
    """
    line = element("div", {"class": css}, text)
    return element(
        "foreignObject",
        {"y": f"{top:.1f}", "width": "100%", "height": f"{_LINE:.0f}", "class": "line"},
        line,
    )


def _placed(box: _Box) -> dict[str, object]:
    x, y, width, height = box
    return {
        "x": f"{x / 10:.3f}%",
        "y": f"{y:.1f}",
        "width": f"{width / 10:.3f}%",
        "height": f"{height:.1f}",
    }


def _ratio(area: float, side: float) -> float:
    """Return how far a rectangle of *area* with one *side* is from a square: 1 and more."""
    other = area / side if side else 0.0
    return max(side, other) / min(side, other) if side and other else math.inf


_Box = tuple[float, float, float, float]
"""Left, top, width and height."""


def _squarified(values: Sequence[int], box: _Box) -> list[_Box]:
    """Return a box for each of *values*, the largest first, nearly square, filling *box*.

    After Bruls, Huizing and van Wijk, "Squarified Treemaps" (2000).
    """
    boxes: list[_Box] = []
    left, top, width, height = box
    rest = float(sum(values)) or 1.0
    place = 0
    while place < len(values):
        short_side = min(width, height)
        scale = width * height / rest
        row, worst = [float(values[place]) * scale], math.inf
        while True:
            total = sum(row)
            side = total / short_side if short_side else 0.0
            ratio = max(_ratio(part, side) for part in row)
            if ratio > worst and len(row) > 1:
                row.pop()
                break
            worst = ratio
            if place + len(row) >= len(values):
                break
            row.append(float(values[place + len(row)]) * scale)
        thickness = sum(row) / short_side if short_side else 0.0
        offset = 0.0
        for part in row:
            length = part / thickness if thickness else 0.0
            if width >= height:
                boxes.append((left, top + offset, thickness, length))
            else:
                boxes.append((left + offset, top, length, thickness))
            offset += length
        if width >= height:
            left, width = left + thickness, max(width - thickness, 0.0)
        else:
            top, height = top + thickness, max(height - thickness, 0.0)
        rest -= sum(values[place : place + len(row)])
        place += len(row)
    return boxes


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
