"""What the settings of a job may be: checked before they are stored, since a crawl cannot answer. Pure.

The ranges are those of ArchiveBot's commands.
"""

from __future__ import annotations

from amicrawl.discovery import IgnoreSet
from amicrawl.errors import UsageError

LONGEST_PATTERN = 2_000
"""Bytes of an ignore expression."""
LONGEST_DELAY = 9_999_999
"""Milliseconds."""
MOST_CONCURRENCY = 99
LONGEST_NOTE = 1_000
"""Characters."""


def checked_delay(least: int, greatest: int) -> tuple[int, int]:
    """Return both, milliseconds; raises UsageError where they do not make a range."""
    if not 0 <= least <= greatest <= LONGEST_DELAY:
        raise UsageError(
            f"A delay of {least} to {greatest} ms is not a range: the minimum must not exceed the "
            f"maximum, and both are from 0 to {LONGEST_DELAY}."
        )
    return least, greatest


def checked_concurrency(number: int) -> int:
    """Return *number*; raises UsageError where it is none of requests at once."""
    if not 1 <= number <= MOST_CONCURRENCY:
        raise UsageError(f"A concurrency of {number} is out of range: 1 to {MOST_CONCURRENCY}.")
    return number


def checked_note(text: str) -> str:
    """Return *text* without blanks around it; raises UsageError where it cannot be shown on one line."""
    note = text.strip()
    if len(note) > LONGEST_NOTE or not note.isprintable():
        raise UsageError(f"A note is one line of at most {LONGEST_NOTE} printable characters.")
    return note


def checked_pattern(pattern: str) -> str:
    """Return *pattern*; raises UsageError, saying why, where no crawl could ignore by it."""
    if not pattern or not pattern.isprintable():
        raise UsageError(
            f"{pattern[:60]!r} is not an ignore expression, which is one line of printable text."
        )
    if len(pattern.encode()) > LONGEST_PATTERN:
        raise UsageError(f"The ignore expression has more than {LONGEST_PATTERN} bytes. Shorten it.")
    IgnoreSet().add(pattern)
    return pattern
