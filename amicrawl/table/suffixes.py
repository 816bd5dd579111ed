"""Public suffixes as tables of captures have them: two answers a host, one for each section of the list.

The registry suffix knows only what registries sell names under (`co.uk`); the private suffix knows also
the names of companies that let others have names below their own (`blogspot.com`). The rules are those
of the tables that exist, which differ from the text of the Public Suffix List in two places: a name that
no rule covers has no suffix at all, and the name of an exception is its own suffix and its own domain.

The list is the one that the installed `publicsuffixlist` package carries; nothing goes to the network.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from publicsuffixlist import PSLFILE, PublicSuffixList

from amicrawl.urls.suffix import covered_by_rules, exceptions

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_LABEL = 63
"""Octets of a label that DNS allows; a domain whose own label is longer is none."""

_LABELS = 16
"""More than any rule has; further labels in front do not matter."""
_VERSION = re.compile(r"//\s*VERSION:\s*(\S{1,64})")
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
    labels = labels[-_LABELS:]
    registry, private = (_applied(each, labels) for each in _lists())
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
def _lists() -> tuple[PublicSuffixList, PublicSuffixList]:
    """Return the first section of the list, and all of it."""
    whole = PublicSuffixList(accept_unknown=False)
    return PublicSuffixList(accept_unknown=False, only_icann=True), whole


@cache
def _exceptions() -> tuple[str, ...]:
    return tuple(f".{name}" for name in exceptions())


def _applied(rules: PublicSuffixList, labels: Sequence[str]) -> SuffixAndDomain:
    host = ".".join(labels)
    if f".{host}".endswith(_exceptions()):
        name = next(name for name in exceptions() if f".{host}".endswith(f".{name}"))
        return SuffixAndDomain(name, name)
    suffix = rules.publicsuffix(covered_by_rules(host))
    if suffix is None:
        return NOTHING
    listed = suffix.count(".") + 1
    if len(labels) <= listed or not 0 < len(labels[-listed - 1]) <= LONGEST_LABEL:
        return SuffixAndDomain(suffix, None)
    return SuffixAndDomain(suffix, f"{labels[-listed - 1]}.{suffix}")
