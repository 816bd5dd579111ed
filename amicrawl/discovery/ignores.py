"""Ignores: expressions that keep URLs out of a crawl, changed while it runs, their hits counted.

The meaning is ArchiveBot's: a regular expression of Python, case-sensitive, is searched anywhere in the
URL as the crawl has it. `{primary_url}` and `{primary_netloc}` in it stand for the start URL that the
URL comes from, and for its host and port, taken literally; any other brace is the expression's own. Of
several that hold, the first literal one is reported, or else the first. What differs: an expression that
cannot be used is refused when it is added and stops nothing else; the placeholders mean the start URL,
never the page before; an expression is compiled once.

The shipped sets are the files in `sets`, each with the name of its file:

    # what it keeps out, and why nothing of value is lost
    #+ http://example.org/a-url-that-it-keeps-out
    #- http://example.org/one-that-it-lets-in
    the regular expression

The examples are checked by a test, so a set cannot say one thing and do another. Empty lines separate;
an expression that begins with `#` or white space cannot be written.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.discovery.expression import Expression, searchable, searching
from amicrawl.errors import UsageError
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class IgnoreEntry(NamedTuple):
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
def ignore_set(name: str) -> tuple[IgnoreEntry, ...]:
    """Return the entries of the set *name*; raises UsageError, naming those there are, if it is none."""
    if name not in set_names():
        raise UsageError(f"there is no ignore set {name!r}; there are {', '.join(set_names())}")
    text = resources.files(__package__).joinpath("sets", f"{name}.txt").read_text(encoding="utf-8")
    return tuple(entries_in(text))


def entries_in(text: str) -> list[IgnoreEntry]:
    """Read a set; the comments and examples in front of an expression belong to it."""
    entries: list[IgnoreEntry] = []
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
            entries.append(IgnoreEntry(line, " ".join(comment), tuple(ignored), tuple(kept)))
            comment, ignored, kept = [], [], []
        elif comment and not ignored and not kept:
            comment = []  # a heading, set off by an empty line
    return entries


_PLACEHOLDERS = ("{primary_url}", "{primary_netloc}")
_SAMPLE = "http://a.example/"
_REMEMBERED = 256
"""Start URLs for which the expressions with placeholders stay compiled."""


class Ignored(NamedTuple):
    """The expression that keeps a URL out."""

    expression: str
    """As it was added, placeholders and all."""
    source: str
    """Who added it: the name of a set, or what the caller said."""


class IgnoreSet:
    """The ignore expressions of one crawl. For one thread."""

    def __init__(self) -> None:
        self.added = 0
        """How many expressions were added so far, those that were removed since included."""
        self._sources: dict[str, str] = {}
        self._hits: dict[str, int] = {}
        self._static: dict[str, Expression] = {}
        self._with_placeholder: list[str] = []
        self._filled: OrderedDict[str, list[tuple[str, Expression]]] = OrderedDict()
        self._batches: list[tuple[Callable[[str], object] | None, list[Expression]]] | None = None

    @classmethod
    def of_sets(cls, *names: str) -> IgnoreSet:
        """Return the shipped sets *names* together; raises UsageError for one that is not there."""
        ignores = cls()
        for name in names:
            ignores.add_set(name)
        return ignores

    def __len__(self) -> int:
        return len(self._sources)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    @property
    def has_placeholders(self) -> bool:
        """Whether an expression refers to the start URL that a URL comes from."""
        return bool(self._with_placeholder)

    @property
    def hits(self) -> Mapping[str, int]:
        """URLs that each expression has kept out, in the order in which they were added."""
        return self._hits

    @property
    def kept_out(self) -> dict[str, int]:
        """URLs that each expression has kept out, those that kept out most first; none without."""
        found = sorted((-count, text) for text, count in self._hits.items() if count)
        return {text: -count for count, text in found}

    @property
    def kept_out_by_sets(self) -> dict[str, int]:
        """URLs that each shipped set has kept out, in the same order; none without."""
        names, found = set(set_names()), Counter[str]()
        for text, count in self._hits.items():
            if count and (source := self.source_of(text)) in names:
                found[source] += count
        return dict(found.most_common())

    def source_of(self, expression: str) -> str:
        """Return who added *expression*; empty if unknown."""
        return self._sources.get(expression, "")

    def add(self, expression: str, *, source: str = "") -> None:
        """Add *expression*, unless it is there; raises UsageError, saying why, if it cannot be used."""
        if expression in self._sources:
            return
        if any(placeholder in expression for placeholder in _PLACEHOLDERS):
            _filled(expression, _SAMPLE)
            self._with_placeholder.append(expression)
            self._filled.clear()
        else:
            self._static[expression] = Expression(expression)
            self._batches = None
        self._sources[expression] = source
        self._hits[expression] = 0
        self.added += 1

    def add_set(self, name: str) -> None:
        """Add the shipped set *name*; raises UsageError, naming those there are, if it is none."""
        for entry in ignore_set(name):
            self.add(entry.expression, source=name)

    def remove(self, expression: str) -> bool:
        """Remove *expression* and its count; return whether it was there."""
        if self._sources.pop(expression, None) is None:
            return False
        del self._hits[expression]
        if self._static.pop(expression, None) is not None:
            self._batches = None
        else:
            self._with_placeholder.remove(expression)
            self._filled.clear()
        return True

    def match(self, url: str, *, primary: str = "") -> Ignored | None:
        """Return what keeps *url* out, and count it, or None if nothing does.

        *primary* is the start URL that it comes from; without one, expressions with placeholders say
        nothing.
        """
        expression = self._first(url if url.isascii() else searchable(url), primary)
        if expression is None:
            return None
        self._hits[expression] += 1
        return Ignored(expression, self._sources[expression])

    def _first(self, url: str, primary: str) -> str | None:
        if self._batches is None:
            self._batches = self._batched()
        for any_in, expressions in self._batches:
            if any_in is None or any_in(url) is not None:
                for expression in expressions:
                    if expression.found_in(url):
                        return expression.text
        if primary and self._with_placeholder:
            for text, filled in self._for_primary(primary):
                if filled.found_in(url):
                    return text
        return None

    def _batched(self) -> list[tuple[Callable[[str], object] | None, list[Expression]]]:
        """Sort the expressions into batches, each with one search that says whether any can hold.

        Most URLs are in none. RE2 tells that for all of its expressions in one go; literal ones come
        first, since they are reported first.
        """
        literal = [expression for expression in self._static.values() if expression.literal]
        others = [expression for expression in self._static.values() if not expression.literal]
        for_re2 = [expression for expression in others if expression.engine == "re2"]
        for_regex = [expression for expression in others if expression.engine == "regex"]
        batches: list[tuple[Callable[[str], object] | None, list[Expression]]] = []
        for some in (literal, for_re2):
            if some:
                joined = "|".join(f"(?:{expression.text})" for expression in some)
                batches.append((searching(joined), some))
        if for_regex:
            batches.append((None, for_regex))
        return batches

    def _for_primary(self, primary: str) -> list[tuple[str, Expression]]:
        filled = self._filled.get(primary)
        if filled is None:
            filled = []
            for expression in self._with_placeholder:
                try:
                    filled.append((expression, _filled(expression, primary)))
                except UsageError:  # the start URL is too long to be part of an expression
                    continue
            self._filled[primary] = filled
            if len(self._filled) > _REMEMBERED:
                self._filled.popitem(last=False)
        else:
            self._filled.move_to_end(primary)
        return filled


def _filled(expression: str, primary: str) -> Expression:
    """Return *expression* with *primary* in the place of its placeholders."""
    found = fetchable(primary)
    url = searchable(primary) if isinstance(found, Refused) else found.url
    netloc = "" if isinstance(found, Refused) else found.wire_url.partition("://")[2].partition("/")[0]
    url_placeholder, netloc_placeholder = _PLACEHOLDERS
    text = expression.replace(url_placeholder, re.escape(url))
    return Expression(text.replace(netloc_placeholder, re.escape(netloc)))
