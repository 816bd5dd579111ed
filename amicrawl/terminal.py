r"""A terminal: what comes from the web made harmless, columns, readable figures, lines written over.

A URL or an error text may hold anything. Printed raw, an escape sequence moves the cursor, sets the
title or hides lines; a bidirectional override shows `gpj.exe` as `exe.jpg`. So whatever is not printable
is shown as Python would write it (`\x1b`, `\u202e`).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

LIMIT = 500
"""Characters after which a text is cut."""

_WIDEST = 40
_REDRAW_SECONDS = 0.2
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_ERASE_DOWN = "\x1b[J"
_SEPARATOR = " | "
_COLOURS = (
    (re.compile(r"(?<=\[)(?:█+|#+)"), "32"),
    (re.compile(r"(?<= )ok [0-9,]+"), "32"),
    (re.compile(r"(?<= )4xx [0-9,]+"), "33"),
    (re.compile(r"(?<= )(?:5xx|failed) [0-9,]+"), "31"),
    (re.compile(r"(?:PAUSED|STOPPING)[^|]*[^| ]"), "1;33"),
    (re.compile(r"next in [^|]+: .*"), "2"),
)
"""What is coloured of a line, and how (ECMA-48, SGR): the figures that people look for."""
_UTF8 = frozenset({"utf-8", "utf8"})


def keep_standard_streams() -> None:
    """Open those of the streams 0 to 2 that are closed, for nothing to be read from or written to.

    Otherwise the next file that is opened gets the number, and what is printed goes into it.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False, encoding="utf-8"))


def harmless(text: str, *, limit: int = LIMIT) -> str:
    """Return *text* with everything unprintable escaped, cut to *limit* characters of it."""
    return visible(text if len(text) <= limit else text[: limit - 1] + "…")


def visible(text: str) -> str:
    """Return *text*, however long, with everything unprintable escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def aligned(rows: Sequence[Sequence[str]], *, right: Sequence[bool]) -> Iterator[str]:
    """Yield *rows* as lines of aligned columns; where *right* is true, cells end below each other.

    A column is at most 40 characters wide: what is longer sticks out in its own line only.
    """
    widths = [min(_WIDEST, max(map(len, column))) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def human_size(size: int) -> str:
    """Return *size* in bytes the way people read it: `976 B`, `1.4 MiB`."""
    steps = min(max(size.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    return f"{size / 1024**steps:,.1f} {_UNITS[steps]}" if steps else f"{size} B"


def counted(number: int, noun: str) -> str:
    """Return *number* with its *noun*, plural or not: `1 file`, `3 fetches`, `2 entries`."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{number:,} {noun if number == 1 else f'{noun[:-1]}ies'}"
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def human_span(seconds: int) -> str:
    """Return a span of time in the largest unit of which it has two: `90 s`, `5 min`, `2 days`."""
    for unit, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit:,} {name}"
    return f"{seconds} s"


def bar(done: int, total: int, *, width: int = 24, ascii_only: bool = False) -> str:
    """Return how much of *total* is *done* as a bar and per cent: `[######------] 50 %`."""
    share = min(1.0, done / total) if total > 0 else 0.0
    full, empty = ("#", "-") if ascii_only else ("█", "░")
    filled = int(share * width)
    return f"[{full * filled}{empty * (width - filled)}] {int(share * 100):3} %"


def _fitted(line: str, width: int) -> list[str]:
    """Return *line* in one or two lines of *width* characters: it is broken where a figure ends."""
    place = line.rfind(_SEPARATOR, 0, width) if len(line) > width else -1
    if place <= 0:
        return [line[:width]]
    return [line[:place], f"  {line[place + len(_SEPARATOR) :]}"[:width]]


def _coloured(line: str) -> str:
    for pattern, colour in _COLOURS:
        line = pattern.sub(f"\x1b[{colour}m\\g<0>\x1b[0m", line)
    return line


class ProgressBar:
    """A bar on the last line of a terminal, shown five times a second; nothing without a terminal."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        """Write to *stream*, which is standard error unless given; nothing at all if *quiet*."""
        self._lines = LiveLines(stream)
        self._lines.is_watched &= not quiet
        self._next = 0.0
        self.clear = self._lines.clear

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, done: int, total: int, text: str) -> None:
        """Show that of *total*, 0 where it is not known, so much is *done*, and *text*."""
        if not self._lines.is_watched or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _REDRAW_SECONDS
        drawn = f"{bar(done, total, ascii_only=self._lines.is_ascii)} " if total else ""
        self._lines.show(f"{drawn}{text}")


class LiveLines:
    """Lines at the end of a terminal that are written over; none where standard error is not a terminal.

    Other lines go above them after `clear`. Several threads may use it.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to *stream*, which is standard error unless given."""
        self._stream = sys.stderr if stream is None else stream
        self._lengths: list[int] = []
        """Characters of each line that is shown."""
        self._lock = threading.Lock()
        self.is_watched = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        # https://no-color.org: set to anything but nothing.
        self.is_coloured = self.is_watched and not os.environ.get("NO_COLOR")
        self.is_ascii = (getattr(self._stream, "encoding", None) or "ascii").lower() not in _UTF8

    def show(self, *lines: str) -> None:
        """Have them say *lines*, which are harmless; each is broken or cut to fit into the terminal."""
        if not self.is_watched:
            return
        size = shutil.get_terminal_size()
        fitted = [part for line in lines for part in _fitted(line, size.columns - 1)]
        shown = fitted[: max(1, size.lines - 1)]
        written = map(_coloured, shown) if self.is_coloured else shown
        with self._lock:
            self._write(self._start() + "\n".join(written) + "\r")
            self._lengths = list(map(len, shown))

    def clear(self) -> None:
        """Make room for other lines."""
        with self._lock:
            if self._lengths:
                self._write(self._start())
                self._lengths = []

    def _start(self) -> str:
        """Return what leads to the first of the lines, and takes them away.

        A terminal that has become narrower since shows each on as many lines as it takes.
        """
        columns = max(shutil.get_terminal_size().columns, 1)
        # The cursor is where the last one begins.
        height = sum(max(1, -(-length // columns)) for length in self._lengths[:-1])
        up = f"\x1b[{height}A" if height else ""
        return f"\r{up}{_ERASE_DOWN}"

    def _write(self, text: str) -> None:
        # The work goes on when the terminal is closed.
        with contextlib.suppress(OSError):
            self._stream.write(text)
            self._stream.flush()
