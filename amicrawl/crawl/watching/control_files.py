"""Control files: a crawl that runs is steered by what is written into its directory `control`.

    delay         seconds between two requests to a host, one number
    concurrency   requests that may be in flight at most, one whole number
    per_host      requests to one host that may be in flight at once, one whole number
    ignores       ignore patterns, one a line
    pause         nothing new is fetched while it is there
    stop          the crawl is drained and sealed

In the first four, empty lines and lines that begin with `#` say nothing. A file that is taken away takes
its value with it: what was configured counts again. This module reads and writes them; `control` does
what they say.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING

from amicrawl.disk import explained, readable, replace_file
from amicrawl.errors import InputError, UsageError
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amicrawl.disk import Disk

DIRECTORY = "control"
"""Where they are, in the output directory."""
SIZE_LIMIT = 1024**2
"""Bytes of the largest file that is read."""
_MOST_PATTERNS = 1000
_LONGEST_DELAY = 24 * 3600
_SHOWN = 60

Line = tuple[int, str]
"""A line that says something, behind its number."""


class ControlFile:
    """One control file, looked at again and again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether there is a file of that name, whatever it holds."""
        return bool(self._seen)

    def has_changed(self) -> bool:
        """Look, and tell whether it is another file than the last time, or has come or gone."""
        try:
            found = self.path.stat()
        except OSError:
            seen: tuple[int, ...] = ()
        else:
            seen = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)
        if seen == self._seen:
            return False
        self._seen = seen
        return True

    def lines(self) -> Sequence[Line]:
        """Return the lines that say something, without outer space.

        Raises InputError where it cannot be read, is too large or is not text.
        """
        with readable(self.path):
            # Not to wait for a writer where it is a pipe.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise InputError(f"{self.path} is not a file. Write one in its place.")
                content = file.read(SIZE_LIMIT + 1)
        if len(content) > SIZE_LIMIT:
            raise InputError(f"{self.path} is larger than {SIZE_LIMIT} bytes.")
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise InputError(f"{self.path}, line {line}: this is not UTF-8 text.") from error
        return list(_saying(text))


MOST = 1_000_000
"""The greatest number of `concurrency` and `per_host` that is written."""
_EDITED = ("delay", "concurrency", "per_host", "ignores", "pause", "stop")
"""The names of control files."""


def write_control(directory: Path, name: str, text: str | None, *, disk: Disk) -> None:
    """Have the control file *name* of the crawl in *directory* say *text*; None removes it.

    Raises UsageError for a name that is none, InputError for what a crawl would not follow, OutputError
    where it cannot be written.
    """
    if name not in _EDITED:
        raise UsageError(f"{name!r} is not a control file. There are {', '.join(_EDITED)}.")
    path = directory / DIRECTORY / name
    if text is None:
        with explained(path, "removed"), suppress(FileNotFoundError):
            disk.remove(path)
        return
    lines = list(_saying(text))
    if name == "delay":
        seconds_in(path, lines)
    elif name in ("concurrency", "per_host"):
        count_in(path, lines, most=MOST)
    elif name == "ignores":
        # A crawl of a list has no use for what judges patterns.
        from amicrawl.discovery import IgnoreSet  # noqa: PLC0415

        for number, pattern in few_enough(path, lines):
            try:
                IgnoreSet().add(pattern)
            except UsageError as fault:
                raise InputError(f"{path}, line {number}: {fault}") from fault
    if len(text.encode()) > SIZE_LIMIT:
        raise InputError(f"{path} would be larger than {SIZE_LIMIT} bytes.")
    with explained(path.parent, "created"):
        path.parent.mkdir(exist_ok=True)
    replace_file(path, text.encode(), disk=disk)


def few_enough(path: Path, lines: Sequence[Line]) -> Sequence[Line]:
    """Return the patterns in *lines* of *path*; raises InputError for too many."""
    if len(lines) > _MOST_PATTERNS:
        raise InputError(
            f"{path}, line {lines[_MOST_PATTERNS][0]}: more than {_MOST_PATTERNS} patterns."
        )
    return lines


def seconds_in(path: Path, lines: Sequence[Line]) -> float:
    """Return the one number of seconds in *lines* of *path*; raises InputError for anything else."""
    line, text = _only(path, lines)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not isfinite(seconds) or not 0 <= seconds <= _LONGEST_DELAY:
        raise InputError(
            f"{path}, line {line}: {_quoted(text)} is not a number of seconds from 0 to "
            f"{_LONGEST_DELAY}. Write one, as in 2.5; a range is not taken."
        )
    return seconds


def count_in(path: Path, lines: Sequence[Line], *, most: int) -> int:
    """Return the one whole number from 1 to *most* in *lines* of *path*; raises InputError as above."""
    line, text = _only(path, lines)
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= most:
        raise InputError(
            f"{path}, line {line}: {_quoted(text)} is not a whole number from 1 to {most}. Write one."
        )
    return number


def _only(path: Path, lines: Sequence[Line]) -> Line:
    if not lines:
        raise InputError(f"{path}, line 1: there is no number. Write one, or remove the file.")
    if len(lines) > 1:
        raise InputError(f"{path}, line {lines[1][0]}: one number is enough. Remove this line.")
    return lines[0]


def _saying(text: str) -> Iterator[Line]:
    for number, line in enumerate(text.split("\n"), start=1):
        said = line.strip()
        if said and not said.startswith("#"):
            yield number, said


def _quoted(text: str) -> str:
    return f"'{harmless(text, limit=_SHOWN)}'"
