"""Filters of index lines: `[!][=|~]field:value`. Pure.

Without a mark the value has to occur in the field; `=` asks for the whole field, `~` for a regular
expression that matches at its beginning; `!` turns a filter round. Without a field the whole line is
looked at.

Expressions come from whoever asks. They are those of RE2, which takes time in proportion to the text,
so that none can keep the server busy; backreferences and lookaround, which RE2 cannot have, are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.errors import UsageError
from amicrawl.index.lookup.row import field_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.index.lookup.row import Row

LONGEST = 1_000
"""Characters of a filter."""

_WRITTEN = re.compile(r"(!?)([=~]?)(?:([A-Za-z0-9_.-]{1,64}):)?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Filter:
    """One condition."""

    inverted: bool
    mark: str
    """`=` for the whole value, `~` for an expression, empty for a part of it."""
    field: str
    """Empty for the whole line."""
    value: str

    def keeps(self, rows: Sequence[Row]) -> list[bool]:
        """Tell of each of *rows* whether it passes."""
        if self.field:
            texts = [row.fields.get(self.field, "") for row in rows]
        else:
            texts = [row.line.decode("utf-8", "replace") for row in rows]
        if self.mark == "~":
            found = _matches(texts, self.value)
        elif self.mark == "=":
            found = [text == self.value for text in texts]
        else:
            found = [self.value in text for text in texts]
        return [each != self.inverted for each in found]


def filter_of(written: str) -> Filter:
    """Read a filter; UsageError where it is none."""
    if len(written) > LONGEST:
        raise UsageError(f"A filter has {LONGEST} characters at most.")
    parts = _WRITTEN.fullmatch(written)
    if parts is None or not parts[4]:
        raise UsageError("filter= is [!][=|~]field:value, for instance =status:200 or ~mime:text/.*")
    made = Filter(bool(parts[1]), parts[2], field_name(parts[3] or ""), parts[4])
    try:
        made.keeps([])
        if made.mark == "~":
            _matches([""], made.value)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise UsageError(f"{made.value!a} is no expression that can be used here: {error}") from error
    return made


def _matches(texts: list[str], expression: str) -> list[bool]:
    found = pc.match_substring_regex(pa.array(texts, pa.string()), f"\\A(?:{expression})")
    return [bool(each) for each in found.to_pylist()]
