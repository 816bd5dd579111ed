"""A line on standard error that says how far a command is, written over; none where nobody looks."""

from __future__ import annotations

import sys

_BEGIN = "\r\x1b[K"
"""To the first column, and nothing behind it."""


class ProgressLine:
    """The line."""

    def __init__(self) -> None:
        self._is_watched = sys.stderr.isatty()
        self._is_there = False

    def show(self, text: str) -> None:
        """Have it say *text*, which is harmless."""
        if self._is_watched:
            sys.stderr.write(f"{_BEGIN}{text}")
            sys.stderr.flush()
            self._is_there = True

    def clear(self) -> None:
        """Make room for other lines."""
        if self._is_there:
            sys.stderr.write(_BEGIN)
            sys.stderr.flush()
            self._is_there = False
