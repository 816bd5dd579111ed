r"""Expression: one regular expression that URLs are searched for, in bounded time.

The language is Python's, with `\d`, `\w` and `\b` of ASCII, and `[[:alpha:]]` as POSIX has it. RE2 does
the searching, in time that grows with the URL and no faster. What RE2 does not know (look-around,
back-references, thousands of repetitions) is searched by the `regex` module, which is given `SECONDS`
for a URL: one that takes longer counts as not found, and an expression to which that happens too often
is not searched for any more.
"""

from __future__ import annotations

import logging
import re
import warnings
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes

import re2
import regex

from amicrawl.errors import UsageError
from amicrawl.urls import octets

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

LONGEST = 4096
"""Characters of an expression; a longer one is refused."""
SECONDS = 0.02
"""How long a search may take that RE2 cannot do."""
TIMEOUTS_BORNE = 20
"""Searches of one expression that may take longer than that."""

_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_LITERAL = re.compile(r"(?:[^\\.^$*+?{}\[\]|()]|\\[^A-Za-z0-9])+")
_READ_OTHERWISE = re.compile(r"\{,[0-9]*\}")
"""What RE2 takes for characters, and Python for a number of repetitions."""
_MEMORY = 64 << 20
MOST_REPEATED = 100_000
"""Characters that an expression may have with its repetitions written out, as `regex` does."""
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|\{(?P<times>[0-9]+)(?:,[0-9]*)?\}|.", re.DOTALL)


class Expression:
    """A regular expression, compiled; raises UsageError, saying why, if it cannot be used."""

    __slots__ = ("_search", "_timeouts", "engine", "literal", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        """As written."""
        if not text or len(text) > LONGEST:
            raise UsageError(f"an expression has 1 to {LONGEST} characters, not {len(text)}")
        try:
            with warnings.catch_warnings(action="ignore", category=FutureWarning):
                re.compile(text, re.ASCII)
            search = searching(text)
            if search is None and _written_out(text) > MOST_REPEATED:
                raise UsageError(f"{text!r} repeats more than {MOST_REPEATED:,} characters")
            self.engine = "regex" if search is None else "re2"
            """Which one searches: `re2` or `regex`."""
            self._search = search or regex.compile(text, regex.ASCII).search
        except (re.error, regex.error, RecursionError, OverflowError, UnicodeError) as error:
            raise UsageError(f"{text!r} is not a regular expression: {error}") from error
        self.literal = re.sub(r"\\(.)", r"\1", text) if _LITERAL.fullmatch(text) else ""
        """The one text that it matches; empty where there are others, or that is not easy to tell."""
        self._timeouts = 0

    def found_in(self, url: str) -> bool:
        """Return whether it is found in *url*, which is `searchable`."""
        if self.engine == "re2":
            return self._search(url) is not None
        if self._timeouts >= TIMEOUTS_BORNE:
            return False
        try:
            return self._search(url, timeout=SECONDS) is not None
        except TimeoutError:
            self._timeouts += 1
            if self._timeouts == TIMEOUTS_BORNE:
                logger.warning(
                    "The expression %r is not searched for any more: %d searches took longer than %g s. "
                    "Write it without look-around and back-references",
                    self.text,
                    TIMEOUTS_BORNE,
                    SECONDS,
                )
            return False


def _written_out(text: str) -> int:
    """Return how many characters *text* has about, with what it repeats written out."""
    sizes, last = [0], 0
    for token in _TOKEN.finditer(text):
        if token[0] == "(":
            sizes.append(0)
            continue
        if token["times"] is not None:
            more = last * (int(token["times"]) - 1)
        elif token[0] == ")" and len(sizes) > 1:
            last, more = 0, sizes.pop()
        else:
            last, more = 0, 1
        last += more
        sizes[-1] += more
    return sum(sizes)


def searching(text: str) -> Callable[..., object] | None:
    """Return RE2's search for the expression *text*; None if RE2 cannot do it."""
    if _READ_OTHERWISE.search(text):
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        search: Callable[..., object] = re2.compile(text, options).search
    except re2.error:
        return None
    return search


def searchable(url: str) -> str:
    """Return *url* in ASCII, what is not percent-encoded: as it is requested, and as RE2 can read it."""
    return url if url.isascii() else quote_from_bytes(octets(url), safe=_PRINTABLE)
