"""Public suffixes as tables of captures have them: two answers a host, one for each section of the list.

The registry suffix knows only what registries sell names under (`co.uk`); the private suffix knows also
the names of companies that let others have names below their own (`blogspot.com`). The rules are those
of the tables that exist, which differ from the text of the Public Suffix List in two places: a name that
no rule covers has no suffix at all, and the name of an exception is its own suffix and its own domain.

The list is the one that the installed `publicsuffixlist` package carries; nothing goes to the network.
"""

from __future__ import annotations

import re
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from publicsuffixlist import PSLFILE

from amicrawl.urls.suffix import Rules

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

LONGEST_LABEL = 63
"""Octets of a label that DNS allows; a domain whose own label is longer is none."""

_VERSION = re.compile(r"//\s*VERSION:\s*(\S{1,64})")
_END_OF_REGISTRIES = "===END ICANN DOMAINS==="
_LINES_AT_THE_TOP = 40


class SuffixAndDomain(NamedTuple):
    """What one section of the list says about a host."""

    suffix: str | None
    domain: str | None
    """The suffix and one label more; None where the host is the suffix."""


NOTHING = SuffixAndDomain(None, None)


class Suffixes(NamedTuple):
    """Both answers for a host."""

    registry: SuffixAndDomain
    private: SuffixAndDomain


def suffixes_of(labels: Sequence[str]) -> Suffixes:
    """Return the suffixes and domains of the host with *labels*: lower case, ASCII, not an address."""
    of_registries, all_ = _rules()
    registry, private = _applied(of_registries, labels), _applied(all_, labels)
    if private.suffix is None or "." not in private.suffix:
        private = registry
    return Suffixes(registry, private)


@cache
def list_version() -> str:
    """Return the version that the installed list states for itself; "unknown" where it states none."""
    with Path(PSLFILE).open(encoding="utf-8") as lines:
        for _, line in zip(range(_LINES_AT_THE_TOP), lines, strict=False):
            if found := _VERSION.match(line):
                return found[1]
    return "unknown"


@cache
def _rules() -> tuple[Rules, Rules]:
    """Return the rules of the first section, and all of them."""
    with Path(PSLFILE).open(encoding="utf-8") as lines:
        first = Rules.read(iter(partial(_line_of_registries, lines), ""))
        rest = Rules.read(lines)
    return first, Rules(
        first.exact | rest.exact,
        first.wildcards | rest.wildcards,
        first.exceptions | rest.exceptions,
        max(first.depth, rest.depth),
    )


def _line_of_registries(lines: TextIO) -> str:
    """Return the next of *lines*; an empty text at the end of the first section."""
    line = lines.readline()
    return "" if _END_OF_REGISTRIES in line else line


def _applied(rules: Rules, labels: Sequence[str]) -> SuffixAndDomain:
    listed, name = 0, ""
    for count, label in enumerate(reversed(labels[-rules.depth - 1 :]), 1):
        parent, name = name, f"{label}.{name}" if name else label
        if name in rules.exceptions:
            return SuffixAndDomain(name, name)
        if name in rules.exact or (parent and parent in rules.wildcards):
            listed = count
    if not listed:
        return NOTHING
    suffix = ".".join(labels[-listed:])
    if len(labels) <= listed or not 0 < len(labels[-listed - 1]) <= LONGEST_LABEL:
        return SuffixAndDomain(suffix, None)
    return SuffixAndDomain(suffix, f"{labels[-listed - 1]}.{suffix}")
