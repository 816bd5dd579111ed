"""Rates: how fast the figures of a job grow, for crawls that do not tell it themselves. Pure."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

OVER = 10.0
"""Seconds over which a rate is averaged."""


class Point(NamedTuple):
    """The figures of a job at a moment, in seconds of any clock that goes on."""

    at: float
    items: int
    bytes: int
    lines: int


class Rates:
    """The figures of one job over the last seconds."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=64)

    def add(self, point: Point) -> None:
        """Take note of *point*. Figures that went back, as of a job that began anew, begin anew here."""
        if self._points and point[1:] < self._points[-1][1:]:
            self._points.clear()
        self._points.append(point)
        while len(self._points) > 2 and self._points[1].at < point.at - OVER:
            self._points.popleft()

    def items(self) -> float | None:
        """Return items a second, None while that is unknown."""
        return self._rate(1)

    def bytes(self) -> float | None:
        """Return bytes a second."""
        return self._rate(2)

    def lines(self) -> float:
        """Return log lines a second."""
        return self._rate(3) or 0.0

    def _rate(self, column: int) -> float | None:
        if len(self._points) < 2:
            return None
        first, last = self._points[0], self._points[-1]
        seconds = last.at - first.at
        return max(0.0, last[column] - first[column]) / seconds if seconds > 0 else None
