"""Octets looked through once: where their lines end, and where quotation marks stand in them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_QUOTE, _LF, _SPACE = b'"\n '


class Marks:
    """Whole lines, each ended by LF, and the marks in them: quotation marks, and each line's LF."""

    def __init__(self, view: NDArray[np.uint8]) -> None:
        """Look through *view*; it ends in LF."""
        # Control characters are found on the way: there are none but LF in lines that are plain. With
        # one bit turned a quotation mark comes next behind them, so that one comparison finds both.
        all_ = np.flatnonzero((view ^ (_QUOTE ^ _SPACE)) <= _SPACE)
        found = view[all_]
        is_end = found == _LF
        has_controls = np.count_nonzero(found == _QUOTE) + np.count_nonzero(is_end) < len(found)
        if has_controls:
            controls = all_[(found != _QUOTE) & ~is_end]
            kept = (found == _QUOTE) | is_end
            all_, is_end = all_[kept], is_end[kept]
        ends = np.flatnonzero(is_end)
        self.ends: NDArray[np.int64] = all_[ends]
        """Where the LF of each line stands."""
        self.starts: NDArray[np.int64] = np.concatenate(([0], self.ends + 1))[:-1]
        """Where each line begins."""
        self.first: NDArray[np.int64] = np.concatenate(([0], ends + 1))[:-1]
        """The number of the first mark of each line."""
        self.quotes: NDArray[np.int64] = ends - self.first
        """How many quotation marks each line has."""
        self.places: NDArray[np.int64] = all_
        """Where each mark stands."""
        self.with_controls = self.lines_of(controls) if has_controls else np.empty(0, np.int64)
        """The numbers of the lines that hold control characters."""

    def lines_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of the lines that the octets at *places* stand in."""
        return np.unique(np.searchsorted(self.ends, places))

    def of(self, rows: NDArray[np.int64], quotes: int) -> NDArray[np.int64]:
        """Return the places of the marks of *rows*, lines that have so many *quotes*, a row for each."""
        count = quotes + 1
        if len(rows) * count == len(self.places):
            return self.places.reshape(-1, count)
        # Taken as one thing each, rows are copied whole.
        whole = np.ndarray(
            (len(self.places) - quotes,), f"V{8 * count}", buffer=self.places.data, strides=(8,)
        )
        return whole[self.first[rows]].view(np.int64).reshape(-1, count)
