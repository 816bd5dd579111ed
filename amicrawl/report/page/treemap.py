"""Where the rectangles of a treemap lie: squarified (Bruls, Huizing and van Wijk 2000). Pure.

The unit square is filled with rectangles whose areas are as the values; each new one joins the present
strip as long as that keeps the strip's worst rectangle nearest to a square.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Area(NamedTuple):
    """A rectangle within the unit square."""

    x: float
    y: float
    width: float
    height: float


def areas(values: Sequence[int]) -> list[Area]:
    """Return an area for each of *values*, which are positive and fall; empty where there are none."""
    total = sum(values)
    if not total:
        return []
    sizes = [value / total for value in values]
    placed: list[Area] = []
    free = Area(0.0, 0.0, 1.0, 1.0)
    begin = 0
    while begin < len(sizes):
        end = begin + 1
        side = min(free.width, free.height)
        while end < len(sizes) and _worst(sizes[begin : end + 1], side) <= _worst(
            sizes[begin:end], side
        ):
            end += 1
        strip, free = _laid(sizes[begin:end], free)
        placed += strip
        begin = end
    return placed


def _worst(sizes: Sequence[float], side: float) -> float:
    """Return how far from a square the worst of *sizes* is in a strip along *side*."""
    total = sum(sizes)
    if not total or not side:
        return float("inf")
    return max(side**2 * max(sizes) / total**2, total**2 / (side**2 * max(min(sizes), 1e-12)))


def _laid(sizes: Sequence[float], free: Area) -> tuple[list[Area], Area]:
    """Lay *sizes* along the shorter side of *free*; return them and what is left of it."""
    total = sum(sizes)
    strip = []
    if free.width >= free.height:
        thick = min(total / free.height, free.width) if free.height else 0.0
        y = free.y
        for size in sizes:
            height = size / thick if thick else 0.0
            strip.append(Area(free.x, y, thick, height))
            y += height
        return strip, Area(free.x + thick, free.y, max(free.width - thick, 0.0), free.height)
    thick = min(total / free.width, free.height) if free.width else 0.0
    x = free.x
    for size in sizes:
        width = size / thick if thick else 0.0
        strip.append(Area(x, free.y, width, thick))
        x += width
    return strip, Area(free.x, free.y + thick, free.width, max(free.height - thick, 0.0))
