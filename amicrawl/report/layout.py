"""Meaning of the columns of a CDX file: by its legend, or by their number. Pure.

    CDX-11   N b a m s k r M S V g
    CDX-9    N b a m s k r V g         no size
    CDX-10   N b a m s k r M V g       no size
    CDX-7    N b a m s k S             responses of the Internet Archive's CDX server

Three further columns behind 9, 10 or 11 (length, offset and file of the original of a revisit) are
allowed. A legend is obeyed on any line, with or without the space before it, so files can be
concatenated; so is the order that Wget uses.
"""

from __future__ import annotations

from typing import NamedTuple

_KNOWN = {
    7: "NbamskS",
    9: "NbamskrVg",
    10: "NbamskrMVg",
    11: "NbamskrMSVg",
    12: "NbamskrVg...",
    13: "NbamskrMVg...",
    14: "NbamskrMSVg...",
}
_NAMES = {"cdx7": 7, "cdx9": 9, "cdx10": 10, "cdx11": 11}


class Layout(NamedTuple):
    """Where the columns are, counted from 0; -1 where there is none."""

    columns: int
    key: int
    time: int
    url: int
    mime: int
    status: int
    digest: int
    size: int
    offset: int = -1
    """Known only where no legend was there; the one number beside the time by which to check a guess."""


def layout_of_letters(letters: str) -> Layout:
    """Return the layout that *letters* name; ValueError where it has no time, URL or neither key."""
    at = {letter: index for index, letter in reversed(list(enumerate(letters)))}
    layout = Layout(
        columns=len(letters),
        key=at.get("N", -1),
        time=at.get("b", -1),
        url=at.get("a", -1),
        mime=at.get("m", -1),
        status=at.get("s", -1),
        digest=at.get("k", -1),
        size=at.get("S", -1),
    )
    if layout.time < 0 or (layout.key < 0 and layout.url < 0):
        raise ValueError("the legend names no time (b), or neither key (N) nor URL (a)")
    return layout


def layout_of_count(columns: int) -> Layout | None:
    """Return the layout of lines of that many columns and no legend, if there is one."""
    letters = _KNOWN.get(columns)
    return layout_of_letters(letters)._replace(offset=letters.find("V")) if letters else None


def layout_named(name: str) -> Layout | None:
    """Return the layout called *name* (cdx7, cdx9, cdx10, cdx11), if there is one."""
    return layout_of_count(_NAMES[name]) if name in _NAMES else None


def legend(line: bytes) -> str | None:
    """Return the letters of a legend line, or None where *line* is something else."""
    words = line.split()
    if not words or words[0] != b"CDX" or any(len(word) != 1 for word in words[1:]):
        return None
    return b"".join(words[1:]).decode("latin-1")
