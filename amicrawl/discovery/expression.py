r"""Expression: one regular expression that URLs are searched for, in bounded time.

The language is Python's, with `\d`, `\w` and `\b` of ASCII. Where RE2 is installed (`google-re2`), it
does the searching, in time that grows with the URL and no faster. What RE2 does not know (look-around,
back-references), and everything where it is missing, is searched by `re`: then an expression that can
run away is refused (`backtracking.py`), and URLs that are too long for it are not searched.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_from_bytes

from amicrawl.discovery.backtracking import longest_url, required_literal
from amicrawl.errors import UsageError
from amicrawl.urls import octets

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 4096
"""Characters of an expression; a longer one is refused."""

_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


def _installed() -> Any | None:
    try:
        module = import_module("re2")
    except ImportError:
        return None
    # Other packages have had this name, without the options.
    return module if hasattr(module, "Options") else None


RE2: Any | None = _installed()
"""The module of google-re2, or None."""


class Expression:
    """A regular expression, compiled; raises UsageError, saying why, if it cannot be used."""

    __slots__ = ("_literal", "_longest", "_search", "engine", "text")

    def __init__(self, text: str, *, re2: Any | None = RE2) -> None:
        self.text = text
        """As written."""
        if not text or len(text) > LONGEST:
            raise UsageError(f"an expression has 1 to {LONGEST} characters, not {len(text)}")
        try:
            compiled = re.compile(text, re.ASCII)
            self._literal = required_literal(text)
            longest = longest_url(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"{text!r} is no regular expression: {error}") from error
        search = _re2_search(text, re2) if re2 is not None else None
        self.engine = "re" if search is None else "re2"
        """Which one searches: `re2` or `re`."""
        self._search: Callable[[str], object] = compiled.search if search is None else search
        self._longest: int | None = None
        if search is None:
            if isinstance(longest, str):
                raise UsageError(
                    f"{text!r} is refused: {longest}. Write it with classes that exclude what follows "
                    "them, as [^/]+/ does, or install google-re2"
                )
            self._longest = longest

    @property
    def is_literal(self) -> bool:
        """Whether it matches one text only, as it stands."""
        return bool(self._literal) and self._literal == _unescaped(self.text)

    @property
    def literal(self) -> str:
        """A text that every URL has in which it is found; empty where there is none."""
        return self._literal

    def found_in(self, url: str) -> bool:
        """Tell whether it is found in *url*, `searchable`; in one that is too long for it, it is not."""
        if self._literal not in url or (self._longest is not None and len(url) > self._longest):
            return False
        return self._search(url) is not None


def searchable(url: str) -> str:
    """Return *url* in ASCII, what is not percent-encoded: as it is asked for, and as RE2 can read it."""
    return url if url.isascii() else quote_from_bytes(octets(url), safe=_PRINTABLE)


def _re2_search(text: str, re2: Any) -> Callable[[str], object] | None:
    options = re2.Options()
    options.log_errors = False
    try:
        search: Callable[[str], object] = re2.compile(text, options).search
    except re2.error:
        return None
    return search


def _unescaped(text: str) -> str:
    return re.sub(r"\\([^A-Za-z0-9])", r"\1", text)
