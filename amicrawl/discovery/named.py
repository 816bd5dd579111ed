"""Named ignore sets: the files in `sets`, one for each name, which is that of the file.

    # what it keeps out, and why nothing of value is lost
    #+ http://example.org/a-url-that-it-keeps-out
    #- http://example.org/one-that-it-lets-in
    the regular expression

The examples are checked by a test, so a set cannot say one thing and do another. Lines that are empty
separate; an expression that begins with `#` or a blank cannot be written.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import NamedTuple

from amicrawl.errors import UsageError


class Entry(NamedTuple):
    """One expression of a set."""

    expression: str
    comment: str
    ignored: tuple[str, ...]
    """Examples of URLs that it is found in."""
    kept: tuple[str, ...]
    """Examples of URLs that it is not found in."""


def set_names() -> list[str]:
    """Return the names of the shipped sets, sorted."""
    files = resources.files(__package__).joinpath("sets").iterdir()
    return sorted(file.name.removesuffix(".txt") for file in files if file.name.endswith(".txt"))


@cache
def ignore_set(name: str) -> tuple[Entry, ...]:
    """Return the entries of the set *name*; raises UsageError, naming those there are, if it is none."""
    if name not in set_names():
        raise UsageError(f"there is no ignore set {name!r}; there are {', '.join(set_names())}")
    text = resources.files(__package__).joinpath("sets", f"{name}.txt").read_text(encoding="utf-8")
    return tuple(entries_in(text))


def entries_in(text: str) -> list[Entry]:
    """Read a set; the comments and examples in front of an expression belong to it."""
    entries: list[Entry] = []
    comment: list[str] = []
    ignored: list[str] = []
    kept: list[str] = []
    for written in text.splitlines():
        line = written.strip()
        if line.startswith("#+"):
            ignored.append(line[2:].strip())
        elif line.startswith("#-"):
            kept.append(line[2:].strip())
        elif line.startswith("#"):
            comment.append(line[1:].strip())
        elif line:
            entries.append(Entry(line, " ".join(comment), tuple(ignored), tuple(kept)))
            comment, ignored, kept = [], [], []
        elif comment and not ignored and not kept:
            comment = []  # a heading, set off by an empty line
    return entries
