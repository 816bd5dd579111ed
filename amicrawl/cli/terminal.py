r"""Text for a terminal: what comes from the web made harmless, columns aligned, figures readable. Pure.

A URL or an error text may hold anything. Printed raw, an escape sequence moves the cursor, sets the
title or hides lines; a bidirectional override shows `gpj.exe` as `exe.jpg`. So whatever is not printable
is shown as Python would write it (`\x1b`, `\u202e`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LIMIT = 500
"""Characters after which a text is cut."""

_WIDEST = 40
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def harmless(text: str, *, limit: int = LIMIT) -> str:
    """Return *text* with everything unprintable escaped, cut to *limit* characters of it."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


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
    """Return *number* with its *noun*, which takes an s in the plural: `1 file`, `2,000 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def human_span(seconds: int) -> str:
    """Return a span of time in the largest unit of which it has two: `90 s`, `5 min`, `2 days`."""
    for unit, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit:,} {name}"
    return f"{seconds} s"
