"""SURT prefixes: which of many a SURT begins with, found in one look. Pure.

No prefix that is kept begins with another one. So whatever a SURT begins with is, in the order of their
characters, the last prefix that is not behind it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class SurtPrefixes:
    """A set of SURT prefixes. Looking takes the logarithm of their number."""

    def __init__(self, written: Iterable[str] = ()) -> None:
        """Take the prefixes *written*; raises UsageError as `add` does."""
        self._sorted: list[str] = []
        for prefix in written:
            self.add(prefix)

    def __len__(self) -> int:
        return len(self._sorted)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sorted)

    def add(self, written: str) -> None:
        """Add `org,example)/path`, `org,example,` (every host below) or `org,example` (with itself).

        The forms `http://(org,example,` and `(org,example)` are read as well. Raises UsageError for any
        other text.
        """
        prefix = _prefix(written)
        if ")" in prefix or prefix.endswith(","):
            self._add(prefix)
            return
        # Without an end to its last label it would take other names that begin with it.
        for end in ",):":
            self._add(prefix + end)

    def find(self, surt: str) -> str | None:
        """Return the prefix that *surt* begins with, or None."""
        place = bisect_right(self._sorted, surt)
        if place and surt.startswith(self._sorted[place - 1]):
            return self._sorted[place - 1]
        return None

    def _add(self, prefix: str) -> None:
        if self.find(prefix) is not None:
            return
        # Those that begin with the new one stand behind it, one after the other.
        first = last = bisect_left(self._sorted, prefix)
        while last < len(self._sorted) and self._sorted[last].startswith(prefix):
            last += 1
        del self._sorted[first:last]
        insort(self._sorted, prefix)


def _prefix(written: str) -> str:
    prefix = written.strip().lower()
    prefix = prefix.removeprefix("http://").removeprefix("https://").removeprefix("(")
    if not prefix or prefix[0] in ",)/" or "." in prefix.partition(")")[0]:
        raise UsageError(
            f"{written!r} is not a SURT prefix: labels go from the right and end in commas, as in "
            "org,example, or org,example)/path"
        )
    return prefix
